"""Redis streams with an append-only file that is synced before each answer.

Owns the few replies of its protocol that this needs. Each device has a stream; an array is one entry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.bench.peers.peer import MESSAGE, Kept, Peer, Posts, Started
from trunkline.bench.errors import ProtocolViolation
from trunkline.bench.framing import Response
from trunkline.bench.programs import Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.transport import Origin


class Redis(Peer):
    """Redis from Debian."""

    name = "Redis streams"
    speaks_http = False

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        program = workspace.find("redis-server", "redis-server")
        port, directory = free_port(), workspace.make("append")
        workspace.start(
            [
                *(program, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory)),
                *("--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"),
            ],
        )
        await workspace.listens(port)
        output = await workspace.run([program, "--version"])
        posts = Posts(devices, _add)
        yield Started(
            version=" ".join(output.split()[:3]),
            durable=True,
            durability="on disk before the answer (appendonly, appendfsync=always)",
            keeps=MESSAGE,
            origin=Origin("127.0.0.1", port, tls=False, prefix=""),
            callers=posts.callers,
            kept=lambda: _kept(port, posts),
            protocol=RedisProtocol,
        )


class RedisProtocol:
    """Single-line replies and bulk strings."""

    def __init__(self) -> None:
        self.greeting = b""
        self.greetings = 0
        self._pending = b""

    def encode(self, request: bytes) -> bytes:
        """Return the request unchanged."""
        return request

    def feed(self, data: bytes) -> list[Response]:
        """Return an answer for each complete reply; an error has status 400."""
        pending = self._pending + data if self._pending else data
        answers = []
        while (end := pending.find(b"\r\n")) >= 0:
            kind, line, end = pending[:1], pending[1:end], end + 2
            if kind == b"$" and line != b"-1":
                whole = end + int(line) + 2
                if len(pending) < whole:
                    break
                line, end = pending[end : whole - 2], whole
            elif kind not in b"+-:$":
                raise ProtocolViolation(f"Redis sent {pending[:40]!r}.")
            answers.append(Response(400, b"HTTP/1.1 400", line) if kind == b"-" else Response(200, b"", line))
            pending = pending[end:]
        self._pending = pending
        return answers


def command(*words: bytes) -> bytes:
    """Encode a command of Redis."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def _key(device_id: str) -> bytes:
    return b"states:" + device_id.encode()


def _add(device_id: str, body: bytes, _count: int) -> bytes:
    return command(b"XADD", _key(device_id), b"*", b"d", body)


async def _kept(port: int, posts: Posts) -> Kept:
    """Count the entries of all streams."""
    protocol, device_ids = RedisProtocol(), posts.device_ids
    answers: list[Response] = []
    with trio.move_on_after(60):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(b"".join(command(b"XLEN", _key(one)) for one in device_ids))
            while len(answers) < len(device_ids) and (data := await stream.receive_some()):
                answers += protocol.feed(data)
    whole = len(answers) == len(device_ids)
    return posts.kept_calls(sum(int(answer.body) for answer in answers) if whole else None)
