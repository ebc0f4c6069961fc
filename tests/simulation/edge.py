"""The edge of a life: the engine of the server with all its layers, on sockets in memory.

Of a server with several processes each has one (`DividedEdge`), which also serves what the others pass on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import trio
from hypercorn.config import Sockets

from tests.simulation.network import Network
from trunkline.http import serve_processes
from trunkline.http.app import layered
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import protocol_error
from trunkline.http.engines import Served, engine_of, mqtt_protocol
from trunkline.http.hosting.tls_files import TlsConfig
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.processes import neighbours, owner, serve_door
from trunkline.http.processes.neighbours import Neighbours
from trunkline.http.processes.owner import Doors
from trunkline.http.routes import TABLE
from trunkline.http.site.site import MapTiles, Site
from trunkline.http.wire import engine
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.engine import Connection, Engine
from trunkline.http.wire.http1 import Http1Connection
from trunkline.http.wire.http2 import Http2Connection
from trunkline.limits.settings import Settings

_STOPS_S: Final = 1.0
REAP_S: Final = 3.0
"""How often the engine looks at deadlines here: each look costs as much as some calls."""
FOLLOW_S: Final = 2.0
"""How often a process looks here whose access other processes have ended."""
COUNTS_S: Final = 30.0
"""How often a door tells here how many connections it has."""
CERTIFICATES_S: Final = 30.0
"""How often a process looks here whether certificates have changed: there are none."""


class InMemory(TlsConfig):
    """A configuration whose socket is that of a network in memory."""

    engine: Engine
    """The engine that serves the sockets."""
    doors: Doors
    """What other processes pass on."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.graceful_timeout = _STOPS_S

    def create_sockets(self) -> Sockets:
        listening: Any = self.network.http
        return Sockets([], [listening], [])


class _InOrder(dict[Any, None]):
    """A set of connections in the order in which they came: that of a set follows from addresses."""

    def add(self, connection: Connection) -> None:
        self[connection] = None

    def discard(self, connection: Connection) -> None:
        self.pop(connection, None)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(super().__iter__()))


def is_answering(engine: Engine) -> bool:
    """Whether there is a request on a connection of the engine that is not answered yet."""
    return any(
        bool(_is_open(each._exchange) or each._parser.requests)
        if isinstance(each, Http1Connection)
        else isinstance(each, Http2Connection) and bool(each._exchanges)
        for each in engine._connections
    )


def _is_open(exchange: Any) -> bool:
    """Whether a request has no answer yet, and is not for a stream, whose answer has no end."""
    return exchange is not None and not exchange.target.endswith(b"Stream")


def _places_too_many(engine: Engine, open: int) -> int:
    """How many more connections the engine counts, or has places taken for, than the `open` sockets."""
    return max(0, engine.connections - open, len(engine.places) - open)


