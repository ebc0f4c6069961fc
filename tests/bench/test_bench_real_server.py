"""The tools against the real server: real measurements are read back equal, and devices execute commands.

The one place of these tests that knows the other rooms, and only to start a server; what runs against it speaks HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import vega_datasets

from tests.patience import PATIENCE_S
from trunkline.bench.demo import LINKED, DemoReady, run_demo
from trunkline.bench.event_stream import open_events
from trunkline.bench.link_client import LinkClient, running
from trunkline.bench.measurements import read_measurements
from trunkline.bench.replay import Replay
from trunkline.bench.session import Session, device_path
from trunkline.http.serve import serve
from trunkline.limits.settings import Settings

EMAIL, PASSWORD = "bench@example.org", "Correct-horse-9!"
(LINKED_DEVICE,) = LINKED
PACKAGE_DATA = Path(vega_datasets.__file__).parent / "_data"


async def start(nursery: trio.Nursery, settings: Settings) -> Session:
    serving = await nursery.start(partial(serve, settings, shutdown=trio.sleep_forever))
    session = Session(serving.url, patience_s=20)
    await session.login(EMAIL, PASSWORD)
    return session


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=str(tmp_path / "data"), port=0, admin_email=EMAIL, admin_password=PASSWORD, log_level="error"
    )


@pytest.fixture
async def session(nursery: trio.Nursery, settings: Settings) -> AsyncIterator[Session]:
    """Signed in at a server with the throttles of the API."""
    yield await start(nursery, settings)
    nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_seventeen_thousand_real_measurements_come_back_equal_within_the_throttle(
    session: Session,
) -> None:
    files = [PACKAGE_DATA / "seattle-temps.csv", PACKAGE_DATA / "sf-temps.csv"]
    found = read_measurements(files, time_column="date", now_ms=1_800_000_000_000)
    replay = Replay(session, found)
    with trio.fail_after(PATIENCE_S):
        await replay.prepare(application_id=None, name="temperatures of 2010")
        await replay.send()
        await replay.compare()
    counts = replay.counts
    assert counts.equal
    assert counts.sent == counts.acknowledged == counts.points_read == counts.values_equal == 17_518
    assert (counts.refused, counts.throttled_calls) == (0, 0)


@pytest.mark.slow
async def test_a_demo_device_obeys_a_command_and_its_next_state_shows_it(session: Session) -> None:
    assert session.token is not None
    ready: list[DemoReady] = []
    is_ready, obeyed, heated, stopped = trio.Event(), trio.Event(), trio.Event(), trio.Event()

    def on_ready(one: DemoReady) -> None:
        ready.append(one)
        is_ready.set()

    def on_event(line: str) -> None:
        if line == "chiller-1: setTarget: target is 3 degrees":
            obeyed.set()
        if line.startswith(f"{LINKED_DEVICE}: switch: heater"):
            heated.set()
        if line == f"{LINKED_DEVICE} has another link and stops":
            stopped.set()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                partial(
                    run_demo,
                    session.url,
                    session.token,
                    on_ready=on_ready,
                    on_event=on_event,
                )
            )
            await is_ready.wait()
            application_id, ids = ready[0].application_id, ready[0].device_ids
            assert len(ids) == 24
            chiller = partial(device_path, application_id, ids["chiller-1"])
            async with open_events(session.url, chiller("/stateStream"), session.token) as states:
                await session.call(
                    "POST", chiller("/command"), {"name": "setTarget", "payload": {"value": 3}}
                )
                await obeyed.wait()
                async for event in states:
                    if '"target":3' in event.data.replace(" ", ""):
                        break
            mast = partial(device_path, application_id, ids[LINKED_DEVICE])
            await session.call("POST", mast("/command"), {"name": "switch", "payload": {"on": True}})
            await heated.wait()
            log: list[Any] = []
            while [entry["status"] for entry in log] != ["acknowledged"]:
                log = await session.call("GET", mast("/command"))
            person = LinkClient(session.url, mast(), session.token)
            async with running(person):
                await stopped.wait()
            nursery.cancel_scope.cancel()
    for name, device_id in ids.items():
        history = await session.call("GET", device_path(application_id, device_id, "/state"))
        assert len(history) == 1, name
