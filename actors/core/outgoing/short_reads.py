"""The connections of outgoing calls: until the head of an answer has come, a little is read at a time.

In front of it a server may send any number of answers that only announce it, such as `100 Continue`. The library takes
all of a read in one turn of the event loop, thousands of them, and everybody else would wait.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

import httpcore
import httpx

_READ_BYTES: Final = 512
"""Twenty answers without a field, of 150 us each."""


class Transport(httpx.AsyncHTTPTransport):
    """Sends one request. `reads_body` is set when the head of the answer has come."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.reads_body = False
        self._pool = httpcore.AsyncConnectionPool(ssl_context=context, network_backend=_Network(self))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.reads_body = False
        response = await super().handle_async_request(request)
        self.reads_body = True
        return response


class _Network(httpcore.TrioBackend):
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def connect_tcp(self, *given: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await super().connect_tcp(*given, **named), self._transport)


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, stream: httpcore.AsyncNetworkStream, transport: Transport) -> None:
        self._stream = stream
        self._transport = transport
        self.write = stream.write  # type: ignore[method-assign]
        self.aclose = stream.aclose  # type: ignore[method-assign]
        self.get_extra_info = stream.get_extra_info  # type: ignore[method-assign]

    async def read(self, max_bytes: int, *given: Any, **named: Any) -> bytes:
        most = max_bytes if self._transport.reads_body else min(max_bytes, _READ_BYTES)
        return await self._stream.read(most, *given, **named)

    async def start_tls(self, *given: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(*given, **named), self._transport)