class Edge:
    """The engine, and what it serves."""

    def __init__(
        self, dispatcher: Dispatcher, settings: Settings, network: Network, process: int | None = None
    ) -> None:
        """`process` is the number of the one that serves, if there are others, which also use the network."""
        pages = Site(TABLE, "0", MapTiles(settings.map_tiles, settings.map_attribution))
        app, fast_path, _ = layered(dispatcher, pages, settings, ConnectionCounts)
        config = InMemory(network)
        engine.REAP_S = REAP_S
        mqtt: Any = network.mqtt
        self._links = dispatcher.system.component(LinkTasks)
        self._network = network
        self._process = process
        self._engine = Engine(
            app,
            config,
            settings.limits,
            protocol_error,
            fast_path=fast_path,
            http2_prior_knowledge=settings.http2_prior_knowledge,
            listeners=[Listener(mqtt, tls=False, protocol=mqtt_protocol(dispatcher))],
        )
        self._engine._connections = _InOrder()  # type: ignore[assignment]

    async def serve(
        self,
        trigger: Callable[[], Awaitable[None]] = trio.sleep_forever,
        *,
        task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `trigger` returns and all is drained."""
        async with trio.open_nursery() as nursery:
            if self._process is None:
                nursery.start_soon(self._network.run)
            nursery.start_soon(self._links.run)
            await self._engine.serve(trigger, task_status=task_status)
            nursery.cancel_scope.cancel()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way to the server, and it answers no request."""
        return self._network.is_quiet and not is_answering(self._engine)

    @property
    def places_too_many(self) -> int:
        """How many more connections the engine counts, or has places taken for, than have an open socket."""
        return _places_too_many(self._engine, self._network.count(self._process))


class DividedEdge:
    """What one of several processes serves: clients, and what other processes pass on."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: Settings,
        network: Network,
        neighbours: Neighbours,
        process: int,
    ) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self._network = network
        self._neighbours = neighbours
        self._process = process
        self._config = InMemory(network)

    async def serve(
        self,
        nursery: trio.Nursery,
        trigger: Callable[[], Awaitable[None]] = trio.sleep_forever,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `trigger` returns and all is drained; then cancel the nursery."""
        pages = Site(TABLE, "0", MapTiles(self._settings.map_tiles, self._settings.map_attribution))
        config: Any = self._config
        await serve_processes.serve_processes(
            nursery,
            Served(self._dispatcher, pages, self._settings, config),
            listening_on(self._network),
            self._neighbours,
            trigger,
            task_status,
        )

    @property
    def is_quiet(self) -> bool:
        """Whether it answers no request, and waits for nothing from other processes."""
        asks = any(door._pending or door._questions for door in self._neighbours.doors.values())
        channels = self._config.doors._channels
        calls = any(_is_open(call) for channel in channels for call in channel._calls.values())
        return not (asks or calls or is_answering(self._config.engine))

    @property
    def places_too_many(self) -> int:
        """How many more connections the engine counts, or has places taken for, than have an open socket."""
        return _places_too_many(self._config.engine, self._network.count(self._process))


def listening_on(network: Network) -> Any:
    """The sockets on which a process accepts clients."""
    return SimpleNamespace(http=SimpleNamespace(detach=lambda: 0), mqtt=[(network.mqtt, False)])


class _DoorsInOrder(Doors):
    """The doors of an owner, in the order in which they came."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._channels = _InOrder()  # type: ignore[assignment]


def _engine_in_memory(*arguments: Any) -> Engine:
    """The engine of a process, which its configuration knows."""
    engine = engine_of(*arguments)
    arguments[4].doors = arguments[5][-1].passed_on.__self__
    return _known(engine, arguments[4])


def _known(engine: Engine, config: InMemory) -> Engine:
    engine._connections = _InOrder()  # type: ignore[assignment]
    config.engine = engine
    return engine


def _engine_of_door(app: Any, config: InMemory, *arguments: Any, **options: Any) -> Engine:
    return _known(Engine(app, config, *arguments, **options), config)


def _mqtt_in_memory(protocol: Any, sockets: Sequence[tuple[Any, bool]]) -> Sequence[Listener]:
    return [Listener(sock, tls=tls, protocol=protocol) for sock, tls in sockets]


@contextmanager
def processes_in_memory(network: Network) -> Iterator[None]:
    """Let processes serve on sockets in memory while the body runs."""
    serving: Any = serve_processes
    door: Any = serve_door
    before = serving.engine_of, serving.mqtt_listeners, serving.Doors
    before_door = door.Engine, door.engine_config, door.MOVES_S, door.COUNTS_S
    serving.engine_of, serving.mqtt_listeners = _engine_in_memory, _mqtt_in_memory
    serving.Doors = _DoorsInOrder
    door.Engine, door.engine_config = _engine_of_door, lambda _settings: InMemory(network)
    door.MOVES_S, door.COUNTS_S = FOLLOW_S, COUNTS_S
    engine.REAP_S = REAP_S
    neighbours.FOLLOW_S = FOLLOW_S  # type: ignore[misc]
    owner.FOLLOW_S = CERTIFICATES_S  # type: ignore[misc]
    try:
        yield
    finally:
        serving.engine_of, serving.mqtt_listeners, serving.Doors = before
        door.Engine, door.engine_config, door.MOVES_S, door.COUNTS_S = before_door
