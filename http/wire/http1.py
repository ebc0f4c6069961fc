"""One HTTP/1.1 connection: receive, parse, answer, send, until either side ends it.

Owns the phase of the connection (`phase.py`), its current request, and when its time is over. Does not own the socket
(`transport.py`), what a request is (`request_parser.py`), how a response is framed (`exchange.py`), nor anything of
the application.

Why it is fast: a request has no task, timer, channel or event object of its own. Time-outs are two numbers for each
connection, which one task looks at for all of them. There are two ways to a response:

- The fast path (`fast_path.py`): a callback reads the request as soon as the socket is readable and begins it, another
  one sends the response when it is there. The connection's task sleeps all the time.
- ASGI: the task awaits the application.

What the fast path does not take, and what a callback cannot do because it would have to wait, is left to the task.

The module is long because both ways change the one phase.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import trio

from trunkline.http.wire.access_log import LogAccess
from trunkline.http.wire.asgi import Address, Application, log_crash, log_unanswered, run_application
from trunkline.http.wire.byte_session import GoesOn
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.exchange_channel import ExchangeChannel
from trunkline.http.wire.fast_path import FastPath
from trunkline.http.wire.headers import Fields
from trunkline.http.wire.phase import (
    AWAITED,
    CLOSED,
    FLUSHING,
    IDLE,
    LINGERING,
    READING,
    TAKEN,
    UPGRADED,
    Phase,
)
from trunkline.http.wire.places import LEAST_S
from trunkline.http.wire.refusal import Refuse
from trunkline.http.wire.request_context import beginning, current_request
from trunkline.http.wire.request_heads import RequestHeads
from trunkline.http.wire.request_parser import Bounds, Malformed
from trunkline.http.wire.response_head import final_response
from trunkline.http.wire.transport import ClientGone, Transport
from trunkline.http.wire.websocket import WebSocket

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What HTTP/2 begins with."""


Following = bytes | WebSocket | GoesOn
"""What a connection goes on as; bytes are the beginning of HTTP/2, none the end."""


