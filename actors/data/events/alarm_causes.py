"""Events that alarms are about: how the rules about events stand, for each device and for what has no device.

Owns which events hold which rules, and how these stand. It is judged in the turn that creates, changes or deletes an
event, by the event log, which writes it in the batch of the event; so it is exact, whenever the server is killed. An
event that begins to hold is remembered in its record with the alarms that it holds (`opens`). An alarm is open as long
as one of them is there that nobody has resolved.

The events of alarms hold nothing: the log marks them as it creates them (`alarm`), and they cannot lose that. So no
alarm opens another one, whatever its level and its subject are. A workflow may create an event for the event of an
alarm; that one counts, and opens no second alarm of the same rule and device.

What has turned is told to the log itself by the marker of all alarms (`fleet/alarms/outbox.py`), for a later turn: so
events that a turn changes and those that follow from them never are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.fleet.alarms.index import AlarmIndex
from trunkline.actors.fleet.alarms.outbox import AlarmOutbox
from trunkline.actors.fleet.alarms.standing import Standing
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.store import keys
from trunkline.store.codec import decode, encode

NO_DEVICE: Final = bytes(keys.ID_BYTES)
"""Stands for the device of events that have none."""

STANDING_BYTES: Final = 300
"""About as many are written for a rule that stands otherwise."""

_MARKED: Final = b"\x01"

Hold = list[bytes]
"""The device, the rule, and the event that has opened the alarm, which an event holds: in the record of the event."""

_Place = tuple[bytes, bytes]


class Caused(Standing, array_like=True):
    """How a rule about events stands for a device. `count` counts events, `value` is the subject of the newest one.

    `holding` is how many events hold it open, `by` the one that has opened it, `source` who had created that.
    """

    holding: int = 0
    by: bytes = b""
    source: Doc = msgspec.field(default_factory=dict)


class Causes:
    """The rules about events whose standing changes in a turn of the log."""

    __slots__ = ("_log", "_standings", "_turned")

    def __init__(self, log: Actor) -> None:
        self._log = log
        self._standings: dict[bytes, dict[bytes, Caused]] = {}
        self._turned: dict[bytes, None] = {}

    @property
    def size_bytes(self) -> int:
        """About how many bytes will be written at the end of the turn."""
        return STANDING_BYTES * sum(map(len, self._standings.values()))

    def judge(self, event: bytes, before: Doc | None, after: Doc | None) -> list[Hold]:
        """What an event holds after its change, for its record. None stands for one that is not there."""
        doc: Doc = after or before or {}
        held: list[Hold] = doc.get("opens", [])
        if "alarm" in doc or not (held or self._log.system.component(AlarmIndex).hears(self._log.ref.id)):
            return []
        wanted = self._places(after)
        kept = []
        for hold in held:
            device, rule, by = hold
            if (device, rule) in wanted and self._caused(device, rule, by) is not None:
                kept.append(hold)
            else:
                self._release(device, rule, by)
        if after is None:
            return kept
        known = {(device, rule) for device, rule, _ in held} | self._places(before).keys()
        return [*kept, *(self._hold(*place, event, after) for place in wanted if place not in known)]

    def _places(self, doc: Doc | None) -> dict[_Place, None]:
        """The devices and rules that an event holds by what it is."""
        if doc is None or doc["state"] == "resolved":
            return {}
        application, named = self._log.ref.id, doc.get("deviceId")
        index = self._log.system.component(AlarmIndex)
        if named is None:
            return {
                (NO_DEVICE, rule.id): None for rule in index.heard(application, None, None) if rule.hears(doc)
            }
        device = bytes.fromhex(named)
        record = records.doc_of(self._log.system.journal, DEVICE, application, device)
        return {
            (device, rule.id): None for rule in index.heard(application, device, record) if rule.hears(doc)
        }

    def _hold(self, device: bytes, rule: bytes, event: bytes, doc: Doc) -> Hold:
        standings, now_ms = self._of(device), self._log.system.clock.wall_ms()
        standing = standings.setdefault(rule, Caused())
        standing.holding += 1
        standing.value, standing.last_ms = doc["subject"], doc["creationDate"]
        if standing.is_open:
            standing.count += 1
        else:
            standing.openings += 1
            standing.is_open = True
            standing.held_ms = standing.opened_ms = now_ms
            standing.count, standing.first, standing.by = 1, doc["subject"], event
            standing.source = {
                field: doc[field] for field in ("sourceId", "sourceType", "sourceName") if field in doc
            }
            self._turned[device] = None
        return [device, rule, standing.by]

    def _release(self, device: bytes, rule: bytes, by: bytes) -> None:
        standing = self._caused(device, rule, by)
        if standing is not None:
            standing.holding -= 1
            if not standing.holding:
                standing.is_open = False
                self._turned[device] = None

    def _caused(self, device: bytes, rule: bytes, by: bytes) -> Caused | None:
        """How a rule stands, if it still is the alarm that this event has opened."""
        standing = self._of(device).get(rule)
        return standing if standing is not None and standing.is_open and standing.by == by else None

    def _of(self, device: bytes) -> dict[bytes, Caused]:
        """How the rules of a device stand now; what is changed is written at the end of the turn."""
        found = self._standings.get(device)
        if found is None:
            raw = self._log.system.journal.get(keys.META, keys.caused_alarms_key(self._log.ref.id, device))
            found = self._standings[device] = {} if raw is None else decode_caused(raw)
        return found

    # The look at a device.

    def look(self, device: bytes) -> dict[bytes, Caused]:
        """How the rules of a device stand, without those that are not about it any more."""
        standings = self._of(device)
        if standings:
            application, index = self._log.ref.id, self._log.system.component(AlarmIndex)
            doc = records.doc_of(self._log.system.journal, DEVICE, application, device)
            about = index.heard(application, None if device == NO_DEVICE else device, doc)
            for rule in standings.keys() - {each.id for each in about}:
                del standings[rule]
        return dict(standings)

    def forget_closed(self, device: bytes) -> None:
        """The log has been told how the rules of a device stand: nothing is kept of those whose alarm is closed."""
        standings = self._of(device)
        for rule in [rule for rule, each in standings.items() if not each.is_open]:
            del standings[rule]

    def flush(self) -> None:
        """Stage what has changed."""
        application, journal = self._log.ref.id, self._log.system.journal
        for device, standings in self._standings.items():
            key = keys.caused_alarms_key(application, device)
            raw = encode_caused(standings.items()) if standings else None
            if raw == journal.get(keys.META, key):
                continue
            if raw is None:
                self._log.delete(keys.META, key)
            else:
                self._log.put(keys.META, key, raw)
        for device in self._turned:
            self._log.put(keys.META, keys.untold_alarms_key(application, device), _MARKED)
            self._log.after_commit(partial(self._log.system.component(AlarmOutbox).add, application, device))
        self._standings, self._turned = {}, {}


def decode_caused(raw: bytes | None) -> dict[bytes, Caused]:
    """How the rules about events stand, by rule, of which `raw` are the stored bytes."""
    return {} if raw is None else {rule: Caused(*values) for rule, *values in decode(raw)}


def encode_caused(standings: Iterable[tuple[bytes, Caused]]) -> bytes:
    """The stored bytes."""
    return encode([[rule, *msgspec.structs.astuple(each)] for rule, each in standings])


def creator_of(source: Doc) -> Creator:
    """Who created an event, by the fields of its record."""
    return Creator(source["sourceId"], source["sourceType"], source.get("sourceName", ""))
