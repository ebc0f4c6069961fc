"""A group of processes whose memory is limited (cgroup, version 1), within the group of the tests.

Owns the group, which is removed at the end, and what it counts. Does not own the processes in it. Version 2 lets no
group with processes have limited groups within, so where only that is mounted there is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup/memory")


class MemoryGroup:
    """A group in which processes have at most so many bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, process: int) -> None:
        """Move a process into it. What it has used before does not count."""
        (self._path / "cgroup.procs").write_text(str(process))

    def limit(self, bytes_max: int) -> None:
        """Let all of them use so many bytes."""
        (self._path / "memory.limit_in_bytes").write_text(str(bytes_max))

    def hold(self) -> None:
        """Let the kernel stop a process that gets no memory until there is some, instead of killing it."""
        (self._path / "memory.oom_control").write_text("1")

    @property
    def killed(self) -> int:
        """How many processes the kernel has killed."""
        return self._control()["oom_kill"]

    @property
    def is_out_of_memory(self) -> bool:
        """Whether a process is stopped because it gets no memory."""
        return self._control()["under_oom"] == 1

    def _control(self) -> dict[str, int]:
        lines = (self._path / "memory.oom_control").read_text().splitlines()
        return {name: int(count) for name, count in map(str.split, lines)}


def _own_group() -> Path | None:
    """The directory of the group that this process is in; None if there is none of version 1."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _ROOT / path.strip("/")
    return None


@contextmanager
def memory_group() -> Iterator[MemoryGroup | None]:
    """A new group without a limit; None if this machine lets us make none. Its processes must have ended at the end."""
    own = _own_group()
    if own is None or not os.access(own, os.W_OK):
        yield None
        return
    path = own / f"trunkline-{os.getpid()}"
    try:
        path.mkdir()
    except OSError:
        yield None
        return
    try:
        yield MemoryGroup(path)
    finally:
        path.rmdir()
