"""The bytes of a response head: status line, header fields and the fields that only the connection knows.

Owns how a head is written and what may stand in it. Does not own how the body is framed (`exchange.py`), nor
sending.

Why so much is remembered: an application answers with the same few fields again and again, and checking them
costs more than everything else here.
"""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from trunkline.http.wire.headers import Fields, Headers
from trunkline.http.wire.request_context import line_of_id, new_id_lines

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode("ascii")
    for status in HTTPStatus
    if status >= 200
}
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_WRITTEN_BY_CONNECTION = frozenset({b"content-length: ", b"connection: ", b"transfer-encoding: ", b"date: "})
"""Fields of which only the connection knows the truth; what an application says of them is not copied."""

_prefixes: dict[bytes, bytes] = {}
_PREFIXES_LENGTH_MAX = 256
"""Names of response fields that are remembered as checked; an application has a few dozen."""

_cached_date = (0, b"")


def field_lines(headers: Fields) -> tuple[bytes, bytes | None, bool]:
    """The lines of an application's header fields, the length that it announces, and whether it closes.

    The length is that of its Content-Length field, None where it gives none. Raises ValueError for fields that
    would break the head.
    """
    fields: list[bytes] = []
    length, closes = None, False
    for name, value in headers:
        prefix = _prefixes.get(name) or _prefix(name)
        if prefix not in _WRITTEN_BY_CONNECTION:
            fields += (prefix, value, b"\r\n")
        elif prefix == b"content-length: ":
            length = value
        elif prefix == b"connection: " and b"close" in value.lower():
            closes = True
    lines = b"".join(fields)
    if lines.count(b"\n") * 3 != len(fields) or lines.count(b"\r") * 3 != len(fields) or b"\0" in lines:
        raise ValueError("a header field of a response contains a line break or NUL")
    return lines, length, closes


cached_field_lines = lru_cache(4096)(field_lines)
"""The same, remembered: for fields that are a tuple, as only that can be looked up."""


def _prefix(name: bytes) -> bytes:
    """A name as it stands before a value. Raises ValueError where it is not a valid name."""
    if not _NAME.fullmatch(name):
        raise ValueError("a header field of a response has an invalid name")
    prefix = name.lower() + b": "
    if len(_prefixes) < _PREFIXES_LENGTH_MAX:
        _prefixes[bytes(name)] = prefix
    return prefix


def status_line(status: int) -> bytes:
    """The first line of a response. Raises ValueError where no response has such a status."""
    line = _STATUS_LINES.get(status)
    if line is not None:
        return line
    if not 200 <= status <= 999:
        raise ValueError(f"{status} is not the status of a response")
    return b"HTTP/1.1 %d \r\n" % status


def date_line() -> bytes:
    """The Date field and the empty line that ends the head; formatted once a second."""
    global _cached_date
    second = int(time.time())
    if _cached_date[0] != second:
        _cached_date = (second, b"date: " + formatdate(second, usegmt=True).encode("ascii") + b"\r\n\r\n")
    return _cached_date[1]


def final_response(
    status: int, headers: Headers, body: bytes, *, bodiless: bool, request_id: bytes | None = None
) -> bytes:
    """A response that the server gives without its application, and after which the connection ends.

    Without `request_id` the response gets a new one. `bodiless` leaves the body out: the response to HEAD announces
    its length all the same.
    """
    id_line = next(new_id_lines) if request_id is None else line_of_id(request_id)
    lines = b"".join((*(b"%b: %b\r\n" % header for header in headers), id_line))
    framing = b"content-length: %d\r\nconnection: close\r\n" % len(body)
    return b"".join((status_line(status), lines, framing, date_line(), b"" if bodiless else body))
