"""The session of an MQTT client that outlives its connections: when it begins and ends, and what changes in it.

One actor for each client of an application; nothing of it stays in memory. What waits for a session is added by the
publishers of messages (`queues.py`), and removed here when the client has acknowledged it. A session that has ended is
removed at once, except what waited for it: that is removed in parts (`session_sweep.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from msgspec import Struct

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.data.topics.queues import read_head, stage_move, stage_received, stage_removal
from trunkline.actors.data.topics.session_records import (
    Options,
    SessionRecord,
    decode_session,
    group_id,
    index_key,
    index_value,
    split_shared,
)
from trunkline.store import keys
from trunkline.store.codec import decode, encode


class OpenedSession(Struct, frozen=True):
    """A session that a client uses from now on. `is_present`: it had it before."""

    record: SessionRecord
    is_present: bool


class OpenSession(Message, frozen=True):
    """A client has connected: go on with its session, or with `clean` begin a new one, if `expiry_s` is not 0.

    Answers the session, `OpenedSession`, or None if it has none.
    """

    client_id: str
    expiry_s: int
    clean: bool


class CloseSession(Message, frozen=True):
    """The connection of a session has ended. `expiry_s` is the new time for which it is kept, None for the old one.

    Messages with numbers below `sent_below` may have been sent; None where nobody knows, as after a kill of the server.
    """

    session: bytes
    expiry_s: int | None = None
    sent_below: int | None = None


class ChangeSubscriptions(Message, frozen=True):
    """Add or replace subscriptions of a session, and remove others."""

    session: bytes
    added: Mapping[str, Options]
    removed: tuple[str, ...]


class AcknowledgeMessages(Message, frozen=True):
    """The client has these messages, and has said so to the end."""

    session: bytes
    numbers: tuple[int, ...]


class TakeShared(Message, frozen=True):
    """Give a session up to `number` messages that wait for a shared subscription of which it is a member, with this QoS
    at most and these identifiers."""

    session: bytes
    group: bytes
    number: int
    qos: int
    ids: tuple[int, ...]


class MessageReceived(Message, frozen=True):
    """The client has a message with QoS 2, which is not to be sent again."""

    session: bytes
    number: int


class ReleasePacket(Message, frozen=True):
    """The client has released the packet id of a message with QoS 2 that it has published."""

    session: bytes
    packet_id: int


class EndSession(Message, frozen=True):
    """End a session whose client has stayed away for too long. Nothing happens if it has come back."""


class RemoveWaiting(Message, frozen=True):
    """Remove these messages of a session that has ended; with `is_last` nothing is left of it."""

    session: bytes
    numbers: tuple[int, ...]
    packet_ids: tuple[int, ...]
    is_last: bool


class MqttSessionActor(Actor):
    """The session of a client, by its key (`access/client_login.py`). `ref.parent` is the application's id."""

    kind: ClassVar[str] = "mqttSession"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True

    def missing(self) -> str:
        return f"There is no application {self.ref.parent.hex()}."

    def on_open_session(self, message: OpenSession) -> OpenedSession | None:
        """Go on with the session, or begin one."""
        before, now_ms, change = self._stored(), self.system.clock.wall_ms(), 0
        if before is not None:
            self._come_back(before)
            ends_ms = before.ends_ms
            if message.clean or (ends_ms is not None and now_ms >= ends_ms):
                self._end(before)
                before, change = None, -1
        if before is not None:
            record = before._replace(expiry_s=message.expiry_s, away_ms=None)
        elif message.expiry_s:
            self._count(change + 1)
            record = SessionRecord(
                message.client_id, self.system.ids.new(now_ms), message.expiry_s, None, {}, 0
            )
        else:
            self._count(change)
            return None
        self._put(record)
        return OpenedSession(record, before is not None)

    def on_close_session(self, message: CloseSession) -> None:
        """Note when the client has left, or end the session."""
        record = self._of(message.session)
        if record is None or record.away_ms is not None:
            return
        now_ms = self.system.clock.wall_ms()
        expiry_s = record.expiry_s if message.expiry_s is None else message.expiry_s
        if not expiry_s:
            self._end(record)
            self._count(-1)
            return
        head = read_head(
            self.system.journal.get(keys.MESSAGES, keys.queue_head_key(self.ref.parent, record.id))
        )
        sent_below = head.next if message.sent_below is None else message.sent_below
        record = record._replace(expiry_s=expiry_s, away_ms=now_ms, sent_below=sent_below)
        self._put(record)
        assert record.ends_ms is not None
        self.put(keys.MESSAGES, keys.away_key(self.ref.parent, record.ends_ms, self.ref.id), b"")

    def on_change_subscriptions(self, message: ChangeSubscriptions) -> None:
        """Change the subscriptions, and their index."""
        record = self._of(message.session)
        if record is None:
            return
        filters = dict(record.filters)
        for filter in message.removed:
            if filters.pop(filter, None) is not None:
                self._leave_index(filter)
        for filter, options in message.added.items():
            self._enter_index(filter, options, record.id, is_new=filter not in filters)
            filters[filter] = options
        self._put(record._replace(filters=filters))
        self._announce()

    def on_take_shared(self, message: TakeShared) -> int:
        """Move messages that wait for a group to the session of a member. Answers how many."""
        record = self._of(message.session)
        if record is None or self.system.journal.get(
            keys.MESSAGES, keys.ended_session_key(self.ref.parent, message.group)
        ):
            return 0  # or what waited for a group of before is still to be removed
        return stage_move(self, message.group, record.id, message.number, message.qos, message.ids)

    def on_acknowledge_messages(self, message: AcknowledgeMessages) -> None:
        """Remove messages that the client has."""
        if self._of(message.session) is not None:
            stage_removal(self, message.session, message.numbers)

    def on_message_received(self, message: MessageReceived) -> None:
        """Note that a message is to be released, and not sent again."""
        if self._of(message.session) is not None:
            stage_received(self, message.session, message.number)

    def on_release_packet(self, message: ReleasePacket) -> bool:
        """Forget a packet id. Answers whether it was known."""
        key = keys.received_key(self.ref.parent, message.session, message.packet_id)
        if self.system.journal.get(keys.MESSAGES, key) is None:
            return False
        self.delete(keys.MESSAGES, key)
        return True

    def on_end_session(self, _message: EndSession) -> None:
        """End the session if its time is over."""
        record = self._stored()
        ends_ms = None if record is None else record.ends_ms
        if record is not None and ends_ms is not None and self.system.clock.wall_ms() >= ends_ms:
            self._come_back(record)
            self._end(record)
            self._count(-1)

    def on_remove_waiting(self, message: RemoveWaiting) -> None:
        """Remove what is left of a session that has ended."""
        application = self.ref.parent
        stage_removal(self, message.session, message.numbers)
        for packet_id in message.packet_ids:
            self.delete(keys.MESSAGES, keys.received_key(application, message.session, packet_id))
        if message.is_last:
            # A group may have members again.
            if self.system.journal.get(keys.MESSAGES, keys.group_key(application, message.session)) is None:
                self.delete(keys.MESSAGES, keys.queue_head_key(application, message.session))
            self.delete(keys.MESSAGES, keys.ended_session_key(application, message.session))

    # Records.

    def _stored(self) -> SessionRecord | None:
        raw = self.system.journal.get(keys.MESSAGES, keys.session_key(self.ref.parent, self.ref.id))
        return None if raw is None else decode_session(raw)

    def _of(self, session: bytes) -> SessionRecord | None:
        """The session, if the client still has it."""
        record = self._stored()
        return record if record is not None and record.id == session else None

    def _put(self, record: SessionRecord) -> None:
        self.put(keys.MESSAGES, keys.session_key(self.ref.parent, self.ref.id), record.encoded())

    def _come_back(self, record: SessionRecord) -> None:
        """Its end is no longer waited for."""
        if record.ends_ms is not None:
            self.delete(keys.MESSAGES, keys.away_key(self.ref.parent, record.ends_ms, self.ref.id))

    def _end(self, record: SessionRecord) -> None:
        """Remove the session and its subscriptions; what waits for it is removed in parts."""
        application, client = self.ref.parent, self.ref.id
        self.delete(keys.MESSAGES, keys.session_key(application, client))
        for filter in record.filters:
            self._leave_index(filter)
        self._leave_waiting(record.id, client)
        if record.filters:
            self._announce()

    def _leave_waiting(self, session: bytes, client: bytes) -> None:
        """What waits now for a session, or for a group, is to be removed."""
        application = self.ref.parent
        head = read_head(self.system.journal.get(keys.MESSAGES, keys.queue_head_key(application, session)))
        self.put(keys.MESSAGES, keys.ended_session_key(application, session), encode([client, head.next]))

    def _enter_index(self, filter: str, options: Options, session: bytes, *, is_new: bool) -> None:
        """Have messages wait because of a subscription: for the session, or for the group of a shared one."""
        application, group = self.ref.parent, group_id(filter)
        if group is None:
            key = index_key(application, filter, self.ref.id)
            self.put(keys.MESSAGES, key, index_value(session, options))
        elif is_new and self._count_members(group, 1) == 1:
            key = index_key(application, split_shared(filter)[1], group)
            self.put(keys.MESSAGES, key, index_value(group, Options(2)))

    def _leave_index(self, filter: str) -> None:
        """No more messages wait because of a subscription; with the last member of a group all that wait for it go."""
        application, group = self.ref.parent, group_id(filter)
        if group is None:
            self.delete(keys.MESSAGES, index_key(application, filter, self.ref.id))
        elif self._count_members(group, -1) == 0:
            self.delete(keys.MESSAGES, index_key(application, split_shared(filter)[1], group))
            self._leave_waiting(group, group)

    def _count_members(self, group: bytes, change: int) -> int:
        """Count the sessions that are members of a group. Returns how many there are now."""
        key = keys.group_key(self.ref.parent, group)
        raw = self.system.journal.get(keys.MESSAGES, key)
        number: int = max(0, (0 if raw is None else decode(raw)) + change)
        if number:
            self.put(keys.MESSAGES, key, encode(number))
        else:
            self.delete(keys.MESSAGES, key)
        return number

    def _count(self, change: int) -> None:
        """Count the sessions of the application. Raises `Overloaded` if it would have more than it may."""
        if not change:
            return
        key, most = keys.session_count_key(self.ref.parent), self.system.limits.mqtt_sessions_max
        raw = self.system.journal.get(keys.MESSAGES, key)
        number = (0 if raw is None else decode(raw)) + change
        if number > most:
            raise Overloaded(
                f"The application has {most} MQTT sessions that outlive their connections, which is the limit. Connect "
                "with a clean start and without a session expiry.",
                reason="mqtt_sessions",
            )
        if number > 0:
            self.put(keys.MESSAGES, key, encode(number))
        else:
            self.delete(keys.MESSAGES, key)

    def _announce(self) -> None:
        """After the commit the broker looks again who is subscribed."""
        broker = self.system.component(Broker)
        self.after_commit(partial(broker.subscriptions_changed, self.ref.parent))
