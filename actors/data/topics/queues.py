"""What waits for the sessions of MQTT clients: messages with QoS 1 and 2 that they have not acknowledged.

Owns how a message is stored for the sessions that it waits for, how many may wait for one session, and how they are
read. A message that waits for several sessions is stored once. Does not own who gets it (`session_records.py`).

The entries are staged in the turn of the publisher, so that a message is acknowledged to its publisher when it is on
disk for all its receivers; they are removed in turns of the session (`session_actor.py`). All of an application are
written in one process, and read from the journal, so the numbers are right although several actors write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunkline.actors.data.topics.publication import Publication
from trunkline.actors.data.topics.retained import decoded, encoded
from trunkline.actors.data.topics.session_records import Sleeper
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor, Stamp
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


def stage_for(
    actor: Actor, publication: Publication, sleepers: Iterable[Sleeper], *, retain: bool
) -> tuple[list[Queued], int]:
    """Stage a message for sessions. Returns what was queued, and for how many sessions there was no room."""
    application, limits, get = actor.ref.parent, actor.system.limits, actor.system.journal.get
    raw = encoded(publication)
    queued: list[Queued] = []
    dropped = 0
    shared: bytes | None = None
    if len(raw) > _COPIED_BYTES_MAX:
        shared = actor.system.ids.new(actor.system.clock.wall_ms())
    for sleeper in sleepers:
        head_key = keys.queue_head_key(application, sleeper.session)
        head = read_head(get(keys.MESSAGES, head_key))
        qos, keeps_retain = min(sleeper.qos, publication.qos), retain and sleeper.retain_as_published
        if (
            head.number >= limits.mqtt_queue_messages_max
            or head.size_bytes + len(raw) > limits.mqtt_queue_bytes_max
        ):
            actor.put(keys.MESSAGES, head_key, encode([*head[:3], head.dropped + 1]))
            dropped += 1
            continue
        entry = encode([qos, keeps_retain, sleeper.ids, False, shared, b"" if shared else raw])
        actor.put(keys.MESSAGES, keys.queue_key(application, sleeper.session, head.next), entry)
        after = Head(head.number + 1, head.size_bytes + len(raw), head.next + 1, head.dropped)
        actor.put(keys.MESSAGES, head_key, encode(list(after)))
        queued.append(Queued(sleeper.client, sleeper.session, head.next, qos, sleeper.ids, keeps_retain))
    if shared and queued:
        actor.put(keys.MESSAGES, keys.message_key(application, shared), raw)
        actor.put(keys.MESSAGES, keys.references_key(application, shared), encode(len(queued)))
    return queued, dropped


def stage_removal(actor: Actor, session: bytes, numbers: Iterable[int]) -> None:
    """Stage that a session needs messages no more; those that it has not are passed over."""
    application, get = actor.ref.parent, actor.system.journal.get
    head_key = keys.queue_head_key(application, session)
    head = read_head(get(keys.MESSAGES, head_key))
    number, size_bytes = head.number, head.size_bytes
    released: dict[bytes, int] = {}
    for each in dict.fromkeys(numbers):
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
            released[entry.shared] = released.get(entry.shared, 0) + 1
    if number == head.number:
        return
    actor.put(keys.MESSAGES, head_key, encode([number, size_bytes if number else 0, head.next, head.dropped]))
    for id, times in released.items():
        _release(actor, id, times)


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


def _release(actor: Actor, id: bytes, times: int) -> None:
    """Sessions need a shared message no more; it goes with the last one."""
    application, get = actor.ref.parent, actor.system.journal.get
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
        number, entry = int.from_bytes(key[-8:], "big"), read_entry(bytes(raw))
        message = entry.raw
        if entry.shared is not None:
            message = snapshot.get(keys.MESSAGES, keys.message_key(application, entry.shared)) or b""
        yield number, entry, None if entry.is_released or not message else decoded(bytes(message))


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
