"""The edge of a life: the engine of the server with all its layers, on sockets in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import trio
from hypercorn.config import Config, Sockets

from tests.simulation.network import Network
from trunkline.http.app import layered
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import protocol_error
from trunkline.http.engines import mqtt_protocol
from trunkline.http.link.tasks import LinkTasks
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


class _InMemory(Config):
    """A configuration whose socket is that of a network in memory."""

    network: Network

    def create_sockets(self) -> Sockets:
        listening: Any = self.network.http
        return Sockets([], [listening], [])


class _InOrder(dict[Connection, None]):
    """A set of connections in the order in which they came: that of a set follows from addresses."""

    def add(self, connection: Connection) -> None:
        self[connection] = None

    def discard(self, connection: Connection) -> None:
        self.pop(connection, None)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(super().__iter__()))


class Edge:
    """The engine, and what it serves."""

    def __init__(self, dispatcher: Dispatcher, settings: Settings, network: Network) -> None:
        pages = Site(TABLE, "0", MapTiles(settings.map_tiles, settings.map_attribution))
        app, fast_path, _ = layered(dispatcher, pages, settings, ConnectionCounts)
        config = _InMemory()
        config.network = network
        config.graceful_timeout = _STOPS_S
        engine.REAP_S = REAP_S
        mqtt: Any = network.mqtt
        self._links = dispatcher.system.component(LinkTasks)
        self._network = network
        self._engine = Engine(
            app,
            config,
            settings.limits,
            protocol_error,
            fast_path=fast_path,
            http2_prior_knowledge=network.has_newer,
            listeners=[Listener(mqtt, tls=False, protocol=mqtt_protocol(dispatcher))],
        )
        self._engine._connections = _InOrder()  # type: ignore[assignment]

    async def serve(self, *, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._network.run)
            nursery.start_soon(self._links.run)
            await self._engine.serve(trio.sleep_forever, task_status=task_status)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way to the server, and it answers no request."""
        busy = (
            each._exchange is not None or each._parser.requests
            if isinstance(each, Http1Connection)
            else isinstance(each, Http2Connection) and each._exchanges
            for each in self._engine._connections
        )
        return self._network.is_quiet and not any(busy)

    @property
    def places_too_many(self) -> int:
        """How many more connections the engine counts, or has places taken for, than have an open socket."""
        open = len(self._network)
        return max(0, self._engine.connections - open, len(self._engine.places) - open)
