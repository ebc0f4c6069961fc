"""What a server uses: memory, descriptors, threads and disk, and what it says itself.

Owns one reading of all of it, from /proc, the data directory and /metrics. The server runs on this machine.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from trunkline.bench.session import Session

SAID: Final = {
    "store": "trunkline_store_used_bytes",
    "actors": "trunkline_actors_active",
    "connections": "trunkline_connections_open",
    "streams": "trunkline_streams_open",
    "runs waiting": "trunkline_flow_triggers_waiting",
    "restarts": "trunkline_actor_restarts_total",
    "failed commits": "trunkline_commit_failures_total",
}
"""By name of a figure: the metric of the server."""


class Reading(NamedTuple):
    """What a server uses at a moment.

    Memory in bytes that is no part of a file, of the server and its children: the least of a minute, because the hash
    of a password takes 64 MiB for a moment.
    """

    memory: int
    descriptors: int
    threads: int
    processes: int
    directory: int
    said: dict[str, float]


async def read(process_id: int, data_dir: Path, session: Session, memory: int) -> Reading:
    """Read what the server with this process uses. Of the memory the caller knows how much it was at least."""
    root = psutil.Process(process_id)
    descriptors = threads = processes = 0
    for process in (root, *root.children(recursive=True)):
        try:
            descriptors += process.num_fds()
            threads += process.num_threads()
            processes += 1
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            continue  # a child that has just ended
    text = (await session.fetch("GET", "/metrics")).body.decode()
    said = {name: _value(text, metric) for name, metric in SAID.items()}
    return Reading(memory, descriptors, threads, processes, directory_bytes(data_dir), said)


class Memory:
    """The least memory of a server and its children that was seen."""

    def __init__(self, process_id: int) -> None:
        self._root = psutil.Process(process_id)
        self._least: int | None = None

    def look(self) -> None:
        """Look once."""
        total = 0
        for process in (self._root, *self._root.children(recursive=True)):
            with suppress(FileNotFoundError, ProcessLookupError):  # a child that has just ended
                total += anonymous_bytes(process.pid)
        self._least = total if self._least is None else min(self._least, total)

    def taken(self) -> int:
        """The least since the last time that it was taken."""
        if self._least is None:
            self.look()
        least, self._least = self._least, None
        assert least is not None
        return least


def anonymous_bytes(process_id: int) -> int:
    """Memory of a process that is no part of a file: pages of the store, which the kernel may drop, do not count."""
    for line in Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not tell the anonymous memory")


def directory_bytes(path: Path) -> int:
    """The disk that the files of a directory take."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += (Path(folder) / name).stat().st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _value(text: str, metric: str) -> float:
    return sum(float(found) for found in re.findall(rf"^{metric}(?:{{[^}}]*}})? (\S+)$", text, re.M))
