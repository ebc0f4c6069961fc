"""Bytes and writes of the block device: the counters are those of the kernel, and they are divided by all units."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
import trio

from tests.bench.test_bench_report import printed, result, stage
from tests.patience import PATIENCE_S
from trunkline.bench.block_device import BlockDevice, Written
from trunkline.bench.disk_meter import DiskMeter, meter_of
from trunkline.bench.errors import BenchError
from trunkline.bench.formatting import disk_lines, number
from trunkline.bench.load import Tally
from trunkline.bench.page import page_of
from trunkline.bench.result import Calls, DiskUse
from trunkline.bench.server_monitor import ServerMonitor

pytestmark = pytest.mark.disk

MIB = 2**20


@pytest.fixture
def device(tmp_path: Path) -> BlockDevice:
    try:
        return BlockDevice.under(tmp_path)
    except BenchError:
        pytest.skip("the file system of the tests has no block device")


def counters(directory: Path, line: str) -> None:
    directory.mkdir(parents=True)
    (directory / "stat").write_text(line)


def test_the_counters_are_read_from_their_places_and_flushes_from_the_whole_disk(tmp_path: Path) -> None:
    disk = tmp_path / "sda"
    counters(disk, "  1 2 3 4   50 6 700 8   9 10 11   12 13 14 15   160 17\n")
    counters(disk / "sda1", "  1 2 3 4   20 6 300 8   9 10 11   12 13 14 15   0 0\n")
    (disk / "sda1" / "partition").write_text("1\n")
    assert BlockDevice(disk).read() == Written(50, 700 * 512, 160)
    assert BlockDevice(disk / "sda1").read() == Written(20, 300 * 512, 160)
    counters(tmp_path / "old", "1 2 3 4 5 6 7 8 9 10 11\n")
    assert BlockDevice(tmp_path / "old").read() == Written(5, 7 * 512, 0)
    assert Written(9, 90, 5).since(Written(2, 30, 5)) == Written(7, 60, 0)


def test_without_a_block_device_the_reason_is_told() -> None:
    with pytest.raises(BenchError, match="has no block device of its own"):
        BlockDevice.under(Path("/proc"))
    with pytest.raises(BenchError, match="process was not found"):
        meter_of(None)


async def test_what_a_program_writes_is_found_on_the_device_with_what_it_puts_off(
    tmp_path: Path, device: BlockDevice
) -> None:
    put_off: list[bytes] = []

    async def finish() -> None:
        for data in put_off:
            (tmp_path / "later").write_bytes(data)
        put_off.clear()

    with (tmp_path / "data").open("wb", buffering=0) as file, trio.fail_after(PATIENCE_S):
        monitor = ServerMonitor([os.getpid()])
        meter = DiskMeter(tmp_path, monitor, finish, idle_s=0)
        begun = await meter.begin()
        file.write(os.urandom(2 * MIB))
        put_off.append(os.urandom(MIB))
        use = await meter.end(begun, "states", 1000)
        file.truncate(64 * MIB)
        assert monitor.data_file() == tmp_path / "data"
    assert use.device == device.name
    assert use.bytes >= 3 * MIB
    assert use.writes >= 2
    assert use.server_bytes is not None
    assert use.server_bytes >= 3 * MIB
    assert use.server_calls is not None
    assert use.server_calls >= 2
    assert (use.unit, use.units) == ("states", 1000)


def test_the_figures_are_for_each_unit_and_the_warm_up_counts() -> None:
    use = DiskUse(
        device="sda",
        unit="states",
        units=2000,
        elapsed_s=4.0,
        writes=140,
        bytes=900_000,
        flushes=21,
        idle_s=2.0,
        idle_writes=3,
        idle_bytes=20_000,
        server_calls=120,
        server_bytes=800_000,
    )
    before = "without load before: 10.0 kB and 1.5 writes a second"
    one = result(msgspec.structs.replace(stage(), disk=use))
    for shown in (printed(one), page_of(one)):
        assert "450 bytes, 0.07 writes, 0.0105 flushes" in shown
    assert disk_lines(use) == [
        ("block device, for each state", "450 bytes, 0.07 writes, 0.0105 flushes"),
        (
            "all of sda",
            "900.0 kB in 140 writes and 21 flushes for 2,000 states, the warm-up included, in 4.0 s; "
            + before,
        ),
        ("the server's write calls", "400 bytes in 0.06 calls for each state"),
    ]
    tally = Tally("posts", "states")
    for units in (500, 1500):
        tally.reset()
        tally.units = units
    assert Calls.of(tally, 1.0).units_in_all == 2000
    numbers = [number(value) for value in (0.000019, 0.06449, 0, 3.0, 12.345, 1234.5)]
    assert numbers == ["< 0.0001", "0.0645", "0", "3", "12.3", "1,234"]
