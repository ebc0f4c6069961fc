"""A WebSocket of a client, on a wire: the handshake, messages, pings and the closing handshake.

Owns the frames. Does not own what messages mean.
"""

from __future__ import annotations

import struct
from collections import deque
from random import Random

import trio

from tests.simulation.wires import Lost, Wire
from trunkline.http.wire.websocket_frames import BINARY, CLOSE, PING, PONG, TEXT

_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
NO_CLOSE = 1006
"""The code where no close frame has come."""


class WebSocket:
    """An open or opening WebSocket. `code` and `reason` say how it has ended."""

    def __init__(self, wire: Wire, chance: Random) -> None:
        self.wire = wire
        self.code, self.reason = NO_CLOSE, ""
        self.pings = 0
        self._chance = chance
        self._rest = b""
        self._messages: deque[bytes] = deque()
        self._sends = trio.Lock()

    async def open(self, path: str, protocol: str, token: str | None) -> int:
        """Shake hands, and return the status of the response: 101 where it is open. Raises `Lost`."""
        lines = [
            f"GET {path} HTTP/1.1",
            "host: trunkline",
            "connection: Upgrade",
            "upgrade: websocket",
            "sec-websocket-version: 13",
            f"sec-websocket-key: {_KEY}",
            f"sec-websocket-protocol: {protocol}",
        ]
        if token is not None:
            lines.append(f"authorization: Bearer {token}")
        await self.wire.send("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._rest:
            await self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1])

    async def send(self, payload: bytes, *, text: bool = False) -> None:
        """Send a message, some in fragments. Raises `Lost`."""
        opcode, at = TEXT if text else BINARY, len(payload)
        if self._chance.random() < 0.1:
            at = self._chance.randint(0, len(payload))
        data = self._frame(opcode, payload[:at], last=at == len(payload))
        if at < len(payload):
            data += self._frame(0, payload[at:])
        await self._send(data)

    async def receive(self) -> bytes | None:
        """The next message; None where the server has closed. Raises `Lost`."""
        while not self._messages:
            while (frame := self._next_frame()) is None:
                await self._more()
            opcode, payload = frame
            if opcode == CLOSE:
                self.code = struct.unpack("!H", payload[:2])[0] if payload else 1005
                self.reason = payload[2:].decode()
                await self._send(self._frame(CLOSE, payload[:2]))
                self.wire.close()
                return None
            if opcode == PING:
                self.pings += 1
                await self._send(self._frame(PONG, payload))
            elif opcode != PONG:
                self._messages.append(payload)
        return self._messages.popleft()

    async def close(self) -> None:
        """Say goodbye, and wait for nothing."""
        await self._send(self._frame(CLOSE, struct.pack("!H", 1000)))
        self.wire.close()

    async def _send(self, data: bytes) -> None:
        async with self._sends:
            await self.wire.send(data)

    async def _more(self) -> None:
        data = await self.wire.receive()
        if not data:
            raise Lost
        self._rest += data

    def _next_frame(self) -> tuple[int, bytes] | None:
        """The next frame of the server, which sends no fragments; None where it has not come whole."""
        rest = self._rest
        if len(rest) < 2:
            return None
        size, at = rest[1], 2
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(rest) < at:
                return None
            size = int.from_bytes(rest[2:at], "big")
        if len(rest) < at + size:
            return None
        self._rest = rest[at + size :]
        return rest[0] & 15, rest[at : at + size]

    def _frame(self, opcode: int, payload: bytes, *, last: bool = True) -> bytes:
        mask = self._chance.randbytes(4)
        size, first = len(payload), last << 7 | opcode
        if size < 126:
            head = struct.pack("!BB", first, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", first, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", first, 0x80 | 127, size)
        times = mask * (size // 4 + 1)
        return head + mask + bytes(a ^ b for a, b in zip(payload, times, strict=False))
