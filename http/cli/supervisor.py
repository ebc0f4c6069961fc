"""The supervisor of a server with several processes: it starts them, watches them, and stops them.

It holds the sockets on which the server listens, so clients can connect while a door starts again. It tells the
service manager when all processes are ready. A process that ends is started again, and so is one whose event loop
hangs for longer than the manager's watchdog allows, or with a log for longer than `HANGS_S`. If the owner cannot
start, the server stops with its exit code. With a log an owner of another partition that ends again and again before
it serves stops the server as well: then other machines serve what it had.

The order of a start: bind the ports, then the owner of the data or of its root, then the owners of the other partitions
and the doors. All of them drain at the same time: an owner ends when nobody is left who passes anything on to it.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
import trio

from trunkline.actors.core.values.store_partitions import partition_count
from trunkline.http import systemd
from trunkline.http.hosting.sockets import Sockets, bound, engine_config, url_of
from trunkline.http.processes.control import (
    ANNOUNCE,
    BEAT_S,
    READY,
    RELOAD,
    STANDS_BY,
    STOP,
    Role,
    send_role,
    words,
)
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings

PAUSE_S: Final = 0.25
PAUSE_MAX_S: Final = 5.0
"""Seconds until a door that ended before it was ready is started again; twice as long each time, up to the second."""
TRIES: Final = 3
STEADY_S: Final = 60.0
"""With a log, the server ends with an owner that has ended so often in a row, each time sooner and before it served."""
HANGS_S: Final = 30.0
"""With a log, a process is killed that hangs for so long. Other machines serve what it had, but what else its machine
serves needs its copy."""
MODULE: Final = "trunkline.http.cli.process"

_log = structlog.get_logger("trunkline.processes")


def process_count(settings: Settings) -> int:
    """The number of processes that the settings ask for, or one for each partition of the data if those are more.

    With a log there is one door more at least, which serves clients while another machine owns the data.
    Raises `StoreError` if it cannot be read how many there are.
    """
    wanted = settings.processes or len(os.sched_getaffinity(0))
    has_log = settings.cluster_nats is not None
    return max(wanted, partition_count(Path(settings.data_dir)) + has_log)


class Process:
    """One process of the server, which may be started several times."""

    def __init__(self, role: Role, sockets: Sockets | None) -> None:
        self.role = role
        self.ready = trio.Event()
        """It is ready, since it was started last."""
        self.failures = 0
        """So often in a row it has ended soon after its start, and before it served."""
        self.announces = False
        """It is told to announce the server whenever it is ready."""
        self.heard_s = math.inf
        """When it has said last that its event loop runs, on Trio's clock; infinite while it does not run."""
        self._serves = False
        self._sockets = sockets
        self._stopped = False
        self._running: trio.Process | None = None
        self._control: trio.socket.SocketType | None = None

    async def run(self) -> int:
        """Start it, and return its exit code when it has ended (negative: the signal that has killed it)."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: text for name, text in os.environ.items() if name not in systemd.VARIABLES}
        command = [sys.executable, "-m", MODULE, self.role.name]
        self._serves, started_s = False, trio.current_time()
        with theirs:
            process = await trio.lowlevel.open_process(command, stdin=theirs.fileno(), env=environment)
        try:
            with suppress(OSError):  # it has ended at once
                send_role(ours, self.role, self._sockets)
            with trio.socket.from_stdlib_socket(ours) as control:
                self._running, self._control, self.heard_s = process, control, trio.current_time()
                if self._stopped:
                    await self.tell(STOP)
                async for word in words(control):
                    await self._hear(word)
            return await process.wait()
        finally:
            self._running = self._control = None
            self.heard_s = math.inf
            is_steady = self._serves or trio.current_time() - started_s > STEADY_S
            self.failures = 0 if is_steady else self.failures + 1
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()

    async def _hear(self, word: bytes) -> None:
        self.heard_s = trio.current_time()
        if word in (READY, STANDS_BY):
            self._serves = word == READY
            self.ready.set()
            if self.announces:
                await self.tell(ANNOUNCE)

    async def tell(self, word: bytes) -> None:
        """Tell it something, if it runs. One that is just being started is told to stop as well."""
        self._stopped |= word == STOP
        if self._control is not None:
            with suppress(OSError):  # it has just ended
                await self._control.send(word)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self._running is not None:
            self._running.kill()


class Supervisor:
    """All processes of one server."""

    def __init__(self, root: Process, others: Sequence[Process], url: str) -> None:
        """`root` is the owner of the data, or of the root among its partitions. It is started before all others."""
        self.exit_code = 0
        self._root = root
        self._others = others
        self._url = url
        self._stopping = False
        self._is_complete = False
        """All processes have been ready."""
        self._start = trio.CancelScope()

    async def run(self) -> None:
        """Run them until all have ended after a stop, or until the owner cannot start."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_signals)
            nursery.start_soon(self._watch)
            nursery.start_soon(systemd.feed_watchdog)
            async with trio.open_nursery() as processes:
                processes.start_soon(self._keep, self._root, processes.cancel_scope)
                with self._start:
                    await self._root.ready.wait()
                    for process in self._others:
                        processes.start_soon(self._keep, process, processes.cancel_scope)
                    for process in self._others:
                        await process.ready.wait()
                    self._is_complete = True
                    self._root.announces = True
                    await self._root.tell(ANNOUNCE)
                    systemd.notify("READY=1", f"STATUS=Serving at {self._url}")
            nursery.cancel_scope.cancel()

    async def _keep(self, process: Process, everything: trio.CancelScope) -> None:
        """Run a process, again and again until the server stops."""
        pause_s = PAUSE_S
        while not self._stopping:
            code = await self._run(process)
            is_lost = self._cannot_start(process, code)
            if is_lost or (self._stopping and process is self._root):
                self.exit_code = 1 if code is None or code < 0 else code
            if is_lost and not self._stopping:
                everything.cancel()
            if self._stopping or is_lost:
                return
            if process.ready.is_set():
                pause_s = PAUSE_S
                process.ready = trio.Event()
            else:
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
            if code == 0:
                _log.info("a process has given its partition to another machine", name=process.role.name)
            else:
                _log.error("a process has ended; it is started again", name=process.role.name, exit_code=code)

    async def _run(self, process: Process) -> int | None:
        """Run a process to its end; None if it cannot be started, as without memory."""
        try:
            return await process.run()
        except OSError as problem:
            _log.error("a process cannot be started", name=process.role.name, problem=str(problem))
            return None

    def _cannot_start(self, process: Process, code: int | None) -> bool:
        """Whether the server cannot go on without a process that has ended before it was ready.

        That is an owner at the first start, the root whenever it ends by itself, which it has explained, and with a log
        each owner that has tried often enough: another machine may serve its data then.
        """
        if process.role.door:
            return False
        if process.role.settings.cluster_nats is not None and process.failures >= TRIES:
            _log.error("a process cannot serve; the server ends for another machine", name=process.role.name)
            return True
        if process.ready.is_set():
            return False
        by_itself = code is not None and code >= 0
        return not self._is_complete or (by_itself and process is self._root)

    async def _follow_signals(self) -> None:
        """Stop at the first signal, at once at the second. SIGHUP reloads the certificate, as in `http/serve.py`."""
        in_terminal = os.isatty(0)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async for number in signals:
                if number == signal.SIGHUP and not (in_terminal and not os.isatty(0)):
                    await self._tell_all(RELOAD)
                    continue
                if not self._stopping:
                    systemd.notify("STOPPING=1", "STATUS=Draining")
                self._stopping = True
                self._start.cancel()
                await self._tell_all(STOP)

    async def _tell_all(self, word: bytes) -> None:
        for process in (self._root, *self._others):
            await process.tell(word)

    async def _watch(self) -> None:
        """Kill a process whose event loop hangs, with a log, or where the service manager would kill a single one.

        One that starts may take its time, as a check of all pages does.
        """
        watchdog_s = systemd.watchdog_s()
        if watchdog_s is None and self._root.role.settings.cluster_nats is None:
            return
        silence_max_s = HANGS_S if watchdog_s is None else max(watchdog_s, 3 * BEAT_S)
        while True:
            slept_s = trio.current_time()
            await trio.sleep(silence_max_s / 2)
            if trio.current_time() - slept_s > silence_max_s:
                continue  # all of them may have stood still, as this one has
            for process in (self._root, *self._others):
                if process.ready.is_set() and trio.current_time() - process.heard_s > silence_max_s:
                    _log.error(
                        "a process does not say that it is alive; it is killed", name=process.role.name
                    )
                    process.kill()


