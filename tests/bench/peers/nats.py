"""NATS JetStream: publishes that a stream on disk acknowledges, synced each time if the version can do that.

Owns the few lines of its protocol that this needs. An array is one message. To use a newer ``nats-server`` than
the distribution's, put it into ``bin`` of the directory for peers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio

from tests.bench.peers.peer import MESSAGE, Kept, Peer, Posts, Started
from trunkline.bench.errors import ProtocolViolation
from trunkline.bench.framing import Response
from trunkline.bench.programs import ProgramUnavailable, Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.transport import Origin

SYNC_ALWAYS_SINCE = (2, 10)
"""The first version that can sync before it acknowledges."""

STREAM = "states"
_INBOX = b"_INBOX.bench.%08d"
_ANY_INBOX = _INBOX % 0
_numbers = itertools.count(1)

_STREAM_CONFIGURATION = {
    "name": STREAM,
    "subjects": ["devices.*.state"],
    "storage": "file",
    "retention": "limits",
    "num_replicas": 1,
}


class Nats(Peer):
    """NATS with JetStream."""

    name = "NATS JetStream"
    speaks_http = False

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        program = workspace.find("nats-server", "nats-server")
        version = await workspace.run([program, "--version"])
        found = re.search(r"(\d+)\.(\d+)\.", version)
        always = found is not None and (int(found[1]), int(found[2])) >= SYNC_ALWAYS_SINCE
        port, directory = free_port(), workspace.make("jetstream")
        sync = "sync_interval: always" if always else ""
        configuration = workspace.directory / "nats.conf"
        configuration.write_text(
            f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{directory}"\n{sync} }}\n',
            encoding="utf-8",
        )
        workspace.start([program, "-c", str(configuration)])
        await workspace.listens(port)
        await _ask(port, f"$JS.API.STREAM.CREATE.{STREAM}", _STREAM_CONFIGURATION)
        yield Started(
            version=version,
            durable=always,
            durability=(
                "on disk before the answer (sync_interval: always)"
                if always
                else "written and not synced at the answer (this version syncs every 2 minutes), "
                "so a power cut loses what came since"
            ),
            keeps=MESSAGE,
            origin=Origin("127.0.0.1", port, tls=False, prefix=""),
            callers=(posts := Posts(devices, _publish)).callers,
            kept=lambda: _kept(port, posts),
            protocol=NatsProtocol,
        )


class NatsProtocol:
    """The answers to publishes, addressed to an inbox of the connection."""

    def __init__(self) -> None:
        self._inbox = _INBOX % next(_numbers)
        self.greeting = b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB %b 1\r\nPING\r\n' % self._inbox
        self.greetings = 1
        self._pending = b""

    def encode(self, request: bytes) -> bytes:
        """Return the request with the inbox of this connection, to which the answer is sent."""
        return request.replace(_ANY_INBOX, self._inbox, 1)

    def feed(self, data: bytes) -> list[Response]:
        """Return an answer for the greeting and for each message; an error has status 400."""
        pending = self._pending + data if self._pending else data
        answers = []
        while (end := pending.find(b"\r\n")) >= 0:
            line, rest = pending[:end], pending[end + 2 :]
            if line.startswith(b"MSG "):
                length = int(line.rpartition(b" ")[2])
                if len(rest) < length + 2:
                    break
                body, rest = rest[:length], rest[length + 2 :]
                refused = b'"error"' in body or not body
                answers.append(Response(400, b"HTTP/1.1 400", body) if refused else Response(200, b"", body))
            elif line.startswith(b"PONG"):
                answers.append(Response(200, b"", b""))
            elif line.startswith(b"-ERR"):
                answers.append(Response(400, b"HTTP/1.1 400", line))
            elif not line.startswith((b"INFO", b"+OK", b"PING")):
                raise ProtocolViolation(f"NATS sent {line[:40]!r}.")
            pending = rest
        self._pending = pending
        return answers


def _publish(device_id: str, body: bytes, _count: int) -> bytes:
    return b"PUB devices.%b.state %b %d\r\n%b\r\n" % (device_id.encode(), _ANY_INBOX, len(body), body)


async def _ask(port: int, subject: str, question: object) -> dict[str, Any]:
    """Send one request to the API of JetStream; raises ProgramUnavailable if it is refused."""
    protocol, body = NatsProtocol(), msgspec.json.encode(question)
    request = b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), _ANY_INBOX, len(body), body)
    answers: list[Response] = []
    with trio.move_on_after(10):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(protocol.greeting + protocol.encode(request))
            while len(answers) < 2 and (data := await stream.receive_some()):
                answers += protocol.feed(data)
    if len(answers) < 2 or answers[1].status != 200:
        answer = answers[-1].body[:200].decode("utf-8", "replace") if answers else "nothing"
        raise ProgramUnavailable(f"nats-server answered {subject} with {answer}.")
    return msgspec.json.decode(answers[1].body, type=dict[str, Any])


async def _kept(port: int, posts: Posts) -> Kept:
    answer = await _ask(port, f"$JS.API.STREAM.INFO.{STREAM}", {})
    return posts.kept_calls(int(answer["state"]["messages"]))
