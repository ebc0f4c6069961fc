"""Backlogs over HTTP: the bucket and its headers, what is refused, and a storm while live states go on."""

from __future__ import annotations

from typing import Any

import trio

from tests.actors.house import START_MS, ManualClock
from tests.e2e.conftest import Server
from tests.patience import PATIENCE_S

BUDGET = {"backlog_states": {"calls": 40, "window_s": 10}, "backlog_batch_states_max": 20}


def past(count: int, first_ms: int = START_MS - 3_600_000) -> list[dict[str, Any]]:
    """States of the last hour, a second apart."""
    return [{"time": first_ms + 1000 * number, "data": {"temp": number}} for number in range(count)]


async def test_a_backlog_has_a_bucket_of_its_own_that_counts_states(start_server: Any) -> None:
    async with start_server(limits=BUDGET, clock=ManualClock()) as server, server.client() as client:
        device = await server.device(await server.application())
        answer = await client.post(f"{device}/state?backlog=true", json=past(15))
        assert (answer.status_code, answer.json()) == (200, {"success": True})
        assert answer.headers["ratelimit-policy"] == '"backlog_states";q=40;w=10'
        assert answer.headers["ratelimit"] == '"backlog_states";r=25;t=10'
        answer = await client.post(f"{device}/state?backlog=true", json=past(1)[0])
        assert answer.headers["ratelimit"] == '"backlog_states";r=24;t=10', "one state without an array"
        live = await client.post(f"{device}/state", json={"data": {"temp": 1}})
        assert live.headers["ratelimit"] == '"send_state";r=29;t=15'
        assert len(await server.call("GET", f"{device}/state?limit=1000")) == 16


async def test_a_backlog_that_waits_too_long_is_told_when_to_come_back(start_server: Any) -> None:
    limits, clock = {**BUDGET, "backlog_wait_s": 1}, ManualClock()
    async with start_server(limits=limits, clock=clock) as server, server.client() as client:
        device = await server.device(await server.application())
        for first_s in (0, 20):
            await server.call("POST", f"{device}/state?backlog=true", past(20, START_MS - 1000 * first_s))
        refused = await client.post(f"{device}/state?backlog=true", json=past(20))
        assert refused.status_code == 429
        assert refused.headers["ratelimit"] == '"backlog_states";r=0;t=10'
        assert refused.headers["retry-after"] == "5"
        assert refused.json()["type"] == "TooManyRequests"
        assert "Nothing of this call was stored" in refused.json()["message"]
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        assert len(await server.call("GET", f"{device}/state?limit=1000")) == 40
        clock.pass_s(10)
        await server.call("POST", f"{device}/state?backlog=true", past(20))


REFUSED: list[tuple[str, Any, int, str]] = [
    ("true", [{"data": {"temp": 1}}], 400, "[0].time: is missing; a state of a backlog needs the time"),
    ("true", {"data": {"temp": 1}}, 400, "time: is missing; a state of a backlog needs the time"),
    ("true", [*past(1), {"time": 1, "data": {"temp": "x"}}], 400, "[1].data.temp: 'x' is not a number"),
    ("true", [*past(1), {}], 400, "[1].data: is missing"),
    ("true", past(21), 413, "21 states in one call; send at most 20 of a backlog a call."),
    ("true", 5, 400, "The body: "),
    ("later", past(1), 400, "backlog: "),
]


async def test_a_refused_backlog_stores_nothing(start_server: Any) -> None:
    async with start_server(limits=BUDGET) as server, server.client() as client:
        device = await server.device(await server.application())
        for flag, body, status, sentence in REFUSED:
            refused = await client.post(f"{device}/state?backlog={flag}", json=body)
            assert (refused.status_code, refused.json()["message"][: len(sentence)]) == (status, sentence)
        json = {"content-type": "application/json"}
        broken = await client.post(f"{device}/state?backlog=true", content=b"[", headers=json)
        assert (broken.status_code, "is not JSON" in broken.json()["message"]) == (400, True)
        assert await server.call("GET", f"{device}/state?limit=1000") == []
        assert (await client.post(f"{device}/state?backlog=true", json=[])).status_code == 200
        nobody = device[:-2] + ("00" if device[-2:] != "00" else "11")
        await server.call("POST", f"{nobody}/state?backlog=true", past(1), status=404)


async def test_live_states_go_on_while_many_devices_bring_their_backlogs(start_server: Any) -> None:
    """Twenty devices bring six calls each, with a token of each device; another device reports meanwhile."""
    devices, calls, states = 20, 6, 100
    limits = {"send_state": "off", "backlog_states": {"calls": 1000, "window_s": 0.2}}
    async with start_server(limits=limits) as server:
        application = await server.application()
        live = await server.device(application)
        paths = [await server.device(application, f"d{number}") for number in range(devices)]
        came_back = 0

        async def bring(path: str) -> None:
            nonlocal came_back
            token, _ = await server.device_token(path)
            for number in range(calls):
                batch = past(states, START_MS + number * states * 1000)
                await server.call("POST", f"{path}/state?backlog=true", batch, token=token)
            came_back += 1

        reported = 0
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for path in paths:
                    nursery.start_soon(bring, path)
                while came_back < devices:
                    await server.call("POST", f"{live}/state", {"data": {"temp": reported}})
                    reported += 1
        assert reported >= calls, "at least as many as each of the others"
        for path in paths:
            stored = await server.call("GET", f"{path}/state?limit=1000&sortDirection=asc")
            assert [state["data"]["temp"] for state in stored] == [*range(states)] * calls
        composite = await server.call("GET", f"{live}/compositeState")
        assert composite["temp"]["value"] == reported - 1
        async with server.client() as client:
            metrics = (await client.get("/metrics")).text
        assert f"trunkline_backlog_states_total {devices * calls * states}.0" in metrics


async def test_a_stopping_server_answers_the_backlogs_that_wait(start_server: Any) -> None:
    async with start_server(limits=BUDGET, clock=ManualClock()) as server:
        device = await server.device(await server.application())
        await server.call("POST", f"{device}/state?backlog=true", past(20))
        await server.call("POST", f"{device}/state?backlog=true", past(20))
        statuses: list[int] = []

        async def bring() -> None:
            async with server.client() as client:
                statuses.append(
                    (await client.post(f"{device}/state?backlog=true", json=past(20))).status_code
                )

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(bring)
                while not await waits(server):
                    await trio.lowlevel.checkpoint()
                await server.stop()
        assert statuses == [503]


async def waits(server: Server) -> bool:
    async with server.client() as client:
        return "trunkline_backlog_calls_waiting 1.0" in (await client.get("/metrics")).text
