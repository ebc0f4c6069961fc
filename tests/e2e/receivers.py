"""Receivers of job notifications on real sockets: a mail server and an HTTP server for callbacks, on 127.0.0.1.

Owns no test.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import trio

from tests.patience import PATIENCE_S
from tests.ports import taken_port


class Arrivals:
    """What was received, and a way to wait for it."""

    def __init__(self) -> None:
        self.port = 0
        self._reserved: socket.socket | None = None
        self._all: list[Any] = []
        self._changed = trio.Event()

    def reserve(self) -> None:
        """Reserve a port. Nothing listens on it before `listening`."""
        self._reserved = taken_port()
        self.port = self._reserved.getsockname()[1]

    async def listeners(self) -> list[trio.SocketListener]:
        """Listen on the reserved port, or on any."""
        if self._reserved is None:
            found = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self.port = found[0].socket.getsockname()[1]
            return found
        reserved = trio.socket.from_stdlib_socket(self._reserved)
        reserved.listen()
        return [trio.SocketListener(reserved)]

    def add(self, arrival: Any) -> None:
        self._all.append(arrival)
        self._changed.set()
        self._changed = trio.Event()

    def __len__(self) -> int:
        return len(self._all)

    async def number(self, count: int) -> list[Any]:
        """Wait for `count` of them, and return the first `count`."""
        with trio.fail_after(PATIENCE_S):
            while len(self._all) < count:
                await self._changed.wait()
        return self._all[:count]


class Line:
    """A connection that is read line by line."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._buffer = b""

    async def read(self) -> bytes:
        """The next line without its line end; raises EOFError if there is none."""
        while b"\r\n" not in self._buffer:
            await self._more()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    async def exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._more()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    async def _more(self) -> None:
        piece = await self.stream.receive_some()
        if not piece:
            raise EOFError
        self._buffer += bytes(piece)

    async def say(self, text: str) -> None:
        await self.stream.send_all(text.encode() + b"\r\n")


# Mail.


class Mailed(NamedTuple):
    """A message as the mail server received it."""

    sender: str
    recipients: list[str]
    message: EmailMessage
    encrypted: bool
    user: str | None


class MailServer(Arrivals):
    """Implements as much SMTP as the client needs.

    `refused` are recipients that it does not accept, `stalled` those for whom it says nothing any more; `stalls` counts
    them. `says` has replies to some verbs in the place of its own.
    """

    def __init__(
        self,
        context: ssl.SSLContext | None = None,
        refused: frozenset[str] = frozenset(),
        stalled: frozenset[str] = frozenset(),
        says: dict[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._says = says or {}
        self.stalls = 0
        self._context = context
        self._refused = refused
        self._stalled = stalled

    async def serve(self, stream: trio.abc.Stream) -> None:
        line = Line(stream)
        encrypted, user = False, None
        sender, recipients = "", list[str]()
        await line.say("220 mail.test ESMTP")
        while True:
            try:
                said = (await line.read()).decode()
            except (EOFError, trio.BrokenResourceError):
                return
            verb = said.split(" ")[0].upper()
            if verb in self._says:
                await line.say(self._says[verb])
                if verb == "QUIT":
                    return
            elif verb == "EHLO":
                offered = "STARTTLS" if self._context is not None and not encrypted else "AUTH PLAIN"
                await line.say(f"250-mail.test\r\n250 {offered}")
            elif verb == "STARTTLS":
                await line.say("220 go on")
                assert self._context is not None
                secured = trio.SSLStream(stream, self._context, server_side=True, https_compatible=True)
                line, encrypted = Line(secured), True
            elif verb == "AUTH":
                _, name, password = base64.b64decode(said.split(" ")[2]).decode().split("\0")
                user = f"{name}:{password}"
                await line.say("235 welcome" if password == "right" else "535 no")
            elif verb == "MAIL":
                sender, recipients = said.partition("<")[2].partition(">")[0], []
                await line.say("250 ok")
            elif verb == "RCPT":
                recipient = said.partition("<")[2].partition(">")[0]
                if recipient in self._stalled:
                    self.stalls += 1
                    await trio.sleep_forever()
                taken = recipient not in self._refused
                recipients += [recipient] if taken else []
                await line.say("250 ok" if taken else "550 nobody here")
            elif verb == "DATA":
                await line.say("354 go on")
                content = [await line.read()]
                while content[-1] != b".":
                    content.append(await line.read())
                raw = b"\r\n".join(each.removeprefix(b".") for each in content[:-1])
                message = message_from_bytes(raw, policy=policy.default)
                assert isinstance(message, EmailMessage)
                self.add(Mailed(sender, recipients, message, encrypted, user))
                await line.say("250 taken")
            elif verb == "QUIT":
                await line.say("221 bye")
                return
            else:
                await line.say("250 ok")


def kept_messages(data_dir: Path) -> list[EmailMessage]:
    """The messages in the outbox of a data directory, the oldest first."""
    files = sorted((data_dir / "outbox").glob("*.eml"), key=lambda file: file.stat().st_mtime_ns)
    return [message_from_bytes(file.read_bytes(), EmailMessage, policy=policy.default) for file in files]


def link_in(message: EmailMessage) -> str:
    """The path and the query of the link in a message."""
    found = re.search(r"^http\S+$", message.get_content(), re.MULTILINE)
    assert found is not None
    url = urlsplit(found[0])
    return f"{url.path}?{url.query}"


# Callbacks.


class Called(NamedTuple):
    """A callback as it was received."""

    path: str
    headers: dict[str, str]
    body: Any


class CallbackReceiver(Arrivals):
    """Accepts POSTs; `answers` gives the status line and headers of each response by its number, from 0."""

    def __init__(self, answers: Callable[[int], str] = lambda _number: "204 No Content") -> None:
        super().__init__()
        self._answers = answers

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/done"

    async def serve(self, stream: trio.abc.Stream) -> None:
        with contextlib.suppress(EOFError, trio.BrokenResourceError):  # a caller that was killed
            await self._take(Line(stream))

    async def _take(self, line: Line) -> None:
        method, path, _ = (await line.read()).decode().split(" ")
        assert method == "POST"
        headers = {}
        while head := (await line.read()).decode():
            name, _, value = head.partition(":")
            headers[name.lower()] = value.strip()
        body = json.loads(await line.exactly(int(headers["content-length"])))
        number = len(self)
        self.add(Called(path, headers, body))
        await line.say(f"HTTP/1.1 {self._answers(number)}\r\ncontent-length: 0\r\nconnection: close\r\n")


Receiver = TypeVar("Receiver", MailServer, CallbackReceiver)


@asynccontextmanager
async def listening(server: Receiver) -> AsyncIterator[Receiver]:
    """Serve on 127.0.0.1, port 0 (or the one that it has reserved)."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, server.serve, await server.listeners()))
        yield server
        nursery.cancel_scope.cancel()
