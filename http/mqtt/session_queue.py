"""What waits in the store for a client whose session outlives its connections.

Owns how far the client was sent what waits, and what it has acknowledged. Does not own what is stored
(`actors/data/topics/queues.py`), nor how many messages may be under way (`outgoing.py`).

A message goes from its commit to the client at once if all before it were sent and there is room. If not, the client is
behind: it is sent pages from the store whenever there is room. The packet id of a message follows from its number, so
it is the same on each connection, as the specification asks for.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.data.topics.publication import Publication
from trunkline.actors.data.topics.queues import Entry, Queued, waiting_of
from trunkline.actors.data.topics.session_actor import AcknowledgeMessages, MessageReceived, TakeShared
from trunkline.actors.data.topics.session_records import Options, SessionRecord
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.outgoing import Outgoing
from trunkline.http.mqtt.writer import ack

if TYPE_CHECKING:
    from trunkline.http.mqtt.connection import MqttConnection

PACKET_IDS: Final = 65_535
_PAGE: Final = 64
"""Messages that are read at a time: a fraction of a millisecond."""


class SessionQueue:
    """The queue of one connected client."""

    __slots__ = (
        "_acknowledged",
        "_is_behind",
        "_is_taking",
        "_last",
        "_ref",
        "_sent_below",
        "_session",
        "id",
    )

    def __init__(self, session: MqttConnection, ref: Ref, record: SessionRecord) -> None:
        """`ref` is the actor of the session."""
        self.id = record.id
        self._session = session
        self._ref = ref
        self._last = 0
        """The number of the last message that the client was sent on this connection."""
        self._is_behind = True
        self._sent_below = record.sent_below
        self._acknowledged: list[int] = []
        self._is_taking = False

    @property
    def sent_below(self) -> int:
        """Messages with numbers below it may have been sent to the client, on this connection or before."""
        return max(self._sent_below, self._last + 1)

    def offer(self, queued: Queued, publication: Publication) -> None:
        """A message was stored behind all others: send it, or remember that the client is behind."""
        if self._is_behind or queued.number <= self._last:
            return
        entry = Entry(queued.qos, queued.retain, queued.ids, False, None, b"")
        if not self._send(queued.number, entry, publication):
            self._is_behind = True

    def pump(self) -> None:
        """Send what waits as long as there is room."""
        session = self._session
        while self._is_behind and session.is_open and session.outgoing.has_room:
            with session.service.system.store.snapshot() as snapshot:
                page = list(islice(waiting_of(snapshot, self._ref.parent, self.id, self._last), _PAGE))
            for number, entry, publication in page:
                if not self._send(number, entry, publication):
                    return
            self._is_behind = len(page) == _PAGE

    def take(self, group: bytes, options: Options) -> None:
        """Take what waits for a shared subscription, if the client has all that waited for itself; some at a time."""
        session = self._session
        if self._is_behind or self._is_taking or session.outgoing.under_way or not session.outgoing.has_room:
            return
        ids = (options.id,) if options.id else ()
        message = TakeShared(session=self.id, group=group, number=_PAGE, qos=options.qos, ids=ids)
        try:
            turn = session.service.system.begin(self._ref, message)
        except DomainError:
            return  # with the next chance
        assert turn is not None, "a session has no turn that waits"
        if turn.value and turn.group is not None:
            self._is_taking = True
            session.service.system.when_stored(turn, self._taken)

    def _taken(self, failure: DomainError | None) -> None:
        self._is_taking = False
        if failure is None and self._session.is_open:
            self._is_behind = True
            self._session.pump()

    def flush(self) -> None:
        """Store what the client has acknowledged in this read. Put off if that is refused now."""
        numbers, system = self._acknowledged, self._session.service.system
        if not numbers:
            return
        try:
            system.begin(self._ref, AcknowledgeMessages(session=self.id, numbers=tuple(numbers)))
        except DomainError:
            return  # with the next acknowledgement; at worst the messages are sent again
        numbers.clear()

    def _send(self, number: int, entry: Entry, publication: Publication | None) -> bool:
        """Send a message, or its release. False if there is no room for it now."""
        session, packet_id = self._session, (number - 1) % PACKET_IDS + 1
        done = partial(self._acknowledged.append, number)
        if entry.is_released:
            packet = ack(session.version, packets.PUBREL, packet_id)
            is_sent = session.outgoing.release_as(packet_id, packet, done)
        elif publication is None or not session.may_receive(publication.topic):
            done()
            is_sent = True
        elif self._has_expired(number, publication):
            session.service.note_dropped()
            done()
            is_sent = True
        else:
            message = Outgoing(publication, entry.qos, entry.ids, entry.retain, done)
            received = partial(self._received, number, packet_id) if entry.qos == 2 else None
            is_sent = session.outgoing.send_as(packet_id, message, received, dup=number < self._sent_below)
        if is_sent:
            self._last = number
        return is_sent

    def _has_expired(self, number: int, publication: Publication) -> bool:
        """Whether a message has expired before it was sent: it takes no room then, and does not count in the rates."""
        expires_ms, clock = publication.expires_ms, self._session.service.system.clock
        return expires_ms is not None and number >= self._sent_below and expires_ms <= clock.wall_ms()

    def _received(self, number: int, packet_id: int) -> None:
        """The client has a message with QoS 2: it is released when that is stored."""
        message = MessageReceived(session=self.id, number=number)
        release = partial(ack, self._session.version, packets.PUBREL, packet_id)
        self._session.change_session(message, release)
