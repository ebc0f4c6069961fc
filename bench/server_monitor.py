"""The processor time and the memory of a server that runs on this machine.

Owns finding its processes, by id or by the port they listen on, and reading their usage. It is no error if the
server runs on another machine or cannot be inspected by this user: the report then has no such figures.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from trunkline.bench.errors import BenchError
from trunkline.bench.load_connection import resolve_address
from trunkline.bench.transport import Origin


class Usage(NamedTuple):
    """Usage of processes: seconds of processor time so far, bytes of resident memory, and of it those not in files."""

    cpu_s: float
    bytes: int
    private_bytes: int


class WriteCalls(NamedTuple):
    """Calls of processes that write to files or pipes (not to sockets), and the bytes that were given to them.

    Not the bytes that the kernel charges to a process (``write_bytes``): these are whole folios, which can be many
    times as large as what is written.
    """

    calls: int
    bytes: int


class ServerMonitor:
    """Reads the usage of the processes ``pids`` and of their child processes."""

    def __init__(self, pids: Sequence[int]) -> None:
        try:
            self._roots = [psutil.Process(pid) for pid in pids]
        except psutil.Error as problem:
            raise BenchError(f"The server's process cannot be monitored: {problem}.") from None
        self._all: list[psutil.Process] = []
        self.peak_bytes = 0
        self.refresh()

    @property
    def pids(self) -> list[int]:
        """The ids of the monitored processes."""
        return [process.pid for process in self._all]

    def refresh(self) -> None:
        """Search for child processes again. Slow, so never during a measurement."""
        found = dict.fromkeys(self._roots)
        for root in self._roots:
            try:
                found.update(dict.fromkeys(root.children(recursive=True)))
            except psutil.Error:
                continue
        self._all = list(found)

    def usage(self) -> Usage:
        """The usage until now; processes that have ended count as 0."""
        cpu_s, resident, private = 0.0, 0, 0
        for process in self._all:
            try:
                times, memory = process.cpu_times(), process.memory_info()
            except psutil.Error:
                continue
            cpu_s += times.user + times.system
            resident += memory.rss
            private += memory.rss - memory.shared
        self.peak_bytes = max(self.peak_bytes, resident)
        return Usage(cpu_s, resident, private)

    def write_calls(self) -> WriteCalls | None:
        """The write calls until now; None if this user may not read them."""
        calls = size = 0
        for process in self._all:
            try:
                counters = process.io_counters()
            except psutil.NoSuchProcess:
                continue
            except psutil.Error:
                return None
            calls += counters.write_count
            size += counters.write_chars
        return WriteCalls(calls, size)

    def data_file(self) -> Path | None:
        """The largest file that the processes have open for writing, which is taken for the data; None if unknown."""
        found: dict[Path, int] = {}
        for process in self._all:
            with suppress(psutil.Error):
                for file in process.open_files():
                    if file.mode != "r":
                        with suppress(OSError):
                            found[Path(file.path)] = Path(file.path).stat().st_size
        return max(found, key=found.__getitem__, default=None)


def find_server(origin: Origin, pid: int | None) -> ServerMonitor | None:
    """A monitor of the server at ``origin``: of process ``pid``, or else of the processes that listen on its port.

    None if there is no such process on this machine.
    """
    if pid is not None:
        return ServerMonitor([pid])
    _, address = resolve_address(origin.host, origin.port)
    if address[0] not in _own_addresses():
        return None
    pids = {
        one.pid
        for one in psutil.net_connections(kind="tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == origin.port and one.pid
    }
    return ServerMonitor(sorted(pids)) if pids else None


def _own_addresses() -> set[str | int]:
    return {
        one.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family in (socket.AF_INET, socket.AF_INET6)
    }
