"""A listening socket, and the connections that are accepted on it.

Owns how a listening socket is set up, how many connections are accepted in a row, and what happens while no descriptor
is left for one. Does not own what becomes of a connection: that is the engine (`engine.py`), which is given each.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any, Final

import structlog
import trio

from trunkline.http.wire.byte_session import ByteProtocol
from trunkline.http.wire.descriptors import NO_DESCRIPTORS
from trunkline.http.wire.passed_on import Passed
from trunkline.http.wire.socket_transport import WRITE_STEP_BYTES

_ACCEPTED_AT_ONCE_MAX: Final = 64
"""Connections that are accepted before others have their turn. Measured: p99 690 ms with 1, 17 ms with 64."""
ACCEPT_PAUSE_S = 0.1
"""How long the server waits before it accepts again when no descriptor is left."""

_TRY_AGAIN = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})
_log = structlog.get_logger("trunkline.http")


class Listener:
    """A socket that is bound, and what is spoken on its connections."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        tls: bool,
        protocol: ByteProtocol | None = None,
        passed_on: Callable[[Passed], ByteProtocol | None] | None = None,
    ) -> None:
        """HTTP is spoken where there is no other `protocol`.

        `passed_on` is for a socket on which other processes pass on connections: it says what is spoken on one.
        """
        self.sock = sock
        self.tls = tls
        self.protocol = protocol
        self.passed_on = passed_on

    @property
    def url(self) -> str:
        """The URL at which a listener for HTTP is reached."""
        return address_of(self.sock, tls=self.tls)

    def listen(self, backlog: int, acknowledged_s: float = 0) -> None:
        """Listen. A connection ends when nothing of what was sent is acknowledged for so long, if that is not 0.

        Otherwise the kernel would try for a quarter of an hour: a stream that sends little is not ended by a buffer
        that is full.
        """
        sock = self.sock
        if sock.family != socket.AF_UNIX:
            # All are inherited by the connections.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, WRITE_STEP_BYTES)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(acknowledged_s * 1000))
        sock.listen(backlog)
        sock.setblocking(False)

    async def accept(self, take: Callable[[socket.socket, Any, Listener], None]) -> None:
        """Give each connection that comes, with its address, to `take`, until cancelled."""
        logged = False
        while True:
            await trio.lowlevel.wait_readable(self.sock)
            problem = self.accept_nowait(take)
            if problem is None:
                logged = False
                continue
            if not logged:
                _log.warning("no descriptor is left for a new connection", problem=str(problem))
                logged = True
            await trio.sleep(ACCEPT_PAUSE_S)

    def accept_nowait(self, take: Callable[[socket.socket, Any, Listener], None]) -> OSError | None:
        """Accept the connections that wait, at most so many at a time that the others get their turn.

        Returns the error where the process or the machine has no descriptor left.
        """
        for _ in range(_ACCEPTED_AT_ONCE_MAX):
            try:
                sock, address = self.sock.accept()
            except OSError as error:
                if error.errno in NO_DESCRIPTORS:
                    return error
                if error.errno in _TRY_AGAIN:
                    return None
                continue  # the client left before it was accepted
            sock.setblocking(False)
            take(sock, address, self)
        return None


def address_of(sock: socket.socket, *, tls: bool) -> str:
    """The URL at which a listening socket is reached."""
    host, port = sock.getsockname()[:2]
    return f"http{'s' * tls}://[{host}]:{port}" if ":" in host else f"http{'s' * tls}://{host}:{port}"
