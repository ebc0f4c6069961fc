"""A network between client and server that stalls, resets, sends byte by byte, or is gone without a word.

Owns the proxy and what it does to what passes. Does not own the clients and the server.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

_ATTACH_FILTER: Final = 26
"""SO_ATTACH_FILTER of Linux, which the module `socket` does not name."""
_RECEIVE_BYTES: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)


class Network:
    """A TCP proxy. What it does holds for all connections from the next piece on."""

    def __init__(self, host: str, port: int) -> None:
        self.url = ""
        self.piece_bytes = _RECEIVE_BYTES
        """The most that passes at once."""
        self.cuts: Iterator[int] | None = None
        """After how many bytes each next connection is cut, of both directions or, if it stalls, to the server."""
        self.stalls = False
        """Whether a cut connection is not reset, but nothing more passes to the server."""
        self.connections = 0
        self._target = host, port
        self._is_cut = False
        self._open: set[trio.CancelScope] = set()

    async def listen(self, nursery: trio.Nursery) -> int:
        """Accept connections until the nursery ends, at the port that is returned."""
        (listener, *_) = await nursery.start(partial(trio.serve_tcp, self.serve, 0, host="127.0.0.1"))
        port: int = listener.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return port

    def cut(self) -> None:
        """Nothing passes from now on: all connections are closed, and each one that comes."""
        self._is_cut = True
        for scope in self._open:
            scope.cancel()

    def mend(self) -> None:
        """Connections pass again."""
        self._is_cut = False

    async def serve(self, client: trio.SocketStream) -> None:
        """Pass on what comes on one connection."""
        self.connections += 1
        if self._is_cut:
            await trio.aclose_forcefully(client)
            return
        left = None if self.cuts is None else next(self.cuts, None)
        try:
            server = await trio.open_tcp_stream(*self._target)
        except OSError:
            await trio.aclose_forcefully(client)
            return
        async with client, server, trio.open_nursery() as nursery:
            budget = _Budget(left)
            self._open.add(nursery.cancel_scope)
            nursery.start_soon(self._pass, client, server, budget, nursery.cancel_scope)
            back = _Budget(None) if self.stalls else budget
            nursery.start_soon(self._pass, server, client, back, nursery.cancel_scope)
        self._open.discard(nursery.cancel_scope)

    async def _pass(
        self,
        source: trio.SocketStream,
        target: trio.SocketStream,
        budget: _Budget,
        scope: trio.CancelScope,
    ) -> None:
        try:
            while data := bytes(await source.receive_some(_RECEIVE_BYTES)):
                while data:
                    piece, data = data[: self.piece_bytes], data[self.piece_bytes :]
                    allowed = budget.take(len(piece))
                    await target.send_all(piece[:allowed])
                    if allowed < len(piece) and self.stalls:
                        await trio.sleep_forever()
                    if allowed < len(piece):
                        for stream in (source, target):
                            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                        scope.cancel()
                        return
            await target.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            scope.cancel()  # who is at the other end is told


class _Budget:
    """The bytes that may still pass; None: any."""

    def __init__(self, left: int | None) -> None:
        self._left = left

    def take(self, wanted: int) -> int:
        if self._left is None:
            return wanted
        given = min(wanted, self._left)
        self._left -= given
        return given


@asynccontextmanager
async def network(url: str) -> AsyncIterator[Network]:
    """A network before the server at `url`."""
    host, port = url.removeprefix("http://").split(":")
    between = Network(host, int(port))
    async with trio.open_nursery() as nursery:
        await between.listen(nursery)
        yield between
        nursery.cancel_scope.cancel()


def vanish(stream: trio.SocketStream) -> None:
    """From now on nothing that comes to this end arrives or is acknowledged: as behind a cable that is cut."""
    drop_all = ctypes.create_string_buffer(
        struct.pack("HBBI", 0x06, 0, 0, 0)
    )  # one instruction of BPF: return 0
    program = struct.pack("HL", 1, ctypes.addressof(drop_all))
    stream.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
