"""A WebSocket server that takes everything and says nothing: the other end of an integration that only sends.

It reads no frames, so what it does takes no time of the loop that it shares with the server under test.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

_KEY: Final = re.compile(rb"(?i)\r\nsec-websocket-key: *(\S+)\r\n")
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Of RFC 6455, section 1.3."""


@asynccontextmanager
async def silent_socket() -> AsyncIterator[str]:
    """Within it the server listens; its URL."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, _take, 0, host="127.0.0.1"))
        yield f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}/"
        nursery.cancel_scope.cancel()


async def _take(stream: trio.SocketStream) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        head += await stream.receive_some()
    key = _KEY.search(head)
    assert key is not None, head
    accept = base64.b64encode(hashlib.sha1(key[1] + _GUID, usedforsecurity=False).digest())
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    await stream.send_all(answer + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    async with stream:
        while await stream.receive_some():
            pass
