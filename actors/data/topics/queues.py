"""What waits for the sessions of MQTT clients: messages with QoS 1 and 2 that they have not acknowledged.

Owns how a message is stored for the sessions that it waits for, how many may wait for one session, and how they are
read. A message that waits for several sessions is stored once. Does not own who gets it (`session_records.py`).

The entries are staged in the turn of the publisher, so that a message is acknowledged to its publisher when it is on
disk for all its receivers; they are removed in turns of the session (`session_actor.py`). All of an application are
written in one process, and read from the journal, so the numbers are right although several actors write them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunkline.actors.data.topics.expiry_search import ExpirySearch, Looks
from trunkline.actors.data.topics.publication import Publication
from trunkline.actors.data.topics.retained import decoded, encoded, expires_ms_of
from trunkline.actors.data.topics.session_records import Sleeper, decode_session
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor, Stamp
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

_COPIED_BYTES_MAX: Final = 256
"""A message with fewer bytes is copied for each session: counting who still needs it would cost more."""


class Head(NamedTuple):
    """How many messages wait for a session, their bytes, the number of the next one, and how many were dropped."""

    number: int = 0
    size_bytes: int = 0
    next: int = 1
    dropped: int = 0


class Entry(NamedTuple):
    """A message that waits for a session. With `is_released`, the client has it, and only its release is missing.

    `shared` is the id of the message where several sessions share it.
    """

    qos: int
    retain: bool
    ids: tuple[int, ...]
    is_released: bool
    shared: bytes | None
    raw: bytes


class Queued(NamedTuple):
    """A message that was queued for a session of a client, with its number there."""

    client: bytes
    session: bytes
    number: int
    qos: int
    ids: tuple[int, ...]
    retain: bool


def read_head(raw: bytes | None) -> Head:
    """The head of a queue of which `raw` are the stored bytes; None is that of an empty one."""
    return Head() if raw is None else Head(*decode(raw))


def head_of(snapshot: Snapshot, application: bytes, session: bytes) -> Head:
    """The head of the queue of a session, as it is stored."""
    return read_head(snapshot.get(keys.MESSAGES, keys.queue_head_key(application, session)))


def read_entry(raw: bytes) -> Entry:
    """The entry of which `raw` are the stored bytes."""
    qos, retain, ids, is_released, shared, message = decode(raw)
    return Entry(qos, retain, tuple(ids), is_released, shared, message)


def _number_of(key: bytes) -> int:
    """The number of the message in a key of a queue."""
    return int.from_bytes(key[-8:], "big")


def stage_for(
    actor: Actor, publication: Publication, sleepers: Iterable[Sleeper], *, retain: bool
) -> tuple[list[Queued], int]:
    """Stage a message for sessions; where a queue is full, expired messages are removed. Returns what was queued, and
    for how many sessions there was no room."""
    application, limits, get = actor.ref.parent, actor.system.limits, actor.system.journal.get
    raw = encoded(publication)
    queued: list[Queued] = []
    dropped = 0
    shared: bytes | None = None
    if len(raw) > _COPIED_BYTES_MAX:
        shared = actor.system.ids.new(actor.system.clock.wall_ms())
    search, looks = actor.system.component(ExpirySearch), Looks()
    released: Counter[bytes] = Counter()
    for sleeper in sleepers:
        head_key = keys.queue_head_key(application, sleeper.session)
        head = read_head(get(keys.MESSAGES, head_key))
        qos, keeps_retain = min(sleeper.qos, publication.qos), retain and sleeper.retain_as_published
        if _is_full(head, len(raw), limits):
            head = _without_expired(actor, sleeper, head, len(raw), looks, released)
        if _is_full(head, len(raw), limits):
            actor.put(keys.MESSAGES, head_key, encode([*head[:3], head.dropped + 1]))
            dropped += 1
            continue
        entry = encode([qos, keeps_retain, sleeper.ids, False, shared, b"" if shared else raw])
        actor.put(keys.MESSAGES, keys.queue_key(application, sleeper.session, head.next), entry)
        after = Head(head.number + 1, head.size_bytes + len(raw), head.next + 1, head.dropped)
        actor.put(keys.MESSAGES, head_key, encode(list(after)))
        search.note(keys.queue_prefix(application, sleeper.session), publication.expires_ms)
        queued.append(Queued(sleeper.client, sleeper.session, head.next, qos, sleeper.ids, keeps_retain))
    if shared and queued:
        actor.put(keys.MESSAGES, keys.message_key(application, shared), raw)
        actor.put(keys.MESSAGES, keys.references_key(application, shared), encode(len(queued)))
    _release(actor, released)
    return queued, dropped


def _is_full(head: Head, more_bytes: int, limits: Limits) -> bool:
    """Whether a queue has no room for a message with so many bytes."""
    return (
        head.number >= limits.mqtt_queue_messages_max
        or head.size_bytes + more_bytes > limits.mqtt_queue_bytes_max
    )


def _without_expired(
    actor: Actor, sleeper: Sleeper, head: Head, more_bytes: int, looks: Looks, released: Counter[bytes]
) -> Head:
    """Stage that expired messages wait no more, as far as their room is needed. Returns the head after that, which is
    not staged; adds to `released` the shared messages that are needed no more.

    What the client may have been sent stays, as that expires no more (MQTT-4.3.3-7), and all of a client that is
    connected: that is sent what waits, or passes over it.
    """
    system, prefix = actor.system, keys.queue_prefix(actor.ref.parent, sleeper.session)
    search, now_ms = system.component(ExpirySearch), system.clock.wall_ms()
    if looks.left <= 0 or not search.may_find(prefix, now_ms):
        return head
    may_be_more, removed = True, set[int]()
    with system.store.snapshot() as snapshot:
        messages = partial(_expiries, snapshot, actor, sleeper)
        while may_be_more and _is_full(head, more_bytes, system.limits):
            found, may_be_more = search.find(prefix, messages, now_ms, looks)
            numbers = {_number_of(key) for key in found} - removed
            removed |= numbers
            head = _removed(actor, sleeper.session, head, sorted(numbers), released)
    return head


def _expiries(
    snapshot: Snapshot, actor: Actor, sleeper: Sleeper, low: bytes
) -> Iterator[tuple[bytes, int, int | None]]:
    """The keys of messages that were not sent to a client, their bytes, and when they expire."""
    application, first = actor.ref.parent, 0
    if not sleeper.is_group:
        raw = actor.system.journal.get(keys.MESSAGES, keys.session_key(application, sleeper.client))
        record = None if raw is None else decode_session(raw)
        if record is None or record.id != sleeper.session or record.away_ms is None:
            return
        first = record.sent_below
    low = max(low, keys.queue_key(application, sleeper.session, first))
    high = keys.prefix_end(keys.queue_prefix(application, sleeper.session))
    for key, value in snapshot.range(keys.MESSAGES, low, high):
        message = _message_of(snapshot, application, read_entry(bytes(value)))
        yield bytes(key), len(message), expires_ms_of(message) if message else None


def stage_removal(actor: Actor, session: bytes, numbers: Iterable[int]) -> None:
    """Stage that a session needs messages no more; those that it has not are passed over."""
    head_key = keys.queue_head_key(actor.ref.parent, session)
    head = read_head(actor.system.journal.get(keys.MESSAGES, head_key))
    released: Counter[bytes] = Counter()
    after = _removed(actor, session, head, dict.fromkeys(numbers), released)
    if after.number == head.number:
        return
    actor.put(keys.MESSAGES, head_key, encode(list(after)))
    _release(actor, released)


def _removed(
    actor: Actor, session: bytes, head: Head, numbers: Iterable[int], released: Counter[bytes]
) -> Head:
    """Stage that messages of a session are removed, those that it has. Returns its head after that, which is not
    staged; adds to `released` the shared messages that it needs no more."""
    application, get = actor.ref.parent, actor.system.journal.get
    number, size_bytes = head.number, head.size_bytes
    for each in numbers:
        key = keys.queue_key(application, session, each)
        raw = get(keys.MESSAGES, key)
        if raw is None:
            continue
        entry = read_entry(raw)
        actor.delete(keys.MESSAGES, key)
        number -= 1
        if entry.shared is None:
            size_bytes -= len(entry.raw)
        else:
            size_bytes -= len(get(keys.MESSAGES, keys.message_key(application, entry.shared)) or b"")
            released[entry.shared] += 1
    return head._replace(number=number, size_bytes=size_bytes if number else 0)


def stage_move(
    actor: Actor, source: bytes, target: bytes, number: int, qos: int, ids: tuple[int, ...]
) -> int:
    """Stage that up to `number` messages wait for another session than before. Returns how many."""
    application, journal = actor.ref.parent, actor.system.journal
    low = keys.queue_prefix(application, source)
    high = keys.prefix_end(low)
    assert high is not None
    found = list(islice(journal.range(keys.MESSAGES, low, high), number))
    if not found:
        return 0
    heads = [
        read_head(journal.get(keys.MESSAGES, keys.queue_head_key(application, each)))
        for each in (source, target)
    ]
    size_bytes = 0
    for at, (key, raw) in enumerate(found):
        entry = read_entry(raw)
        message = entry.raw
        if entry.shared is not None:
            message = journal.get(keys.MESSAGES, keys.message_key(application, entry.shared)) or b""
        size_bytes += len(message)
        plain: list[Any] = [*entry._replace(qos=min(qos, entry.qos), ids=ids)]
        actor.delete(keys.MESSAGES, key)
        actor.put(keys.MESSAGES, keys.queue_key(application, target, heads[1].next + at), encode(plain))
    for session, head, change, moved in (
        (source, heads[0], -1, 0),
        (target, heads[1], 1, len(found)),
    ):
        after = Head(
            head.number + change * len(found),
            max(0, head.size_bytes + change * size_bytes),
            head.next + moved,
            head.dropped,
        )
        actor.put(keys.MESSAGES, keys.queue_head_key(application, session), encode(list(after)))
    return len(found)


def _release(actor: Actor, released: Counter[bytes]) -> None:
    """Sessions need shared messages no more, so many of each; a message goes with the last one."""
    application, get = actor.ref.parent, actor.system.journal.get
    for id, times in released.items():
        key = keys.references_key(application, id)
        raw = get(keys.MESSAGES, key)
        left = 0 if raw is None else decode(raw) - times
        if left > 0:
            actor.put(keys.MESSAGES, key, encode(left))
        else:
            actor.delete(keys.MESSAGES, key)
            actor.delete(keys.MESSAGES, keys.message_key(application, id))


def stage_received(actor: Actor, session: bytes, number: int) -> None:
    """Stage that the client has a message with QoS 2, which is to be released."""
    key = keys.queue_key(actor.ref.parent, session, number)
    raw = actor.system.journal.get(keys.MESSAGES, key)
    if raw is not None:
        entry = read_entry(raw)
        plain: list[Any] = [*entry._replace(is_released=True)]
        actor.put(keys.MESSAGES, key, encode(plain))


def waiting_of(
    snapshot: Snapshot, application: bytes, session: bytes, after: int
) -> Iterator[tuple[int, Entry, Publication | None]]:
    """The messages that wait for a session, behind the number `after`, in their order: number, entry, message.

    A released one has no message.
    """
    low = keys.queue_key(application, session, after + 1)
    high = keys.prefix_end(keys.queue_prefix(application, session))
    for key, raw in snapshot.range(keys.MESSAGES, low, high):
        entry = read_entry(bytes(raw))
        message = _message_of(snapshot, application, entry)
        yield _number_of(bytes(key)), entry, decoded(message) if message else None


def _message_of(snapshot: Snapshot, application: bytes, entry: Entry) -> bytes:
    """The bytes of the message of an entry; none if it is released."""
    if entry.is_released:
        return b""
    if entry.shared is None:
        return entry.raw
    return bytes(snapshot.get(keys.MESSAGES, keys.message_key(application, entry.shared)) or b"")


def mark_received(session: bytes, packet_id: int) -> Stamp:
    """Have a turn of what a message with QoS 2 brings note that the session has received it."""

    def stamp(actor: Actor, _value: Any) -> None:
        actor.put(keys.MESSAGES, keys.received_key(actor.ref.parent, session, packet_id), b"")

    return stamp


def received_of(snapshot: Snapshot, application: bytes, session: bytes) -> set[int]:
    """The packet ids with QoS 2 that a session has received and not released."""
    prefix = keys.received_prefix(application, session)
    return {
        int.from_bytes(key[-2:], "big")
        for key in snapshot.keys(keys.MESSAGES, prefix, keys.prefix_end(prefix))
    }
