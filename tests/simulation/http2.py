"""Clients of HTTP/2: calls as streams of connections that are kept, some of which are reset before their answer.

Owns the streams, their windows, and which connection a call takes. Does not own the connections themselves
(`wires.py`), nor what is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import msgspec
import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.http1 import PATIENCE_S, Raw
from tests.simulation.model import Broken
from tests.simulation.network import Network
from tests.simulation.wires import CUTS, Lost, Wire

_KEPT_MAX: Final = 2
_WINDOWS_BYTES: Final = (50, 1_000, 65_535)
_TOO_SLOW: Final = 408
_CLOSED: Final = (h2.exceptions.ProtocolError, KeyError)
"""What the library raises for a stream, or a connection, that the server has closed meanwhile."""


class _Stream:
    """A request, and what has come of its response, until it is `over`."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_whole = False
        self.over = trio.Event()

    @property
    def raw(self) -> Raw | None:
        return Raw(self.status, self.headers, self.body) if self.is_whole else None


class Kept:
    """A connection with the streams on it."""

    def __init__(self, wire: Wire, chance: Random) -> None:
        self.wire = wire
        self.is_over = False
        self._streams: dict[int, _Stream] = {}
        self._sends = trio.Lock()
        self._rest = b""
        self._opened = trio.Event()
        """A window may have been opened."""
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        )
        self._h2.local_settings = h2.settings.Settings(
            client=True,
            initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: chance.choice(_WINDOWS_BYTES)},
        )
        self._h2.initiate_connection()

    async def ask(self, head: list[tuple[str, str]], body: bytes, stream: _Stream) -> None:
        """Send a request, as far as windows allow before its answer. Raises Lost."""
        try:
            number = self._h2.get_next_available_stream_id()
            self._h2.send_headers(number, head, end_stream=not body)
            self._streams[number] = stream
        except h2.exceptions.ProtocolError:
            raise Lost from None
        await self.flush()
        with suppress(*_CLOSED):  # it was answered, or reset, before it was whole
            while body and not stream.over.is_set():
                size = min(
                    len(body), self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size
                )
                if size:
                    self._h2.send_data(number, body[:size], end_stream=size == len(body))
                    body = body[size:]
                    await self.flush()
                else:
                    if self._opened.is_set():
                        self._opened = trio.Event()
                    await self._opened.wait()  # others may wait for it too

    async def flush(self) -> None:
        """Send what is to be sent. Who leaves meanwhile leaves the rest to those who come. Raises Lost."""
        self._rest += self._h2.data_to_send()
        async with self._sends:
            while self._rest:
                size = await self.wire.send_some(self._rest)
                self._rest = self._rest[size:]  # others may have added to it

    def reset(self, stream: _Stream) -> None:
        """Let the server know that nobody waits for a response any more, with what is sent next."""
        for number, each in self._streams.items():
            if each is stream:
                with suppress(*_CLOSED):
                    self._h2.reset_stream(number, h2.errors.ErrorCodes.CANCEL)

    async def read(self) -> None:
        """Give each stream what comes for it, until the connection is over."""
        try:
            await self.flush()
            while data := await self.wire.receive():
                for event in self._h2.receive_data(data):
                    self._take(event)
                await self.flush()
        except Lost:
            pass
        except h2.exceptions.ProtocolError as error:
            # After a GOAWAY streams go on (RFC 9113, 6.8), and the library takes the connection for closed.
            if not self.is_over and "ConnectionState.CLOSED" not in str(error):
                raise
        finally:
            self.end()

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ConnectionTerminated():
                if event.error_code:
                    raise Broken(f"the server has ended HTTP/2 with {event.error_code!r}")
                self.is_over = True  # for requests to come
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self._opened.set()
            case h2.events.ResponseReceived():
                stream = self._streams[event.stream_id]
                fields: Any = event.headers  # text, as the configuration says
                stream.headers = dict(fields)
                stream.status = int(stream.headers.pop(":status"))
            case h2.events.DataReceived():
                self._streams[event.stream_id].body += event.data
                if event.flow_controlled_length:
                    self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                self._streams[event.stream_id].is_whole = True
                self._finish(event.stream_id)
            case h2.events.StreamReset():
                self._check_reset(event)
                self._finish(event.stream_id)

    def _check_reset(self, event: h2.events.StreamReset) -> None:
        stream, wire = self._streams.get(event.stream_id), self.wire
        if event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM and wire.socket.is_of_ending_process:
            return
        if stream is not None and event.error_code and not (wire.has_stalled or stream.over.is_set()):
            raise Broken(f"the server has reset a request of HTTP/2 with {event.error_code!r}")

    def _finish(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            stream.over.set()
        self._opened.set()

    def end(self) -> None:
        self.is_over = True
        self.wire.close()
        for number in list(self._streams):
            self._finish(number)


class Clients2:
    """The connections of HTTP/2 clients in one life."""

    def __init__(self, network: Network, nursery: trio.Nursery, virtual: VirtualTime) -> None:
        self._network = network
        self._virtual = virtual
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
        kept, resets = self._one(chance), chance.random() < 0.7
        if chance.random() < 0.06:
            pipe = chance.choice((kept.wire.to_server, kept.wire.to_client))
            pipe.cut_after(chance.randint(1, 400), chance.choice(CUTS))
        stream, slept_s = _Stream(), self._virtual.slept_s
        try:
            with suppress(Lost), trio.move_on_after(PATIENCE_S) as waiting:
                await kept.ask(*_request(method, path, body, token, headers or {}), stream)
                await stream.over.wait()
            held_up = kept.wire.was_cut or kept.wire.has_stalled or self._virtual.slept_s > slept_s
            if waiting.cancelled_caught and not held_up:
                raise Broken(f"{method} {path}: no answer came over HTTP/2 within {PATIENCE_S:.0f} seconds")
        finally:
            if not stream.over.is_set():
                self._leave(kept, stream, resets=resets)
        raw = stream.raw
        return None if raw is None or raw.status == _TOO_SLOW else raw

    def _leave(self, kept: Kept, stream: _Stream, *, resets: bool) -> None:
        """Nobody waits for a response any more."""
        if resets and not kept.is_over:
            self._network.reached["a request of HTTP/2 was reset"] += 1
            kept.reset(stream)
            self._nursery.start_soon(self._flush, kept)
        else:
            kept.wire.abort()
            kept.end()

    async def _flush(self, kept: Kept) -> None:
        with suppress(Lost):
            await kept.flush()

    def _one(self, chance: Random) -> Kept:
        self._kept = [each for each in self._kept if not each.is_over]
        if len(self._kept) == _KEPT_MAX or (self._kept and chance.random() < 0.8):
            return chance.choice(self._kept)
        kept = Kept(self._network.http.connect(), chance)
        self._kept.append(kept)
        self._nursery.start_soon(kept.read)
        return kept


def _request(
    method: str, path: str, body: Any, token: str, headers: Mapping[str, str]
) -> tuple[list[tuple[str, str]], bytes]:
    head = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "trunkline")]
    head += [(name.lower(), value) for name, value in headers.items()]
    if token:
        head.append(("authorization", f"Bearer {token}"))
    if body is None:
        return head, b""
    if isinstance(body, bytes):
        return head, body
    return [*head, ("content-type", "application/json")], msgspec.json.encode(body)
