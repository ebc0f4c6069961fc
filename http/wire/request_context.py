"""What is known of the request that is being handled: its id, and who sent it.

Owns the id of a request and the way by which log lines and the access log learn it. An `Exchange` is the context of a
request on our own connections; `StockRequest` is that of a request on Hypercorn's protocols.

The id is the client's `X-Request-Id` if that is short and has only harmless characters, so that it can be followed
through several services; else a new one. Responses name it in the same header; only a success of the fast path does
so not, if the client gave no id and nothing was logged about the request.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar
from itertools import count
from typing import Any, Protocol

REQUEST_ID = b"x-request-id"

_ID = re.compile(rb"[A-Za-z0-9._:/+=@~-]{1,128}")
_LINE = b"%b: %b-%%x\r\n" % (REQUEST_ID, secrets.token_hex(6).encode())

new_id_lines = map(_LINE.__mod__, count(1))
"""The header lines of new ids: each `next` gives one that no other request of this process has, nor, as far as can be
expected, one of another process."""


class Work(Protocol):
    """What a request is: its operation, and the kind and the id of who sent it."""

    @property
    def name(self) -> str: ...

    @property
    def bearer(self) -> str | None: ...


class RequestContext(Protocol):
    """The request that is being handled."""

    work: Work | None
    """What it is and who sent it; None if it is not a call of an operation."""

    @property
    def request_id(self) -> bytes:
        """Its id."""


current_request: ContextVar[RequestContext | None] = ContextVar("current_request", default=None)
"""The request that a task handles."""


class Beginning:
    """The request that a callback begins. It never waits, so there is at most one; a context variable costs more."""

    __slots__ = ("request",)

    def __init__(self) -> None:
        self.request: RequestContext | None = None


beginning = Beginning()


def given_id_line(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The header line of the id that a client gives its request; None if it gives none, or one that cannot be used."""
    for name, value in headers:
        if name == REQUEST_ID:
            return line_of_id(value) if _ID.fullmatch(value) else None
    return None


def line_of_id(id: bytes) -> bytes:
    """The header line of an id."""
    return b"%b: %b\r\n" % (REQUEST_ID, id)


def id_of_line(line: bytes) -> bytes:
    """The id in a header line."""
    return line[len(REQUEST_ID) + 2 : -2]


def note_work(work: Work) -> None:
    """Say for the access log which operation the request is, and who sent it."""
    request = current_request.get()
    if request is not None:
        request.work = work


def add_request_id(_logger: Any, _level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: a line that is logged while a request is handled gets the id of the request."""
    request = beginning.request or current_request.get()
    if request is not None:
        event.setdefault("request_id", request.request_id.decode("ascii"))
    return event
