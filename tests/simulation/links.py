"""Who reaches whom of several machines with several partitions each (`spread.py`).

What a process says to that of a partition which another machine owns is passed on by the process of its own machine
that stands by for that partition, as long as this one hears the owner (`http/processes/machine_port.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.model import Broken
from tests.simulation.network import Network
from tests.simulation.spread_processes import PARTITIONS, Host, SpreadProcess
from tests.simulation.wires import PROCESS
from tests.store.simulated_nodes import Words

WELL_S: Final = 5.0
"""So long after all goes well again, each machine that serves has fresh copies."""
LOOK_S: Final = 0.1
"""How often it is looked who reaches whom, and which copies are fresh."""


class Links:
    """Who reaches whom: the sockets of processes on other machines, through those that stand by."""

    def __init__(self, network: Network, hosts: list[Host], virtual: VirtualTime, *, loses: bool) -> None:
        """`loses`: answers of the log or words may be lost."""
        self._network = network
        self._virtual = virtual
        self._loses = loses
        self._slept_s = 0.0
        self._well_s = trio.current_time()
        """Since when all goes well."""
        self._processes = {each.number: each for host in hosts for each in host.processes}
        self._by_path = {each.disk.path: each for each in self._processes.values()}
        self._hosts = hosts
        self.severed: set[int] = set()
        """The machines that reach no other one."""

    def owner_of(self, asking: SpreadProcess, passing: SpreadProcess) -> SpreadProcess | None:
        """The process to which one that stands by passes on what another one of its machine says."""
        standby = passing.standby
        word = standby.nodes.owner() if passing.stands_by and standby is not None else None
        if word is None or asking.host is not passing.host:
            return None
        owner = next(host for host in self._hosts if host.name == word.address).processes[passing.partition]
        return owner if owner.is_up and not {owner.host.number, passing.host.number} & self.severed else None

    def elsewhere(self, directory: Path) -> Path | None:
        """Where the socket is to which what is said to that of a directory is passed on."""
        asking, passing = self._processes.get(PROCESS.get() or 0), self._by_path.get(directory)
        if asking is None or passing is None:
            return None
        owner = self.owner_of(asking, passing)
        return None if owner is None else owner.disk.path

    async def watch(self) -> None:
        """Cut what is not passed on any more, and look at the copies, until cancelled."""
        while True:
            self._cut()
            for host in self._hosts:
                serves = host.serves
                for each in host.processes:
                    is_there = each.is_up or each.stands_by
                    if not is_there or (serves and not host.fresh_s(each.partition)):
                        each.troubled_s = trio.current_time()
            self._check()
            await trio.sleep(LOOK_S)

    def _cut(self) -> None:
        for wire in self._network.inner_wires():
            one, other = (self._processes.get(end.process or 0) for end in wire.ends)
            if one is None or other is None or one.host is other.host:
                continue
            if self.owner_of(one, one.host.processes[other.partition]) is not other:
                self._network.reached["what passed between machines was cut"] += 1
                wire.sever()

    def _check(self) -> None:
        """Raise `Broken` where a copy is not fresh although all has gone well for a while, and nothing is lost."""
        now_s, slept_s = trio.current_time(), self._virtual.slept_s
        every = self._processes.values()
        is_well = (
            not self._loses
            and slept_s == self._slept_s
            and all(each.is_well for each in every)
            and sum(each.is_up for each in every) == PARTITIONS
        )
        self._slept_s = slept_s
        if not is_well:
            self._well_s = now_s
        if now_s - self._well_s < WELL_S:
            return
        for host in self._hosts:
            old = [number for number in range(PARTITIONS) if not host.fresh_s(number)]
            if host.serves and old:
                raise Broken(f"{host.name} has no fresh copies of the partitions {old}, and all goes well")


class QuietWords(Words):
    """What all processes of a partition hear of each other. While everything is looked at, nothing is lost."""

    network: Network

    def say(self, name: str, payload: bytes) -> None:
        lost, self._lost = self._lost, self._lost if self.network.may_stall else 0.0
        try:
            super().say(name, payload)
        finally:
            self._lost = lost
