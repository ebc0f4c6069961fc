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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import structlog
import trio
from hypercorn.trio import serve as hypercorn_serve

from trunkline.actors import boot, server_users
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.lost_work import end_for_lost_work
from trunkline.actors.core.runtime.machines import Machines
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
from trunkline.http.calls.internal_calls import InternalCalls
from trunkline.http.control_socket import run_command, serve_control
from trunkline.http.engines import (
    Served,
    engine_of,
    mqtt_listeners,
    mqtt_protocol,
    run_engine,
    use_domains,
)
from trunkline.http.hosting.logs import access_log_of
from trunkline.http.hosting.sockets import MqttPort, Sockets, bound, engine_config, url_of
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.mqtt.service import MqttService
from trunkline.http.mqtt.session import MqttSession
from trunkline.http.processes.neighbours import Neighbours
from trunkline.http.routes import TABLE
from trunkline.http.serve_processes import serve_processes
from trunkline.http.site.site import MapTiles, Site
from trunkline.http.version import VERSION
from trunkline.http.wire import garbage_collection
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.descriptors import allow_descriptors
from trunkline.http.wire.stock_requests import with_request_ids
from trunkline.limits.settings import Settings

if TYPE_CHECKING:
    from trunkline.actors.maintenance.machine import Machine

_log = structlog.get_logger("trunkline.serve")


class RunningServer(NamedTuple):
    """A server that is ready: its URL, the user created on a first start, its dispatcher, its pages and MQTT ports."""

    url: str
    first_user: server_users.FirstUser | None
    dispatcher: Dispatcher
    pages: Site
    mqtt_ports: Sequence[MqttPort] = ()
    neighbours: Neighbours | None = None
    """The owners of the other partitions, if there are several."""

    async def connected(self) -> None:
        """Return when this process has reached all others."""
        if self.neighbours is not None:
            await self.neighbours.connected()


class Front(NamedTuple):
    """Where clients reach a server with several processes. `partition` is the one that this process serves."""

    url: str
    mqtt_ports: Sequence[MqttPort]
    partition: int = 0
    sockets: Sockets | None = None
    """What this process listens on; None if its doors are other processes."""


async def serve(
    settings: Settings,
    *,
    front: Front | None = None,
    signals: AsyncIterator[int] | None = None,
    ready: Callable[[RunningServer], Awaitable[None]] | None = None,
    shutdown: Callable[[], Awaitable[None]] | None = None,
    clock: Clock | None = None,
    mqtt_port_if_free: int | None = None,
    machine: Machine | None = None,
    task_status: trio.TaskStatus[RunningServer] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` returns (default: SIGTERM or SIGINT), then drain.

    With `front`, this is one of several processes, and serves what others pass on (`processes/owner.py`). `signals`
    gives the numbers of signals in place of those that the process gets. `ready` runs concurrently with the server as
    soon as it listens. Tests pass a `clock` (default: the machine's). `mqtt_port_if_free` is a port for MQTT beside
    those of the settings, which is left out if something else has it. `machine` is this one, if there are several
    (`serve_standby.py`).

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
        partition = 0 if front is None else front.partition
        journal = None if machine is None else machine.journal
        system = held.enter_context(boot.opened(settings, clock, partition, journal))
        if machine is not None:
            machines = system.component(Machines)
            machines.name, machines.url = settings.cluster_node or "", settings.cluster_url
            machines.status, machines.invite = machine.status, machine.invite
            machines.give, machines.caught_up = machine.give, machine.caught_up
        if front is None:
            sockets = held.enter_context(bound(settings, mqtt_port_if_free))
            front = Front(url_of(settings, sockets.http), sockets.mqtt_ports, 0, sockets)
            is_alone = True
        else:
            is_alone = False
        neighbours = None if system.store.partitions is None else Neighbours(system)
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
                if machine is not None:
                    nursery.start_soon(_stop_when_given, machine, stopping)
            nursery.start_soon(config.follow, settings.limits.certificate_interval_s)
            if neighbours is not None:
                await nursery.start(neighbours.run)
            first_user = None
            if partition == 0:
                first_user = await server_users.ensure_first_user(system, settings)
            dispatcher = make_dispatcher(system, settings)
            dispatcher.certificate_expires_s = lambda: config.expires_s
            nursery.start_soon(system.component(LinkTasks).run)
            nursery.start_soon(dispatcher.call_turns.run)
            await nursery.start(serve_control, system.store.directory.path, partial(run_command, system))
            trigger = partial(drain_after, shutdown or stopping.wait, system)
            pages = Site(TABLE, VERSION, MapTiles(settings.map_tiles, settings.map_attribution))
            served = Served(dispatcher, pages, settings, config)
            if is_alone:
                assert front.sockets is not None
                listen = partial(_listen, nursery, served, front.sockets, trigger)
            else:
                listen = partial(serve_processes, nursery, served, front.sockets, neighbours, trigger)
            await nursery.start(listen)
            running = RunningServer(front.url, first_user, dispatcher, pages, front.mqtt_ports, neighbours)
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


async def _stop_when_given(machine: Machine, stopping: trio.Event) -> None:
    """Drain when another machine shall have the partition."""
    await machine.gives.wait()
    stopping.set()


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
    served: Served,
    sockets: Sockets,
    trigger: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the HTTP engine until the trigger, then cancel the other tasks of the server."""
    dispatcher, pages, settings, config = served
    counts: Callable[[], ConnectionCounts] = ConnectionCounts
    app, fast_path, hosts = layered(dispatcher, pages, settings, lambda: counts())
    use_domains(hosts, settings, config)
    # The engine closes the sockets when it drains, so the engine owns them from here on.
    config.bind = [f"fd://{sockets.http.detach()}"]
    if settings.engine == "stock":
        app = with_request_ids(app, access_log_of(settings))
        run = partial(hypercorn_serve, app, config, shutdown_trigger=trigger, mode="asgi")
    else:
        listeners = mqtt_listeners(mqtt_protocol(dispatcher), sockets.mqtt)
        engine = engine_of(app, fast_path, dispatcher, settings, config, listeners)
        counts = engine.counts
        run = partial(engine.serve, trigger)
    await run_engine(nursery, run, task_status)


def make_dispatcher(system: System, settings: Settings) -> Dispatcher:
    """Make the dispatcher of a system, with the secret of its data directory. Workflows call operations by it."""
    tokens = Tokens(system, system.store.directory.secret(), TABLE.routes)
    dispatcher = Dispatcher(system, tokens, TABLE, token_ttl_s=settings.token_ttl_s)
    system.component(ApiCalls).serve(InternalCalls(dispatcher))
    system.add_component(LinkTasks())
    mqtt = MqttService(
        dispatcher,
        anonymous_key=settings.mqtt_anonymous_key,
        ports={False: settings.mqtt_port, True: settings.mqtt_tls_port},
    )
    mqtt.session_for = partial(MqttSession, mqtt)
    system.add_component(mqtt)
    return dispatcher


async def drain_after(shutdown: Callable[[], Awaitable[None]], system: System) -> None:
    """Wait for the end of a server, and let what it does for a time come to an end."""
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
