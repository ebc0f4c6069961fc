"""This machine, as one of several with the same log: what it needs of the others, and what it tells of all of them.

Does not own how a machine comes to own the data (`standby.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from trunkline.actors.core.runtime.machines import ClusterStatus, MachineLine
from trunkline.store.errors import StoreError
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import LogServer, LogState
from trunkline.store.partitions import partition_directory
from trunkline.store.replicated_journal import ReplicatedJournal, ReplicatedPartitionedJournal
from trunkline.store.standby import Standby, shared_key
from trunkline.store.store_copy import copy_command, new_file

RELEASE_S: Final = 2.0
"""How long the log is told that a server has ended."""
LOOK_S: Final = 10.0
"""How often the log is asked for what it has."""
BEHIND_MAX: Final = 1000
"""A machine that lacks more entries is told of as a risk."""

_log = structlog.get_logger("trunkline.serve")


class Machine:
    """This machine. `watch_log` runs in a nursery."""

    def __init__(
        self,
        standby: Standby,
        log: JetStreamLog,
        directory: Path,
        shared: Callable[[Mapping[str, str]], bytes],
    ) -> None:
        """`shared` is what a machine gets that is invited, given the addresses of all by name."""
        self.key = shared_key(directory, b"machines")
        """32 bytes that the machines of this server know, and nobody else."""
        self.follows = standby.follows
        """It follows the log, and may do so."""
        own = partition_directory(directory, standby.partition)
        self.copy_command = copy_command(own)
        """The program that writes the store of this machine to its standard output."""
        self.new_file = partial(new_file, own)
        """Makes the file for a copy of the store of another machine."""
        self._shared = shared
        self.invite: Callable[[], str] | None = None
        """Makes an invitation for another machine (`http/processes/machine_port.py`)."""
        self._standby = standby
        self._log = log
        self._journal: ReplicatedJournal | None = None
        self._log_state: LogState | None = None
        self._log_servers: list[LogServer] = []

    # The others.

    def shared(self) -> bytes:
        """What a machine gets that is invited. Raises StoreError."""
        machines, _ = self._machines()
        return self._shared({each.name: each.address for each in machines if each.is_there})

    def owner_address(self) -> str | None:
        """Where the other machine is reached that owns the data; None if none is heard."""
        word = self._standby.nodes.owner()
        return None if word is None else word.address

    async def watch_log(self) -> None:
        """Ask the log for what it has, again and again, until cancelled."""
        while True:
            try:
                self._log_state, self._log_servers = await self._log.state(), await self._log.servers()
            except StoreError:
                self._log_state, self._log_servers = None, []
            await trio.sleep(LOOK_S)

    def status(self) -> ClusterStatus:
        """What this machine knows of all machines and of the log. The root tells it for all partitions."""
        owner = self._standby.owner
        appended = (0, 0) if owner is None else (owner.appended, owner.appended_bytes)
        if self._standby.partition:
            return ClusterStatus(self._log.name, None, [], [], [], *appended)
        machines, silent = self._machines()
        problem = self._log.problem
        state, servers = (self._log_state, self._log_servers) if problem is None else (None, [])
        risks = silent + _risks(machines, state, servers, problem)
        return ClusterStatus(self._log.name, state, servers, machines, risks, *appended)

    def _machines(self) -> tuple[list[MachineLine], list[str]]:
        """All machines, this one first, and sentences about processes that are not heard of those whose root is."""
        standby, own = self._standby, self._standby.say()
        nodes = standby.nodes
        # By partition and name, what was heard last, and for how long nothing since.
        heard = [
            {name: (each.others[name][0], each.silence_s(name)) for name in sorted(each.others)}
            for each in (nodes, *standby.others)
        ]
        heard[0] = {own.name: (own, 0.0), **heard[0]}
        lasts = [max((word.place for word, _ in each.values()), default=0) for each in heard]
        machines, silent = [], []
        for name, (word, silence_s) in heard[0].items():
            is_there, behind = silence_s < nodes.silence_max_s, 0
            for number, last in enumerate(lasts):
                said, quiet_s = heard[number].get(name, (None, math.inf))
                behind = max(behind, last if said is None else last - said.place)
                if is_there and quiet_s >= nodes.silence_max_s:
                    silent.append(f"The process of partition {number} of {name} is not heard.")
            machines.append(
                MachineLine(name, word.is_owner, word.epoch, behind, word.address, silence_s, is_there)
            )
        return machines, silent

    # Owning the data.

    def journal(self, *arguments: Any, **options: Any) -> ReplicatedJournal:
        """The writer of the store of this machine, which owns the data."""
        owner = self._standby.owner
        assert owner is not None
        kind = ReplicatedPartitionedJournal if "partitions" in options else ReplicatedJournal
        self._journal = kind(*arguments, owner=owner, **options)
        return self._journal

    async def release(self) -> None:
        """Let another machine own the data at once: the server has ended."""
        if self._journal is None:
            return
        try:
            with trio.fail_after(RELEASE_S):
                await self._journal.release()
        except (StoreError, trio.TooSlowError) as problem:
            _log.warning("the log is not told that this node has ended", problem=str(problem))


def _risks(
    machines: list[MachineLine], log: LogState | None, servers: list[LogServer], problem: str | None
) -> list[str]:
    """`problem` is why there is no connection to the log."""
    there = [each for each in machines if each.is_there]
    found = []
    if not any(each.serves for each in there):
        found.append("No machine serves the data.")
    if len(there) < 2:
        found.append("No other machine is there: if this one is lost, nobody serves the data.")
    found += [
        f"{each.name} lacks the last {each.behind} entries of the log: it cannot serve before it has them."
        for each in there
        if each.behind > BEHIND_MAX
    ]
    found += [
        f"{each.name} was not heard for {each.silence_s:.0f} s." for each in machines if not each.is_there
    ]
    if problem is not None:
        found.append(f"The log cannot be reached, so nothing can be stored: {problem}.")
    elif log is None:
        found.append("The log does not answer: nothing can be stored.")
    elif len(servers) > 1:
        missing = [each.name for each in servers if not each.is_current]
        if missing:
            found.append(f"The log is not whole on {', '.join(missing)}.")
    else:
        found.append("One NATS server keeps the log: it is lost with that.")
    return found
