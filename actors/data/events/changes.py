"""The log of changes: which events the latest turns of the event log have created, changed and deleted.

Owns the stored form, the events of the application's streams, and how these resume. A turn is one entry, so a change of
many events costs two small writes more. An entry has ids only: what is sent live is the event after the change, what is
sent to a client that comes back is the event as it is by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import application_streams
from trunkline.actors.core.runtime.subscription import Missed
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.events.messages import Change, GetMissedChanges
from trunkline.actors.data.events.reads import EventPresenter
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.store.snapshot import Snapshot

EVENT_TOPIC: Final = "events"
"""The topic of the streams of an application that show its events."""

_CHANGES: Final[tuple[Change, ...]] = ("created", "changed", "deleted")
_ITEM_BYTES: Final = keys.ID_BYTES + 1
_SHIFT: Final = 20
_INLINE: Final = 64
"""So many changes are shown in the event loop."""


class EventChange(NamedTuple):
    """A change of an event, and its record after that; None if it is deleted."""

    id: bytes
    change: Change
    doc: Doc | None = None


def stage_changes(actor: Actor, changes: list[EventChange]) -> int:
    """Add an entry in the turn of the log, and drop the one that is too much. Returns the number of the entry."""
    application = actor.ref.id
    counter = keys.last_event_change_key(application)
    raw = actor.system.journal.get(keys.EVENTS, counter)
    number: int = 1 if raw is None else decode(raw) + 1
    items = b"".join(each.id + bytes([_CHANGES.index(each.change)]) for each in changes)
    actor.put(keys.EVENTS, counter, encode(number))
    actor.put(keys.EVENTS, keys.event_change_key(application, number), encode(items))
    oldest = number - actor.system.limits.kept_event_changes_max
    if oldest > 0:
        actor.delete(keys.EVENTS, keys.event_change_key(application, oldest))
    return number


def publish_changes(system: Host, application: bytes, number: int, changes: list[EventChange]) -> None:
    """Tell the streams of the application of the changes of an entry, after its commit."""
    ref = application_streams(application)
    if system.has_subscribers(ref, EVENT_TOPIC):
        with system.store.snapshot() as snapshot:
            presenter = EventPresenter(snapshot, application, None)
            events = [
                (_position(number, index), _shown(presenter, each)) for index, each in enumerate(changes)
            ]
        system.publish(ref, EVENT_TOPIC, events)


def end_of_changes(snapshot: Snapshot, application: bytes) -> int:
    """The position after all changes."""
    return _last(snapshot, application) + 1 << _SHIFT


def get_missed_changes(reading: Reading, message: GetMissedChanges) -> Missed:
    """The changes after a position, or that some of them are not kept any more."""
    snapshot, application = reading.snapshot, message.application
    last, end = _last(snapshot, application), end_of_changes(snapshot, application)
    if message.position > end:
        return Missed([], more=False, position=end, is_reset=True)
    due = message.position >> _SHIFT
    presenter = EventPresenter(snapshot, application, None)
    missed: list[tuple[int, bytes]] = []
    left_bytes = message.bytes_max
    first, after = (keys.event_change_key(application, number) for number in (due, last + 1))
    for key, raw in snapshot.range(keys.EVENTS, first, after):
        if key != keys.event_change_key(application, due):
            break
        items: bytes = decode(raw)
        for index, at in enumerate(range(0, len(items), _ITEM_BYTES)):
            position = _position(due, index)
            if position <= message.position:
                continue
            if len(missed) >= message.limit or left_bytes <= 0:
                return Missed(missed, more=True)
            reading.check_time(is_long=len(missed) >= _INLINE)
            id, change = items[at : at + keys.ID_BYTES], _CHANGES[items[at + keys.ID_BYTES]]
            found = records.find(snapshot, EVENT, application, id)
            if change != "deleted" and found is None:
                continue  # its deletion follows
            doc = None if found is None or change == "deleted" else found.doc
            missed.append((position, _shown(presenter, EventChange(id, change, doc))))
            left_bytes -= len(missed[-1][1])
        due += 1
    if due <= last:
        return Missed([], more=False, position=end, is_reset=True)
    return Missed(missed, more=False, position=end)


def _last(snapshot: Snapshot, application: bytes) -> int:
    raw = snapshot.get(keys.EVENTS, keys.last_event_change_key(application))
    return 0 if raw is None else int(decode(raw))


def _position(number: int, index: int) -> int:
    return (number << _SHIFT) + index + 1


def _shown(presenter: EventPresenter, each: EventChange) -> bytes:
    shown: Doc = {"change": each.change, "eventId": each.id.hex()}
    if each.doc is not None:
        shown["event"] = presenter.summary(each.id, each.doc)
    return msgspec.json.encode(shown)
