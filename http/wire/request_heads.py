"""Request heads that come again: what a head was parsed to, found by its bytes.

A device sends one head with all of its states, and only the body differs. What a head means follows from its
bytes alone, so it is parsed once and looked up from then on, which costs a tenth.

Owns the heads and how many of them are kept. Does not own parsing, nor when a request may be looked up: the
connection keeps only whole requests that the fast path has taken, and finds them only by all bytes of their
head. A request that is cut, pipelined, or different in one byte is parsed.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from trunkline.http.wire.headers import Headers
from trunkline.http.wire.request_context import given_id_line

HEAD_BYTES_MAX: Final = 1024
"""Longer heads are not kept: those of devices have some 400 bytes."""

_END: Final = b"\r\n\r\n"
_NOT_KEPT: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect"})
_SHARED_BYTES_MAX: Final = 64
_SHARED_LENGTH_MAX: Final = 1024
_shared_texts: dict[bytes, bytes] = {}


def _shared(text: bytes) -> bytes:
    """An equal text that is in memory already: a fleet sends the same names and mostly the same values."""
    if len(text) > _SHARED_BYTES_MAX or len(_shared_texts) >= _SHARED_LENGTH_MAX:
        return _shared_texts.get(text, text)
    return _shared_texts.setdefault(text, text)


class ParsedHead(Protocol):
    """A request head as the parser left it."""

    method: str
    target: bytes
    headers: Headers


class ParsedRequest(ParsedHead, Protocol):
    """A request as the parser left it."""

    version: str
    body: list[bytes]
    complete: bool
    keep_alive: bool


class KnownHead:
    """What a head was parsed to, and what the application remembers of it.

    `body_bytes` is the length of the body that it announces, `id_line` the line of the id that it gives. `memo`
    belongs to the application: None until the application sets it. The application checks by itself whether it still
    holds; nothing here knows that.
    """

    __slots__ = ("body_bytes", "headers", "id_line", "memo", "method", "target")

    def __init__(self, request: ParsedHead, body_bytes: int) -> None:
        self.method = request.method
        self.target = request.target
        self.headers: Headers = [(_shared(name), _shared(value)) for name, value in request.headers]
        self.id_line = given_id_line(request.headers)
        self.body_bytes = body_bytes
        self.memo: Any = None


class RequestHeads:
    """The known heads of one server. When there are `length_max`, the oldest makes room for the newest."""

    def __init__(self, length_max: int) -> None:
        self.found = 0
        """Requests whose head was known."""
        self._length_max = length_max
        self._heads: dict[bytes, KnownHead] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def find(self, data: bytes) -> tuple[KnownHead, bytes] | None:
        """The head and the body, where `data` is exactly one request with a known head."""
        end = data.find(_END) + 4
        known = self._heads.get(data[:end])
        if known is None or len(data) != end + known.body_bytes:
            return None
        self.found += 1
        return known, data[end:]

    def keep(self, data: bytes, request: ParsedRequest) -> None:
        """Remember the head of a complete request, where `data` is all of it and nothing else.

        The parser must have stood before a head when `data` came: no byte of the request came earlier.
        """
        body_bytes = sum(map(len, request.body))
        end = data.find(_END) + 4
        if (
            end > HEAD_BYTES_MAX
            or len(data) != end + body_bytes
            or request.version != "1.1"
            or not (request.complete and request.keep_alive)
            or not _NOT_KEPT.isdisjoint(name for name, _ in request.headers)
        ):
            return
        if len(self._heads) >= self._length_max:
            if not self._length_max:
                return
            del self._heads[next(iter(self._heads))]
        self._heads[data[:end]] = KnownHead(request, body_bytes)
