"""A process of a server with several: the owner of a partition of the data, or a door.

Started by the supervisor, as a program.

Its argument is its name, for whoever looks at the list of processes.

It obeys the supervisor, and drains at SIGTERM; signals that a terminal sends to all processes are the supervisor's. It
also drains when the supervisor is gone, so that no process of a server is left alone.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

import trio

from trunkline.http.cli.late import prepare_server_imports
from trunkline.http.cli.main import main
from trunkline.http.hosting.sockets import Sockets
from trunkline.http.processes.control import (
    ANNOUNCE,
    BEAT,
    BEAT_S,
    READY,
    RELOAD,
    STANDS_BY,
    STOP,
    Role,
    receive_role,
    words,
)
from trunkline.http.wire import garbage_collection


class Orders:
    """What the supervisor and signals tell this process, as the numbers of signals."""

    def __init__(self, control: trio.socket.SocketType) -> None:
        self._control = control
        self._send, self.numbers = trio.open_memory_channel[int](16)
        self._stops = 0
        """By the supervisor: the second one means at once."""
        self._stopping = False
        self.announced = trio.Event()

    async def run(self) -> None:
        """Listen, and say that this process is alive, until cancelled. Later signals are ignored: it is ending."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what the receiver sets again
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._obey)
            nursery.start_soon(self._beat)
            with trio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    await self._stop(again=False)

    async def say(self, word: bytes) -> None:
        """Tell the supervisor something. Nothing is said once it is gone."""
        try:
            await self._control.send(word)
        except OSError:
            return

    async def _obey(self) -> None:
        async for word in words(self._control):
            if word == ANNOUNCE:
                self.announced.set()
            elif word == RELOAD:
                await self._send.send(signal.SIGHUP)
            elif word == STOP:
                self._stops += 1
                await self._stop(again=self._stops > 1)
        await self._stop(again=False)

    async def _stop(self, *, again: bool) -> None:
        """Stop, once: a service manager sends its signal to all processes, and the supervisor tells them as well."""
        if again or not self._stopping:
            self._stopping = True
            await self._send.send(signal.SIGTERM)

    async def _beat(self) -> None:
        while True:
            await self.say(BEAT)
            await trio.sleep(BEAT_S)


def run() -> None:
    """Be what the supervisor says, until it is told to stop."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=os.dup(0))
    role, sockets = receive_role(control)
    if role.door:
        garbage_collection.pause()
    else:
        prepare_server_imports()
    from trunkline.http.hosting.logs import configure_logging

    configure_logging(role.settings, role.name)
    trio.run(_run, control, partial(_open_door if role.door else _own, role, sockets))


async def _run(control: socket.socket, serve: Callable[[Orders], Awaitable[None]]) -> None:
    orders = Orders(trio.socket.from_stdlib_socket(control))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(orders.run)
        await serve(orders)
        nursery.cancel_scope.cancel()


async def _own(role: Role, sockets: Sockets | None, orders: Orders) -> None:
    """Serve as the owner of a partition."""
    from trunkline.http.cli.serve import announce_standby, announcing
    from trunkline.http.serve import Front, RunningServer, serve

    announce, clock, settings = announcing(role.settings, demo=role.demo, wanted=role.wanted_mqtt_port)

    async def ready(server: RunningServer) -> None:
        if role.partition:
            await server.connected()
        await orders.say(READY)
        await orders.announced.wait()
        await server.connected()
        await announce(server)

    front = Front(role.url, role.mqtt_ports, role.partition, sockets)
    own = partial(serve, front=front, signals=orders.numbers, ready=ready, clock=clock)
    if settings.cluster_nats is None:
        await own(settings)
        return
    from trunkline.http.serve_standby import serve_with_log

    async def stands_by() -> None:
        await orders.say(STANDS_BY)
        if role.partition:
            return
        await orders.announced.wait()
        announce_standby(settings, role.url, role.mqtt_ports)

    await serve_with_log(settings, own, orders.numbers, stands_by, role.partition)


async def _open_door(role: Role, sockets: Sockets | None, orders: Orders) -> None:
    """Serve as a door."""
    assert sockets is not None
    from trunkline.http.processes.serve_door import serve_door

    await serve_door(role.settings, role.doors, sockets, orders.numbers, partial(orders.say, READY))


def _leave(code: object) -> NoReturn:
    """End without the clearing up of the interpreter, which takes a third of a second while nobody serves."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    try:
        main(run)
    except SystemExit as end:
        _leave(end.code)
    _leave(0)
