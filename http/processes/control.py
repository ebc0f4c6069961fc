"""What the supervisor and its processes say to each other, on a socket that is the standard input of each of them.

Owns how a process learns what it is, and the words in both directions. Does not own what they cause (`supervisor.py`,
`child.py`). Each message is one packet. When the supervisor ends, however, its processes see the end of the socket.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import trio

from trunkline.actors.core.runtime.peers import process_name
from trunkline.http.hosting.sockets import MqttPort, Sockets
from trunkline.limits.settings import Settings

PACKET_BYTES: Final = 128 * 1024
BEAT_S: Final = 1.0
"""How often a process says that its event loop runs."""

# To a process.
STOP: Final = b"stop"
RELOAD: Final = b"reload"
ANNOUNCE: Final = b"announce"
"""The server is ready: print where it is."""

# To the supervisor.
READY: Final = b"ready"
STANDS_BY: Final = b"stands by"
"""It is ready to serve as soon as its machine owns the data."""
BEAT: Final = b"beat"


class Role(NamedTuple):
    """What a process is: the owner of a partition, of `partitions`, or a door with a number from 1, of `doors`."""

    settings: Settings
    partition: int
    partitions: int
    door: int
    doors: int
    url: str
    mqtt_ports: list[MqttPort]
    demo: bool
    wanted_mqtt_port: int | None
    """The port that the demo opens for MQTT if it is free."""

    @property
    def name(self) -> str:
        """The name of the process in the log and the metrics."""
        if self.door:
            return f"door-{self.door}"
        return "owner" if self.partitions == 1 else process_name(self.partition)


def send_role(control: socket.socket, role: Role, sockets: Sockets | None) -> None:
    """Tell a process what it is, and give it the sockets on which it listens, if it does."""
    descriptors = (
        [] if sockets is None else [sockets.http.fileno(), *(sock.fileno() for sock, _ in sockets.mqtt)]
    )
    socket.send_fds(control, [pickle.dumps(role)], descriptors)


def receive_role(control: socket.socket) -> tuple[Role, Sockets | None]:
    """What this process is. Only the process that has started this one is on the other end."""
    data, descriptors, _, _ = socket.recv_fds(control, PACKET_BYTES, 8)
    role: Role = pickle.loads(data)  # noqa: S301 - of the process that has started this one
    received = [socket.socket(fileno=each) for each in descriptors]
    if not received:
        return role, None
    return role, Sockets(
        received[0], list(zip(received[1:], [port.tls for port in role.mqtt_ports], strict=True))
    )


async def words(control: trio.socket.SocketType) -> AsyncIterator[bytes]:
    """What the other end says, until it ends."""
    while True:
        try:
            word = await control.recv(PACKET_BYTES)
        except OSError:
            return
        if not word:
            return
        yield word
