"""Serving a data directory: open it, listen, and drain at SIGTERM.

The order of a start: check the settings, open the data directory, bind the port, create the first user, listen. The
user comes after every step that may fail, because the password is shown only once. A start that fails removes the
directory if it has made it.

The order of a stop: no new connections, streams are closed, waiting batches are committed, calls in progress are
answered within `drain_s`, exit code 0. A second signal stops the server at once; acknowledged writes are committed
nevertheless.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog
import trio
from hypercorn.trio import serve as hypercorn_serve

from trunkline.actors import boot, server_users
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.lost_work import end_for_lost_work
from trunkline.actors.core.runtime.precedence import LOOP
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.runtime.thread_start import prepare_threads
from trunkline.actors.core.values.clock import Clock
from trunkline.actors.engine.api_calls import ApiCalls
from trunkline.actors.fleet.devices.state.backlog import BacklogLane
from trunkline.actors.platform.jobs.results import Results
from trunkline.http import systemd
from trunkline.http.app import layered
from trunkline.http.calls.auth import Tokens
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import protocol_error
from trunkline.http.calls.internal_calls import InternalCalls
from trunkline.http.control_socket import serve_control
from trunkline.http.experiences.certificates import DomainCertificates
from trunkline.http.hosting.logs import access_log_of
from trunkline.http.hosting.sockets import MqttPort, Sockets, bound, engine_config, url_of
from trunkline.http.hosting.tls_files import TlsConfig
from trunkline.http.hosting.unix_sockets import bound_in
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.mqtt.service import MqttService
from trunkline.http.mqtt.session import MqttSession
from trunkline.http.processes.channel import SOCKET_NAME
from trunkline.http.processes.owner import Doors
from trunkline.http.routes import TABLE
from trunkline.http.site.site import MapTiles, Site
from trunkline.http.version import VERSION
from trunkline.http.wire import garbage_collection
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.asgi import Application
from trunkline.http.wire.byte_session import ByteProtocol
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.descriptors import allow_descriptors
from trunkline.http.wire.engine import Engine
from trunkline.http.wire.fast_path import FastPath
from trunkline.http.wire.stock_requests import with_request_ids
from trunkline.limits.settings import Settings

_log = structlog.get_logger("trunkline.serve")


class RunningServer(NamedTuple):
    """A server that is ready: its URL, the user created on a first start, its dispatcher, its pages and MQTT ports."""

    url: str
    first_user: server_users.FirstUser | None
    dispatcher: Dispatcher
    pages: Site
    mqtt_ports: Sequence[MqttPort] = ()


class Front(NamedTuple):
    """Where clients reach a server whose doors are other processes."""

    url: str
    mqtt_ports: Sequence[MqttPort]


async def serve(
    settings: Settings,
    *,
    front: Front | None = None,
    signals: AsyncIterator[int] | None = None,
    ready: Callable[[RunningServer], Awaitable[None]] | None = None,
    shutdown: Callable[[], Awaitable[None]] | None = None,
    clock: Clock | None = None,
    mqtt_port_if_free: int | None = None,
    task_status: trio.TaskStatus[RunningServer] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` returns (default: SIGTERM or SIGINT), then drain.

    With `front`, other processes listen, and this one serves what they pass on (`processes/owner.py`). `signals` gives
    the numbers of signals in place of those that the process gets. `ready` runs concurrently with the server once it
    listens. Tests pass a `clock` (default: the machine's). `mqtt_port_if_free` is a port for MQTT beside those of the
    settings, which is left out if something else has it.
    Raises `StoreError` if the data directory cannot be opened and `OSError` if the address cannot be bound, both with
    a sentence for the operator.
    """
    with ExitStack() as held:
        stopping = trio.Event()
        if shutdown is None:
            prepare_threads()
            held.enter_context(end_for_lost_work())
            if signals is None:
                signals = held.enter_context(
                    trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
                )
        config = engine_config(settings)
        system = held.enter_context(boot.opened(settings, clock))
        sockets = None if front is not None else held.enter_context(bound(settings, mqtt_port_if_free))
        if sockets is not None:
            front = Front(url_of(settings, sockets.http), sockets.mqtt_ports)
        assert front is not None
        base_url = (settings.public_url or front.url).rstrip("/")
        system.component(Results).base_url = base_url
        system.component(Contents).signatures.base_url = base_url
        async with boot.running(system), trio.open_nursery() as nursery:
            if shutdown is None:
                assert signals is not None
                # The server owns the process: its signals, its limit of open files and its garbage collector.
                nursery.start_soon(_watch_signals, signals, stopping, nursery, config.reload, _in_terminal())
                _allow_connections(settings.limits.connections_max)
                nursery.start_soon(held.enter_context(garbage_collection.collecting()).watch_size)
            nursery.start_soon(config.follow, settings.limits.certificate_interval_s)
            first_user = await server_users.ensure_first_user(system, settings)
            dispatcher = make_dispatcher(system, settings)
            dispatcher.certificate_expires_s = lambda: config.expires_s
            nursery.start_soon(system.component(LinkTasks).run)
            nursery.start_soon(dispatcher.call_turns.run)
            await nursery.start(serve_control, system)
            trigger = partial(_drain_after, shutdown or stopping.wait, system)
            pages = Site(TABLE, VERSION, MapTiles(settings.map_tiles, settings.map_attribution))
            if sockets is None:
                listen = partial(_serve_doors, nursery, dispatcher, pages, settings, config, trigger)
            else:
                listen = partial(_listen, nursery, dispatcher, pages, settings, config, sockets, trigger)
            await nursery.start(listen)
            running = RunningServer(front.url, first_user, dispatcher, pages, front.mqtt_ports)
            held.enter_context(_watched(system.component(LoopWatch)))
            system.store.directory.keep()
            _log.info("listening", url=running.url, data_dir=settings.data_dir)
            if settings.mqtt_anonymous_key is not None:
                _log.warning("MQTT clients need no credentials: mqtt_anonymous_key lets in whoever connects")
            if settings.limits == settings.limits.lifted():
                _log.warning("throttles are lifted: this is for load tests, never for an open network")
            task_status.started(running)
            if shutdown is None:
                systemd.notify("READY=1", f"STATUS=Serving at {running.url}")
                nursery.start_soon(systemd.feed_watchdog)
            if ready is not None:
                nursery.start_soon(ready, running)
    _log.info("stopped")


