"""The feed of states: what devices report, as it is committed, to the streams of devices and of applications.

Owns which streams get which state, live and when they resume. Does not own the log and its positions
(`store/report_log.py`), nor the streams themselves (`core/runtime/streams.py`).

A device whose states nobody follows only looks up its application and itself. Otherwise it notes who it is after its
commit; then the feed reads the reports of all noted devices out of what was committed. So live events have the
positions and the order of the log. The topic of an application's stream is its selection: streams with equal selections
share the encoded events.

A selection is asked about the record that a device has when its state is sent: a device that is created, or changed so
that it matches, is followed from its next state on. A stream that resumes asks about the records of that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import structlog

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.page import Match
from trunkline.actors.core.records.reading import INLINE_BYTES_MAX, Reading
from trunkline.actors.core.runtime.ref import Ref, application_streams
from trunkline.actors.core.runtime.subscription import Missed
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.plain_json import json_bytes
from trunkline.actors.fleet.devices.queries.selection import own_filter
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import StateStream
from trunkline.actors.fleet.devices.record.read_messages import GetMissedStates
from trunkline.actors.fleet.devices.state.history import attribute_names, oldest_state_ms
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.store.arrival_chunks import Chunk
from trunkline.store.report_log import chunks_from, commit_of, end_of, reports
from trunkline.store.snapshot import Snapshot

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host

_LOG_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of reports that are searched for one page: about 50 ms in a worker thread."""
STATE_TOPIC: Final = "states"
"""The topic of a device's own state streams."""

_MEMBERS_MAX: Final = 5_000
"""Devices of which a selection remembers whether they match, with their records."""
_INLINE_COMMITS: Final = 8
"""So many commits are read in the event loop."""

_log = structlog.get_logger("trunkline.streams")


class Selection:
    """Which states a stream of an application shows. Raises `Invalid` for a query that a stream cannot follow.

    `topic` is the same for equal selections.
    """

    __slots__ = ("_any_of", "_ids", "_members", "_names", "topic")

    def __init__(self, query: StateStream) -> None:
        given = (query.device_ids, query.device_tags, query.device_query, query.attributes)
        self.topic = msgspec.json.encode(given, order="deterministic").decode()
        self._ids = frozenset(id.lower() for id in query.device_ids or ())
        self._any_of: list[Match] = []
        if query.device_tags:
            filters = [msgspec.to_builtins(each) for each in query.device_tags]
            self._any_of.append(lambda doc: has_tag(doc["tags"], filters))
        if query.device_query is not None:
            self._any_of.append(own_filter(query.device_query, "deviceQuery"))
        if not self._ids and not self._any_of:
            self._any_of.append(lambda _doc: True)
        self._names = attribute_names(query.attributes)
        self._members: dict[bytes, tuple[Doc, bool]] = {}

    def has(self, device: bytes, doc: Doc) -> bool:
        """Whether a device is selected, given its record."""
        known = self._members.get(device)
        if known is not None and known[0] is doc:
            return known[1]
        id = device.hex()
        shown = {**doc, "id": id}
        is_member = id in self._ids or any(match(shown) for match in self._any_of)
        if len(self._members) >= _MEMBERS_MAX:
            self._members.clear()
        self._members[device] = doc, is_member
        return is_member

    def event(self, device: bytes, entry: Doc) -> bytes | None:
        """The event of a state, given as `Attributes.entry` shows it; None if it has none of the attributes."""
        data = entry["data"]
        if self._names is not None:
            data = {name: value for name, value in data.items() if name in self._names}
        return json_bytes({"deviceId": device.hex(), **entry, "data": data}) if data else None


def _own_event(entry: Doc) -> bytes | None:
    """The event of a state in a stream of its device; None if all of its attributes were removed."""
    return json_bytes(entry) if entry["data"] else None


class _Noted(NamedTuple):
    """A device that has reported in the commit."""

    ref: Ref
    doc: Doc
    attributes: Attributes


