"""Measures the overview and the list of actors of an application with many devices. Run it from the checkout:

    .venv/bin/python -m tests.bench.overview --work DIR [--devices 100000]

It writes devices with a record and a head each, of which a third was connected and a third only reported. Then it
prints how long counts of the fleet take in their worker thread, each with what the one before has learned, how long
the event loop waits meanwhile, and how long the rest of the answer takes. At last it brings all devices into memory,
and prints the same for pages of their actors.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl

import trio
from msgspec import convert

from tests.actors.house import running_house
from trunkline.actors.core.records.records import entries, scan
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import FireInactivity
from trunkline.actors.fleet.devices.record.terms import Attribute
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.actors.presentation.overview.actor_messages import ActorPage
from trunkline.actors.presentation.overview.actors import list_actors
from trunkline.actors.presentation.overview.fleet import CountFleet, Fleets
from trunkline.actors.presentation.overview.messages import GetOverview, OverviewChoice
from trunkline.actors.readers import read
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import encode

_ATTRIBUTES = Attributes([], 0).replaced(
    [Attribute(name=f"value{number}", data_type="number") for number in range(10)]
)


def add_devices(system: System, application: bytes, count: int, now_ms: int) -> list[Batch]:
    """Batches with devices of three sorts: connected or not, only reporting, and never seen."""
    batches = []
    for first in range(0, count, 1000):
        batch = Batch()
        for number in range(first, min(first + 1000, count)):
            id = system.ids.new(now_ms)
            doc = {
                "name": f"device {number}",
                "creationDate": now_ms,
                "lastUpdated": now_ms + number,
                "tags": [{"key": "site", "value": str(number % 100)}],
                "deviceClass": "standalone",
                "attributes": _ATTRIBUTES.docs,
                "attributeNext": _ATTRIBUTES.next_number,
            }
            if number % 3 == 0:
                doc["connection"] = {"connected": number % 2, "time": now_ms - number, "connectedAt": now_ms}
            if number % 3 == 1:
                head = Head()
                head.report(now_ms - number * 10, dict.fromkeys(range(10), number / 7))
                head.arrived_ms = head.newest_ms
                batch.put(keys.TIMELINE, keys.head_key(id), head.encoded())
            batch.put(keys.RECORDS, keys.record_key(DEVICE.name, application, id), encode(doc))
            for key in entries(DEVICE, application, id, doc):
                batch.put(keys.INDEXES, key, b"")
        batches.append(batch)
    return batches


async def longest_wait(task_status: trio.TaskStatus[list[float]]) -> None:
    """Note how long the event loop takes to come back to a task."""
    waits: list[float] = []
    task_status.started(waits)
    while True:
        began_s = time.perf_counter()
        await trio.sleep(0.001)
        waits.append(time.perf_counter() - began_s - 0.001)


async def measure(work: Path, devices: int) -> None:
    """Print what an overview costs."""
    async with running_house(work) as house:
        system, application = house.system, house.application
        now_ms = system.clock.wall_ms()
        for batch in add_devices(system, application, devices, now_ms):
            await system.journal.submit(batch).wait()
        fleet = None
        for _ in range(5):
            async with trio.open_nursery() as nursery:
                waits = await nursery.start(longest_wait)
                message = CountFleet(application=application, now_ms=now_ms, before=fleet)
                fleet = await read(system, message)
                nursery.cancel_scope.cancel()
            waits.sort()
            sys.stdout.write(
                f"count of {devices} devices: {fleet.took_s:.2f} s; the event loop waited "
                f"{statistics.median(waits) * 1e3:.1f} ms in the median, {waits[-1] * 1e3:.1f} ms at most\n"
            )
        await system.component(Fleets).count(application)
        asked = GetOverview(application=application, query=OverviewChoice(), now_ms=now_ms)
        times_ms = []
        for _ in range(50):
            began_s = time.perf_counter()
            await read(system, asked)
            times_ms.append((time.perf_counter() - began_s) * 1e3)
        sys.stdout.write(f"the rest of the answer: {statistics.median(times_ms):.2f} ms\n")
        with system.store.snapshot() as snapshot:
            ids = [id for id, _ in scan(snapshot, DEVICE, application)]
        for id in ids:
            system.begin(Ref(DEVICE.name, application, id), FireInactivity())
        for page in ("perPage=100", "sortField=lastUsed", "sortField=mailboxDepth&page=99"):
            query = convert(dict(parse_qsl(page)), ActorPage, strict=False)
            async with trio.open_nursery() as nursery:
                waits = await nursery.start(longest_wait)
                began_s = time.perf_counter()
                listed = await list_actors(system, application, query)
                took_ms = (time.perf_counter() - began_s) * 1e3
                nursery.cancel_scope.cancel()
            waits.sort()
            sys.stdout.write(
                f"{page} of {listed.total_count} actors: {took_ms:.0f} ms; the event loop waited "
                f"{statistics.median(waits) * 1e3:.1f} ms in the median, {waits[-1] * 1e3:.1f} ms at most\n"
            )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--devices", type=int, default=100_000)
    arguments = parser.parse_args()
    trio.run(partial(measure, arguments.work, arguments.devices))


if __name__ == "__main__":
    main()
