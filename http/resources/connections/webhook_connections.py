"""The WebSocket connections of webhooks: from the request of a client to the end of the connection.

A client is told that its connection is accepted when the trigger of its beginning is on disk. Its messages are not
acknowledged, because WebSocket has no means to: one that is refused, or cannot be stored, closes the connection with a
code and a sentence.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.connections.webhooks.connections import (
    CONNECTION_ID_BYTES,
    GOING_AWAY,
    WebhookConnections,
)
from trunkline.actors.connections.webhooks.messages import OpenConnection, TakeClientMessage
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import DomainError, NotFound, Overloaded, TooManyRequests
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.upgraded_calls import accept, upgrade_needed
from trunkline.http.wire.websocket import ABNORMAL, WebSocket

_CODES: Final[dict[type[DomainError], int]] = {
    TooManyRequests: 1008,
    Overloaded: 1013,
    NotFound: GOING_AWAY,
}
_FAILED: Final = 1011
_RESTARTS: Final = 1012


class WebhookConnection:
    """One client of a webhook. `told` is what every run of the connection gets.

    What workflows send before the client was told that it is connected waits for that.
    """

    def __init__(self, system: System, ref: Ref, told: Doc, flow_version: str | None) -> None:
        self.ref = ref
        self.id = system.random_bytes(CONNECTION_ID_BYTES)
        self.reply_id = f"{ref.id.hex()}-{self.id.hex()}"
        self.told = told
        self.flow_version = flow_version
        self._system = system
        self._connections = system.component(WebhookConnections)
        self._socket: WebSocket | None = None
        self._waiting: list[tuple[bytes, bool]] = []
        self._waiting_bytes = 0
        self._ending: tuple[int, str] | None = None

    # For workflows.

    def send(self, message: bytes, *, text: bool) -> None:
        if self._socket is not None:
            self._socket.send(message, text=text)
            return
        self._waiting_bytes += len(message)
        if self._waiting_bytes > self._system.limits.websocket_buffer_bytes_max:
            self.close(_CODES[Overloaded], "More was sent than can wait for the connection to open.")
        else:
            self._waiting.append((message, text))

    def close(self, code: int, reason: str) -> None:
        if self._socket is None:
            self._ending = code, reason
        else:
            self._socket.close(code, reason)

    # For the connection.

    def opened(self, socket: WebSocket) -> None:
        self._socket = socket
        waiting, self._waiting = self._waiting, []
        for message, text in waiting:
            socket.send(message, text=text)
        if self._ending is not None:
            socket.close(*self._ending)

    def received(self, data: bytes, *, text: bool) -> None:
        """Take a message in the turn of the webhook, so that it is in the order of the connection."""
        message = TakeClientMessage(
            content=data,
            is_text=text,
            told=self.told,
            reply_id=self.reply_id,
            flow_version=self.flow_version,
        )
        try:
            self._system.check_load()
            pending = self._system.begin(self.ref, message)
        except DomainError as refusal:
            self._stored(refusal)
            return
        if pending is None:
            self.close(_CODES[Overloaded], "The webhook is busy; connect again in a second.")
        elif pending.group is not None:
            self._system.when_stored(pending, self._stored)

    def _stored(self, refusal: DomainError | None) -> None:
        if refusal is not None:
            self.close(_CODES.get(type(refusal), _FAILED), refusal.message)

    def received_all(self) -> None:
        """Each message was taken by itself."""

    def flushed(self) -> None:
        """Nothing waits for the client to read: one that does not is closed."""

    def drain(self) -> None:
        self.close(_RESTARTS, "The server is stopping; connect again in a moment.")

    def closed(self, code: int, reason: str) -> None:
        self._connections.ended(self, code, reason)


async def connect(call: Call, ref: Ref, url: str, headers: dict[str, str], query: dict[str, Any]) -> Response:
    """Accept the client of a webhook. Raises `DomainError` for one that is refused."""
    needed = upgrade_needed(call)
    if needed is not None:
        return needed
    system, request, offer = call.service.system, call.request, call.request.offer
    assert offer is not None
    told = {"headers": headers, "query": query}
    connection = WebhookConnection(system, ref, told, request.header(b"x-flow-version"))
    message = OpenConnection(
        method=request.method,
        url=f"ws{url.removeprefix('http')}",
        query=request.query,
        headers=request.headers,
        body=b"",
        client=request.address,
        told=told,
        flow_version=connection.flow_version,
        reply_id=connection.reply_id,
        connection=connection.id,
    )
    connections = system.component(WebhookConnections)
    connections.add(connection)
    try:
        await system.ask(ref, message)
    except DomainError:
        connections.remove(connection)
        raise
    except BaseException:  # the client has left, but the trigger may be on disk
        connection.closed(ABNORMAL, "")
        raise
    return accept(call, connection, next(iter(offer.protocols), None), system.limits.webhook_body_bytes_max)
