"""One life of a server: the whole of it, on sockets in memory and the files that the life before has left.

It is one process, or several with a partition each (`processes.py`), of which each can be called.

Owns how a life begins and ends, and the calls to it. Does not own what is called, nor what ought to come back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.disk import Disk
from tests.simulation.doors import DoorProcess
from tests.simulation.edge import Edge, processes_in_memory
from tests.simulation.http1 import Clients
from tests.simulation.http2 import Clients2
from tests.simulation.model import Broken
from tests.simulation.network import Network
from tests.simulation.processes import Process, Server, open_store, running
from tests.simulation.wires import Wire
from trunkline.actors import boot
from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.runtime.system import System
from trunkline.http.calls.body_stream import BodyStream
from trunkline.http.calls.request import Request
from trunkline.http.serve import make_dispatcher
from trunkline.limits.settings import Settings
from trunkline.store import arrivals, compaction

PACKED_CHUNKS, GROUP_RUNS = 9, 3
"""So many commits with reports become a segment, and so many runs one: with the usual numbers, hardly ever."""
HTTP2: Final = 0.4
"""The share of calls over HTTP/2 among those on connections."""
_PIECE_S: Final = 0.003
"""Between two pieces of a body."""
_PATIENCE_S: Final = 300.0
"""After so long an answer will never come."""


@dataclass
class Answer:
    """A response: its status, its body as JSON, its headers by name in lower case, or its stream."""

    status: int
    body: Any
    headers: dict[str, str]
    stream: Any = None
    raw: bytes = field(default=b"", repr=False)


class Life:
    """A server that runs. `over` once its power is cut: what it still answers is nobody's.

    `home` is the partition of the application in which nearly everything is done.
    """

    def __init__(
        self,
        network: Network,
        nursery: trio.Nursery,
        virtual: VirtualTime,
        only: Server | None = None,
        processes: Sequence[Process] = (),
        doors: Sequence[DoorProcess] = (),
        chance: Random | None = None,
    ) -> None:
        """It has one server, or several processes; `chance` says then what becomes of calls."""
        self.network = network
        self.processes = processes
        self.doors = doors
        self.all_processes = [*processes, *doors]
        self.home = 0
        self.home_moves_until_s = float("-inf")
        """Until when that application is, or was, on its way to another partition."""
        self.moves: dict[str, float] = {}
        """The same for each application that was moved."""
        self.was_unsure: Callable[[float], bool] = lambda _since_s: False
        """Whether it was not sure since a time which of several machines serves."""
        self.is_calm: Callable[[], Awaitable[None]] = _nothing
        """Returns when no trouble of before, which nobody causes any more, can be noticed."""
        self.clients = Clients(network, nursery)
        """Those that call over connections."""
        self.clients2 = Clients2(network, nursery, virtual) if network.has_newer else None
        """Those among them that speak HTTP/2."""
        self.over = False
        self._only = only
        self._chance = chance
        self._virtual = virtual

    def server(self, partition: int) -> Server:
        """What the process of a partition has in memory, or had when it died."""
        return self._only or self.processes[partition].server

    @property
    def servers(self) -> list[Server]:
        """Those of all partitions."""
        return [self._only] if self._only is not None else [each.server for each in self.processes]

    @property
    def running(self) -> list[Server]:
        """Those of all processes that are there."""
        return [*self.servers] if self._only else [each.server for each in self.processes if each.is_up]

    def any_disk(self, chance: Random) -> Disk:
        """One of the disks of the machine."""
        return self.disk if self._only is not None else chance.choice(self.disk.machine)

    @property
    def system(self) -> System:
        """The system in which nearly everything is done."""
        return self.server(self.home).system

    @property
    def root(self) -> System:
        """The system that has the users."""
        return self.server(0).system

    @property
    def disk(self) -> Disk:
        """The disk of `system`. The first of its `machine` has the files beside the stores."""
        return self.server(self.home).disk

    @property
    def is_quiet(self) -> bool:
        """Nothing waits for a commit or is under way to the server, and it answers no request of a connection."""
        if self._only is None:
            every = (*self.processes, *self.all_processes)
            return self.network.is_quiet and all(process.is_quiet for process in every)
        return not self._only.system.journal.pending_batches and self._only.edge.is_quiet

    @property
    def has_under_way(self) -> bool:
        """Whether something waits for a commit where nearly all is done, or is under way between processes."""
        return bool(
            self.system.journal.pending_batches or (self.processes and not self.network.is_quiet_inside)
        )

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer | None:
        """Make a call of the API, as a client on 127.0.0.1 does. `body` is JSON, or the bytes of a form.

        With several processes it is made at one of them, on a connection of its own. None if it was lost.
        """
        if self._chance is not None:
            return await self._call_any(method, path, body, token, headers, self._chance)
        path, _, query = path.partition("?")
        stream = _in_pieces(body, short_end=self.network.has_newer) if isinstance(body, bytes) else None
        raw = b"" if body is None or stream is not None else msgspec.json.encode(body)
        sent = {name.lower().encode(): value.encode() for name, value in (headers or {}).items()}
        if token:
            sent[b"authorization"] = f"Bearer {token}".encode()
        if body is not None and stream is None:
            sent[b"content-type"] = b"application/json"
        request = Request(method, path, query.encode(), sent, raw, "127.0.0.1", stream=stream)
        response = await self.server(0).dispatcher.handle(request)
        found = {name.decode().lower(): value.decode() for name, value in response.headers}
        return _answer(response.status, found, response.body, response.stream)

    async def _call_any(
        self,
        method: str,
        path: str,
        body: Any,
        token: str,
        headers: Mapping[str, str] | None,
        chance: Random,
    ) -> Answer | None:
        began_s, slept_s = self._virtual.now_s, self._virtual.slept_s
        with trio.move_on_after(_PATIENCE_S) as waiting:
            made, wire, stream, has_begun = await self.clients.call_once(
                method, path, body, token, headers, chance
            )
        if waiting.cancelled_caught:
            raise Broken(f"{method} {path}: no answer after {_PATIENCE_S:.0f} seconds")
        if made is not None:
            return _answer(made.status, made.headers, made.body, stream)
        was_late = wire.has_stalled or self._virtual.slept_s > slept_s
        # An answer in parts is cut when the process dies that sends them.
        if not (was_late or self.over or self.was_away(wire, began_s, with_home=has_begun)):
            raise Broken(f"{method} {path}: the connection was lost, and its process was there")
        return None

    @property
    def home_since_s(self) -> float:
        """Since when `home` serves that application, without a break and without a move. At rest only."""
        ends = [each.back_s for each in self.processes if each.number == self.home]
        return max([*ends, self.home_moves_until_s])

    @property
    def steady_since_s(self) -> float:
        """Since when no process was away, and no application moved. At rest only."""
        return max([float("-inf"), *(each.back_s for each in self.processes), *self.moves.values()])

    def home_was_moved(self, since_s: float) -> bool:
        """Whether the application in which nearly all is done was on its way to another partition, or machine."""
        return self.home_moves_until_s > since_s or self.was_unsure(since_s)

    def was_away(self, wire: Wire, since_s: float, *, with_home: bool = False) -> bool:
        """Whether the process at the other end of a wire was away, or with the one in which nearly all is done.

        What comes by MQTT to a door goes through the root.
        """
        ends = {wire.socket.process, self.home if with_home else None}
        if any(door.number in ends for door in self.doors):
            ends.add(0)
        was_moved = with_home and self.home_was_moved(since_s)
        return was_moved or any(each.number in ends and each.was_away(since_s) for each in self.all_processes)

    async def call_over_wire(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        headers: Mapping[str, str] | None = None,
        chance: Random,
    ) -> Answer | None:
        """Make a call as bytes on a connection. None if it was lost before the answer."""
        clients: Clients | Clients2 = self.clients
        if self.clients2 is not None and chance.random() < HTTP2:
            clients = self.clients2
        raw = await clients.call(method, path, body, token, headers, chance)
        version = "1.1" if clients is self.clients else "2"
        self.network.reached[f"a call was answered over HTTP/{version}"] += raw is not None
        return None if raw is None else _answer(raw.status, raw.headers, raw.body)


async def _nothing() -> None:
    """One machine has no such trouble."""


def _in_pieces(body: bytes, *, short_end: bool) -> BodyStream:
    """A body that comes in three pieces, one after the other; of the last one there may be some bytes only."""
    size = len(body) // 3 + 1
    ends = [size, len(body) - 1 - len(body) % 5 if short_end else 2 * size, len(body)]
    pieces = [body[at:end] for at, end in zip([0, *ends], ends, strict=False) if body[at:end]]

    async def receive() -> dict[str, Any]:
        await trio.sleep(_PIECE_S)
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    return BodyStream(receive, b"%d" % len(body), 30.0)


def _answer(status: int, headers: dict[str, str], raw: bytes, stream: Any = None) -> Answer:
    body = None
    if raw and headers.get("content-type", "").startswith("application/json"):
        body = msgspec.json.decode(raw)
    return Answer(status, body, headers, stream, raw)


@asynccontextmanager
async def living(
    path: Path, settings: Settings, virtual: VirtualTime, disk: Disk, network: Network, random_bytes: Any
) -> AsyncIterator[Life]:
    """A server on a data directory, with its background tasks."""
    with disk.files.watched():
        async with _living(path, settings, virtual, disk, network, random_bytes) as life:
            yield life


@asynccontextmanager
async def _living(
    path: Path, settings: Settings, virtual: VirtualTime, disk: Disk, network: Network, random_bytes: Any
) -> AsyncIterator[Life]:
    make_rare_things_frequent()
    store = open_store(path, settings, virtual)
    try:
        virtual.threads_may_run = lambda: not store.memory_map._reads_held
        disk.watch(store)
        system = System(store, settings.limits, virtual, ACTORS, random_bytes=random_bytes)
        boot.add_parts(system, settings)
        with network.below_sockets():
            async with boot.running(system), trio.open_nursery() as nursery:
                dispatcher = make_dispatcher(system, settings)
                nursery.start_soon(dispatcher.call_turns.run)
                edge = Edge(dispatcher, settings, network)
                await nursery.start(edge.serve)
                yield Life(network, nursery, virtual, Server(system, dispatcher, disk, edge))
                nursery.cancel_scope.cancel()
    finally:
        store.close()


@asynccontextmanager
async def living_in_processes(
    settings: Settings, virtual: VirtualTime, disk: Disk, network: Network, seed: str, doors: int
) -> AsyncIterator[Life]:
    """A server with several processes, and so many doors. `disk` is that of the first store."""
    make_rare_things_frequent()
    with disk.files.watched(), network.below_sockets(), processes_in_memory(network):
        processes = [
            Process(number, settings, virtual, each, network, seed)
            for number, each in enumerate(disk.machine)
        ]
        virtual.threads_may_run = lambda: not any(process.holds_reads for process in processes)
        in_front = [
            DoorProcess(number, settings, virtual, network, seed)
            for number in range(len(processes), len(processes) + doors)
        ]
        async with running(processes, in_front, network) as nursery:
            yield Life(network, nursery, virtual, None, processes, in_front, Random(f"{seed} calls"))


def make_rare_things_frequent() -> None:
    arrivals.PACKED_CHUNKS = PACKED_CHUNKS  # type: ignore[misc]
    compaction.GROUP_RUNS = GROUP_RUNS  # type: ignore[misc]
