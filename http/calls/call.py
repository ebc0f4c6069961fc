"""One call on its way through the edge: what came in, what was found out about it, and what goes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from trunkline.actors.applications.messages import Creator
from trunkline.actors.authority import Principal, reach_of
from trunkline.actors.messages.reads import Reach

if TYPE_CHECKING:
    from trunkline.http.calls.dispatch import Dispatcher
    from trunkline.http.calls.route import Route

Headers = list[tuple[bytes, bytes]]


class Request:
    """A request in plain values. Header names are lower case; of a field given twice the last one counts."""

    __slots__ = ("address", "body", "headers", "method", "path", "query")

    def __init__(
        self, method: str, path: str, query: bytes, headers: Mapping[bytes, bytes], body: bytes, address: str
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.address = address

    def header(self, name: bytes) -> str | None:
        """The value of a field as text, None where it was not sent."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin1")


def address_of(client: tuple[Any, ...] | None, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """Where a request comes from: its connection, or what a `trusted` proxy says in X-Forwarded-For."""
    if trusted and headers.get(b"x-forwarded-for"):
        # The last entry is the one that the proxy added; those before it are the client's own words.
        return headers[b"x-forwarded-for"].rpartition(b",")[2].decode("latin1").strip()
    return str(client[0]) if client else ""


class Stream(Protocol):
    """A body that is sent piece by piece. The door calls `close` when the client or the stream is gone."""

    async def next(self) -> bytes | None:
        """The next piece; None at the end."""
        ...

    def close(self) -> None:
        """Give everything back. Idempotent, never waits."""
        ...


class Response:
    """Status, headers, and either a whole body or a stream."""

    __slots__ = ("body", "headers", "status", "stream")

    def __init__(
        self, status: int, headers: Headers, body: bytes = b"", stream: Stream | None = None
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.stream = stream

    @property
    def parts(self) -> tuple[int, Headers, bytes]:
        """Status, headers and body of what is no stream."""
        return self.status, self.headers, self.body


class Call:
    """A matched, authenticated, parsed call. Messages take their fields from it by name.

    Ids are raw bytes. `application`, `device`, `record`, `table`, `row` and `name` come from the path;
    `user` is the user of the token; `parent` is the owner of plain records: the application of the path, else the user.
    """

    __slots__ = (
        "_principal",
        "address",
        "application",
        "body",
        "device",
        "dispatcher",
        "if_match",
        "links",
        "name",
        "now_ms",
        "query",
        "record",
        "request",
        "route",
        "row",
        "table",
    )

    def __init__(self, dispatcher: Dispatcher, route: Route, request: Request, now_ms: int) -> None:
        self.dispatcher = dispatcher
        self.route = route
        self.request = request
        self.address = request.address
        self.now_ms = now_ms
        self.if_match = request.header(b"if-match")
        self.links = True
        self._principal: Principal | None = None
        self.application: bytes | None = None
        self.device: bytes | None = None
        self.record: bytes | None = None
        self.table: bytes | None = None
        self.row: bytes | None = None
        self.name = ""
        self.query: Any = None
        self.body: Any = None

    @property
    def principal(self) -> Principal:
        """Who calls. Only routes without access control have none."""
        assert self._principal is not None
        return self._principal

    @principal.setter
    def principal(self, principal: Principal) -> None:
        self._principal = principal

    @property
    def id(self) -> bytes | None:
        """The addressed plain record, as its messages call it."""
        return self.record

    @property
    def user(self) -> bytes | None:
        """The user of the token."""
        return self.principal.user_id

    @property
    def reach(self) -> Reach | None:
        """Which devices of the application a list may show to this token; None for all."""
        return reach_of(self.principal)

    @property
    def time_series_bytes_max(self) -> int:
        """How large the answer of a time series query may be."""
        return self.dispatcher.system.limits.time_series_bytes_max

    @property
    def rows_bytes_max(self) -> int:
        """How large a page of rows may be."""
        return self.dispatcher.system.limits.rows_bytes_max

    @property
    def rows_limit_max(self) -> int:
        """How many rows one call may ask for or delete."""
        return self.dispatcher.system.limits.rows_limit_max

    @property
    def sorted_rows_max(self) -> int:
        """How many rows a sort without an index may hold."""
        return self.dispatcher.system.limits.sorted_rows_max

    @property
    def owner_id(self) -> bytes | None:
        """Who owns an application that this call creates."""
        return self.principal.user_id

    @property
    def parent(self) -> bytes | None:
        """The owner of the plain records that this call is about."""
        return self.application if self.application is not None else self.principal.user_id

    @property
    def by(self) -> Creator:
        """Who is written into a record."""
        return self.principal.creator

    @property
    def kind(self) -> str | None:
        """The kind of plain record that this call is about."""
        return self.route.kind
