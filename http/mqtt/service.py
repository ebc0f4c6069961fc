"""The MQTT server: what all connections of MQTT clients share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

import structlog
import trio

from trunkline.actors.core.runtime.machines import Machines
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Gone, NotFound
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.topics.broker import Broker
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.mqtt.client_limits import ClientLimits
from trunkline.http.mqtt.ends import LoggedEnds
from trunkline.http.wire.byte_session import ByteBounds, ByteSession, Peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunkline.http.calls.dispatch import Dispatcher

_AGAIN_S: Final = 1.0
"""How long it is waited before what was refused is stored."""
_LOOK_S: Final = 0.001
"""How often it is looked whether there is room: about the time of a commit."""
_PACE_S: Final = 0.05
"""How often it is looked which clients may be sent more: a small part of the windows of the rates."""


_log = structlog.get_logger("trunkline.mqtt")


class Session(Protocol):
    """A session, as the server sees it."""

    def go_on(self) -> None:
        """Handle what was held back."""

    def flushed(self) -> None:
        """Send what waits, as far as the client takes it."""


class MqttService:
    """What they share. `connected` counts clients that were accepted since the start."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        anonymous_key: str | None = None,
        ports: Mapping[bool, int | None] = MappingProxyType({}),
    ) -> None:
        """`anonymous_key` is an access key: clients without a password may do what it allows. `ports` are those of this
        server, by whether they are for TLS."""
        self.dispatcher = dispatcher
        self.anonymous_key = anonymous_key
        self._ports = ports
        self.system = dispatcher.system
        self.client_limits = ClientLimits(dispatcher.system.limits)
        self.ends = LoggedEnds()
        self.refused = 0
        """Messages of clients that were not stored."""
        self.sessions: set[Session] = set()
        """The open connections."""
        self.connected = 0
        self.dropped = 0
        """Messages that connected clients were not sent: QoS 0 without room, expired ones, those too large for them."""
        self.session_for: Callable[[Peer], ByteSession]
        """Makes the session of a new connection."""
        self._waiting: dict[Session, None] = {}
        self._looks = False
        self._paced: dict[Session, float] = {}
        """The sessions whose clients are sent as much as they may be, and until when."""
        self._paces = False
        self._untold: list[tuple[Ref, Message]] = []
        """What could not be stored of connections that have ended."""
        self._tells_again = False

    def note_dropped(self) -> None:
        """A message was not sent to a connected client."""
        self.dropped += 1

    def nearer(self, peer: Peer) -> str | None:
        """Where a client would reach the machine that serves its data; None if it does, or that is not known."""
        url, port = self.system.component(Machines).nearer(peer.machine), self._ports.get(peer.tls)
        if url is None:
            return None
        if peer.websocket:
            return f"ws{url.removeprefix('http').rstrip('/')}/mqtt"
        host = urlsplit(url).hostname or ""
        return f"{f'[{host}]' if ':' in host else host}:{port}" if port else None

    @property
    def is_overloaded(self) -> bool:
        """Whether so much waits to be stored that clients have to wait: half of what may wait for all callers."""
        system = self.system
        return system.journal.pending_batches >= system.limits.waiting_writes_max // 2

    def wait(self, session: Session) -> None:
        """Let a session go on when there is room again, those that wait longest first."""
        self._waiting[session] = None
        if not self._looks:
            self._looks = True
            self.system.component(LinkTasks).start_soon(self._let_go_on)

    def flush_later(self, session: Session, after_s: float) -> None:
        """Let a session send on after a time."""
        self._paced[session] = self.system.clock.monotonic_s() + after_s
        if not self._paces:
            self._paces = True
            self.system.component(LinkTasks).start_soon(self._pace)

    def forget(self, session: Session) -> None:
        """A connection has ended."""
        self.sessions.discard(session)
        self._paced.pop(session, None)

    async def _pace(self) -> None:
        while self._paced:
            await trio.sleep(_PACE_S)
            now_s = self.system.clock.monotonic_s()
            due = [session for session, at_s in self._paced.items() if at_s <= now_s]
            for session in due:
                if self._paced.pop(session, None) is not None:
                    session.flushed()
        self._paces = False

    def tell(self, ref: Ref, message: Message) -> None:
        """Tell an actor that a connection has ended. What is refused now, or cannot be stored, it is told again."""
        try:
            turn = self.system.begin(ref, message)
        except (NotFound, Gone):
            return  # the application was deleted
        except DomainError as refusal:
            self._told(ref, message, refusal)
            return
        if turn is not None and turn.group is not None:
            self.system.when_stored(turn, partial(self._told, ref, message))

    def tell_before(self, application: bytes, client: bytes) -> None:
        """A client has come back: tell first what its earlier connections have left."""
        left = [each for each in self._untold if (each[0].parent, each[0].id) == (application, client)]
        for each in left:
            self._untold.remove(each)
            self.tell(*each)

    def _told(self, ref: Ref, message: Message, failure: DomainError | None) -> None:
        if failure is None:
            return
        self._untold.append((ref, message))
        if not self._tells_again:  # otherwise each would be logged with each time that it is told again
            _log.warning("the end of an MQTT connection is stored later", reason=failure.message)
            self._tells_again = True
            self.system.component(LinkTasks).start_soon(self._tell_again)

    async def _tell_again(self) -> None:
        broker = self.system.component(Broker)
        while self._untold:
            await trio.sleep(_AGAIN_S)
            untold, self._untold = self._untold, []
            for ref, message in untold:
                if ref.id not in broker.clients_of(ref.parent):  # its new connection was told before it came
                    self.tell(ref, message)
        self._tells_again = False

    async def _let_go_on(self) -> None:
        while self._waiting:
            await trio.sleep(_LOOK_S)
            while self._waiting and not self.is_overloaded:
                session = next(iter(self._waiting))
                del self._waiting[session]
                session.go_on()
        self._looks = False

    @property
    def bounds(self) -> ByteBounds:
        """The bounds of connections."""
        limits = self.system.limits
        return ByteBounds(
            unsent_bytes_max=limits.mqtt_buffer_bytes_max,
            established_s=limits.mqtt_connect_s,
            write_timeout_s=limits.write_timeout_s,
        )
