"""What is between the CONNECT of a client and its CONNACK.

Owns the login, why a client is refused, and that the CONNACK leaves when what the client has brought is on disk: its
session, if that outlives the connection, its will, and for a device the entry in its connection log. Nothing here waits
in a task but the login, which may read certificates. Does not own the connection, which is `session.py`, nor what the
fields of a CONNECT mean (`connecting.py`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Invalid, Unauthorized
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.topics.publication import ConnectClient
from trunkline.actors.data.topics.queues import received_of
from trunkline.actors.data.topics.session_actor import (
    ChangeSubscriptions,
    MqttSessionActor,
    OpenedSession,
    OpenSession,
)
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.mqtt import connecting, packets
from trunkline.http.mqtt.login import Client, Presented, log_in
from trunkline.http.mqtt.outgoing import OutgoingMessages
from trunkline.http.mqtt.packets import Connect
from trunkline.http.mqtt.refusals import code_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunkline.http.mqtt.service import MqttService
    from trunkline.http.wire.byte_session import Peer
    from trunkline.limits.table import Limits

_log = structlog.get_logger("trunkline.mqtt")


class Entrant(Protocol):
    """The connection of a client that is not logged in yet (`MqttSession`)."""

    service: MqttService
    limits: Limits
    outgoing: OutgoingMessages
    is_open: bool
    client: Client | None
    client_id: str
    session: bytes | None
    has_will: bool

    @property
    def address(self) -> str | None:
        """The network address of the client."""

    def disconnect(self, code: int, reason: str, server: str | None = None) -> None:
        """End the connection, and say why. The client shall use `server`."""

    def note_end(self, client: Client, code: int, reason: str) -> None:
        """Keep why the server has ended the connection of a client, for those who ask."""

    def let_in(self, client: Client) -> None:
        """The client is who it says, and may connect. Raises `DomainError` if there is no room for its connection."""

    def go_on_with(self, ref: Ref, opened: OpenedSession) -> list[str]:
        """The session that outlives the connection. Returns the filters that the client may no longer use."""

    def open_link(self, client: Client, device: bytes, stored: Callable[[DomainError | None], None]) -> None:
        """Open the link of the client's device; its entry in the connection log is on disk when `stored` is called."""

    def welcome(self, answer: bytes, received: set[int]) -> None:
        """All is on disk: send the CONNACK, and handle what came meanwhile.

        `received` are the packet ids of QoS 2 that an earlier connection of the session has brought.
        """


