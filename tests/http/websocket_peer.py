"""WebSocket clients: one on a raw connection, one of another library, and frames as a client sends them."""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
import struct
from typing import Any

import trio
from websockets.asyncio.client import connect
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, TextMessage

from tests.patience import PATIENCE_S


class Peer:
    """A client that uses wsproto for what it sends and receives."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.wire = Connection(ConnectionType.CLIENT)

    async def send(self, event: Any) -> None:
        await self.stream.send_all(self.wire.send(event))

    async def next(self) -> Any:
        """The next event; pieces of a message are joined."""
        pieces: Any = None
        with trio.fail_after(PATIENCE_S):
            while True:
                for event in self.wire.events():
                    if not isinstance(event, TextMessage | BytesMessage):
                        return event
                    pieces = event.data if pieces is None else pieces + event.data
                    if event.message_finished:
                        return dataclasses.replace(event, data=pieces)
                self.wire.receive_data(await self.stream.receive_some(65_536) or None)


def masked(opcode: int, payload: bytes, *, last: bool = True, first: int = 0) -> bytes:
    """A frame of a client. `first` has the reserved bits."""
    mask = b"mask"
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", last << 7 | first | opcode, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", last << 7 | first | opcode, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", last << 7 | first | opcode, 0x80 | 127, size)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


async def talk(
    url: str, context: ssl.SSLContext | None, *messages: Any, answers: int | None = None, **options: Any
) -> list[Any]:
    """What a server answers to messages of the library `websockets`; one answer for each unless told otherwise.

    Not its client with threads: one reads while another writes in the same TLS session, and 1 to 2 of 100 connections
    fail, whatever the server (measured with 17.4 on Python 3.11 to 3.13 against the library's own server).
    """

    async def session() -> list[Any]:
        async with (
            asyncio.timeout(PATIENCE_S),
            connect(url, ssl=context, open_timeout=None, **options) as client,
        ):
            for message in messages:
                await client.send(message)
            await (await client.ping())
            return [await client.recv() for _ in range(answers or len(messages))]

    return await trio.to_thread.run_sync(asyncio.run, session())
