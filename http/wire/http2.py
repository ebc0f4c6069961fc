"""One HTTP/2 connection: the `h2` library on a transport, with the bounds of our HTTP/1.1 connections.

Owns the frames, the windows, the tasks of the requests, and when the connection ends. Does not own the socket
(`transport.py`), nor a single request and its response (`http2_exchange.py`).

What is bounded, beside what bounds every connection:

- Requests that are open at a time (`http2_streams_max`), those among them that were reset and whose task still runs.
- Answers that are made and wait to be sent (`http2_answers_max`): the others wait before they begin.
- The wait for a window: a response whose own window is closed for the write time-out is reset, and the connection ends
  where that of the connection is. As on a socket, a window that opens by a few bytes now and then is no progress.
- The time without a request, in which a client may keep its connection.

The file is long because requests, windows and the end of the connection act on the state of one library object.

A wrong request is answered, or reset, alone. Only what makes the rest of the bytes unreadable ends the connection, with
GOAWAY. Nothing of what a client has sent is logged.
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import suppress
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import trio
from hyperframe.frame import GoAwayFrame

from trunkline.http.wire.access_log import LogAccess
from trunkline.http.wire.asgi import Address, Application, log_unanswered, run_application
from trunkline.http.wire.headers import Headers
from trunkline.http.wire.http2_exchange import Http2Exchange, read_request
from trunkline.http.wire.refusal import Refuse
from trunkline.http.wire.request_parser import Bounds, Malformed
from trunkline.http.wire.timeouts import until
from trunkline.http.wire.transport import ClientGone, Transport

WINDOW_BYTES = 65_535
"""Bytes of a body that a client may send before the application has taken them: the window that HTTP/2 begins with."""
WINDOW_STEP_BYTES = 32_768
"""A response must get on by this much while its window is closed for the write time-out. Half of a usual window, as
clients open it again when they have read half of it."""
HEADER_BYTES_FACTOR = 4
"""A head over its bound is refused with 431; over so many times the bound it is not even unpacked."""

_CLOSED = (h2.exceptions.ProtocolError, KeyError)
"""What the library raises for a stream that the client, or the end of the connection, has closed meanwhile."""


class Http2Connection:
    """Serves one connection. `run` is its task; `expire` and `drain` are called from outside of it."""

    def __init__(
        self,
        transport: Transport,
        app: Application,
        bounds: Bounds,
        refuse: Refuse,
        client: Address,
        server: Address,
        *,
        scheme: str,
        first: bytes = b"",
        log_access: LogAccess | None = None,
        state: dict[str, Any] | None = None,
        draining: bool = False,
    ) -> None:
        """`first` are bytes that were received already. `state` is that of the lifespan."""
        self._transport = transport
        self._app = app
        self._bounds = bounds
        self._refuse = refuse
        self._client = client
        self._server = server
        self._scheme = scheme
        self._first = first
        self._log_access = log_access
        self._state = state
        self._draining = draining
        self._scope = trio.CancelScope()
        self._exchanges: dict[int, Http2Exchange] = {}
        self._answering: set[Http2Exchange] = set()
        """Requests whose answer is being made, or waits to be sent."""
        self._waiting: deque[tuple[Http2Exchange, Malformed | None]] = deque()
        """Requests that have not begun, in their order."""
        self._nursery: trio.Nursery | None = None
        self._sending = trio.Lock()
        self._windows_changed = trio.Event()
        self._window_deadline_s = math.inf
        self._step_left_bytes = 0
        self._bodies = 0
        """Responses of which a part is being sent."""
        self._last_id = 0
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None)
        )
        settings = h2.settings.SettingCodes
        head_bytes_max = bounds.header_bytes_max * HEADER_BYTES_FACTOR
        self._h2.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                settings.MAX_CONCURRENT_STREAMS: bounds.http2_streams_max,
                settings.MAX_HEADER_LIST_SIZE: head_bytes_max,
                settings.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
            },
        )
        self._h2.decoder.max_header_list_size = head_bytes_max
        transport.read_deadline_s = trio.current_time() + bounds.head_timeout_s

    # From outside of the task.

    def expire(self, now_s: float) -> bool:
        """End the connection if a deadline has passed."""
        transport = self._transport
        if now_s < min(transport.read_deadline_s, transport.write_deadline_s, self._window_deadline_s):
            return False
        if self._scope.cancel_called:
            return False
        self._scope.cancel()
        return True

    def idle_until_s(self, now_s: float) -> float | None:  # noqa: ARG002 - as of an `Occupant`
        """When this ends if no request comes; None while one is open."""
        if self._exchanges or self._transport.has_input():
            return None
        return self._transport.read_deadline_s

    def give_way(self) -> None:
        """End now for another connection."""
        self._scope.cancel()

    def drain(self) -> None:
        """The server is stopping: end now if no request is open, else with the last response."""
        self._draining = True
        if not self._exchanges and not self._transport.has_input():
            self._scope.cancel()
            return
        if self._nursery is not None:
            self._nursery.start_soon(self._say_goodbye)

    def over(self) -> None:
        """Drop what refers to this object, which would wait for the garbage collector otherwise."""
        self._exchanges.clear()

    # The task.

    async def run(self) -> None:
        """Answer requests until either side ends the connection."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                with suppress(ClientGone):
                    await self._communicate()
                for exchange in list(self._exchanges.values()):
                    exchange.leave()
                self._start_waiting()
                self._windows_changed.set()
            if self._transport.gone:
                return
            await self._transport.linger()
            return
        if not self._transport.has_unsent:
            self._transport.send_last(self._goaway())

    async def _communicate(self) -> None:
        """Receive and handle frames, until the client has left or one of them cannot be understood."""
        connection, transport = self._h2, self._transport
        connection.initiate_connection()
        # One window for all requests together: a body that is not read must not hold up the others.
        connection.increment_flow_control_window(WINDOW_BYTES * (self._bounds.http2_streams_max - 1))
        await self.flush()
        data, self._first = self._first or await transport.receive(), b""
        while data:
            try:
                events = connection.receive_data(data)
            except h2.exceptions.ProtocolError:
                await self.flush()  # a GOAWAY that says what is wrong
                return
            for event in events:
                if isinstance(event, h2.events.ConnectionTerminated):
                    return
                self._handle(event)
            await self.flush()
            data = await transport.receive()

    def _handle(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._begin(event)
        elif isinstance(event, h2.events.DataReceived):
            exchange = self._exchanges.get(event.stream_id)
            if (
                exchange is None
                or not event.data
                or not exchange.take(event.data, event.flow_controlled_length)
            ):
                self.acknowledge(event.stream_id, event.flow_controlled_length)
        elif isinstance(event, h2.events.StreamEnded):
            if (exchange := self._exchanges.get(event.stream_id)) is not None:
                exchange.end()
        elif isinstance(event, h2.events.StreamReset):
            if (exchange := self._exchanges.get(event.stream_id)) is not None:
                exchange.leave()
            self._wake_senders()
        elif isinstance(event, h2.events.WindowUpdated):
            self._wake_senders()
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            if not self._last_id:
                self._transport.read_deadline_s = trio.current_time() + self._bounds.idle_s
            self._wake_senders()

    def _begin(self, event: h2.events.RequestReceived) -> None:
        stream_id = event.stream_id
        assert self._nursery is not None
        if self._draining or len(self._exchanges) >= self._bounds.http2_streams_max:
            # Such a request can be sent again, on another connection or later.
            self._reset(stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        self._last_id = stream_id
        exchange = Http2Exchange(self, stream_id, self._bounds.body_timeout_s)
        failure = None
        try:
            read_request(exchange, event.headers, self._bounds)
        except Malformed as malformed:
            failure = malformed
        self._exchanges[stream_id] = exchange
        self._transport.read_deadline_s = math.inf
        self._waiting.append((exchange, failure))
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Begin the requests that wait, as many as may be answered at a time."""
        assert self._nursery is not None
        while self._waiting and len(self._answering) < self._bounds.http2_answers_max:
            exchange, failure = self._waiting.popleft()
            if exchange.gone:
                self._ended(exchange)
            else:
                self._answering.add(exchange)
                self._nursery.start_soon(self._answer, exchange, failure)

    def _ended(self, exchange: Http2Exchange) -> None:
        """Nothing more is done for a request."""
        del self._exchanges[exchange.stream_id]
        if self._exchanges:
            return
        self._transport.read_deadline_s = trio.current_time() + self._bounds.idle_s
        if self._draining:
            self._scope.cancel()

    # Requests.

    async def _answer(self, exchange: Http2Exchange, failure: Malformed | None) -> None:
        """The task of one request, from its head to the end of its response."""
        began_s = time.perf_counter()
        try:
            with exchange.scope:
                if failure is None:
                    await self._await_application(exchange)
                else:
                    await self._respond_instead(exchange, failure.status, failure.message)
            if exchange.timed_out and not exchange.started:
                await self._respond_instead(exchange, 408, "The body came too slowly.")
            await self._finish(exchange)
        except ClientGone:
            pass
        finally:
            self.answer_sent(exchange)
            if self._log_access is not None and exchange.started:
                self._log_access(exchange, self._client, time.perf_counter() - began_s)
            self._ended(exchange)

    async def _await_application(self, exchange: Http2Exchange) -> None:
        crashed = not await run_application(
            self._app, exchange, self._client, self._server, self._state, self._scheme
        )
        if not (exchange.gone or exchange.started):
            if not crashed:
                log_unanswered(exchange)
            await self._respond_instead(exchange, 500, "The server failed to answer; the fault is logged.")

    async def _respond_instead(self, exchange: Http2Exchange, status: int, message: str) -> None:
        """A response that the connection gives by itself."""
        headers, body = self._refuse(status, message)
        await exchange.send({"type": "http.response.start", "status": status, "headers": headers})
        await exchange.send({"type": "http.response.body", "body": body})

    async def _finish(self, exchange: Http2Exchange) -> None:
        """Close what is left of the request: nobody reads the rest of its body, and nobody sends more."""
        if exchange.gone or (exchange.finished and exchange.complete):
            return
        codes = h2.errors.ErrorCodes
        self._reset(exchange.stream_id, codes.NO_ERROR if exchange.finished else codes.INTERNAL_ERROR)
        await self.flush()

    def _reset(self, stream_id: int, code: h2.errors.ErrorCodes) -> None:
        """End one request at once."""
        try:
            self._h2.reset_stream(stream_id, code)
        except _CLOSED:
            return

    # For exchanges.

    def acknowledge(self, stream_id: int, size: int) -> None:
        """The application has taken so many bytes of a body: the client may send as many more."""
        try:
            self._h2.acknowledge_received_data(size, stream_id)
        except _CLOSED:
            return

    def answer_sent(self, exchange: Http2Exchange) -> None:
        """The first part of a response was sent, or never will be: another request may begin."""
        if exchange in self._answering:
            self._answering.discard(exchange)
            self._start_waiting()

    async def send_head(self, exchange: Http2Exchange, head: Headers, *, end: bool) -> None:
        """Send the head of a response. Raises ClientGone."""
        async with self._sending:
            try:
                self._h2.send_headers(exchange.stream_id, head, end_stream=end)
            except _CLOSED:
                raise self._left(exchange) from None
            await self._transport.send(self._h2.data_to_send())

    async def send_body(self, exchange: Http2Exchange, body: bytes, *, end: bool) -> None:
        """Send a part of a response as the windows open. Raises ClientGone."""
        if end and not body:
            async with self._sending:
                self._send_data(exchange, b"", end=True)
                await self._transport.send(self._h2.data_to_send())
            return
        self._bodies += 1
        try:
            await self._send_in_steps(exchange, memoryview(body), end=end)
        finally:
            self._bodies -= 1
            if not self._bodies:
                self._window_deadline_s = math.inf

    async def _send_in_steps(self, exchange: Http2Exchange, rest: memoryview, *, end: bool) -> None:
        step_left_bytes, own_wait_s = 0, 0.0
        while rest:
            if step_left_bytes <= 0:
                step_left_bytes, own_wait_s = WINDOW_STEP_BYTES, self._bounds.write_timeout_s
            async with self._sending:
                size = min(self._window(exchange), len(rest))
                if size > 0:
                    piece, rest = rest[:size], rest[size:]
                    self._send_data(exchange, bytes(piece), end=end and not rest)
                    await self._transport.send(self._h2.data_to_send())
            if size > 0:
                step_left_bytes -= size
                self._got_on(size)
            else:
                own_wait_s -= await self._wait_for_window(exchange, own_wait_s)

    def _window(self, exchange: Http2Exchange) -> int:
        """How many bytes of a response may be sent now. Raises ClientGone."""
        if exchange.gone:
            raise self._left(exchange)
        try:
            window = self._h2.local_flow_control_window(exchange.stream_id)
        except _CLOSED:
            raise self._left(exchange) from None
        return min(window, self._h2.max_outbound_frame_size, WINDOW_STEP_BYTES)

    def _send_data(self, exchange: Http2Exchange, data: bytes, *, end: bool) -> None:
        try:
            self._h2.send_data(exchange.stream_id, data, end_stream=end)
        except _CLOSED:
            raise self._left(exchange) from None

    async def _wait_for_window(self, exchange: Http2Exchange, left_s: float) -> float:
        """Wait until a window has changed. Returns the seconds for which the window of this response was closed.

        The response is reset when that is over `left_s`. Raises ClientGone.
        """
        changed = self._windows_changed
        if self._h2.outbound_flow_control_window <= 0:
            # All responses wait: the deadline is that of the connection.
            if self._window_deadline_s == math.inf:
                self._window_deadline_s = trio.current_time() + self._bounds.write_timeout_s
                self._step_left_bytes = WINDOW_STEP_BYTES
            await changed.wait()
            return 0.0
        began_s = trio.current_time()
        try:
            await until(began_s + left_s, changed.wait)
        except trio.TooSlowError:
            self._reset(exchange.stream_id, h2.errors.ErrorCodes.CANCEL)
            exchange.leave()
            await self.flush()
            raise self._left(exchange) from None
        return trio.current_time() - began_s

    def _got_on(self, size: int) -> None:
        """So many bytes of responses were sent."""
        self._step_left_bytes -= size
        if self._step_left_bytes <= 0:
            self._window_deadline_s = math.inf

    def _wake_senders(self) -> None:
        changed, self._windows_changed = self._windows_changed, trio.Event()
        changed.set()

    def _left(self, exchange: Http2Exchange) -> ClientGone:
        exchange.leave()
        return ClientGone("the client has left this request")

    async def flush(self) -> None:
        """Send what the library has to say. Raises ClientGone."""
        async with self._sending:
            data = self._h2.data_to_send()
            if data or self._transport.has_unsent:
                await self._transport.send(data)

    # The end.

    async def _say_goodbye(self) -> None:
        """Tell the client that this connection takes no more requests, and answer those that are open."""
        try:
            async with self._sending:
                await self._transport.send(self._goaway())
        except ClientGone:
            return

    def _goaway(self) -> bytes:
        """Written by hand: after a GOAWAY of its own, the library would send no more of the open responses."""
        return GoAwayFrame(last_stream_id=self._last_id).serialize()
