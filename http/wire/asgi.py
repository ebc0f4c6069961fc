"""The application as an ASGI callable: the scope of a request, its client, and what is logged when a call fails.

Owns the scope of a request. Does not own `receive` and `send`, which are methods of `Exchange` and `Http2Exchange`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import unquote

import structlog

from trunkline.http.wire.headers import Fields, Headers
from trunkline.http.wire.request_context import RequestContext, current_request
from trunkline.http.wire.transport import ClientGone
from trunkline.http.wire.websocket import Offer
from trunkline.limits.networks import forwarded_address

Application = Callable[..., Awaitable[None]]
Address = tuple[str, int] | None
"""Host and port of one end of a connection; None for a Unix socket."""

EXTENSIONS: dict[str, Any] = {"trunkline.deadlines": {}}
"""What the scope says of this connection: here, that a body has to come in time. Hypercorn has no such bound, so an
application that waits for a body there has to bound it itself."""

CLIENT_CERTIFICATE = "trunkline.client_certificate"
MACHINE = "trunkline.machine"
"""The name in the state of a request under which the verified certificate of the client is, in DER, if it sent one."""

WEBSOCKET = "trunkline.websocket"
"""The extension of the scope of a GET that asks for WebSocket: its value is the `Offer`. An application that has
accepted it returns without a response. There is no scope of the type `websocket`: that would need a task for each
connection."""

_VERSIONS = {"version": "3.0", "spec_version": "2.4"}
_log = structlog.get_logger("trunkline.http")


class Message(Protocol):
    """A request in any version of HTTP."""

    @property
    def version(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def offer(self) -> Offer | None: ...

    method: str
    target: bytes
    headers: Headers


class Exchange(Message, RequestContext, Protocol):
    """A request that an application answers."""

    async def receive(self) -> dict[str, Any]: ...
    async def send(self, message: dict[str, Any]) -> None: ...


def http_scope(
    exchange: Message, client: Address, server: Address, state: dict[str, Any] | None, scheme: str = "http"
) -> dict[str, Any]:
    """The scope of a request. `state` is what the lifespan has put there; each request gets a copy."""
    raw_path, _, query = exchange.target.partition(b"?")
    path = raw_path.decode("ascii")
    scope = {
        "type": "http",
        "asgi": _VERSIONS,
        "http_version": exchange.version,
        "method": exchange.method,
        "scheme": scheme,
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": exchange.headers,
        "client": client,
        "server": server,
        "extensions": EXTENSIONS if exchange.offer is None else {**EXTENSIONS, WEBSOCKET: exchange.offer},
    }
    if state:
        scope["state"] = state.copy()
    return scope


async def run_application(
    app: Application,
    exchange: Exchange,
    client: Address,
    server: Address,
    state: dict[str, Any] | None,
    scheme: str,
) -> bool:
    """Let the application answer a request. False if it failed, which is logged: other requests never notice."""
    current_request.set(exchange)
    try:
        await app(http_scope(exchange, client, server, state, scheme), exchange.receive, exchange.send)
    except Exception as bug:  # noqa: BLE001
        log_crash(exchange, bug)
        return False
    return True


def header_of(headers: Fields, name: bytes) -> bytes | None:
    """The value of the first field with a name, in lower case; None if there is none."""
    return next((value for each, value in headers if each == name), None)


def announced_bytes(headers: Fields) -> int:
    """How long a request says that its body is; 0 if it does not say."""
    found = header_of(headers, b"content-length") or b""
    return int(found) if found.isdigit() else 0


def client_address(client: tuple[Any, ...] | None, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """The address of the client: that of the connection, or from X-Forwarded-For if the proxy is `trusted`."""
    if trusted and b"x-forwarded-for" in headers:
        # The proxy added the last entry; those before it were sent by the client.
        entry = headers[b"x-forwarded-for"].rpartition(b",")[2].decode("latin1")
        if address := forwarded_address(entry):
            return address
    return str(client[0]) if client else ""


def log_unanswered(exchange: Message) -> None:
    """Log that an application has returned without a response."""
    _log.error("request not answered", method=exchange.method, path=exchange.path)


def log_crash(exchange: Message, bug: Exception) -> None:
    """Log what an application raised, unless it is only that the client has left."""
    rest: BaseException | None = bug
    if isinstance(bug, BaseExceptionGroup):
        _, rest = bug.split(ClientGone)
    elif isinstance(bug, ClientGone):
        rest = None
    if rest is not None:
        _log.error("request failed", method=exchange.method, path=exchange.path, exc_info=rest)
