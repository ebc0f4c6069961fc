"""Serving as a door: listen, and pass on what comes to the owner of the data.

The order of a start: a channel to the owner, then listen. Where the owner ends, the door goes on, answers 503, and
opens another channel as soon as the owner is there again. The order of a stop is that of every server
(`http/serve.py`).
"""

from __future__ import annotations

import dataclasses
import math
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from trunkline.actors.core.values.store_partitions import partition_count, partition_directory
from trunkline.http.calls.errors import protocol_error
from trunkline.http.experiences.certificates import DomainCertificates
from trunkline.http.hosting.logs import access_log_of
from trunkline.http.hosting.sockets import Sockets, engine_config
from trunkline.http.hosting.tls_files import TlsConfig
from trunkline.http.processes.batches import Kind
from trunkline.http.processes.channel import Flushes, OwnConnections
from trunkline.http.processes.passage import Passage
from trunkline.http.wire import garbage_collection
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.byte_session import ByteProtocol
from trunkline.http.wire.descriptors import allow_descriptors
from trunkline.http.wire.engine import Engine
from trunkline.limits.settings import Settings

if TYPE_CHECKING:
    from trunkline.actors.core.records.places import Places
    from trunkline.http.processes.partition_front import PartitionFront

MOVES_S: Final = 0.05
"""How often it is looked whether an application was moved."""
COUNTS_S: Final = 1.0
"""How often the owner is told what is counted."""

_log = structlog.get_logger("trunkline.processes")


class DoorServer:
    """One door. `count` is the number of doors, which divide the connections of the server among them."""

    def __init__(self, settings: Settings, count: int) -> None:
        limits = settings.limits
        share = math.ceil(limits.connections_max / count)
        self._limits = dataclasses.replace(limits, connections_max=share)
        self._settings = settings
        self._flushes = Flushes()
        self._connections = OwnConnections()
        self._certificates: dict[str, str] = {}
        directory = Path(settings.data_dir)
        passage = partial(
            Passage,
            flushes=self._flushes,
            connections=self._connections,
            limits=limits,
            machine=settings.cluster_node or "",
        )
        self._owner = passage(directory, use=self._use)
        self._passages = {0: self._owner}
        self._places: Places | None = None
        self._front: Any = self._owner.door
        if partition_count(directory) > 1:
            self._front = self._partition_front(directory, passage)
        self._config = engine_config(settings)
        self._config.context_of = DomainCertificates(
            lambda name: self._certificates.get(name),
            self._config.alpn_protocols,
            limits.experience_certificates_max,
            lambda: self._config.authorities,
        ).context_of

    def _partition_front(self, directory: Path, passage: Callable[[Path], Passage]) -> PartitionFront:
        """What passes each request on to the owner of its application."""
        # What reads the stores takes memory, which only this needs.
        from trunkline.actors.core.records.places import Places
        from trunkline.http.processes.partition_front import DoorRouting, PartitionFront

        places = self._places = Places.seen_by_door(directory)
        for number in range(1, places.count):
            self._passages[number] = passage(partition_directory(directory, number))
        doors = {number: each.door for number, each in self._passages.items()}
        return PartitionFront(None, None, DoorRouting(places), None, doors)

    @property
    def config(self) -> TlsConfig:
        """The certificate of the server, which may be reloaded."""
        return self._config

    async def serve(
        self,
        sockets: Sockets,
        shutdown: Callable[[], Awaitable[None]],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen on sockets until `shutdown` returns, then drain. The sockets are closed then."""
        settings, limits = self._settings, self._limits
        config = self._config
        config.bind = [f"fd://{sockets.http.detach()}"]
        engine = Engine(
            self._front,
            config,
            limits,
            protocol_error,
            fast_path=self._front,
            log_access=access_log_of(settings),
            http2_prior_knowledge=settings.http2_prior_knowledge,
            behind_proxy=settings.trust_forwarded_for,
            listeners=[self._mqtt_listener(sock, tls=tls) for sock, tls in sockets.mqtt],
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(self._connections.run)
            nursery.start_soon(self._flushes.run)
            nursery.start_soon(config.follow, limits.certificate_interval_s)
            for passage in self._passages.values():
                await nursery.start(passage.keep)
            nursery.start_soon(self._tell_counts, engine)
            if self._places is not None:
                nursery.start_soon(self._follow_moves, self._places)
            async with trio.open_nursery() as serving:
                await serving.start(engine.serve, shutdown)
                task_status.started()
            nursery.cancel_scope.cancel()

    def _use(self, certificates: dict[str, str]) -> None:
        self._certificates = certificates

    async def _tell_counts(self, engine: Engine) -> None:
        while True:
            counts = engine.counts()
            counts.doors, counts.doors_cpu_s = 1, time.process_time()
            self._owner.door.channel.send(Kind.COUNTS, counts)
            await trio.sleep(COUNTS_S)

    @staticmethod
    async def _follow_moves(places: Places) -> None:
        while True:
            await trio.sleep(MOVES_S)
            places.reopen()
            places.follow()

    def _mqtt_listener(self, sock: socket.socket, *, tls: bool) -> Listener:
        owner = self._owner
        return Listener(sock, tls=tls, protocol=ByteProtocol(owner.mqtt_session, owner.bounds))


async def serve_door(
    settings: Settings,
    count: int,
    sockets: Sockets,
    signals: AsyncIterator[int],
    ready: Callable[[], Awaitable[None]],
) -> None:
    """Serve as one of `count` doors until SIGTERM, then drain; a second one ends it at once. SIGHUP reloads.

    The process is the door's: its limit of open files, and its garbage collector.
    """
    server, stopping, scope = DoorServer(settings, count), trio.Event(), trio.CancelScope()
    is_ready = False

    async def follow() -> None:
        async for number in signals:
            if number == signal.SIGHUP:
                server.config.reload()
                continue
            if stopping.is_set() or not is_ready:
                scope.cancel()
            stopping.set()

    allow_descriptors(2 * settings.limits.connections_max)
    with garbage_collection.collecting() as collector, scope:
        async with trio.open_nursery() as helpers:
            helpers.start_soon(follow)
            helpers.start_soon(collector.watch_size)
            async with trio.open_nursery() as serving:
                await serving.start(server.serve, sockets, stopping.wait)
                is_ready = True
                await ready()
            helpers.cancel_scope.cancel()
