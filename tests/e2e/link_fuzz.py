"""Mutated frames to the link of a real server:

    .venv/bin/python -m tests.e2e.link_fuzz --cases 100000 [--seed 1]

Starts a server of its own. A case is a frame of the link with changed values or bytes, in CBOR or JSON, or a WebSocket
frame with a changed head. Each must be followed by an answer: an acknowledgement, a refusal that the document has, or
a close code with a reason. Prints the codes and refusals, the growth of the server's memory, and how many links were
open at the end; ends with 1 if a case had no answer, or if the server logged a fault.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import cbor2
import psutil
import trio
from cbor2 import CBORTag
from wsproto.events import BytesMessage, CloseConnection, Pong, TextMessage

from tests.e2e.server_process import ServerProcess, serving
from tests.http.link.link_document import check_frame
from tests.http.websocket_peer import Peer, masked
from tests.patience import PATIENCE_S
from trunkline.http.wire.websocket_frames import BINARY, CONTINUATION, PING, TEXT

DEVICES = 8
BASE_MS = 1_700_000_000_000
ODD: tuple[Any, ...] = (
    *(0, 1, -1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 1e308, float("nan"), float("inf"), -0.0, 0.5),
    *(None, True, False, "", "temp", "\x00", "é" * 300, "f" * 24, b"", b"\xff" * 9, [], [[]], {}, {"a": {}}),
    *(
        CBORTag(86, b"12345678"),
        CBORTag(86, b"123"),
        CBORTag(70, b""),
        CBORTag(0, "x"),
        CBORTag(28, []),
        CBORTag(2, b"\xff" * 40),
    ),
    [[[[[[[[[[]]]]]]]]]],
)
CODES = frozenset({1000, 1001, 1002, 1007, 1009, 4400, 4401, 4403, 4413})
CUT = 1006
"""The code of the library for a connection without a close frame."""
MUTE = frozenset({1000, 1001, CUT})
"""The codes without a reason: the client has ended the connection."""


@dataclass
class Found:
    """What came of the cases."""

    cases: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    links: int = 0
    acknowledged: int = 0
    problems: list[str] = field(default_factory=list)
    grown_bytes: int = 0
    open_links: int = -1


class Fuzzer:
    """One device, and the links that it opens one after the other."""

    def __init__(self, server: ServerProcess, path: str, token: str, found: Found, random: Random) -> None:
        self.found = found
        self._server = server
        self._path = path
        self._token = token
        self._random = random
        self._n = 0
        self._text = False

    async def run(self, cases: int) -> None:
        """Send so many cases."""
        left = cases
        while left > 0:
            self._text = self._random.random() < 0.25
            async with await trio.open_tcp_stream(
                "127.0.0.1", int(self._server.url.rpartition(":")[2])
            ) as stream:
                peer = await self._upgraded(stream)
                left = await self._link(peer, left)

    async def _upgraded(self, stream: trio.abc.Stream) -> Peer:
        await stream.send_all(
            f"GET {self._path}/link HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: trunkline.link.v1+{'json' if self._text else 'cbor'}\r\n"
            f"Authorization: Bearer {self._token}\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some()
        assert head.startswith(b"HTTP/1.1 101 "), head
        self.found.links += 1
        return Peer(stream)

    async def _link(self, peer: Peer, left: int) -> int:
        """Send cases until the link is closed; how many are left."""
        random, found = self._random, self.found
        self._n = 0
        hello: Any = [0, {"session": random.getrandbits(53)}]
        if random.random() < 0.1:
            found.cases += 1
            left -= 1
            hello = self._changed(hello)
        data = self._encoded(hello)
        if not await self._answered(peer, self._message(data), data):
            return left
        while left > 0 and random.random() > 0.02:
            found.cases += 1
            left -= 1
            if random.random() < 0.2:
                await self._broken_framing(peer)
                return left
            data = self._encoded(self._frame() if random.random() < 0.3 else self._changed(self._frame()))
            if random.random() < 0.4:
                data = self._changed_bytes(data)
            if not await self._answered(peer, self._message(data), data):
                return left
        await self._finish(peer)
        return left

    async def _answered(self, peer: Peer, sent: bytes, shown: bytes) -> bool:
        """Send, and wait until it was handled. False where the link was closed."""
        mark = self._random.randbytes(8)
        try:
            await peer.stream.send_all(sent + masked(PING, mark))
            while True:
                event = await peer.next()
                if event == Pong(payload=mark):
                    return True
                if isinstance(event, CloseConnection):
                    self._closed(event, shown)
                    return False
                self._take(event)
        except trio.BrokenResourceError:
            self.found.problems.append(f"cut without a code: {shown.hex()[:400]}")
            return False

    def _closed(self, event: CloseConnection, shown: bytes, codes: frozenset[int] = CODES) -> None:
        self.found.codes[event.code] += 1
        if event.code not in codes or not (event.reason or event.code in MUTE):
            self.found.problems.append(f"closed with {event.code} {event.reason!r}: {shown.hex()[:400]}")

    def _take(self, event: Any) -> list[Any]:
        """Check a frame of the server."""
        frame: list[Any]
        if isinstance(event, TextMessage):
            frame = json.loads(event.data)
        elif isinstance(event, BytesMessage):
            frame = cbor2.loads(event.data)
        else:
            return []
        assert self._text is isinstance(event, TextMessage)
        check_frame("server", cbor2.dumps(frame))
        if frame[0] == 1:
            self.found.acknowledged += 1
        if frame[0] == 2:
            self.found.refusals[frame[2]] += 1
        return frame

    async def _finish(self, peer: Peer) -> None:
        """All that was accepted is acknowledged or refused: two frames after it are acknowledged."""
        self._n = max(self._n, 1 << 40)
        frames = [
            [1, self._n + 1, None, {"temp": 1}],
            [1, self._n + 2, BASE_MS, {"temp": 1}, {"backlog": True}],
        ]
        wanted = [[1, self._n + 1], [1, self._n + 2, True]]
        await peer.stream.send_all(b"".join(self._message(self._encoded(frame)) for frame in frames))
        while wanted:
            event = await peer.next()
            if isinstance(event, CloseConnection):  # a number that was larger still had been accepted
                self._closed(event, b"the last frames")
                return
            frame = self._take(event)
            wanted = [each for each in wanted if each != frame]
        await peer.stream.send_all(peer.wire.send(CloseConnection(code=1000)))
        self._closed(await peer.next(), b"the end")

    async def _broken_framing(self, peer: Peer) -> None:
        """Send a frame with a changed head, and end: the server says what is wrong, unless the frame has no end."""
        data = bytearray(self._message(self._encoded(self._frame())))
        for _ in range(self._random.randint(1, 3)):
            data[self._random.randrange(min(len(data), 14))] ^= 1 << self._random.randrange(8)
        if self._random.random() < 0.3:
            del data[self._random.randrange(len(data)) :]
        try:
            await peer.stream.send_all(data)
            await peer.stream.send_eof()
            while True:
                event = await peer.next()
                if isinstance(event, CloseConnection):
                    self._closed(event, bytes(data), CODES | {CUT})
                    return
        except trio.BrokenResourceError:
            self.found.problems.append(f"cut without a code: {data.hex()[:400]}")

    # Making cases.

    def _frame(self) -> list[Any]:
        """A frame as the document has it."""
        random = self._random
        self._n += 1
        kind = random.randint(1, 4)
        options: list[Any] = [{"backlog": True}] if random.random() < 0.2 else []
        if kind == 1:
            return [
                1,
                self._n,
                random.choice((None, BASE_MS)),
                {"temp": 1.5, "label": "a", "on": True},
                *options,
            ]
        if kind == 2:
            return [2, self._n, ["temp", "label"], [[BASE_MS + at, at, None] for at in range(3)], *options]
        if kind == 3:
            typed = [1, 2, 3] if self._text else CBORTag(86, struct.pack("<3d", 1, 2, 3))
            return [3, self._n, BASE_MS, [0, 1, 2], {"temp": typed, "on": [True, None, False]}, *options]
        return [4, random.getrandbits(16)]

    def _changed(self, frame: Any) -> Any:
        """The frame with a value somewhere replaced, added or left out."""
        random = self._random
        node: Any = frame
        path: list[tuple[Any, Any]] = []
        while isinstance(node, list | dict) and node and (not path or random.random() < 0.7):
            key = random.choice(list(node)) if isinstance(node, dict) else random.randrange(len(node))
            path.append((node, key))
            node = node[key]
        container, key = path[-1]
        choice = random.random()
        if choice < 0.6:
            container[key] = random.choice(ODD)
        elif choice < 0.75:
            del container[key]
        elif isinstance(container, list):
            container.insert(key, random.choice(ODD))
        else:
            container[random.choice(("session", "token", "device", "backlog", "meta", "x"))] = random.choice(
                ODD
            )
        return frame

    def _changed_bytes(self, data: bytes) -> bytes:
        random, changed = self._random, bytearray(data)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(changed) + 1)
            choice = random.random()
            if choice < 0.5 and at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            elif choice < 0.7:
                changed[at:at] = random.randbytes(random.randint(1, 8))
            elif choice < 0.85:
                del changed[at : at + random.randint(1, 8)]
            else:
                changed[at:at] = changed[: random.randint(0, 64)]
        return bytes(changed)

    def _encoded(self, frame: Any) -> bytes:
        return json.dumps(frame, default=repr).encode() if self._text else cbor2.dumps(frame)

    def _message(self, data: bytes) -> bytes:
        """The WebSocket frames of a message, sometimes in fragments with a ping between."""
        opcode = TEXT if self._text else BINARY
        if self._random.random() < 0.8 or len(data) < 2:
            return masked(opcode, data)
        cut = self._random.randrange(1, len(data))
        first = masked(opcode, data[:cut], last=False)
        return first + masked(PING, b"between") + masked(CONTINUATION, data[cut:])


async def fuzz(server: ServerProcess, cases: int, seed: int) -> Found:
    """Send cases over the links of several devices; memory is measured from the second fifth on."""
    found, process = Found(), psutil.Process(server.process.pid)
    application = await server.application()
    fuzzers = []
    for number in range(DEVICES):
        path = await server.device(application, f"device {number}")
        token, _ = await server.device_token(path)
        fuzzers.append(Fuzzer(server, path, token, found, Random(f"{seed}-{number}")))
    before = 0
    for share in (cases // 5, cases - cases // 5):
        async with trio.open_nursery() as nursery:
            for fuzzer in fuzzers:
                nursery.start_soon(fuzzer.run, -(-share // DEVICES))
        before = before or own_memory_bytes(process)
    found.grown_bytes = own_memory_bytes(process) - before
    with trio.fail_after(PATIENCE_S):
        while found.open_links != 0:
            found.open_links = await open_links(server)
    return found


def own_memory_bytes(process: psutil.Process) -> int:
    """Without the pages of files, such as those of the store."""
    memory = process.memory_info()
    return int(memory.rss - memory.shared)


async def open_links(server: ServerProcess) -> int:
    async with server.client() as client:
        text = (await client.get("/metrics")).text
    found = re.search(r"^\w*links_open (\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def faults(server: ServerProcess) -> list[str]:
    """The lines of the log that tell of a fault."""
    return [line for line in server.log.splitlines() if re.search(r"Traceback|\berror\b|failed", line)]


async def main() -> int:
    """Run a server and fuzz its links; the exit code."""
    parser = argparse.ArgumentParser(description="Send mutated frames over device links.")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        async with serving(Path(folder) / "data", "--limits", "off", cold=True) as server:
            found = await fuzz(server, options.cases, options.seed)
            await server.terminate()
            logged = faults(server)
    summary = {
        "cases": found.cases,
        "links": found.links,
        "close codes": dict(sorted(found.codes.items())),
        "refusals": dict(found.refusals),
        "acknowledgements": found.acknowledged,
        "memory grown by, bytes": found.grown_bytes,
        "open links at the end": found.open_links,
        "problems": found.problems[:20],
        "faults in the log": logged[:20],
    }
    sys.stdout.write(json.dumps(summary, indent=1) + "\n")
    return 1 if found.problems or logged else 0


if __name__ == "__main__":
    sys.exit(trio.run(main))