@contextmanager
def _watched(watch: LoopWatch) -> Iterator[None]:
    """Measure the turns of the loop from now on: a start may take longer ones."""
    watch.collected_s = lambda: garbage_collection.PAUSES.total_s
    trio.lowlevel.add_instrument(watch)
    watch.begin()
    try:
        yield
    finally:
        with suppress(KeyError):  # Trio drops an instrument that has failed, and logs why
            trio.lowlevel.remove_instrument(watch)
        LOOP.busy = False


def _allow_connections(connections_max: int) -> None:
    descriptors = allow_descriptors(connections_max)
    if descriptors < connections_max:
        _log.warning(
            "fewer connections than connections_max are possible: raise the hard limit of open files",
            connections_max=connections_max,
            descriptors=descriptors,
        )


async def _listen(
    nursery: trio.Nursery,
    dispatcher: Dispatcher,
    pages: Site,
    settings: Settings,
    config: TlsConfig,
    sockets: Sockets,
    trigger: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the HTTP engine until the trigger, then cancel the other tasks of the server."""
    counts: Callable[[], ConnectionCounts] = ConnectionCounts
    app, fast_path, hosts = layered(dispatcher, pages, settings, lambda: counts())
    config.context_of = DomainCertificates(
        hosts.certificate_of, config.alpn_protocols, settings.limits.experience_certificates_max
    ).context_of
    # The engine closes the sockets when it drains, so the engine owns them from here on.
    config.bind = [f"fd://{sockets.http.detach()}"]
    if settings.engine == "stock":
        app = with_request_ids(app, access_log_of(settings))
        run = partial(hypercorn_serve, app, config, shutdown_trigger=trigger, mode="asgi")
    else:
        listeners = _mqtt_listeners(dispatcher, sockets.mqtt)
        engine = _engine(app, fast_path, dispatcher, settings, config, listeners)
        counts = engine.counts
        run = partial(engine.serve, trigger)
    await _run(nursery, run, task_status)


async def _serve_doors(
    nursery: trio.Nursery,
    dispatcher: Dispatcher,
    pages: Site,
    settings: Settings,
    config: TlsConfig,
    trigger: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve what doors pass on until the trigger, then cancel the other tasks of the server."""
    system = dispatcher.system
    counts: Callable[[], ConnectionCounts] = ConnectionCounts
    app, fast_path, hosts = layered(dispatcher, pages, settings, lambda: counts())
    lap = system.component(LoopWatch).lap
    doors = Doors(app, fast_path, mqtt_protocol(dispatcher), logs_access=settings.access_log, lap=lap)
    counts = doors.counts
    await nursery.start(doors.run)
    nursery.start_soon(doors.follow_certificates, hosts.certificates, lambda: system.journal.record_changes)
    config.bind = []
    with bound_in(Path(settings.data_dir), SOCKET_NAME) as sock:
        listener = Listener(sock, tls=False, passed_on=doors.protocol_of)
        engine = _engine(app, fast_path, dispatcher, settings, config, [listener])
        await _run(nursery, partial(engine.serve, trigger), task_status)


def _engine(
    app: Application,
    fast_path: FastPath | None,
    dispatcher: Dispatcher,
    settings: Settings,
    config: TlsConfig,
    listeners: Sequence[Listener],
) -> Engine:
    """The engine of this process; `listeners` are those beside the sockets of `config`."""
    return Engine(
        app,
        config,
        settings.limits,
        protocol_error,
        fast_path=fast_path,
        log_access=access_log_of(settings),
        http2_prior_knowledge=settings.http2_prior_knowledge,
        behind_proxy=settings.trust_forwarded_for,
        listeners=listeners,
        lap=dispatcher.system.component(LoopWatch).lap,
    )


async def _run(
    nursery: trio.Nursery, run: Callable[..., Awaitable[None]], task_status: trio.TaskStatus[None]
) -> None:
    """Run an engine, then cancel the other tasks of the server."""
    async with trio.open_nursery() as server:
        # `start` returns when it listens; the nursery then waits until the engine ends.
        await server.start(run)
        task_status.started()
    nursery.cancel_scope.cancel()


def mqtt_protocol(dispatcher: Dispatcher) -> ByteProtocol:
    """What is spoken on the connections of a listener for MQTT."""
    service = dispatcher.system.component(MqttService)
    return ByteProtocol(partial(MqttSession, service), service.bounds)


def _mqtt_listeners(
    dispatcher: Dispatcher, sockets: Sequence[tuple[socket.socket, bool]]
) -> Sequence[Listener]:
    """The listeners for MQTT, on sockets that are bound. The engine closes their sockets."""
    protocol = mqtt_protocol(dispatcher)
    return [
        Listener(socket.socket(fileno=sock.detach()), tls=tls, protocol=protocol) for sock, tls in sockets
    ]


def make_dispatcher(system: System, settings: Settings) -> Dispatcher:
    """Make the dispatcher of a system, with the secret of its data directory. Workflows call operations by it."""
    tokens = Tokens(system, system.store.directory.secret(), TABLE.routes)
    dispatcher = Dispatcher(system, tokens, TABLE, token_ttl_s=settings.token_ttl_s)
    system.component(ApiCalls).serve(InternalCalls(dispatcher))
    system.add_component(LinkTasks())
    system.add_component(MqttService(dispatcher, anonymous_key=settings.mqtt_anonymous_key))
    return dispatcher


async def _drain_after(shutdown: Callable[[], Awaitable[None]], system: System) -> None:
    await shutdown()
    systemd.notify("STOPPING=1", "STATUS=Draining")
    _log.info("draining", streams=len(system.streams))
    system.component(BacklogLane).stop()
    system.drain()


async def _watch_signals(
    signals: AsyncIterator[int],
    stopping: trio.Event,
    nursery: trio.Nursery,
    reload: Callable[[], None],
    in_terminal: bool,
) -> None:
    """Start the drain at the first signal, and end it at the second. SIGHUP reloads the certificate.

    A server that was started in a terminal also gets SIGHUP when the terminal is closed: that is like SIGTERM.
    """
    async for number in signals:
        if number == signal.SIGHUP and not (in_terminal and not _in_terminal()):
            reload()
            continue
        if stopping.is_set():
            _log.warning("a second signal: stopping without waiting for calls in progress")
            nursery.cancel_scope.cancel()
        stopping.set()


def _in_terminal() -> bool:
    """Whether standard input is a terminal that is open."""
    return os.isatty(0)
