"""Mosquitto, the MQTT broker: publishes of QoS 1 for an offline subscriber, with persistence.

Owns the few packets of MQTT 3.1.1 that this needs. An array is one message. A durable subscriber that never
reconnects makes the broker store the messages; without one it would acknowledge and drop them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.bench.peers.peer import MESSAGE, Kept, Peer, Posts, Started
from trunkline.bench.errors import ProtocolViolation
from trunkline.bench.framing import Response
from trunkline.bench.programs import ProgramUnavailable, Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.transport import Origin

_CONNACK, _PUBACK, _SUBACK = 0x20, 0x40, 0x90
_OK = Response(200, b"", b"")
_CONFIGURATION = """
listener {port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {directory}/
max_queued_messages 0
max_queued_bytes 0
log_type error
log_dest stderr
"""


class Mosquitto(Peer):
    """Mosquitto from Debian."""

    name = "Mosquitto, QoS 1"
    speaks_http = False

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        program = workspace.find("mosquitto", "mosquitto")
        port, directory = free_port(), workspace.make("persistence")
        configuration = workspace.directory / "mosquitto.conf"
        configuration.write_text(_CONFIGURATION.format(port=port, directory=directory), encoding="utf-8")
        workspace.start([program, "-c", str(configuration)])
        await workspace.listens(port)
        await subscribe_offline(port)
        yield Started(
            version=await _version(program),
            durable=False,
            durability="in memory at the answer; saved to disk every 30 minutes, so a crash loses what came since",
            keeps=MESSAGE,
            origin=Origin("127.0.0.1", port, tls=False, prefix=""),
            callers=(posts := Posts(devices, publish_state)).callers,
            kept=lambda: _kept(posts),
            protocol=MqttProtocol,
        )


class MqttProtocol:
    """Packets of a broker: CONNACK, SUBACK and PUBACK."""

    def __init__(self, login: tuple[str, str] | None = None) -> None:
        """`login` is user name and password, where the broker wants them."""
        self.greeting = connect("", clean=True, login=login)
        self.greetings = 1
        self._pending = bytearray()

    def encode(self, request: bytes) -> bytes:
        """Return the request unchanged."""
        return request

    def feed(self, data: bytes) -> list[Response]:
        """Return an answer for each complete packet; a refusal has status 403."""
        self._pending += data
        answers = []
        while len(self._pending) >= 2:
            length = self._pending[1]
            if length > 127:
                raise ProtocolViolation("The broker sent a long packet, which nothing asked for.")
            if len(self._pending) < 2 + length:
                break
            kind, code = self._pending[0] & 0xF0, self._pending[1 + length]
            del self._pending[: 2 + length]
            refused = (kind == _CONNACK and code) or (kind == _SUBACK and code == 0x80)
            if kind not in (_CONNACK, _PUBACK, _SUBACK):
                raise ProtocolViolation(f"The broker sent a packet of type {kind >> 4}.")
            answers.append(Response(403, b"HTTP/1.1 403", b"The broker refused.") if refused else _OK)
        return answers


def connect(client_id: str, *, clean: bool, login: tuple[str, str] | None = None) -> bytes:
    """A CONNECT packet; an empty id lets the broker choose one."""
    flags = (2 if clean else 0) | (0 if login is None else 0xC0)
    given = b"".join(map(_text, login or ()))
    body = b"\0\4MQTT\4" + bytes([flags]) + b"\0\0" + _text(client_id) + given
    return b"\x10" + _length(len(body)) + body


def subscribe(topic: str) -> bytes:
    """A SUBSCRIBE packet for one topic with QoS 1."""
    body = b"\0\1" + _text(topic) + b"\1"
    return b"\x82" + _length(len(body)) + body


def publish(topic: str, payload: bytes) -> bytes:
    """A PUBLISH packet of QoS 1. Its id is always 1, because a connection has one call in flight."""
    body = _text(topic) + b"\0\1" + payload
    return b"\x32" + _length(len(body)) + body


def publish_state(device_id: str, body: bytes, _count: int) -> bytes:
    """The states of a device as one message."""
    return publish(f"devices/{device_id}/state", body)


def _text(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(2, "big") + raw


def _length(value: int) -> bytes:
    digits = bytearray()
    while True:
        value, digit = divmod(value, 128)
        digits.append(digit | (0x80 if value else 0))
        if not value:
            return bytes(digits)


async def subscribe_offline(port: int, login: tuple[str, str] | None = None) -> None:
    """Create a durable subscription, for which the broker then queues everything."""
    protocol = MqttProtocol(login)
    answers: list[Response] = []
    with trio.move_on_after(10):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(connect("archive", clean=False, login=login) + subscribe("devices/#"))
            while len(answers) < 2 and (data := await stream.receive_some()):
                answers += protocol.feed(data)
    if [answer.status for answer in answers] != [200, 200]:
        raise ProgramUnavailable("The broker did not accept a durable subscription.")


async def _version(program: str) -> str:
    # It prints its help, beginning with the version, and exits with 3.
    done = await trio.run_process([program, "-h"], capture_stdout=True, check=False)
    return done.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


async def _kept(posts: Posts) -> Kept:
    return posts.kept_calls(None)
