"""What is told of the machines of a server, if there are several. Light: a server on one machine imports this only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import trio

from trunkline.store.log import LogServer, LogState

__all__ = ["ClusterStatus", "MachineLine", "Machines"]


class MachineLine(NamedTuple):
    """What is known of a machine. `owns` are the partitions that it serves, `epoch` is that of the first of these, or
    of the first one that it follows. `behind` are the places of the log that it lacks, `silence_s` is how long it was
    not heard, and `is_there` whether that is as long as an owner may be silent."""

    name: str
    owns: list[int]
    epoch: int
    behind: int
    address: str
    silence_s: float
    is_there: bool

    @property
    def serves(self) -> bool:
        """Whether it serves a partition."""
        return bool(self.owns)


class ClusterStatus(NamedTuple):
    """All machines, this one first, and the log. The log is None while it does not answer."""

    log_name: str
    log: LogState | None
    servers: list[LogServer]
    machines: list[MachineLine]
    partitions: int
    risks: list[str]
    """Sentences about what could not be borne now."""
    appended: int
    appended_bytes: int
    """The entries that the log has acknowledged to this machine since it owns the data, and their bytes."""


class Machines:
    """A component of every system. `status` is there if there are several machines (`maintenance/machine.py`)."""

    name = ""
    """That of this machine."""
    url: str | None = None
    """Where clients reach this machine, if that is set."""

    status: Callable[[], ClusterStatus] | None = None
    invite: Callable[[], str] | None = None
    """Makes an invitation, and returns what the command for the invited machine is given."""
    caught_up: Callable[[], Awaitable[None]] = staticmethod(trio.lowlevel.checkpoint)
    """Returns when the copies of this machine have all that was acknowledged before."""
    give: Callable[[str], None] | None = None
    """Begins to give the partition of this process to another machine."""

    def nearer(self, name: str) -> str | None:
        """Where a client would reach this machine, if it uses another one, whose name this is; None if it does not."""
        return self.url if name not in ("", self.name) else None
