"""The way to one other process that owns data: a channel for calls, and relays for connections.

Owns that the channel is opened again after the other process has ended. Does not own what is passed on (`door.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from trunkline.http.hosting.unix_sockets import connect_in
from trunkline.http.processes.channel import BOUNDS, PROTOCOL, SOCKET_NAME, Flushes, OwnConnections
from trunkline.http.processes.door import Door
from trunkline.http.processes.relays import BUFFER_BYTES, ClientHalf
from trunkline.http.wire.byte_session import ByteBounds, GoesOn, Peer
from trunkline.http.wire.passed_on import Passed
from trunkline.limits.table import Limits

RECONNECT_S: Final = 0.02
"""How often the other process is looked for while it is not there."""

_log = structlog.get_logger("trunkline.processes")


class Passage:
    """The way to the process that listens in `directory`. `use` gets the certificates of domains. `machine` is the name
    of this machine, if the server has several."""

    def __init__(
        self,
        directory: Path,
        flushes: Flushes,
        connections: OwnConnections,
        limits: Limits,
        use: Callable[[Any], None] = lambda _certificates: None,
        protocol: str = PROTOCOL,
        machine: str = "",
    ) -> None:
        self.bounds = ByteBounds(BUFFER_BYTES, limits.head_timeout_s, limits.write_timeout_s)
        self._directory = directory
        self._hello = Passed(protocol).encode()
        self._machine = machine
        self._left = False
        self.opened = trio.Event()
        """A channel was open."""
        self._connections = connections
        self._connect = partial(connect_in, directory, SOCKET_NAME)
        self.door = Door(flushes, limits.head_cache_length_max, self._relay, use, machine)

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep a channel open, until cancelled. It has started when the first one is open."""
        while not self._left:
            await trio.lowlevel.checkpoint_if_cancelled()  # then the connections may have ended already
            try:
                sock = self._connect(self._hello)
            except OSError:
                await trio.sleep(RECONNECT_S)
                continue
            self._connections.open(sock, self.door.new_channel(), BOUNDS)
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            self.opened.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow_owner)
                await self.door.ended.wait()
                nursery.cancel_scope.cancel()
            if self._left:
                return
            if not self.door.left.is_set():  # it has not ended in order
                _log.warning(
                    "a process that owns data is gone; calls get 503 until it is there again",
                    directory=str(self._directory),
                )

    async def _follow_owner(self) -> None:
        """Close the channel when the owner wants it closed and nothing is under way."""
        await self.door.left.wait()
        await self.door.idle()
        self.door.channel.close()

    async def leave(self) -> None:
        """Close the channel for good as soon as nothing is under way on it."""
        self._left = True
        await self.door.idle()
        self.door.channel.close()

    def _relay(self, first: bytes) -> GoesOn:
        """What goes on with a connection whose bytes are passed on; the other process is sent `first` before them."""
        return GoesOn(self.relay(first), self.bounds)

    def relay(self, first: bytes) -> ClientHalf:
        """The session of a connection whose bytes are passed on behind `first`."""
        self.door.relayed += 1
        return ClientHalf(self._connections, self._connect, self.bounds, first)

    def mqtt_session(self, peer: Peer) -> ClientHalf:
        """The session of a connection for MQTT that is passed on."""
        return self.relay(
            Passed(
                "mqtt",
                peer.address,
                None,
                peer.tls,
                peer.certificate,
                peer.websocket,
                peer.machine or self._machine,
            ).encode()
        )
