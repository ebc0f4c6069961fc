"""The processor time and the memory of a server that runs on this machine.

Owns finding its processes, by number or by the port they listen on, and reading what they use. A server on
another machine, or one that this user may not look at, is no error: the report then does without.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import NamedTuple

import psutil

from trunkline.bench.errors import BenchError
from trunkline.bench.line import reach
from trunkline.bench.transport import Origin


class Usage(NamedTuple):
    """What processes used until now: seconds of processor time, bytes of memory, and of those not in files."""

    cpu_s: float
    bytes: int
    private_bytes: int


class ServerWatch:
    """Reads what the processes ``pids`` and those that they started use."""

    def __init__(self, pids: Sequence[int]) -> None:
        try:
            self._roots = [psutil.Process(pid) for pid in pids]
        except psutil.Error as problem:
            raise BenchError(f"The server's process cannot be watched: {problem}.") from None
        self._all: list[psutil.Process] = []
        self.peak_bytes = 0
        self.refresh()

    @property
    def pids(self) -> list[int]:
        """The processes that are watched."""
        return [process.pid for process in self._all]

    def refresh(self) -> None:
        """Look for started processes anew; slow, so never while something is measured."""
        found = dict.fromkeys(self._roots)
        for root in self._roots:
            try:
                found.update(dict.fromkeys(root.children(recursive=True)))
            except psutil.Error:
                continue
        self._all = list(found)

    def look(self) -> Usage:
        """What they used until now; processes that are gone count as nothing."""
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


def find_server(origin: Origin, pid: int | None) -> ServerWatch | None:
    """The watch of the server at ``origin``: of process ``pid`` where given, else of who listens on its port."""
    if pid is not None:
        return ServerWatch([pid])
    _, address = reach(origin.host, origin.port)
    if address[0] not in _own_addresses():
        return None
    pids = {
        one.pid
        for one in psutil.net_connections(kind="tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == origin.port and one.pid
    }
    return ServerWatch(sorted(pids)) if pids else None


def _own_addresses() -> set[str | int]:
    return {
        one.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family in (socket.AF_INET, socket.AF_INET6)
    }
