"""Serving a data directory: open it, listen, and drain at SIGTERM.

The order of a start: check the settings, open the data directory, bind the port, create the first user, listen. The
user comes after every step that may fail, because the password is shown only once. A start that fails removes the
directory if it has made it.

The order of a stop: no new connections, streams are closed, waiting batches are committed, calls in progress are
answered within `drain_s`, exit code 0. A second signal stops the server at once; acknowledged writes are committed
nevertheless.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

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
from trunkline.actors.presentation.experience.sites import Sites
from trunkline.http import systemd
from trunkline.http.app import layered
from trunkline.http.calls.auth import Tokens
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import protocol_error
from trunkline.http.calls.internal_calls import InternalCalls
from trunkline.http.control_socket import serve_control
from trunkline.http.experiences.certificates import DomainCertificates
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.metrics.connection_stats import ConnectionStats, NoConnectionStats
from trunkline.http.mqtt.service import MqttService
from trunkline.http.mqtt.session import MqttSession
from trunkline.http.routes import TABLE
from trunkline.http.site.site import MapTiles, Site
from trunkline.http.terminal import LossyStderr
from trunkline.http.tls_files import TlsConfig
from trunkline.http.version import VERSION
from trunkline.http.wire import garbage_collection
from trunkline.http.wire.accepting import Listener, address_of
from trunkline.http.wire.access_log import LogAccess, access_log
from trunkline.http.wire.byte_session import ByteProtocol
from trunkline.http.wire.descriptors import allow_descriptors
from trunkline.http.wire.engine import Engine
from trunkline.http.wire.request_context import add_request_id
from trunkline.http.wire.stock_requests import with_request_ids
from trunkline.limits.settings import Settings

_log = structlog.get_logger("trunkline.serve")


class MqttPort(NamedTuple):
    """A port on which MQTT is spoken."""

    number: int
    tls: bool


class RunningServer(NamedTuple):
    """A server that is ready: its URL, the user created on a first start, its dispatcher, its pages and MQTT ports."""

    url: str
    first_user: server_users.FirstUser | None
    dispatcher: Dispatcher
    pages: Site
    mqtt_ports: Sequence[MqttPort] = ()


async def serve(
    settings: Settings,
    *,
    ready: Callable[[RunningServer], Awaitable[None]] | None = None,
    shutdown: Callable[[], Awaitable[None]] | None = None,
    clock: Clock | None = None,
    mqtt_port_if_free: int | None = None,
    task_status: trio.TaskStatus[RunningServer] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` returns (default: SIGTERM or SIGINT), then drain.

    `ready` runs concurrently with the server once it listens. Tests pass a `clock` (default: the machine's).
    `mqtt_port_if_free` is a port for MQTT beside those of the settings, which is left out if something else has it.
    Raises `StoreError` if the data directory cannot be opened and `OSError` if the address cannot be bound, both with
    a sentence for the operator.
    """
    with ExitStack() as held:
        stopping = trio.Event()
        if shutdown is None:
            prepare_threads()
            held.enter_context(end_for_lost_work())
            signals = held.enter_context(
                trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            )
        config = _hypercorn_config(settings)
        system = held.enter_context(boot.opened(settings, clock))
        listening = held.enter_context(bind(settings.host, settings.port))
        mqtt_sockets = [
            (held.enter_context(bind(settings.host, port)), tls)
            for port, tls in ((settings.mqtt_port, False), (settings.mqtt_tls_port, True))
            if port is not None
        ]
        if mqtt_port_if_free is not None and (free := _bind_if_free(settings.host, mqtt_port_if_free)):
            mqtt_sockets.append((held.enter_context(free), False))
        base_url = settings.public_url or address_of(listening, tls=settings.certfile is not None)
        system.component(Results).base_url = base_url.rstrip("/")
        system.component(Contents).signatures.base_url = base_url.rstrip("/")
        async with boot.running(system), trio.open_nursery() as nursery:
            if shutdown is None:
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
            mqtt_ports = [MqttPort(sock.getsockname()[1], tls) for sock, tls in mqtt_sockets]
            listeners = _mqtt_listeners(dispatcher, mqtt_sockets)
            listen = partial(
                _listen, nursery, dispatcher, pages, settings, config, listening, listeners, trigger
            )
            running = RunningServer(await nursery.start(listen), first_user, dispatcher, pages, mqtt_ports)
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
    listening: socket.socket,
    listeners: Sequence[Listener],
    trigger: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the HTTP engine until the trigger, then cancel the other tasks of the server."""
    connections: ConnectionStats = NoConnectionStats()
    app, fast_path, hosts = layered(dispatcher, pages, settings, lambda: connections)
    system, limits = dispatcher.system, settings.limits
    config.context_of = DomainCertificates(
        system.component(Sites), hosts, config.alpn_protocols, limits.experience_certificates_max
    ).context_of
    # The engine closes the socket when it drains, so the engine owns it from here on.
    config.bind = [f"fd://{listening.detach()}"]
    async with trio.open_nursery() as server:
        log_access = _access_log(settings)
        if settings.engine == "stock":
            app = with_request_ids(app, log_access)
            run = partial(hypercorn_serve, app, config, shutdown_trigger=trigger, mode="asgi")
        else:
            connections = engine = Engine(
                app,
                config,
                settings.limits,
                protocol_error,
                fast_path=fast_path,
                log_access=log_access,
                http2_prior_knowledge=settings.http2_prior_knowledge,
                behind_proxy=settings.trust_forwarded_for,
                listeners=listeners,
                lap=system.component(LoopWatch).lap,
            )
            run = partial(engine.serve, trigger)
        # `start` returns the bound addresses; the nursery then waits until the engine ends.
        (address,) = await server.start(run)
        task_status.started(address)
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


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address, not listening yet. Raises `OSError` with a sentence for the operator."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except (OSError, UnicodeError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(f"{where} cannot be listened on: {reason}. Choose another --host or --port.") from error
    return sock


def _bind_if_free(host: str, port: int) -> socket.socket | None:
    """Return a socket that listens, so that nothing else takes the port any more; None where something has it."""
    try:
        sock = bind(host, port)
    except OSError:
        return None
    try:
        sock.listen()
    except OSError:
        sock.close()
        return None
    return sock


def _hypercorn_config(settings: Settings) -> TlsConfig:
    """The configuration of Hypercorn, without the socket. Raises `SettingsError`."""
    limits = settings.limits
    config = TlsConfig()
    config.backlog = limits.backlog_length_max
    config.graceful_timeout = limits.drain_s
    config.keep_alive_timeout = limits.connection_idle_s
    # A busy device keeps its connection: the default bound would close it after a thousand calls.
    config.keep_alive_max_requests = sys.maxsize
    config.h11_max_incomplete_size = limits.header_bytes_max
    config.include_server_header = False
    config.errorlog = logging.getLogger("hypercorn.error")
    # A TLS handshake has the same deadline as a request head.
    config.ssl_handshake_timeout = limits.head_timeout_s
    config.use(settings)
    return config


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


def _access_log(settings: Settings) -> LogAccess | None:
    if not settings.access_log:
        return None
    # It is its own setting, so `log_level` does not apply to it.
    wrapper = structlog.make_filtering_bound_logger(logging.INFO)
    logger = structlog.wrap_logger(structlog.PrintLogger(_log_output()), wrapper_class=wrapper)
    return access_log(logger, trust_forwarded_for=settings.trust_forwarded_for)


def _log_output() -> Any:
    """A server does not stop because its log cannot be written."""
    return LossyStderr()


def configure_logging(settings: Settings) -> None:
    """Write structured log lines to standard error, also those of libraries. No line has a token or a payload."""
    level = getattr(logging, settings.log_level.upper())
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # The default formatter prints local variables, and those may be passwords and tokens.
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        add_request_id,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatted: list[Any] = [structlog.processors.format_exc_info] if settings.log_format == "json" else []
    output = _log_output()
    structlog.configure(
        processors=[*shared, *formatted, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(output),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=renderer))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))
