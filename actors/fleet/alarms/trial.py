"""The trial of an alarm rule: which alarms it would have opened in the last day, had it been there. A pure read.

Owns what is tried and answered, and the walk over what devices have reported; that over events is in
`data/events/alarm_trial.py`. What opens and closes an alarm is `standing.py`, as for live reports; the time of a state
takes the place of its arrival. It is bounded in devices and states, and the answer says whether it has seen all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.alarms.conditions import check_condition
from trunkline.actors.fleet.alarms.index import Rule, Rules
from trunkline.actors.fleet.alarms.messages import TryAlarmRule
from trunkline.actors.fleet.alarms.rules import ALARM_RULES
from trunkline.actors.fleet.alarms.standing import DeviceAlarms
from trunkline.actors.fleet.devices.queries.selection import own_filter
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.limits.table import DAY_MS
from trunkline.store.snapshot import Snapshot

_SHOWN_MAX: Final = 100
TRIED_RULE: Final = bytes(12)
"""The id of the rule in a trial."""


class Tried(NamedTuple):
    """An alarm that would have been open; `ended_ms` is None if it still were, `device` if it were of none."""

    device: bytes | None
    name: str
    opened_ms: int
    ended_ms: int | None
    value: Any


class Trial:
    """A trial: the rule alone, the time, and what was found and looked at."""

    def __init__(self, reading: Reading, message: TryAlarmRule) -> None:
        """Raises `Invalid` for a rule that could not be saved."""
        doc = {**ALARM_RULES.defaults, **ALARM_RULES.stored(message.body)}
        check_condition(doc["condition"], doc["durationSeconds"])
        if doc["condition"]["type"] == "disconnected":
            raise Invalid(
                "condition.type: what lost connections would have done is not tried, only what reports and events "
                "would."
            )
        if doc.get("deviceQuery"):
            own_filter(doc["deviceQuery"], "deviceQuery")
        reading.check_time(is_long=True)
        self.limits, self.snapshot, self.application = reading.limits, reading.snapshot, message.application
        self.now_ms = message.now_ms
        self.since_ms = message.now_ms - DAY_MS
        self.rules = Rules()
        self.rules.add(TRIED_RULE, {**doc, "enabled": True})
        self.alarms: list[Tried] = []
        self.devices = self.states = self.events = 0
        self.is_whole = True

    def answer(self) -> Doc:
        """What was found, the newest alarms first."""
        self.alarms.sort(key=lambda each: -each.opened_ms)
        return {
            "start": iso(self.since_ms),
            "end": iso(self.now_ms),
            "deviceCount": self.devices,
            "stateCount": self.states,
            "eventCount": self.events,
            "isWhole": self.is_whole,
            "totalCount": len(self.alarms),
            "items": [_shown(each) for each in self.alarms[:_SHOWN_MAX]],
        }


def try_on_states(trial: Trial) -> None:
    """Find what a rule that devices judge would have done."""
    limits, snapshot = trial.limits, trial.snapshot
    for id, device in records.scan(snapshot, DEVICE, trial.application):
        rule = trial.rules.judged.of(id, device).get(TRIED_RULE)
        if rule is None:
            continue
        if trial.devices >= limits.tried_devices_max or trial.states >= limits.tried_states_max:
            trial.is_whole = False
            break
        trial.devices += 1
        walk = _Walk(snapshot, id, device, rule, trial.since_ms, trial.now_ms)
        trial.alarms += walk.alarms(limits.tried_states_max - trial.states)
        trial.states += walk.states
        trial.is_whole &= walk.is_whole


class _Walk:
    """The walk over what one device has reported. `states` is how many it has seen, `is_whole` whether that is all."""

    def __init__(
        self, snapshot: Snapshot, id: bytes, device: Doc, rule: Rule, since_ms: int, now_ms: int
    ) -> None:
        self.states = 0
        self.is_whole = True
        self._snapshot = snapshot
        self._id = id
        self._device = device
        self._since_ms = since_ms
        self._now_ms = now_ms
        self._alarms = DeviceAlarms((rule,), Attributes(device["attributes"], device["attributeNext"]), {})
        self._head = Head()
        self._found: list[Tried] = []
        self._is_open = False

    def alarms(self, states_max: int) -> list[Tried]:
        """The alarms, the oldest first."""
        active_ms: int = self._device["creationDate"]
        for time_ms, point in self._before():
            active_ms = max(active_ms, time_ms)
            self._head.report(time_ms, point)
        at_ms = max(self._since_ms, active_ms)
        for time_ms, point in self._points():
            if self.states >= states_max:
                self.is_whole = False
                return self._found
            self.states += 1
            self._wait(active_ms, at_ms, time_ms)
            self._alarms.report([(time_ms, point)], self._head, time_ms)
            self._note(time_ms)
            self._head.report(time_ms, point)
            active_ms = at_ms = max(at_ms, time_ms)
        self._wait(active_ms, at_ms, self._now_ms)
        return self._found

    def _wait(self, active_ms: int, at_ms: int, until_ms: int) -> None:
        """Nothing is reported until then."""
        due_ms: int | None = at_ms
        while due_ms is not None and due_ms <= until_ms:
            next_ms = self._alarms.look(active_ms, None, due_ms)
            self._note(due_ms)
            due_ms = next_ms if next_ms is None or next_ms > due_ms else None

    def _note(self, at_ms: int) -> None:
        """Keep an alarm that has opened or closed."""
        standing = self._alarms.standings.get(TRIED_RULE)
        is_open = standing is not None and standing.is_open
        if standing is not None and is_open and not self._is_open:
            opened = Tried(self._id, self._device["name"], standing.opened_ms, None, standing.first)
            self._found.append(opened)
        elif self._is_open and not is_open:
            self._found[-1] = self._found[-1]._replace(ended_ms=at_ms)
        self._is_open = is_open

    def _before(self) -> Iterator[tuple[int, dict[int, Any]]]:
        """The last point before the day."""
        for part in self._snapshot.points(self._id, 0, self._since_ms - 1, reverse=True, rows=1):
            *_, last = part.rows()
            yield last
            return

    def _points(self) -> Iterator[tuple[int, dict[int, Any]]]:
        for part in self._snapshot.points(self._id, self._since_ms, self._now_ms):
            yield from part.rows()


def _shown(alarm: Tried) -> Doc:
    shown: Doc = {"openedAt": iso(alarm.opened_ms)}
    if alarm.device is not None:
        shown |= {"deviceId": alarm.device.hex(), "deviceName": alarm.name}
    if alarm.ended_ms is not None:
        shown["endedAt"] = iso(alarm.ended_ms)
    if alarm.value is not None:
        shown["value"] = alarm.value
    return shown
