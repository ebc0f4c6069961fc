"""The framing of HTTP/1.1 answers: heads, bodies by length, chunked and until close; every read is bounded.

Owns finding the end of an answer. Does not own the connection or the meaning of an answer. An ambiguous end (two
lengths, a length that is no number, a malformed chunk) is a ProtocolViolation.
"""

from __future__ import annotations

from trunkline.bench.errors import ConnectionBroken, ProtocolViolation
from trunkline.bench.transport import Transport

HEAD_BYTES_MAX = 65_536
"""Bytes: a status line with its headers; normal ones have less than 1 KiB."""

BODY_BYTES_MAX = 64 * 1024 * 1024
"""Bytes: one answer; a page of 1,000 states with long strings is smaller."""


class Response:
    """One complete answer: ``status``, ``body``, and its headers, which are parsed on demand."""

    __slots__ = ("_head", "body", "status")

    def __init__(self, status: int, head: bytes, body: bytes) -> None:
        self.status = status
        self.body = body
        self._head = head

    @property
    def headers(self) -> dict[str, str]:
        """Header names in lower case; repeated ones are joined with a comma."""
        found: dict[str, str] = {}
        for line in self._head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            key, text = name.decode("latin-1").strip().lower(), value.decode("latin-1").strip()
            found[key] = f"{found[key]}, {text}" if key in found else text
        return found


class Inbox:
    """The bytes that one transport has received and that are not read yet."""

    __slots__ = ("_buffer", "_transport")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._buffer = bytearray()

    @property
    def buffered(self) -> int:
        """The number of buffered bytes."""
        return len(self._buffer)

    async def fill(self, where: str | None = None) -> bool:
        """Receive more bytes. At the end of the stream return False, or raise ConnectionBroken if ``where`` is given.

        ``where`` says in the error at what point of the answer the stream ended.
        """
        data = await self._transport.receive_some()
        if not data and where is not None:
            raise ConnectionBroken(f"The server closed the connection {where}.", maybe_done=True)
        self._buffer += data
        return bool(data)

    def take(self, length: int) -> bytes:
        """Remove up to ``length`` bytes from the front."""
        taken = bytes(self._buffer[:length])
        del self._buffer[:length]
        return taken

    async def read_head(self) -> bytes:
        """A status line and its headers, without the empty line that ends them."""
        head = await self._read_until(b"\r\n\r\n", "before it answered")
        if not (head.startswith(b"HTTP/1.") and head[8:9] == b" " and head[9:12].isdigit()):
            raise ProtocolViolation(f"The server's answer is not HTTP/1.1: {head[:40]!r}.")
        return head

    async def read_line(self) -> bytes:
        """One line of chunked framing, without its end."""
        return await self._read_until(b"\r\n", "within a chunk")

    async def _read_until(self, mark: bytes, where: str) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            if len(self._buffer) > HEAD_BYTES_MAX:
                raise ProtocolViolation(f"A head of the server's has more than {HEAD_BYTES_MAX} bytes.")
            await self.fill(where)
        return self.take(end + len(mark))[:end]


class Body:
    """The body of one answer, read at once or in pieces (streams)."""

    __slots__ = ("_inbox", "_remaining", "chunked", "closes", "ended", "length")

    def __init__(self, inbox: Inbox, head: bytes, *, bodiless: bool = False) -> None:
        lower = head.lower()
        connection = _field(lower, b"connection")
        self._inbox = inbox
        self.chunked = b"chunked" in _field(lower, b"transfer-encoding")
        self.closes = b"close" in connection or (head[:8] == b"HTTP/1.0" and b"keep-alive" not in connection)
        self.length: int | None = None
        if bodiless or head[9:12] in (b"204", b"304"):
            self.length = 0
        elif not self.chunked and (text := _field(lower, b"content-length")):
            if not text.isdigit():
                raise ProtocolViolation(f"The server's Content-Length is {text[:40]!r}.")
            self.length = int(text)
        elif not self.chunked:
            self.closes = True
        if self.length is not None and self.length > BODY_BYTES_MAX:
            raise ProtocolViolation(f"The server's answer has {self.length} bytes; too many to read.")
        self._remaining = self.length or 0
        self.ended = self.length == 0

    async def read_all(self) -> bytes:
        """The whole body, at most BODY_BYTES_MAX."""
        if self.length is not None:
            while self._inbox.buffered < self.length:
                await self._inbox.fill("within its answer")
            self.ended = True
            return self._inbox.take(self.length)
        parts: list[bytes] = []
        size = 0
        while part := await self.read_some():
            parts.append(part)
            size += len(part)
            if size > BODY_BYTES_MAX:
                raise ProtocolViolation(f"The server's answer has more than {BODY_BYTES_MAX} bytes.")
        return b"".join(parts)

    async def read_some(self) -> bytes:
        """The next bytes, or ``b""`` at the end; buffered bytes are returned without receiving."""
        if self.ended:
            return b""
        if self.chunked:
            return await self._read_chunk()
        if self.length is None:
            self.ended = not self._inbox.buffered and not await self._inbox.fill()
            return self._inbox.take(self._inbox.buffered)
        if not self._inbox.buffered:
            await self._inbox.fill("within its answer")
        part = self._inbox.take(self._remaining)
        self._remaining -= len(part)
        self.ended = self._remaining == 0
        return part

    async def _read_chunk(self) -> bytes:
        if self._remaining == 0:
            self._remaining = _chunk_size(await self._inbox.read_line())
            if self._remaining == 0:
                while await self._inbox.read_line():
                    pass
                self.ended = True
                return b""
        if not self._inbox.buffered:
            await self._inbox.fill("within a chunk")
        part = self._inbox.take(self._remaining)
        self._remaining -= len(part)
        if self._remaining == 0 and await self._inbox.read_line():
            raise ProtocolViolation("A chunk of the server's is longer than its stated size.")
        return part


def _field(lower_head: bytes, name: bytes) -> bytes:
    """The value of a header in a head in lower case, or ``b""``. Raises ProtocolViolation if it is repeated."""
    mark = b"\r\n" + name + b":"
    start = lower_head.find(mark)
    if start < 0:
        return b""
    if lower_head.find(mark, start + 1) >= 0:
        raise ProtocolViolation(f"The server sent {name.decode()} twice.")
    end = lower_head.find(b"\r\n", start + 2)
    return lower_head[start + len(mark) : end if end >= 0 else len(lower_head)].strip()


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise ProtocolViolation(f"The server's chunk size is {line[:40]!r}.")
    return int(digits, 16)
