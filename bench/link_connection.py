"""One link of a load: the handshake, and messages as they are, without a task.

Owns the WebSocket. Does not own what is sent or what an answer means; a subclass implements ``welcomed`` and
``answered``. `link_client` is the client that keeps its frames, at some ten times the cost of a frame.
"""

from __future__ import annotations

from collections.abc import Iterator

try:
    from websockets.speedups import apply_mask
except ImportError:  # pragma: no cover - where its wheel has no machine code
    from websockets.utils import apply_mask

from trunkline.bench.errors import ConnectionBroken, ProtocolViolation
from trunkline.bench.framing import HEAD_BYTES_MAX, Response
from trunkline.bench.link_frames import FromServer, Welcome, read_frame, write_frame
from trunkline.bench.load_connection import LoadConnection
from trunkline.bench.reactor import Reactor
from trunkline.bench.session import refusal
from trunkline.bench.transport import Origin

_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10
_MASK = b"\x37\xfa\x21\x3d"


class LinkConnection(LoadConnection):
    """A link that says hello with ``session`` as soon as it is open."""

    __slots__ = ("_hello", "_received", "_request", "_upgraded", "live")

    def __init__(self, reactor: Reactor, origin: Origin, request: bytes, session: int) -> None:
        super().__init__(reactor, origin)
        self._request = request
        self._hello = write_frame([0, {"session": session}], text=False)
        self._upgraded = False
        self._received = b""
        self.live = False
        """Whether the server has sent its welcome."""

    # Callbacks for a subclass.

    def welcomed(self, welcome: Welcome) -> None:
        """The link is open."""

    def answered(self, frame: FromServer) -> None:
        """The server has sent another frame."""

    # Callbacks of the connection.

    def opened(self) -> None:
        self._upgraded = self.live = False
        self._received = b""
        self.send(self._request)

    def close(self) -> None:
        self.live = False
        super().close()

    def received(self, data: bytes) -> None:
        self._received += data
        try:
            if not self._upgraded and not self._upgrade():
                return
            for opcode, payload in self._messages():
                self._take(opcode, payload)
        except (ProtocolViolation, ConnectionBroken) as problem:
            self.fail(problem)

    def _upgrade(self) -> bool:
        """Whether the handshake is done. Raises a WireError if the link is refused."""
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            if len(head) > HEAD_BYTES_MAX:
                raise ProtocolViolation(f"A head of the server's has more than {HEAD_BYTES_MAX} bytes.")
            return False
        if head[9:12] != b"101":
            said = refusal(Response(int(head[9:12]), head, rest))
            raise ConnectionBroken(f"The link was refused: {said}", maybe_done=False)
        self._upgraded = True
        self._received = rest
        self.send(masked(self._hello))
        return True

    def _messages(self) -> Iterator[tuple[int, bytes]]:
        """The whole frames that were received; the server does not cut messages into several."""
        data, at = self._received, 0
        while len(data) - at >= 2:
            length, start = data[at + 1], at + 2
            if length >= 126:
                start += 2 if length == 126 else 8
                length = int.from_bytes(data[at + 2 : start])
            if len(data) < start + length:
                break
            opcode = data[at] & 15
            at = start + length
            yield opcode, data[start:at]
        self._received = data[at:]

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == _BINARY:
            frame = read_frame(payload)
            if isinstance(frame, Welcome):
                self.live = True
                self.welcomed(frame)
            else:
                self.answered(frame)
        elif opcode == _PING:
            self.send(masked(payload, _PONG))
        elif opcode == _CLOSE:
            code, reason = int.from_bytes(payload[:2]), payload[2:].decode("utf-8", "replace")
            raise ConnectionBroken(f"The server closed the link with {code}: {reason}.", maybe_done=True)


def masked(payload: bytes, opcode: int = _BINARY) -> bytes:
    """A whole message as a client sends it. The mask is always the same one."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | opcode, 0xFE)) + size.to_bytes(2)
    else:
        head = bytes((0x80 | opcode, 0xFF)) + size.to_bytes(8)
    return b"".join((head, _MASK, apply_mask(payload, _MASK)))
