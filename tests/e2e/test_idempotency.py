"""Safe repetitions: with an Idempotency-Key a call is done once, whatever happens to the server and the connection.

`pytest -m load tests/e2e/test_idempotency.py` runs the long form of the kills, and prints what was kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import OWNER, serving
from tests.e2e.stubborn import Stubborn, calls, history, patience, prepared, read_back, sent_marks, table
from tests.e2e.test_crash import FAULTY, SYNC_S, UNTHROTTLED, checked
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk

KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'


async def post(server: Server, path: str, body: Any, key: str = KEY, **kw: Any) -> httpx.Response:
    async with server.client(kw.pop("token", None)) as client:
        return await client.post(path, json=body, headers={"Idempotency-Key": key})


async def test_an_event_is_created_once_and_answered_as_it_was_then(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    body = {
        "level": "warning",
        "state": "new",
        "subject": "too hot",
        "message": "63 degrees",
        "data": {"a": [1, 2]},
        "deviceId": device.rpartition("/")[2],
        "eventTags": {"room": "7"},
    }
    first = await post(server, f"{application}/events", body)
    assert first.status_code == 201
    event = f"{application}/events/{first.json()['id']}"
    assert await server.call("GET", event) == first.json(), "it shows what a read shows"
    for change in ("PATCH", "DELETE"):
        await server.call(change, event, {"state": "acknowledged"} if change == "PATCH" else None)
        again = await post(server, f"{application}/events", body)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["idempotent-replayed"] == "true"
    assert (await server.call("GET", f"{application}/events"))["totalCount"] == 0


async def test_each_repetition_of_an_audited_call_is_in_the_log(server: Server) -> None:
    """Also of a first call whose answer was lost with the server, after its event and before its entry."""
    org = await server.organization()
    org_id = org.rpartition("/")[2]
    made = await server.call("POST", "/applications", {"name": "house", "orgId": org_id})
    path = f"/applications/{made['id']}/events"
    for _ in range(2):
        assert (
            await post(server, path, {"level": "info", "state": "new", "subject": "x"})
        ).status_code == 201
    log = await server.call("GET", f"{org}/audit-logs?perPage=100")
    entries = [
        each
        for each in log["items"]
        if each["requestAction"] == "post" and each["requestResource"] == "events"
    ]
    assert [each["responseStatus"] for each in entries] == [201, 201]


async def test_rows_are_inserted_once(server: Server) -> None:
    application = await server.application()
    rows = f"{await table(server, application)}/rows"
    for key, body in (('"one"', {"label": "x"}), ('"many"', [{"label": "y"}] * 3)):
        first, again = [await post(server, rows, body, key) for _ in range(2)]
        assert (
            (again.status_code, again.content) == (201, first.content) == (first.status_code, first.content)
        )
        assert again.headers["idempotent-replayed"] == "true"
    assert (await server.call("GET", rows))["totalCount"] == 4


async def test_a_backlog_is_stored_once(server: Server) -> None:
    device = await server.device(await server.application())
    body = [{"data": {"temp": number}, "time": 1_700_000_000_000 + number} for number in range(5)]
    first, again = [await post(server, f"{device}/state?backlog=true", body) for _ in range(2)]
    assert (first.status_code, again.content) == (200, first.content)
    assert "ratelimit" in first.headers
    assert (again.headers["idempotent-replayed"], "ratelimit" in again.headers) == ("true", False)
    assert (await post(server, f"{device}/state", body)).status_code == 422
    assert (await server.call("GET", f"{device}/payloadCounts"))["deviceState"] == 5


async def test_a_command_to_many_is_sent_once(server: Server) -> None:
    application = await server.application()
    devices = [await server.device(application) for _ in range(3)]
    ids = [each.rpartition("/")[2] for each in devices]
    path, body = f"{application}/devices/command", {"name": "go", "deviceIds": ids}
    unknown = await post(server, path, {**body, "deviceIds": [*ids, "0" * 24]})
    assert unknown.status_code == 400, "its key stays free"
    first, again = [await post(server, path, body) for _ in range(2)]
    assert (first.status_code, again.content) == (200, first.content)
    assert "ratelimit" in first.headers
    assert (again.headers["idempotent-replayed"], "ratelimit" in again.headers) == ("true", False)
    assert (await post(server, path, {"name": "stop", "deviceIds": ids})).status_code == 422
    assert [len(await history(server, device, "command")) for device in devices] == [1, 1, 1]
    none = {"name": "go", "deviceTags": [{"key": "nobody"}]}
    for replayed in (None, "true"):
        answer = await post(server, path, none, '"none"')
        assert (answer.status_code, answer.headers.get("idempotent-replayed")) == (200, replayed)


async def test_a_stored_answer_outlives_a_restart(start_server: Callable[..., Any]) -> None:
    bodies = {"state": {"data": {"temp": 1}}, "command": {"name": "go"}}
    async with start_server() as server:
        device = await server.device(await server.application())
        first = {
            name: await post(server, f"{device}/{name}", body, f'"{name}"') for name, body in bodies.items()
        }
        assert [each.status_code for each in first.values()] == [200, 200]
    async with start_server() as server:
        for name, body in bodies.items():
            again = await post(server, f"{device}/{name}", body, f'"{name}"')
            assert (again.status_code, again.content) == (200, first[name].content)
            assert again.headers["idempotent-replayed"] == "true"
            assert len(await history(server, device, name)) == 1
        for name in bodies:
            other = await post(server, f"{device}/{name}", {"name": "stop"}, '"command"')
            assert (other.status_code, other.json()["type"]) == (422, "KeyReused")


async def test_answers_of_others_are_not_shown(server: Server) -> None:
    """Another token of the same application makes a call of its own with the same key."""
    application = await server.application()
    rows = f"{await table(server, application)}/rows"
    tokens = []
    for name in ("a", "b"):
        given = {"name": name, "scope": ["all.Application"]}
        tokens.append((await server.call("POST", f"{application}/tokens", given))["token"])
    answers = [await post(server, rows, {"label": "x"}, token=token) for token in (None, *tokens)]
    assert [each.status_code for each in answers] == [201, 201, 201]
    assert len({each.json()["id"] for each in answers}) == 3
    for token, first in zip((None, *tokens), answers, strict=True):
        again = await post(server, rows, {"label": "x"}, token=token)
        assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")


async def test_many_at_once_have_one_effect(server: Server) -> None:
    application = await server.application()
    rows = f"{await table(server, application)}/rows"
    answers: list[httpx.Response] = []

    async def ask() -> None:
        while True:
            answer = await post(server, rows, {"label": "x"})
            if answer.status_code != 409:
                answers.append(answer)
                return

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
    assert {(each.status_code, each.content) for each in answers} == {(201, answers[0].content)}
    assert sum("idempotent-replayed" not in each.headers for each in answers) == 1
    assert (await server.call("GET", rows))["totalCount"] == 1


async def test_metrics_count_repetitions_and_forgotten_keys(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"idempotency_keys_max": 2}) as server:
        device = await server.device(await server.application())
        for key in ("1", "2", "2", "3", "4"):
            assert (await post(server, f"{device}/command", {"name": "go"}, f'"{key}"')).status_code == 200
        assert len(await history(server, device, "command")) == 4
        async with server.client("") as client:
            lines = (await client.get("/metrics")).text.splitlines()
        assert "trunkline_calls_repeated_total 1.0" in lines
        assert "trunkline_idempotency_keys_forgotten_total 2.0" in lines
        assert (await post(server, f"{device}/command", {"name": "go"}, '"1"')).status_code == 200
        assert len(await history(server, device, "command")) == 5


# Kills.


async def rounds(data_dir: Path, kills: int, clients: int, count: int, seed: int) -> tuple[int, int]:
    """Kill the server again and again while clients repeat; returns the calls, and those answered by a repetition."""
    random = Random(seed)
    async with serving(data_dir, *UNTHROTTLED) as server:
        paths = await prepared(server)
        assert await server.terminate() == 0
    stubborn = [Stubborn(str(n), calls(paths, n, count), Random(random.random())) for n in range(clients)]
    for number in range(kills):
        env = {**OWNER, "CRASH_SYNC_S": SYNC_S[number % 2]}
        async with serving(data_dir, *UNTHROTTLED, program=FAULTY, env=env) as server:
            done = sum(len(each.answers) for each in stubborn)
            target = done + (clients * count - done) // (kills - number + 1)
            with patience(stubborn):
                async with trio.open_nursery() as nursery:
                    for each in stubborn:
                        nursery.start_soon(each.run, server)
                    while sum(len(each.answers) for each in stubborn) < target:
                        await trio.lowlevel.checkpoint()
                    await server.kill()
        await checked(data_dir)
    async with serving(data_dir, *UNTHROTTLED) as server:
        with patience(stubborn):
            async with trio.open_nursery() as nursery:
                for each in stubborn:
                    nursery.start_soon(each.run, server)
        found, states = await read_back(server, paths)
        assert await server.terminate() == 0
    assert not any(each.left for each in stubborn)
    assert found == sent_marks(clients, count)
    assert states == clients * sum(number % 7 < 2 for number in range(count)), "none replaced an equal one"
    return clients * count, sum(each.repeated for each in stubborn)


@pytest.mark.slow
async def test_every_call_has_one_effect_across_kills(tmp_path: Path) -> None:
    _, repeated = await rounds(tmp_path / "data", kills=3, clients=6, count=60, seed=3)
    assert repeated > 0


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_every_call_has_one_effect_across_fifty_kills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, repeated = await rounds(tmp_path / "data", kills=50, clients=8, count=300, seed=4)
    with capsys.disabled():
        sys.stdout.write(
            f"\n50 kills: {made} calls with keys, each with one effect; {repeated} answered by a repetition\n"
        )
