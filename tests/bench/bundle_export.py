"""Measures what the export of a large application costs. Run it from the checkout:

    PYTHONPATH=. .venv/bin/python tests/bench/bundle_export.py [--rows 1000000] [--devices 100000]

Fills the store of a system in this process, writes a bundle in a worker thread, and prints the processor time of that
thread, the memory of the process before and at its peak, and the longest wait of the event loop.
"""

from __future__ import annotations

import argparse
import gc
import re
import tempfile
import time
from pathlib import Path

import msgspec
import trio

from tests.actors.house import House, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.data.tables.messages import CreateDataTable, InsertRows, TablePost
from trunkline.actors.fleet.devices.record.messages import CreateDevice, DevicePost
from trunkline.actors.portability.bundles.writer import Counts, write_bundle
from trunkline.store.snapshot import Snapshot

OPTIONS = {"includeDevices": True, "includeDataTableRows": True}
COLUMNS = [
    {"name": name, "dataType": kind, "constraint": "optional"}
    for name, kind in (("part", "string"), ("weight", "number"), ("count", "number"), ("sold", "boolean"))
]
ATTRIBUTES = [{"name": f"value{number}", "dataType": "number"} for number in range(5)]
TOGETHER = 100


async def fill(house: House, rows: int, devices: int) -> None:
    """A table, and devices, half of them peripherals of one gateway."""
    system = house.system
    table = Ref("dataTable", house.application, system.ids.new(house.clock.wall_ms()))
    body = msgspec.convert({"name": "parts", "columns": COLUMNS}, TablePost)
    await system.ask(table, CreateDataTable(body=body))
    for start in range(0, rows, 1000):
        house.clock.pass_s(0.01)
        some = [
            {"part": f"part {each}", "weight": each / 7, "count": each, "sold": bool(each & 1)}
            for each in range(start, min(start + 1000, rows))
        ]
        await system.ask(table, InsertRows(body=some))
    gateway = await house.device({}, deviceClass="gateway")

    async def create(number: int) -> None:
        fields = {"deviceClass": "peripheral", "gatewayId": gateway.hex()} if number % 2 else {}
        post = {"name": f"device {number}", "attributes": ATTRIBUTES, **fields}
        ref = house.ref(system.ids.new(house.clock.wall_ms()))
        await system.ask(ref, CreateDevice(body=msgspec.convert(post, DevicePost)))

    for start in range(0, devices, TOGETHER):
        async with trio.open_nursery() as nursery:
            for number in range(start, min(start + TOGETHER, devices)):
                nursery.start_soon(create, number)
    house.forget()
    gc.collect()


def memory_mb() -> float:
    """The memory of this process, without the pages of the store."""
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


async def measure(rows: int, devices: int, folder: Path) -> None:
    """Fill a store, export it, and print what that cost."""
    async with running_house(folder / "data") as house:
        await fill(house, rows, devices)
        before = peak = memory_mb()
        longest_s, done = 0.0, False

        async def watch() -> None:
            nonlocal peak, longest_s
            while not done:
                began_s = time.perf_counter()
                await trio.sleep(0.002)
                longest_s = max(longest_s, time.perf_counter() - began_s - 0.002)
                peak = max(peak, memory_mb())

        with (folder / "bundle.zip").open("wb") as file:

            def add(piece: bytes) -> None:
                file.write(piece)

            def write(snapshot: Snapshot) -> tuple[Counts, float]:
                began_s = time.thread_time()
                counts = write_bundle(house.system, snapshot, house.application, OPTIONS, add)
                return counts, time.thread_time() - began_s

            began_s = time.perf_counter()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch)
                counts, cpu_s = await house.system.read(write)
                done = True
            took_s = time.perf_counter() - began_s
        size_mb = (folder / "bundle.zip").stat().st_size / 1e6
        print(f"{counts['DataTableRow']} rows and {counts['Device']} devices, {size_mb:.1f} MB of zip")  # noqa: T201
        print(f"{took_s:.1f} s, of which {cpu_s:.1f} s of processor time")  # noqa: T201
        print(f"memory {before:.0f} MB before, {peak:.0f} MB at the peak")  # noqa: T201
        print(f"the event loop waited {longest_s * 1000:.0f} ms at most")  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--devices", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trio.run(measure, chosen.rows, chosen.devices, Path(folder))


if __name__ == "__main__":
    main()
