"""One life of a server: the whole of it, on sockets in memory and the files that the life before has left.

Owns how a life begins and ends, and the calls to it. Does not own what is called, nor what ought to come back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.disk import Disk
from tests.simulation.edge import Edge
from tests.simulation.http1 import Clients
from tests.simulation.http2 import Clients2
from tests.simulation.network import Network
from trunkline.actors import boot
from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.runtime.system import System
from trunkline.http.calls.body_stream import BodyStream
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.request import Request
from trunkline.http.serve import make_dispatcher
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store import arrivals, compaction
from trunkline.store.env import Store

MAP_BYTES: Final = 1 << 19
"""So small that the map grows in each run."""
PACKED_CHUNKS, GROUP_RUNS = 9, 3
"""So many commits with reports become a segment, and so many runs one: with the usual numbers, hardly ever."""
HTTP2: Final = 0.4
"""The share of calls over HTTP/2 among those on connections."""
_PIECE_S: Final = 0.003
"""Between two pieces of a body."""


@dataclass
class Answer:
    """A response: its status, its body as JSON, its headers by name in lower case, or its stream."""

    status: int
    body: Any
    headers: dict[str, str]
    stream: Any = None
    raw: bytes = field(default=b"", repr=False)


class Life:
    """A server that runs. `over` once its power is cut: what it still answers is nobody's."""

    def __init__(
        self, system: System, dispatcher: Dispatcher, disk: Disk, network: Network, edge: Edge
    ) -> None:
        self.system = system
        self.dispatcher = dispatcher
        self.disk = disk
        self.network = network
        self.edge = edge
        self.clients: Clients
        """Those that call over connections."""
        self.clients2: Clients2 | None = None
        """Those among them that speak HTTP/2."""
        self.over = False

    @property
    def is_quiet(self) -> bool:
        """Nothing waits for a commit or is under way to the server, and it answers no request of a connection."""
        return not self.system.journal.pending_batches and self.edge.is_quiet

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make a call of the API, as a client on 127.0.0.1 does. `body` is JSON, or the bytes of a form."""
        path, _, query = path.partition("?")
        stream = _in_pieces(body, short_end=self.network.has_newer) if isinstance(body, bytes) else None
        raw = b"" if body is None or stream is not None else msgspec.json.encode(body)
        sent = {name.lower().encode(): value.encode() for name, value in (headers or {}).items()}
        if token:
            sent[b"authorization"] = f"Bearer {token}".encode()
        if body is not None and stream is None:
            sent[b"content-type"] = b"application/json"
        request = Request(method, path, query.encode(), sent, raw, "127.0.0.1", stream=stream)
        response = await self.dispatcher.handle(request)
        found = {name.decode().lower(): value.decode() for name, value in response.headers}
        return _answer(response.status, found, response.body, response.stream)

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
        return None if raw is None else _answer(raw.status, raw.headers, raw.body)


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
    arrivals.PACKED_CHUNKS = PACKED_CHUNKS  # type: ignore[misc]
    compaction.GROUP_RUNS = GROUP_RUNS  # type: ignore[misc]
    limits: Limits = settings.limits
    store = Store.open(
        path,
        map_size_bytes=MAP_BYTES,
        store_size_max_bytes=settings.store_size_max_bytes,
        journal_bytes_max=limits.journal_bytes_max,
        journal_batches_max=limits.journal_batches_max,
        arrival_window_bytes=limits.arrival_window_bytes,
        arrivals_bytes_max=limits.arrivals_bytes_max,
        read_threads_max=limits.read_threads_max,
        read_queue_length_max=limits.read_queue_length_max,
        start_check_s=limits.start_check_s,
        monotonic_s=virtual.monotonic_s,
    )
    try:
        virtual.threads_may_run = lambda: not store.memory_map._reads_held
        disk.watch(store)
        system = System(store, limits, virtual, ACTORS, random_bytes=random_bytes)
        boot.add_parts(system, settings)
        with network.below_sockets():
            async with boot.running(system), trio.open_nursery() as nursery:
                dispatcher = make_dispatcher(system, settings)
                nursery.start_soon(dispatcher.call_turns.run)
                edge = Edge(dispatcher, settings, network)
                await nursery.start(edge.serve)
                life = Life(system, dispatcher, disk, network, edge)
                life.clients = Clients(network, nursery)
                life.clients2 = Clients2(network, nursery, virtual) if network.has_newer else None
                yield life
                nursery.cancel_scope.cancel()
    finally:
        store.close()