class Http1Connection:
    """Serves one connection. `run` is its task; `expire` and `drain` are called from outside of it."""

    __slots__ = (
        "_app",
        "_began_s",
        "_bounds",
        "_channel",
        "_client",
        "_exchange",
        "_fast_path",
        "_http2",
        "_log_access",
        "_parser",
        "_phase",
        "_refuse",
        "_request_heads",
        "_scheme",
        "_scope",
        "_server",
        "_state",
        "_transport",
    )

    def __init__(
        self,
        transport: Transport,
        app: Application,
        bounds: Bounds,
        refuse: Refuse,
        request_heads: RequestHeads,
        client: Address,
        server: Address,
        *,
        fast_path: FastPath | None,
        scheme: str = "http",
        http2: bool = False,
        log_access: LogAccess | None = None,
        state: dict[str, Any] | None = None,
        draining: bool = False,
    ) -> None:
        """`fast_path` is asked before `app` where it is given. `state` is that of the lifespan.

        With `http2`, a client may begin with HTTP/2 without having asked for it.
        """
        self._transport = transport
        self._app = app
        self._fast_path = fast_path
        self._bounds = bounds
        self._refuse = refuse
        self._request_heads = request_heads
        self._scheme = scheme
        self._http2 = http2
        self._client = client
        self._server = server
        self._log_access = log_access
        self._state = state
        self._scope = trio.CancelScope()
        self._phase: Phase = IDLE
        self._exchange: Exchange | None = None
        self._began_s = 0.0
        self._channel = ExchangeChannel(transport, bounds, request_heads, draining=draining)
        self._parser = self._channel.parser
        transport.read_deadline_s = trio.current_time() + bounds.head_timeout_s

    def _enter(self, phase: Phase, exchange: Exchange | None = None) -> None:
        """Change the phase; the only place that does. `exchange` is given where the phase has a request."""
        assert phase.bit & self._phase.next_bits, f"{phase} after {self._phase}"
        assert (exchange is not None) is phase.has_request
        self._phase = phase
        self._exchange = exchange

    # From outside of the task.

    def expire(self, now_s: float) -> bool:
        """End the connection if a deadline has passed, with 408 where a request did not come in time."""
        transport = self._transport
        if now_s < transport.read_deadline_s and now_s < transport.write_deadline_s:
            return False
        if self._scope.cancel_called:
            return False  # an application may take its time to end
        self._scope.cancel()
        return True

    def idle_until_s(self, now_s: float) -> float | None:
        """When this ends if no request comes. None while one is under way; a head that has just begun is one."""
        transport = self._transport
        if self._phase is READING:
            slow_at_s = transport.read_deadline_s - self._bounds.head_timeout_s + LEAST_S
            if self._parser.requests or now_s < slow_at_s:
                return None
        elif self._phase is not IDLE:
            return None
        return None if transport.has_input() else transport.read_deadline_s

    def give_way(self) -> None:
        """End now for another connection."""
        self._scope.cancel()

    def drain(self) -> None:
        """The server is stopping: end now if no request has come, else with the next response."""
        self._channel.draining = True
        if self._phase is IDLE and not self._transport.has_input():
            self._scope.cancel()

    def over(self) -> None:
        """Drop what refers to this object, which would wait for the garbage collector otherwise."""
        self._enter(CLOSED)
        self._channel.close()

    # The task.

    async def run(self) -> Following:
        """Answer requests until either side ends the connection, or another protocol has to continue.

        Returns what was received where HTTP/2 has to continue with it, the WebSocket where that was accepted, the
        session of bytes where one goes on with the connection, else b"".
        """
        parser, transport = self._parser, self._transport
        try:
            with self._scope:
                # Each turn does one thing that the state asks for; what a callback changed is seen in the next.
                if preface := await self._receive_first():
                    return preface
                while (phase := self._phase) is not CLOSED:
                    if phase is IDLE or phase is TAKEN:
                        await transport.wait(self._on_readable)
                    elif phase is AWAITED:
                        if (following := await self._await_application()) is not None:
                            return following
                    elif phase is FLUSHING:
                        await self._flush()
                    elif phase is LINGERING:
                        await transport.linger()
                        return b""
                    elif parser.requests:
                        self._begin()
                    elif parser.failure is not None:
                        await self._send_refusal(parser.failure.status, parser.failure.message)
                        self._enter(LINGERING)
                    elif self._channel.backlog:
                        self._channel.parse_backlog()
                    else:
                        await transport.wait(self._on_readable)
        except ClientGone:
            return b""
        if self._scope.cancelled_caught:
            transport.send_last(self._timeout_response())
        return b""

    async def _receive_first(self) -> bytes:
        """Parse the first bytes of the connection. Returns them if they are the beginning of HTTP/2, else b""."""
        data = b""
        while len(data) < len(PREFACE) and PREFACE.startswith(data):
            received = await self._transport.receive()
            if not received:
                self._enter(CLOSED)
                return b""
            if not data:
                self._head_began()
            data += received
        if not data.startswith(PREFACE):
            self._parser.feed(data)
        elif self._http2:
            return data
        else:
            self._parser.failure = Malformed(
                505, "HTTP/2 is only spoken over TLS, where the handshake chooses it; use HTTP/1.1 here."
            )
        return b""

    def _head_began(self) -> None:
        """The first bytes of a head have come: from now on it has to be complete in time."""
        self._enter(READING)
        self._transport.read_deadline_s = trio.current_time() + self._bounds.head_timeout_s

    def _on_readable(self) -> bool:
        """Receive and parse, and begin a request that needs no task. True where the task may keep sleeping.

        That is nearly every request of a busy device, and waking a task for it costs as much as parsing it.
        """
        phase, parser = self._phase, self._parser
        if phase is not IDLE:
            if phase is TAKEN:
                if self._channel.has_read_ahead():
                    return True  # one receive ahead is enough; `_end_response` asks for another
            elif phase is not READING or parser.requests or parser.failure is not None:
                return False
            elif self._channel.backlog:
                return False  # it has come before what the socket holds, and the task parses it
        data = self._transport.receive_nowait()
        if data is None:
            return True
        if phase is TAKEN:
            parser.feed(data)
            return True  # also where the input has ended: the client may still read the response
        if not data:
            self._enter(CLOSED)
            return False
        exchange = parser.feed(data)
        if exchange is None:
            if phase is IDLE:
                self._head_began()
            return not parser.requests and parser.failure is None
        self._begin()
        if self._phase is not TAKEN and self._phase is not IDLE:
            return False  # the task has something to do, and may be the caller, whom `wake` does not reach
        if phase is IDLE and exchange.known is None:
            self._request_heads.keep(data, exchange)
        return True

    def _begin(self) -> None:
        """Begin the first request that waits: on the fast path, or else in the task, which awaits the application."""
        exchange = self._parser.requests.popleft()
        self._transport.read_deadline_s = math.inf
        if self._log_access is not None:
            self._began_s = time.perf_counter()
        fast_path = self._fast_path
        if fast_path is not None and exchange.complete and exchange.keep_alive and not self._channel.draining:
            self._enter(TAKEN, exchange)
            self._offer(fast_path, exchange, self._begin_again)
        else:
            self._enter(AWAITED, exchange)

    def _offer(self, fast_path: FastPath, exchange: Exchange, again: Callable[[], None] | None) -> bool:
        """Offer a request that was taken to the fast path. False if it declines: then the task has to go on."""
        beginning.request = exchange
        try:
            if fast_path.begin(exchange, self._respond, again):
                return True
        except Exception as bug:  # noqa: BLE001 - this connection ends, the others never notice
            log_crash(exchange, bug)
            self._close_silently()
            return True
        finally:
            beginning.request = None
        self._enter(AWAITED, exchange)
        return False

    def _begin_again(self) -> None:
        """Begin a request that the fast path had put off."""
        if self._phase is not TAKEN:
            return  # the connection has ended since
        assert self._exchange is not None
        assert self._fast_path is not None
        if not self._offer(self._fast_path, self._exchange, None):
            self._transport.wake()

    # The end of a response.

    def _end_response(self, *, keep_alive: bool) -> None:
        """All of a response was sent: from now on the next request is waited for, or the end of the connection."""
        transport = self._transport
        if not keep_alive:
            self._enter(LINGERING)
            transport.wake()
        elif self._channel.has_read_ahead():
            self._enter(READING)
            transport.read_deadline_s = trio.current_time() + self._bounds.head_timeout_s
            transport.mark_readable()
            transport.wake()
        elif transport.input_ended:
            self._close_silently()
        else:
            self._enter(IDLE)
            transport.read_deadline_s = trio.current_time() + self._bounds.idle_s

    def _close_silently(self) -> None:
        """End the connection, to which nothing more is to be sent."""
        self._enter(CLOSED)
        self._transport.wake()

    # Responses of the fast path.

    def _respond(self, status: int, headers: Fields, body: bytes) -> None:
        """Send a response now. What cannot be sent at once is left to the task."""
        exchange, transport = self._exchange, self._transport
        if self._phase is not TAKEN:
            return  # the connection has ended since
        assert exchange is not None
        try:
            # An id costs more than a hundredth of a state: a success that nothing was logged about needs none.
            with_id = status >= 400 or self._log_access is not None
            if transport.send_nowait(exchange.whole_response(status, headers, body, with_id=with_id)):
                self._end_response(keep_alive=exchange.keep_alive)
            else:
                self._enter(FLUSHING, exchange)
                transport.wake()
        except ClientGone:
            self._close_silently()
        except ValueError as bug:
            log_crash(exchange, bug)
            self._close_silently()
        if self._log_access is not None:
            self._log_access(exchange, self._client, time.perf_counter() - self._began_s)

    async def _flush(self) -> None:
        """Send the rest of a response of the fast path."""
        await self._transport.flush()
        assert self._exchange is not None
        self._end_response(keep_alive=self._exchange.keep_alive)

    # Responses of the application.

    async def _await_application(self) -> WebSocket | GoesOn | None:
        """Let the application answer the current request. Returns what it has the connection go on as, if it has."""
        exchange, transport, began_s = self._exchange, self._transport, self._began_s
        assert exchange is not None
        self._channel.begin_body()
        crashed = not await run_application(
            self._app, exchange, self._client, self._server, self._state, self._scheme
        )
        if exchange.offer is not None and not crashed:
            if exchange.offer.accepted is not None:
                current_request.set(None)
                return await self._upgrade(exchange)
            if exchange.offer.pass_on is not None:
                current_request.set(None)
                self._enter(UPGRADED)
                return exchange.offer.pass_on(self._parser.behind_offer + self._channel.backlog)
        left = transport.gone or (transport.input_ended and not exchange.finished)
        if not (left or exchange.started):
            await self._respond_instead(exchange, crashed=crashed)
        if self._log_access is not None:
            self._log_access(exchange, self._client, time.perf_counter() - began_s)
        current_request.set(None)
        if left or transport.gone:
            self._enter(CLOSED)
        else:
            whole = exchange.finished and exchange.complete
            self._end_response(keep_alive=whole and exchange.keep_alive and not self._channel.draining)
        return None

    async def _upgrade(self, exchange: Exchange) -> WebSocket:
        """Accept the offer of the request; from here on the connection is that of the WebSocket."""
        channel = self._channel
        assert exchange.offer is not None
        accepted = exchange.offer.accepted
        assert accepted is not None
        response = exchange.switching_protocols()
        # The session may know the request: the two would wait for the garbage collector.
        exchange.offer.accepted = None
        await accepted.announce(self._transport, response)
        if self._log_access is not None:
            self._log_access(exchange, self._client, time.perf_counter() - self._began_s)
        self._enter(UPGRADED)
        first = self._parser.behind_offer + channel.backlog
        return WebSocket(self._transport, accepted, first, draining=channel.draining)

    async def _respond_instead(self, exchange: Exchange, *, crashed: bool) -> None:
        """The response where the application gave none: the body is malformed, or the application failed."""
        failure = None if exchange.complete else self._parser.failure
        if failure is not None:
            exchange.status, message = failure.status, failure.message
        else:
            exchange.status, message = 500, "The server failed to answer; the fault is logged."
            if not crashed:
                log_unanswered(exchange)
        exchange.started, exchange.keep_alive = True, False
        try:
            await self._send_refusal(
                exchange.status, message, bodiless=exchange.method == "HEAD", request_id=exchange.request_id
            )
        except ClientGone:
            return

    # Responses of the connection itself.

    def _refusal(
        self, status: int, message: str, *, bodiless: bool = False, request_id: bytes | None = None
    ) -> bytes:
        headers, body = self._refuse(status, message)
        return final_response(status, headers, body, bodiless=bodiless, request_id=request_id)

    async def _send_refusal(
        self, status: int, message: str, *, bodiless: bool = False, request_id: bytes | None = None
    ) -> None:
        await self._transport.send(self._refusal(status, message, bodiless=bodiless, request_id=request_id))

    def _timeout_response(self) -> bytes:
        """The response to a request that did not come in time; b"" where none can be sent."""
        exchange = self._exchange
        if self._transport.has_unsent:
            return b""  # it would be taken for the rest of that
        if self._phase is READING:
            return self._refusal(408, "The head came too slowly.")
        if self._phase is AWAITED and exchange is not None and not exchange.started:
            return self._refusal(408, "The body came too slowly.", request_id=exchange.request_id)
        return b""
