"""What a load writes to the block device of the server, until everything has its final place on it.

Owns the order of the readings. Before the load, everything that waits in the cache of the system is written, and the
device is read twice, to see what other programs write. After the load, the server first does what it puts off, then
the cache is written again. Does not own how a server is made to do that.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trio

from trunkline.bench.block_device import BlockDevice, Written
from trunkline.bench.flushed import data_directory, file_of, flush
from trunkline.bench.result import DiskUse
from trunkline.bench.server_monitor import ServerMonitor, WriteCalls

IDLE_S = 1.0
"""Seconds: the writes of other programs are counted for so long before a load."""

Finish = Callable[[], Awaitable[None]]
"""Waits until the server has written all that it puts off."""


class Begun(NamedTuple):
    """The readings before a load."""

    at_s: float
    idle_s: float
    idle: Written
    device: Written
    server: WriteCalls | None


class DiskMeter:
    """Measures loads on the device under ``path``; raises BenchError if it has no counters."""

    def __init__(self, path: Path, monitor: ServerMonitor, finish: Finish, *, idle_s: float = IDLE_S) -> None:
        self._device = BlockDevice.under(path)
        self._monitor = monitor
        self._finish = finish
        self._idle_s = idle_s

    async def begin(self) -> Begun:
        """Write the cache, watch the device without a load, and take the first reading."""
        await self._finish()
        await trio.to_thread.run_sync(os.sync)
        earlier, earlier_s = self._device.read(), trio.current_time()
        await trio.sleep(self._idle_s)
        now, now_s = self._device.read(), trio.current_time()
        return Begun(now_s, now_s - earlier_s, now.since(earlier), now, self._monitor.write_calls())

    async def end(self, begun: Begun, unit: str, units: int) -> DiskUse:
        """Let the server and the system write what they put off, and return what was written since ``begun``."""
        await self._finish()
        await trio.to_thread.run_sync(os.sync)
        server, before = self._monitor.write_calls(), begun.server
        written = self._device.read().since(begun.device)
        return DiskUse(
            device=self._device.name,
            unit=unit,
            units=units,
            elapsed_s=trio.current_time() - begun.at_s,
            writes=written.writes,
            bytes=written.bytes,
            flushes=written.flushes,
            idle_s=begun.idle_s,
            idle_writes=begun.idle.writes,
            idle_bytes=begun.idle.bytes,
            server_calls=server.calls - before.calls if server and before else None,
            server_bytes=server.bytes - before.bytes if server and before else None,
        )


def meter_of(monitor: ServerMonitor | None) -> DiskMeter:
    """A meter for a Trunkline server on this machine. Raises BenchError, with the reason, if it cannot be measured."""
    file = file_of(monitor)
    assert monitor is not None
    return DiskMeter(file, monitor, partial(flush, data_directory(file)))
