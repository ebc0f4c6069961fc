"""A web server on 127.0.0.1 that keeps the requests and gives the answers of a test."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

import h11
import trio

from tests.patience import PATIENCE_S


class Asked(NamedTuple):
    """A request as it was received; names of headers are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """What is answered; `body` None is no answer at all."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = b""


class WebServer:
    """Answers with what `answer` returns for a request."""

    def __init__(self, answer: Callable[[Asked], Answer], context: ssl.SSLContext | None) -> None:
        self.asked: list[Asked] = []
        self.port = 0
        self.host = "127.0.0.1"
        self._answer = answer
        self._changed = trio.Event()
        self._context = context

    @property
    def url(self) -> str:
        scheme = "http" if self._context is None else "https"
        return f"{scheme}://{self.host}:{self.port}"

    async def number(self, count: int) -> list[Asked]:
        """Wait for `count` requests."""
        with trio.fail_after(PATIENCE_S):
            while len(self.asked) < count:
                await self._changed.wait()
        return self.asked[:count]

    async def serve(self, stream: trio.abc.Stream) -> None:
        if self._context is not None:
            stream = trio.SSLStream(stream, self._context, server_side=True, https_compatible=True)
        try:
            await self._serve(stream)
        except (trio.BrokenResourceError, EOFError):
            pass  # the client is gone
        finally:
            await trio.aclose_forcefully(stream)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        connection = h11.Connection(h11.SERVER)
        body, request = b"", None
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                received = await stream.receive_some()
                if not received:
                    raise EOFError
                connection.receive_data(bytes(received))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            else:
                break
        assert request is not None
        headers = {name.decode(): value.decode() for name, value in request.headers}
        asked = Asked(request.method.decode(), request.target.decode(), headers, body)
        self.asked.append(asked)
        self._changed.set()
        self._changed = trio.Event()
        status, given, content = self._answer(asked)
        if content is None:
            await trio.sleep_forever()
        assert content is not None
        length = (("content-length", str(len(content))), ("connection", "close"))
        head = h11.Response(status_code=status, headers=[*given, *length])
        said = connection.send(head)
        assert said is not None
        await stream.send_all(said + content)
        await stream.aclose()


@asynccontextmanager
async def web_server(
    answer: Callable[[Asked], Answer] = lambda _asked: Answer(), context: ssl.SSLContext | None = None
) -> AsyncIterator[WebServer]:
    """Serve while the body runs, on a free port."""
    server = WebServer(answer, context)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(partial(trio.serve_listeners, server.serve, listeners))
        yield server
        nursery.cancel_scope.cancel()