async def supervise(settings: Settings, *, demo: bool, wanted_mqtt_port: int | None) -> int:
    """Serve with several processes until SIGTERM or SIGINT. Returns the exit code.

    `wanted_mqtt_port` is a port for MQTT that the demo opens if it is free. Raises `SettingsError` for unusable
    certificates, and `OSError` if a port cannot be bound, with sentences for the operator.
    """
    engine_config(settings)
    if settings.engine == "stock":
        raise SettingsError("engine", "is stock although the server has several processes", "leave it out")
    with bound(settings, wanted_mqtt_port) as sockets:
        url = url_of(settings, sockets.http)
        partitions = partition_count(Path(settings.data_dir))
        doors = process_count(settings) - partitions
        root = Role(settings, 0, partitions, 0, doors, url, sockets.mqtt_ports, demo, wanted_mqtt_port)
        # Only doors can serve clients while another machine owns the data.
        owners_sockets = sockets if partitions > 1 and settings.cluster_nats is None else None
        owners = [root._replace(partition=number) for number in range(1, partitions)]
        others = [Process(role, owners_sockets) for role in owners]
        others += [Process(root._replace(door=number), sockets) for number in range(1, doors + 1)]
        supervisor = Supervisor(Process(root, owners_sockets), others, url)
        await supervisor.run()
    return supervisor.exit_code
