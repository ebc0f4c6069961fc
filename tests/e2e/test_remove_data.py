"""Removing what devices reported, compared with a model after each removal; payload counts of many devices as CSV."""

from __future__ import annotations

import csv
import io
from random import Random
from typing import Any

import httpx
import pytest

from tests.actors.house import START_MS, ManualClock, at
from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of
from tests.e2e.rows import UNKNOWN
from tests.e2e.test_exports import ended

LIMITS = {
    "removed_entries_max": 3,
    "send_state": "off",
    "send_command": "off",
    "set_connection_status": "off",
}
NAMES = ("temp", "label", "on")
HOUR_MS = 3_600_000


class Model:
    """What a device must show: its points by time in ms."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.points: dict[int, dict[str, Any]] = {}

    def report(self, time_ms: int, data: dict[str, Any]) -> None:
        self.points[time_ms] = {**self.points.get(time_ms, {}), **data}

    def remove(self, start_ms: int, end_ms: int, attributes: list[str] | None) -> int:
        """Remove as the server must; return how many points that touches."""
        touched = 0
        for time_ms in sorted(self.points):
            left = {
                name: value
                for name, value in self.points[time_ms].items()
                if attributes and name not in attributes
            }
            if start_ms <= time_ms <= end_ms and left != self.points[time_ms]:
                touched += 1
                self.points[time_ms] = left
        self.points = {time_ms: data for time_ms, data in self.points.items() if data}
        return touched

    async def check(self, server: Server) -> None:
        states = await server.call("GET", f"{self.path}/state?limit=1000&sortDirection=asc")
        assert states == [
            {"time": at(ms - START_MS), "data": data} for ms, data in sorted(self.points.items())
        ]
        newest = {
            name: {"value": data[name], "time": at(ms - START_MS)}
            for ms, data in sorted(self.points.items())
            for name in data
        }
        assert await server.call("GET", f"{self.path}/compositeState") == newest


def value_of(random: Random, name: str) -> Any:
    return {
        "temp": random.randint(0, 99),
        "label": random.choice("abc") * random.choice((1, 300)),
        "on": True,
    }[name]


async def removed(server: Server, application: str, path: str, body: Any = None) -> dict[str, Any]:
    method = "DELETE" if body is None else "POST"
    queued = await server.call(method, path, body, status=202)
    log = await ended(server, application, queued["jobId"])
    assert log["status"] == "completed", log
    return {name: number for name, number in log["output"].items() if name not in ("told", "devices")}


@pytest.mark.parametrize("seed", range(3))
async def test_history_and_composite_state_after_removals(start_server: Any, seed: int) -> None:
    random, clock = Random(seed), ManualClock()
    async with start_server(clock=clock, limits=LIMITS, token_ttl_s=0) as server:
        application = await server.application()
        models = [Model(await server.device(application, f"d{number}")) for number in range(2)]
        for _ in range(6):
            for model in models:
                reports = []
                for _ in range(random.randint(0, 12)):
                    time_ms = START_MS + random.randint(-50, 50)
                    data = {
                        name: value_of(random, name) for name in random.sample(NAMES, random.randint(1, 3))
                    }
                    reports.append({"time": time_ms, "data": data})
                    model.report(time_ms, data)
                split = random.randint(0, len(reports))
                for report in reports[:split]:
                    await server.call("POST", f"{model.path}/state", report)
                if reports[split:]:
                    await server.call("POST", f"{model.path}/state", reports[split:])
                await model.check(server)
            clock.set_wall(START_MS + 60)
            start, end = sorted(START_MS + random.randint(-60, 60) for _ in range(2))
            if random.random() < 0.3:
                (model,) = random.sample(models, 1)
                output = await removed(server, application, f"{model.path}/data?start={start}&end={end}")
                touched = model.remove(start, end, None)
            else:
                attributes = random.choice([None, random.sample(NAMES, random.randint(1, 3))])
                body = {"query": {}, "start": start, "end": end, "attributes": attributes}
                output = await removed(server, application, f"{application}/devices/removeData", body)
                touched = sum(model.remove(start, end, attributes) for model in models)
            assert output == {"states": touched, "commands": 0, "logEntries": 0}
            for model in models:
                await model.check(server)
            if random.random() < 0.3:
                server.system._mailboxes.clear()
        for model in models:
            output = await removed(server, application, f"{model.path}/data")
            assert output["states"] == len(model.points)
            model.points = {}
            # A report that is older than what was removed is the newest now.
            await server.call("POST", f"{model.path}/state", {"data": {"temp": 7}, "time": START_MS - 1000})
            model.report(START_MS - 1000, {"temp": 7})
            await model.check(server)


async def test_logs_are_removed_or_kept_and_counts_stay(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock, limits=LIMITS, token_ttl_s=0) as server:
        application = await server.application()
        device = await server.device(application)
        for _ in range(4):
            clock.pass_s(10)
            await server.call("POST", f"{device}/state", {"data": {"temp": 1, "on": True}})
            await server.call("POST", f"{device}/command", {"name": "go"})
            await server.call("POST", f"{device}/setConnectionStatus", {"status": "connected"})
        counts = await server.call("GET", f"{device}/payloadCounts")

        async def left() -> tuple[int, int, int]:
            found = [
                len(await server.call("GET", f"{device}/{part}?limit=9"))
                for part in ("state", "command", "logs")
            ]
            return found[0], found[1], found[2]

        many = f"{application}/devices/removeData"
        first = {"query": {}, "start": START_MS, "end": START_MS + 15_000}
        await removed(server, application, many, {**first, "attributes": ["temp"]})
        assert await left() == (4, 4, 4)
        await removed(
            server, application, many, {**first, "attributes": ["none"], "keepCommandHistory": False}
        )
        assert await left() == (4, 3, 4)
        await removed(server, application, many, {**first, "keepConnectionHistory": True})
        assert await left() == (3, 3, 4)
        await removed(server, application, f"{device}/data?start=-15000")
        assert await left() == (1, 1, 2)
        await removed(server, application, many, {"query": {"name": "other"}})
        assert await left() == (1, 1, 2)
        await removed(server, application, f"{device}/data")
        assert await left() == (0, 0, 0)
        assert await server.call("GET", f"{device}/payloadCounts") == counts
        assert (await server.call("GET", device))["connectionInfo"]["connected"] == 1
        await server.call("DELETE", f"{application}/devices/{UNKNOWN}/data", status=404)
        for body, sentence in (
            ({}, "query: "),
            ({"query": {"colour": 1}}, "query.colour: "),
            ({"query": {}, "attributes": []}, "attributes: "),
            ({"query": {}, "start": "x"}, "start: "),
        ):
            assert (await server.call("POST", many, body, status=400))["message"].startswith(sentence)


async def test_payload_counts_of_many_devices_as_csv(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock, limits=LIMITS, token_ttl_s=0) as server:
        application = await server.application()
        one, two = await server.device(application, "one"), await server.device(application, "two")
        await server.call("POST", f"{one}/state", [{"data": {"temp": 1}, "time": 1000 + n} for n in range(5)])
        clock.pass_s(3600)
        await server.call("POST", f"{two}/command", {"name": "go"})
        await server.call("POST", f"{one}/state", {"data": {"temp": 1}})

        async def lines(body: Any) -> list[dict[str, str]]:
            path = f"{application}/devices/payloadCounts"
            log = await ended(
                server, application, (await server.call("POST", path, body, status=202))["jobId"]
            )
            file = log["output"]["file"]
            assert file["name"] == f"payload-counts-{id_of(application)}.csv"
            async with httpx.AsyncClient(trust_env=False) as client:
                text = (await client.get(file["url"])).text
            return list(csv.DictReader(io.StringIO(text, newline="")))

        nothing = {"deviceConnect": "0", "deviceDisconnect": "0", "mqttIn": "0", "mqttOut": "0"}
        first = {"id": id_of(one), "name": "one", "deviceState": "6", "deviceCommand": "0", **nothing}
        second = {"id": id_of(two), "name": "two", "deviceState": "0", "deviceCommand": "1", **nothing}
        assert await lines(None) == [first, second]
        assert await lines({"query": {"name": "two"}}) == [second]
        assert await lines({"end": START_MS + HOUR_MS - 1}) == [
            {**first, "deviceState": "5"},
            {**second, "deviceCommand": "0"},
        ]
        refused = await server.call(
            "POST", f"{application}/devices/payloadCounts", {"start": "x"}, status=400
        )
        assert refused["message"].startswith("start: ")
