"""This machine, as one of several with the same log: what it needs of the others, and what it tells of all of them.

Does not own how a machine comes to own the data (`standby.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from trunkline.actors.core.runtime.machines import ClusterStatus, MachineLine
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.maintenance.log_connection import answered
from trunkline.store.errors import StoreError
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import LogServer, LogState
from trunkline.store.log_nodes import Nodes, Word
from trunkline.store.partitions import partition_directory
from trunkline.store.replicated_journal import ReplicatedJournal, ReplicatedPartitionedJournal
from trunkline.store.standby import Standby, shared_key
from trunkline.store.store_copy import copy_command, new_file

RELEASE_S: Final = 2.0
"""How long the log is told that a server has ended."""
LOOK_S: Final = 10.0
"""How often the log is asked for what it has."""
CATCH_UP_S: Final = 0.02
"""How often it is looked whether copies have what they should."""
BEHIND_MAX: Final = 1000
"""A machine that lacks more entries is told of as a risk."""

_log = structlog.get_logger("trunkline.serve")


class Machine:
    """This machine. `watch_log` runs in a nursery."""

    def __init__(
        self,
        standby: Standby,
        others: Sequence[Nodes],
        log: JetStreamLog,
        directory: Path,
        shared: Callable[[Mapping[str, str]], bytes],
    ) -> None:
        """`others` are those who have or follow the other partitions, for the process of the first one. `shared` is
        what a machine gets that is invited, given the addresses of all by name."""
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
        self._others = others
        self._heir = ""
        """Who shall own the partition next, if that was asked for."""
        self.gives = trio.Event()
        """Set when it shall be given to that machine: this process has to end."""
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
        """Where the other machine is reached that owns the partition; None if none is heard."""
        word = self._standby.nodes.owner()
        return None if word is None else word.address

    def owner_name(self) -> str:
        """The other machine that owns the partition, and where it is reached, for a sentence."""
        word = self._standby.nodes.owner()
        return "none now" if word is None else f"{word.name} at {word.address}"

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
            return ClusterStatus(self._log.name, None, [], [], 0, [], *appended)
        machines, silent = self._machines()
        problem = self._log.problem
        state, servers = (self._log_state, self._log_servers) if problem is None else (None, [])
        count = 1 + len(self._others)
        risks = silent + _risks(machines, count, state, servers, problem)
        return ClusterStatus(self._log.name, state, servers, machines, count, risks, *appended)

    def _machines(self) -> tuple[list[MachineLine], list[str]]:
        """All machines, this one first, and sentences about processes that are not heard of those whose root is."""
        standby, own = self._standby, self._standby.say()
        nodes = standby.nodes
        # By partition and name, what was heard last, and for how long nothing since.
        heard = [
            {name: (each.others[name][0], each.silence_s(name)) for name in sorted(each.others)}
            for each in (nodes, *self._others)
        ]
        heard[0] = {own.name: (own, 0.0), **heard[0]}
        lasts = [max((word.place for word, _ in each.values()), default=0) for each in heard]
        machines, silent = [], []
        for name, (word, silence_s) in heard[0].items():
            is_there, behind = silence_s < nodes.silence_max_s, 0
            owned: list[Word] = []
            owns: list[int] = []
            for number, last in enumerate(lasts):
                said, quiet_s = heard[number].get(name, (None, math.inf))
                if said is not None and said.is_owner and quiet_s < nodes.silence_max_s:
                    owned.append(said)
                    owns.append(number)
                behind = max(behind, last if said is None else last - said.place)
                if is_there and quiet_s >= nodes.silence_max_s:
                    silent.append(f"The process of partition {number} of {name} is not heard.")
            epoch = next((each.epoch for each in owned), word.epoch)
            machines.append(MachineLine(name, owns, epoch, behind, word.address, silence_s, is_there))
        return machines, silent

    async def caught_up(self) -> None:
        """Return when the copies of this machine have all that was acknowledged before.

        An owner without writes appends marks, so its copy comes to have any place of the log.
        """
        copy = self._standby.copy
        if copy is None:
            await trio.lowlevel.checkpoint()
            return
        last = (await answered(self._log.state)).last
        while not copy.others_have(last):  # noqa: ASYNC110 - what another process has is no event
            await trio.sleep(CATCH_UP_S)

    # Owning the data.

    def journal(self, *arguments: Any, **options: Any) -> ReplicatedJournal:
        """The writer of the store of this machine, which owns the partition."""
        owner, copy = self._standby.owner, self._standby.copy
        assert owner is not None
        if copy is None:
            self._journal = ReplicatedJournal(*arguments, owner=owner, **options)
        else:
            self._journal = ReplicatedPartitionedJournal(*arguments, owner=owner, copy=copy, **options)
        return self._journal

    def give(self, name: str) -> None:
        """Begin to give the partition to another machine: this process ends, and that one owns it next.

        Raises `Invalid` unless that machine follows it.
        """
        nodes, partition = self._standby.nodes, self._standby.partition
        if not nodes.follows(name):
            there = ", ".join(sorted(each for each in nodes.others if nodes.follows(each))) or "none"
            raise Invalid(f"No machine {name} follows partition {partition}; these do: {there}.")
        behind = self._standby.say().place - nodes.others[name][0].place
        if behind > BEHIND_MAX:
            raise Invalid(
                f"{name} lacks {behind} entries of the log of partition {partition}; wait until it has them."
            )
        self._heir = name
        self.gives.set()

    async def release(self) -> None:
        """Let another machine own the partition at once: the server has ended."""
        if self._journal is None:
            return
        try:
            with trio.fail_after(RELEASE_S):
                standby = self._standby
                await self._journal.release(self._heir or ("" if standby.copy is None else standby.heir()))
        except (StoreError, trio.TooSlowError) as problem:
            _log.warning("the log is not told that this node has ended", problem=str(problem))


def _risks(
    machines: list[MachineLine],
    partitions: int,
    log: LogState | None,
    servers: list[LogServer],
    problem: str | None,
) -> list[str]:
    """`problem` is why there is no connection to the log."""
    there = [each for each in machines if each.is_there]
    found = []
    owned = {number for each in there for number in each.owns}
    if not owned:
        found.append("No machine serves the data.")
    else:
        found += [f"No machine serves partition {each}." for each in range(partitions) if each not in owned]
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
