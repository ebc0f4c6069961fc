"""Clients of HTTP/1.1: calls as bytes on connections that are kept, pipelined, stalled and cut.

Owns the requests and responses of these connections, and which of them a call takes. Does not own the connections
themselves (`wires.py`), nor what is called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final, NamedTuple

import msgspec
import trio

from tests.simulation.model import Broken
from tests.simulation.network import Network
from tests.simulation.wires import CUTS, Lost, Wire

PATIENCE_S: Final = 45.0
"""So long a client waits for an answer."""
_KEPT_MAX: Final = 4
_TOO_SLOW: Final = 408


class Raw(NamedTuple):
    """A response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Waiting:
    """A request whose response has not come."""

    __slots__ = ("answered", "raw")

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.raw: Raw | None = None

    def answer(self, raw: Raw | None) -> None:
        self.raw = raw
        self.answered.set()


class Kept:
    """A connection with the requests on it, answered in their order."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.waiting: deque[_Waiting] = deque()
        self.is_over = False
        self._sends = trio.Lock()

    async def ask(self, request: bytes, waiting: _Waiting) -> None:
        """Send a request behind those before it."""
        async with self._sends:
            if self.is_over:
                waiting.answer(None)
                return
            self.waiting.append(waiting)
            with suppress(Lost):  # the response to what was refused may have come before
                await self.wire.send(request)

    async def read(self) -> None:
        """Give each response to its request, until the connection is over."""
        try:
            responses = _Responses(self.wire)
            while True:
                raw = await responses.next()
                if self.is_over or (not self.waiting and raw.status == _TOO_SLOW):
                    return  # somebody has left; or no request came, or half of one
                if not self.waiting:
                    raise Broken(f"a response came that nobody has asked for: {raw}")
                self.waiting.popleft().answer(raw)
                if raw.headers.get("connection") == "close":
                    return
        except Lost:
            pass
        finally:
            self.end()

    def end(self) -> None:
        self.is_over = True
        self.wire.close()
        for each in self.waiting:
            each.answer(None)
        self.waiting.clear()


class Clients:
    """The connections of HTTP clients in one life."""

    def __init__(self, network: Network, nursery: trio.Nursery) -> None:
        self._network = network
        self._nursery = nursery
        self._kept: list[Kept] = []

    async def call(
        self,
        method: str,
        path: str,
        body: Any,
        token: str,
        headers: Mapping[str, str] | None,
        chance: Random,
    ) -> Raw | None:
        """Make a call on one of the connections. None where it was lost before the answer."""
        request = _request(method, path, body, token, headers or {}, chance)
        kept = self._one(chance)
        if kept.waiting:
            self._network.reached["a request was pipelined"] += 1
        if chance.random() < 0.06:
            self._cut(kept.wire, len(request), chance)
        waiting, is_sent = _Waiting(), False
        try:
            with trio.move_on_after(PATIENCE_S):
                await kept.ask(request, waiting)
                is_sent = True
                await waiting.answered.wait()
        finally:
            # Whoever leaves takes the connection with it, also after an answer that came before all was sent.
            if not (is_sent and waiting.answered.is_set()):
                kept.wire.abort()
                kept.end()
        raw = waiting.raw
        return None if raw is None or raw.status == _TOO_SLOW else raw

    async def call_once(
        self,
        method: str,
        path: str,
        body: Any,
        token: str,
        headers: Mapping[str, str] | None,
        chance: Random,
    ) -> tuple[Raw | None, Wire, Stream | None, bool]:
        """Make a call on a connection of its own, which nobody cuts. None where it was lost before the whole answer.

        Last whether the answer had begun.
        """
        wire, raw, stream, has_begun = self._network.http.connect(), None, None, False
        responses = _Responses(wire)
        request = _request(method, path, body, token, headers or {}, chance)
        self._nursery.start_soon(_send, wire, request)  # the answer may come before all is sent
        try:
            with suppress(Lost):
                status, fields = await responses.head()
                has_begun = True
                if fields.get("content-type", "").startswith("text/event-stream"):
                    raw, stream = Raw(status, fields, b""), Stream(responses, wire)
                else:
                    raw = await responses.rest(status, fields)
        finally:
            if stream is None:
                wire.close()
        return None if raw is None or raw.status == _TOO_SLOW else raw, wire, stream, has_begun

    def _one(self, chance: Random) -> Kept:
        """A connection that waits for no response; rather seldom one that does."""
        self._kept = [each for each in self._kept if not each.is_over]
        free = [each for each in self._kept if chance.random() < 0.2 or not each.waiting]
        if free and chance.random() < 0.9:
            return chance.choice(free)
        if len(self._kept) >= _KEPT_MAX:
            return chance.choice(self._kept)
        kept = Kept(self._network.http.connect())
        self._kept.append(kept)
        self._nursery.start_soon(kept.read)
        return kept

    def _cut(self, wire: Wire, length: int, chance: Random) -> None:
        if chance.random() < 0.5:
            wire.to_server.cut_after(chance.randint(1, length), chance.choice(CUTS))
            self._network.reached["a connection was cut within a request"] += 1
        else:
            wire.to_client.cut_after(chance.choice((1, 20, 150, 400)), chance.choice(CUTS))
            self._network.reached["a connection was cut within a response"] += 1


def _request(
    method: str, path: str, body: Any, token: str, headers: Mapping[str, str], chance: Random
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: trunkline"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if token:
        lines.append(f"authorization: Bearer {token}")
    if chance.random() < 0.05:
        lines.append("connection: close")
    sent = b""
    if body is not None:
        is_form = isinstance(body, bytes)
        lines += [] if is_form else ["content-type: application/json"]
        sent = body if is_form else msgspec.json.encode(body)
        if chance.random() < 0.2:
            lines.append("transfer-encoding: chunked")
            at = chance.randint(1, len(sent))
            parts = [part for part in (sent[:at], sent[at:]) if part]
            sent = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        else:
            lines.append(f"content-length: {len(sent)}")
    return "\r\n".join([*lines, "", ""]).encode() + sent


async def _send(wire: Wire, request: bytes) -> None:
    with suppress(Lost):
        await wire.send(request)


class Stream:
    """A response whose parts come one after the other."""

    def __init__(self, responses: _Responses, wire: Wire) -> None:
        self._responses = responses
        self._wire = wire

    async def next(self) -> bytes | None:
        """The next part; None where no more come."""
        try:
            return await self._responses.chunk() or None
        except Lost:
            return None

    def close(self) -> None:
        """Nobody wants more."""
        self._wire.close()


class _Responses:
    """The responses in the bytes of a connection, to requests that are no HEAD. Raises `Lost`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._rest = b""

    async def next(self) -> Raw:
        return await self.rest(*await self.head())

    async def head(self) -> tuple[int, dict[str, str]]:
        """The status and the headers of the next one."""
        while True:
            status, *lines = (await self._until(b"\r\n\r\n")).decode("latin1").split("\r\n")
            code = int(status.split(" ")[1])
            headers = dict(line.split(": ", 1) for line in lines)
            headers = {name.lower(): value for name, value in headers.items()}
            if code >= 200:
                return code, headers

    async def rest(self, code: int, headers: dict[str, str]) -> Raw:
        """The whole response that begins so."""
        if "chunked" in headers.get("transfer-encoding", ""):
            body = await self._chunks()
        else:
            body = await self._bytes(0 if code in (204, 304) else int(headers.get("content-length", "0")))
        return Raw(code, headers, body)

    async def _chunks(self) -> bytes:
        body = b""
        while chunk := await self.chunk():
            body += chunk
        return body

    async def chunk(self) -> bytes:
        """The next part of a body."""
        found = await self._bytes(int(await self._until(b"\r\n"), 16))
        await self._bytes(2)
        return found

    async def _until(self, end: bytes) -> bytes:
        while end not in self._rest:
            await self._more()
        found, _, self._rest = self._rest.partition(end)
        return found

    async def _bytes(self, count: int) -> bytes:
        while len(self._rest) < count:
            await self._more()
        found, self._rest = self._rest[:count], self._rest[count:]
        return found

    async def _more(self) -> None:
        data = await self._wire.receive()
        if not data:
            raise Lost
        self._rest += data