class Handshake:
    """The handshake of one connection. It ends with `welcome`, or with the connection."""

    __slots__ = ("_connect", "_is_resumed", "_peer", "_session", "_to_store")

    def __init__(self, session: Entrant, connect: Connect, peer: Peer) -> None:
        self._session = session
        self._connect = connect
        self._peer = peer
        self._to_store = 0
        """What has to be on disk before the CONNACK leaves."""
        self._is_resumed = False

    def begin(self) -> None:
        """Refuse what is refused whoever sends it, or log the client in."""
        problem = connecting.problem_of(self._connect) or self._too_small()
        if problem is not None:
            self._session.disconnect(*problem)
            return
        self._session.service.system.component(LinkTasks).start_soon(self._log_in)

    def _too_small(self) -> tuple[int, str] | None:
        """Why the client is refused if it takes no packet that is as large as its CONNACK."""
        if "maximum_packet_size" not in self._connect.properties:
            return None
        size_bytes = len(self._welcome())
        if size_bytes <= self._session.outgoing.packet_bytes_max:
            return None
        return packets.PACKET_TOO_LARGE, f"the CONNACK has {size_bytes} bytes; allow that many in a packet"

    def _welcome(self) -> bytes:
        """The CONNACK that accepts the client."""
        assigned_id = None if self._connect.client_id else self._session.client_id
        return connecting.welcome(
            self._connect, self._session.limits, assigned_id, is_resumed=self._is_resumed
        )

    async def _log_in(self) -> None:
        session, connect, peer = self._session, self._connect, self._peer
        presented = Presented(
            session.client_id, connect.username, connect.password, peer.certificate, session.address or ""
        )
        try:
            client = await log_in(session.service.dispatcher, presented, session.service.anonymous_key)
            if session.is_open:
                self._connect_as(client)
        except DomainError as reason:
            refusal = session.service.system.checked(reason)
            code = code_of(refusal)
            if isinstance(refusal, Unauthorized | Invalid):
                code = (
                    packets.NOT_AUTHORIZED if connect.username is None else packets.BAD_USER_NAME_OR_PASSWORD
                )
            session.disconnect(code, refusal.message)
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            _log.error("login failed", exc_info=bug)
            session.disconnect(packets.UNSPECIFIED_ERROR, "the server failed; the fault is logged")

    def _connect_as(self, client: Client) -> None:
        """The client is who it says: store what it has brought. Raises `DomainError`."""
        session, connect = self._session, self._connect
        refusal = self._refusal_of(client)
        if refusal is not None:
            session.note_end(client, *refusal)
            session.disconnect(*refusal)
            return
        nearer = session.service.nearer(self._peer) if connecting.wants_nearest(connect) else None
        if nearer is not None:
            session.disconnect(packets.USE_ANOTHER_SERVER, "the data are on another machine", nearer)
            return
        try:
            will = connecting.will_of(connect, client)
        except Invalid as problem:
            session.disconnect(packets.TOPIC_NAME_INVALID, problem.message)
            return
        session.let_in(client)
        session.service.tell_before(client.application, client.key)
        self._to_store = 1
        self._open_session(client)
        session.has_will = will is not None
        message = ConnectClient(
            will=will,
            retain_will=connect.will is not None and connect.will.retain,
            origin=client.origin,
            login=client.login,
            delay_s=connecting.will_delay_s(connect, session.limits),
            is_resumed=self._is_resumed,
        )
        self._store(Ref("publisher", client.application, client.key), message)
        if client.device is not None:
            self._to_store += 1
            session.open_link(client, client.device, self._stored)
        self._stored(None)

    def _refusal_of(self, client: Client) -> tuple[int, str] | None:
        """Why the client may not connect now."""
        service = self._session.service
        now_s = service.system.clock.monotonic_s()
        ban_s = service.client_limits.ban_left_s(client.application, client.key, now_s)
        if ban_s:
            return packets.BANNED, f"the client is banned for {math.ceil(ban_s)} s more"
        if not service.client_limits.connects(client.application, now_s):
            return packets.CONNECTION_RATE_EXCEEDED, "the application has too many new connections"
        return None

    def _open_session(self, client: Client) -> None:
        """Go on with the session of the client, or begin one, if it is to outlive the connection."""
        session, connect = self._session, self._connect
        ref = Ref(MqttSessionActor.kind, client.application, client.key)
        message = OpenSession(
            client_id=session.client_id,
            expiry_s=connecting.session_expiry_s(connect, session.limits),
            clean=connect.clean_start,
        )
        opened: OpenedSession | None = self._store(ref, message)
        if opened is None:
            return
        self._is_resumed = opened.is_present
        lost = session.go_on_with(ref, opened)
        if lost:
            self._store(ref, ChangeSubscriptions(session=opened.record.id, added={}, removed=tuple(lost)))

    def _store(self, ref: Ref, message: Message) -> Any:
        """Take a turn whose writes have to be on disk before the CONNACK. Returns its answer."""
        system = self._session.service.system
        turn = system.begin(ref, message)
        assert turn is not None, "neither a publisher nor a session has a turn that waits"
        if turn.group is not None:
            self._to_store += 1
            system.when_stored(turn, self._stored)
        return turn.value

    def _stored(self, failure: DomainError | None) -> None:
        """One of the things that have to be on disk is, or could not be stored."""
        session = self._session
        self._to_store -= 1
        if failure is not None:
            session.disconnect(code_of(failure), failure.message)
        elif not self._to_store and session.is_open:
            self._end()

    def _end(self) -> None:
        """All is on disk."""
        session = self._session
        client, system = session.client, session.service.system
        assert client is not None
        received: set[int] = set()
        if self._is_resumed and session.session is not None:
            # What an earlier connection has brought is on disk only now, together with what this one has.
            with system.store.snapshot() as snapshot:
                received = received_of(snapshot, client.application, session.session)
        for kind in ("publisher", MqttSessionActor.kind):
            system.release(Ref(kind, client.application, client.key))
        session.welcome(self._welcome(), received)
