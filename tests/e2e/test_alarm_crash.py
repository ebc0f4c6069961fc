"""kill -9 while alarms open: each device with a value that is too high, or a critical event, has one event of its
alarm, neither none nor two.

`pytest -m load tests/e2e/test_alarm_crash.py` runs the long form: thirty kills.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
import trio

from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.patience import PATIENCE_S
from trunkline.bench.errors import WireError
from trunkline.bench.session import Session, device_path

pytestmark = pytest.mark.disk

FAULTY = (str(Path(__file__).with_name("crash_program.py")),)
ENV = {**OWNER, "TRUNKLINE_THROTTLES": "false"}
SYNC_S = ("0", "0.004")
SENDERS = 8
RULE = {
    "name": "too high",
    "condition": {"type": "attribute", "attribute": "n", "comparison": "above", "value": 0},
}
FAULT = {"name": "fault", "severity": "error", "condition": {"type": "event", "level": "critical"}}
AT_ONCE = {"name": "silent", "severity": "info", "condition": {"type": "silence", "seconds": 1}}


class Site(NamedTuple):
    """An application with a rule, and its devices."""

    application: str
    devices: list[str]


async def prepared(session: Session, devices: int) -> Site:
    application = await session.create_application("alarms")
    await session.call("POST", f"/applications/{application}/alarm-rules", RULE)
    await session.call("POST", f"/applications/{application}/alarm-rules", AT_ONCE)
    await session.call("POST", f"/applications/{application}/alarm-rules", FAULT)
    wanted = [
        {"name": f"meter {number}", "attributes": [{"name": "n", "dataType": "number"}]}
        for number in range(devices)
    ]
    return Site(application, await session.create_devices(application, wanted))


async def killed(server: ServerProcess, site: Site, random: Random) -> set[str]:
    """Let devices report high values, in any order, and kill the server meanwhile; those that it acknowledged."""
    session = Session(
        server.url, token=server.token, connections_max=SENDERS, patience_s=0, timeout_s=PATIENCE_S
    )
    waiting = random.sample(site.devices, len(site.devices))
    acknowledged: set[str] = set()
    goal, reached = random.randint(10, len(waiting) - SENDERS), trio.Event()

    async def send() -> None:
        while waiting:
            device = waiting.pop()
            try:
                await session.call(
                    "POST", device_path(site.application, device, "/state"), {"data": {"n": 1}}
                )
                await session.call(
                    "POST",
                    f"/applications/{site.application}/events",
                    {"level": "critical", "subject": "broken", "deviceId": device},
                )
            except WireError:
                return
            acknowledged.add(device)
            if len(acknowledged) >= goal:
                reached.set()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(SENDERS):
                nursery.start_soon(send)
            await reached.wait()
            await trio.sleep(random.uniform(0, 0.01))
            await server.kill()
    session.close()
    return acknowledged


async def events_of(session: Session, site: Site, level: str) -> list[dict[str, Any]]:
    query = quote(json.dumps({"level": level}))
    page = await session.call("GET", f"/applications/{site.application}/events?perPage=1000&query={query}")
    found: list[dict[str, Any]] = page["items"]
    return found


async def silent_devices(session: Session, site: Site) -> Counter[str]:
    """How many open alarms of silence each device has, when all have one."""
    with trio.fail_after(PATIENCE_S):
        while True:
            events = await events_of(session, site, "info")
            found = Counter(each["deviceId"] for each in events if each["state"] == "new")
            if len(found) == len(site.devices):
                return found
            await trio.sleep(0.1)


async def rounds(data_dir: Path, kills: int, devices: int, seed: int) -> None:
    """Kill again and again on one data directory, then compare the events with what is stored."""
    random = Random(seed)
    async with serving(data_dir, env=ENV) as server:
        session = Session(server.url, token=server.token, timeout_s=PATIENCE_S)
        site = await prepared(session, devices)
        session.close()
        assert await server.terminate() == 0
    acknowledged: set[str] = set()
    for number in range(kills):
        async with serving(
            data_dir, program=FAULTY, env={**ENV, "CRASH_SYNC_S": SYNC_S[number % 2]}
        ) as server:
            acknowledged |= await killed(server, site, random)
    async with serving(data_dir, env=ENV) as server:
        session = Session(server.url, token=server.token, timeout_s=PATIENCE_S)
        stored = {
            device
            for device in site.devices
            if await session.call("GET", device_path(site.application, device, "/state"))
        }
        assert stored >= acknowledged
        assert await silent_devices(session, site) == Counter(dict.fromkeys(site.devices, 1))
        opened = Counter(each["deviceId"] for each in await events_of(session, site, "warning"))
        assert opened == Counter(dict.fromkeys(stored, 1))
        faults = Counter(each["deviceId"] for each in await events_of(session, site, "critical"))
        alarms = [(each["deviceId"], each["state"]) for each in await events_of(session, site, "error")]
        assert Counter(alarms) == Counter((device, "new") for device in faults)
        assert faults.keys() >= acknowledged
        session.close()
        assert await server.terminate() == 0


@pytest.mark.slow
async def test_a_kill_loses_no_alarm_and_repeats_none(tmp_path: Path) -> None:
    await rounds(tmp_path / "data", 3, 80, seed=31)


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_thirty_kills_lose_no_alarm_and_repeat_none(tmp_path: Path) -> None:
    await rounds(tmp_path / "data", 30, 300, seed=30)
