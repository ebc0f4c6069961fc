"""kill -9 during runs of workflows: what was acknowledged is run, and what a run does inside the server is done once.

`pytest -m load tests/e2e/test_flow_crash.py` runs the long form: fifty kills, and prints the counts.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import trio

from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.patience import PATIENCE_S
from trunkline.bench.errors import WireError
from trunkline.bench.session import Session, device_path

pytestmark = pytest.mark.disk

FAULTY = (str(Path(__file__).with_name("crash_program.py")),)
SYNC_S = ("0", "0.004")
DEVICES = 8
TAG = {"key": "kind", "value": "meter"}

Json = dict[str, Any]


class Site(NamedTuple):
    """What the load works on."""

    application: str
    flow: str
    devices: list[str]


class Counted(NamedTuple):
    """States that were acknowledged, states that are stored, and the counts of the first and the last effect."""

    acknowledged: int
    stored: list[int]
    first: list[int]
    last: list[int]


def node(id: str, type: str, config: Json, *after: str) -> Json:
    return {"id": id, "type": type, "config": config, "outputIds": [list(after)]}


FLOW: Json = {
    "name": "counts",
    "triggers": [{"type": "deviceTag", "key": "kind/meter", "config": {}, "outputIds": [["first"]]}],
    "nodes": [
        node(
            "first",
            "StoreValueNode",
            {"keyName": "first-{{triggerId}}", "valueType": "incr", "value": "1"},
            "script",
        ),
        node("script", "RawFunctionNode", {"script": "payload.data.seen = true;"}, "last"),
        node("last", "StoreValueNode", {"keyName": "last-{{triggerId}}", "valueType": "incr", "value": "1"}),
    ],
}


async def prepared(session: Session) -> Site:
    """An application with a workflow, and the devices that trigger it."""
    application = await session.create_application("counts")
    flow = await session.call("POST", f"/applications/{application}/flows", FLOW)
    body = {"tags": [TAG], "attributes": [{"name": "n", "dataType": "number"}]}
    wanted = [{"name": f"meter {number}", **body} for number in range(DEVICES)]
    return Site(application, flow["id"], await session.create_devices(application, wanted))


async def killed(server: ServerProcess, site: Site | None, random: Random) -> tuple[Site, int]:
    """Send states from all devices, and kill the server at a random moment; the states that it acknowledged."""
    session = Session(
        server.url, token=server.token, connections_max=DEVICES, patience_s=0, timeout_s=PATIENCE_S
    )
    site = site or await prepared(session)
    acknowledged = 0
    goal = random.randint(20, 200)
    reached = trio.Event()

    async def send(device: str) -> None:
        nonlocal acknowledged
        path = device_path(site.application, device, "/state")
        for number in count():
            try:
                await session.call("POST", path, {"data": {"n": number}})
            except WireError:
                return
            acknowledged += 1
            if acknowledged >= goal:
                reached.set()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for device in site.devices:
                nursery.start_soon(send, device)
            await reached.wait()
            await trio.sleep(random.uniform(0, 0.02))
            await server.kill()
    session.close()
    return site, acknowledged


async def all_run(session: Session, site: Site) -> Json:
    """The storage entries of the workflow when nothing waits for it any more."""
    path = f"/applications/{site.application}/flows/{site.flow}/storage"
    before: Json = {}
    stored = -1
    with trio.fail_after(PATIENCE_S):
        while True:
            now: Json = await session.call("GET", path)
            done = sum(value for key, value in now.items() if key.startswith("last-"))
            if stored < 0:
                stored = sum([await states_of(session, site, device) for device in site.devices])
            if done >= stored and now == before:
                return now
            before = now
            await trio.sleep(0.2)


async def states_of(session: Session, site: Site, device: str) -> int:
    """How many states of a device are stored."""
    path = device_path(site.application, device, "/payloadCounts")
    return int((await session.call("GET", path))["deviceState"])


async def rounds(data_dir: Path, kills: int, seed: int) -> Counted:
    """Kill again and again on one data directory, and count at the end."""
    random = Random(seed)
    site: Site | None = None
    acknowledged = 0
    limits = data_dir.with_name("limits.toml")
    # On a busy machine a run may be under way at each of the kills. It is tried again after all of them.
    limits.write_text(f"run_attempts_max = {kills + 1}\n")
    options, without_throttles = ("--limits", str(limits)), {**OWNER, "TRUNKLINE_THROTTLES": "false"}
    for number in range(kills):
        env = {**without_throttles, "CRASH_SYNC_S": SYNC_S[number % 2]}
        async with serving(data_dir, *options, program=FAULTY, env=env) as server:
            site, more = await killed(server, site, random)
            acknowledged += more
    assert site is not None
    async with serving(data_dir, *options, env=without_throttles) as server:
        session = Session(server.url, token=server.token, timeout_s=PATIENCE_S)
        storage = await all_run(session, site)
        stored = [await states_of(session, site, device) for device in site.devices]
        session.close()
        assert await server.terminate() == 0
    return Counted(
        acknowledged,
        stored,
        [storage[f"first-{device}"] for device in site.devices],
        [storage[f"last-{device}"] for device in site.devices],
    )


@pytest.mark.slow
async def test_a_kill_loses_no_trigger_and_repeats_no_effect(tmp_path: Path) -> None:
    counted = await rounds(tmp_path / "data", 3, seed=14)
    assert sum(counted.stored) >= counted.acknowledged >= 60
    assert counted.first == counted.stored
    assert counted.last == counted.stored


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_fifty_kills_lose_no_trigger_and_repeat_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = await rounds(tmp_path / "data", 50, seed=50)
    with capsys.disabled():
        sys.stdout.write(
            f"\n50 kills: {counted.acknowledged} states acknowledged, {sum(counted.stored)} stored, "
            f"{sum(counted.first)} and {sum(counted.last)} effects\n"
        )
    assert sum(counted.stored) >= counted.acknowledged
    assert counted.first == counted.stored
    assert counted.last == counted.stored