class StateFeed:
    """Publishes the states of each commit. `selections` are those of open streams, by application and topic."""

    def __init__(self, system: Host) -> None:
        self.selections: dict[bytes, dict[str, Selection]] = {}
        self._system = system
        self._noted: dict[bytes, _Noted] = {}
        system.journal.follower = self._follow

    def select(self, application: bytes, selection: Selection) -> None:
        """A stream of this selection is open. It is forgotten after its last stream has closed."""
        self._prune(application)
        self.selections.setdefault(application, {}).setdefault(selection.topic, selection)

    def note(self, ref: Ref, doc: Doc, attributes: Attributes) -> None:
        """A device has reported in the commit that is just done, and somebody may follow its states."""
        self._noted[ref.id] = _Noted(ref, doc, attributes)

    def end(self) -> int:
        """The position after everything that is committed."""
        return end_of(self._system.store.arrivals.seq)

    def _prune(self, application: bytes) -> None:
        open_topics = self._system.topics_of(application_streams(application))
        selections = self.selections.pop(application, {})
        left = {topic: each for topic, each in selections.items() if topic in open_topics}
        if left:
            self.selections[application] = left

    def _follow(self, chunk: Chunk) -> None:
        """Publish the states of noted devices, in the order of the commit."""
        if not self._noted:
            return
        noted, self._noted = self._noted, {}
        for application in {each.ref.parent for each in noted.values()} & self.selections.keys():
            self._prune(application)
        events: dict[tuple[Ref, str], list[tuple[int, bytes]]] = {}
        faulty: set[Ref] = set()

        def add(ref: Ref, topic: str, position: int, event: bytes | None) -> None:
            if event is not None and ref not in faulty:
                events.setdefault((ref, topic), []).append((position, event))

        for device, position, time_ms, point in reports(chunk, noted.__contains__):
            ref, doc, attributes = noted[device]
            if ref in faulty:
                continue
            try:
                entry = attributes.entry(time_ms, point)
                if self._system.has_subscribers(ref, STATE_TOPIC):
                    add(ref, STATE_TOPIC, position, _own_event(entry))
                for topic, selection in self.selections.get(ref.parent, {}).items():
                    if selection.has(device, doc):
                        add(application_streams(ref.parent), topic, position, selection.event(device, entry))
            except Exception:  # noqa: BLE001 - it must not take the events of other applications
                _log.exception("a state could not be told to its streams", device=device.hex())
                faulty |= {ref, application_streams(ref.parent)}
        for (ref, topic), of_topic in events.items():
            self._system.publish(ref, topic, of_topic)
        for ref in faulty:
            self._end_streams(ref)

    def _end_streams(self, ref: Ref) -> None:
        """End the streams of states of a device or an application: their clients come back for what they lack."""
        for topic in (STATE_TOPIC, *self.selections.get(ref.id, ())):
            self._system.end_streams(ref, topic)


def check_selection(snapshot: Snapshot, application: bytes, query: StateStream) -> Selection:
    """The selection of a new stream. Raises `Invalid`, also for an id of no device."""
    for id in query.device_ids or ():
        if not records.exists(snapshot, DEVICE, application, bytes.fromhex(id)):
            raise Invalid(f"deviceIds: there is no device {id} in this application.")
    return Selection(query)


# Resuming.


class _Devices:
    """The devices of an application whose states a stream resumes, read as they are met."""

    def __init__(self, snapshot: Snapshot, message: GetMissedStates) -> None:
        self._snapshot = snapshot
        self._message = message
        self._selection = Selection(message.query)
        self._known: dict[bytes, Attributes | None] = {}

    def has(self, device: bytes) -> bool:
        """Whether the stream shows the states of a device."""
        if device not in self._known:
            self._known[device] = self._find(device)
        return self._known[device] is not None

    def _find(self, device: bytes) -> Attributes | None:
        message = self._message
        if message.device not in (None, device):
            return None
        found = records.find(self._snapshot, DEVICE, message.application, device)
        if found is None or (message.device is None and not self._selection.has(device, found.doc)):
            return None
        return Attributes(found.doc["attributes"], found.doc["attributeNext"])

    def event(self, device: bytes, time_ms: int, point: dict[int, Any]) -> bytes | None:
        """The event of a state as the stream shows it, if it does."""
        attributes = self._known[device]
        assert attributes is not None
        entry = attributes.entry(time_ms, point)
        if self._message.device is not None:
            return _own_event(entry)
        return self._selection.event(device, entry)


def get_missed_states(reading: Reading, message: GetMissedStates) -> Missed:
    """The states after a position, or that some of them are not kept any more."""
    snapshot, position = reading.snapshot, message.position
    last = snapshot.newest_seq()
    first, end = commit_of(position), end_of(last)
    if position > end:
        return Missed([], more=False, position=end, is_reset=True)
    reading.check_time(is_long=last - first >= _INLINE_COMMITS)
    devices = _Devices(snapshot, message)
    oldest_ms = oldest_state_ms(reading, message.now_ms)
    missed: list[tuple[int, bytes]] = []
    left_bytes, read = message.bytes_max, 0
    due = first
    for chunk in chunks_from(snapshot, first):
        if chunk.seq != due:
            break
        for device, each, time_ms, point in reports(chunk, devices.has):
            if each <= position or time_ms < oldest_ms:
                continue
            if len(missed) >= message.limit or left_bytes <= 0:
                return Missed(missed, more=True)
            event = devices.event(device, time_ms, point)
            if event is not None:
                missed.append((each, event))
                left_bytes -= len(event)
        due += 1
        read += len(chunk.value)
        reading.check_time(is_long=read > INLINE_BYTES_MAX)
        if read > _LOG_BYTES_MAX:
            return Missed(missed, more=True, position=end_of(chunk.seq))
    if due <= last:
        return Missed([], more=False, position=end, is_reset=True)
    return Missed(missed, more=False, position=end)
