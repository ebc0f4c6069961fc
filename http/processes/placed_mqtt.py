"""The first bytes of an MQTT connection, until they say which application its client belongs to.

Then the connection is served here, or passed on to the process that has the application, with the bytes that have come.
Whether the client is who it says is checked there. Owns only this choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from trunkline.actors.access.certificate_login import AdmitCertificate
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.signed_claims import unverified_claims
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.mqtt.fields import INTEGER_BYTES_MAX
from trunkline.http.mqtt.login import BEARER
from trunkline.http.mqtt.packets import Connect, Malformed
from trunkline.http.mqtt.reader import PacketReader
from trunkline.http.mqtt.service import MqttService
from trunkline.http.processes.passage import Passage
from trunkline.http.wire.byte_session import Bytes, ByteSession, Peer

_ID_DIGITS: Final = 24


class PlacedMqtt:
    """The session of a connection. `local` makes the one that serves it here, `passages` lead to other processes."""

    def __init__(
        self,
        service: MqttService,
        local: Callable[[Peer], ByteSession],
        places: Places,
        passages: Mapping[int, Passage],
        peer: Peer,
    ) -> None:
        self._service = service
        self._local = local
        self._places = places
        self._passages = passages
        self._peer = peer
        self._data = bytearray()
        self._connection: Bytes | None = None
        self._drains = False
        self._is_chosen = False

    # What a session is told, until it is chosen. Then it is told in the place of this one.

    def opened(self, connection: Bytes) -> None:
        self._connection = connection

    def received(self, data: bytes) -> None:
        self._data += data
        if self._is_chosen:
            return  # it is being looked up
        size = first_packet_bytes(self._data)
        bytes_max = self._service.system.limits.mqtt_packet_bytes_max
        if size is None or len(self._data) < size <= bytes_max:
            return
        self._is_chosen = True
        try:
            first = PacketReader(bytes_max).feed(bytes(self._data[:size]))
        except Malformed:
            first = []
        connect = first[0] if first else None
        self._look_up(connect if isinstance(connect, Connect) else None)

    def received_all(self) -> None:
        pass

    def flushed(self) -> None:
        pass

    def drain(self) -> None:
        self._drains = True
        if self._connection is not None:
            self._connection.close("the server is stopping")

    def closed(self, reason: str) -> None:  # noqa: ARG002 - whoever serves it would log it
        self._connection = None

    # The choice.

    def _look_up(self, connect: Connect | None) -> None:
        if connect is None:
            self._choose(self._places.own)
        elif connect.username is None and self._peer.certificate is not None:
            self._service.system.component(LinkTasks).start_soon(partial(self._look_up_certificate, connect))
        else:
            application = application_named(connect, self._service.anonymous_key)
            self._choose(
                self._places.own if application is None else self._places.of_application(application)
            )

    async def _look_up_certificate(self, connect: Connect) -> None:
        place, certificate = self._places.own, self._peer.certificate
        try:
            device = bytes.fromhex(connect.client_id)
            if certificate is not None:
                system = self._service.system
                admitted = await self._service.dispatcher.read_message(
                    AdmitCertificate(device=device, certificate=certificate, now_ms=system.clock.wall_ms())
                )
                place = self._places.of_application(admitted.application_id)
        except (DomainError, ValueError):
            pass  # the session tells it why
        self._choose(place)

    def _choose(self, place: int) -> None:
        connection, self._connection = self._connection, None
        if connection is None or self._drains:
            return
        passage = self._passages.get(place)
        session = self._local(self._peer) if passage is None else passage.mqtt_session(self._peer)
        for name in ("received", "received_all", "flushed", "drain", "closed"):
            setattr(self, name, getattr(session, name))
        data = bytes(self._data)
        del self._data, self._service, self._local, self._peer  # idle connections keep only what they need
        session.opened(connection)
        session.received(data)
        session.received_all()


def first_packet_bytes(data: bytearray) -> int | None:
    """The length of the first packet with its header; None if too little has come to tell (MQTT 5, 1.5.5)."""
    size = 0
    for position, byte in enumerate(data[1 : 1 + INTEGER_BYTES_MAX]):
        size |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return 2 + position + size
    return None if len(data) <= INTEGER_BYTES_MAX else len(data)


def application_named(connect: Connect, anonymous_key: str | None) -> bytes | None:
    """The application that a client names with its credentials; None if it names none."""
    username, password = connect.username, connect.password
    if password is None:
        name = anonymous_key or ""
    elif username == BEARER or (username or "").startswith(f"{BEARER}/"):
        claims = unverified_claims(password)
        kind = claims.get("typ")
        name = claims.get("app" if kind == "device" else "sub", "")
        if kind == "user":
            name = (username or "")[len(BEARER) + 1 :]
    else:
        name = username or ""
    try:
        application = bytes.fromhex(name[:_ID_DIGITS])
    except (ValueError, TypeError):
        return None
    return application if len(application) == _ID_DIGITS // 2 else None
