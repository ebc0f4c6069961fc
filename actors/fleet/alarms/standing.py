"""How the alarm rules of one device stand: which hold, since when, and which alarms are open.

Owns the stored form and every step from one standing to the next. Does not own who is told (`outbox.py`), nor when it
is looked at without a report (`fleet/devices/actor/inactivity.py`). Pure: no actor, no clock.

A rule that holds for its duration opens an alarm; one that holds no longer closes it. While it is open each report that
holds counts. Times of reports are shown; durations are measured by when the reports arrive. Reports that are older than
the newest one change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.fleet.alarms.conditions import changed
from trunkline.actors.fleet.alarms.index import AlarmIndex, Rule
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host

TEXT_CHARS_MAX: Final = 100
"""Of a text that held, so much is kept."""


class Standing(msgspec.Struct, array_like=True):
    """How one rule stands. Times are in ms, -1 for never.

    `openings` counts how often the alarm has opened. `held_ms` is since when the rule holds, `opened_ms` when the alarm
    opened last, `count` how many reports held since then, `value` and `last_ms` those of the newest of them.
    """

    openings: int = 0
    is_open: bool = False
    held_ms: int = -1
    opened_ms: int = -1
    count: int = 0
    value: Any = None
    last_ms: int = -1
    first: Any = None


Standings = dict[bytes, Standing]
"""By rule."""


def decode_standings(raw: bytes | None) -> Standings:
    """Those of which `raw` are the stored bytes."""
    return {} if raw is None else {rule: Standing(*values) for rule, *values in decode(raw)}


def encode_standings(standings: Standings) -> bytes:
    """The stored bytes."""
    return encode([[rule, *msgspec.structs.astuple(each)] for rule, each in standings.items()])


class DeviceAlarms:
    """The rules about one device and how they stand.

    `has_silence`: it matters when exactly a report arrived; `is_changed`: how they stand is to be stored; `has_turned`:
    an alarm has opened or closed; `is_waiting`: a rule with a duration has begun to hold, or a device was silent, so
    somebody must look later.
    """

    __slots__ = (
        "_blind",
        "_by_number",
        "_rules",
        "has_silence",
        "has_turned",
        "is_changed",
        "is_waiting",
        "standings",
    )

    def __init__(self, rules: Iterable[Rule], attributes: Attributes, standings: Standings) -> None:
        self._rules = {rule.id: rule for rule in rules}
        self.standings = standings
        self.has_silence = any(rule.type == "silence" for rule in self._rules.values())
        self.is_changed = self.has_turned = self.is_waiting = False
        by_number: dict[int, list[Rule]] = {}
        blind: set[bytes] = set()
        for rule in self._rules.values():
            if rule.type in ("attribute", "change"):
                number = attributes.number(rule.condition["attribute"])
                if number is None:
                    blind.add(rule.id)
                else:
                    by_number.setdefault(number, []).append(rule)
        self._by_number = tuple(by_number.items())
        self._blind = frozenset(blind)

    def __bool__(self) -> bool:
        return bool(self._rules or self.standings)

    def report(self, points: Sequence[tuple[int, dict[int, Any]]], head: Head, now_ms: int) -> None:
        """The device has reported. `head` is as it was before."""
        newest_ms = head.newest_ms
        if self.has_silence:
            self._end_silence()
        if not self._by_number:
            return
        before: dict[int, Any] = {}
        for time_ms, point in points:
            if time_ms < newest_ms:
                continue
            newest_ms = time_ms
            for number, rules in self._by_number:
                if number not in point:
                    continue
                value = point[number]
                for rule in rules:
                    standing = self.standings.get(rule.id)
                    if rule.type == "attribute":
                        holds = rule.holds(value, standing is not None and standing.held_ms >= 0)
                    else:
                        old = before[number] if number in before else _newest(head, number)
                        holds = changed(rule.condition, old, value)
                    if holds or standing is not None:
                        self._take(rule, standing, holds, value, time_ms, now_ms)
                before[number] = value

    def _end_silence(self) -> None:
        for id, standing in self.standings.items():
            if standing.is_open and id in self._rules and self._rules[id].type == "silence":
                self._close(standing)
                self.is_waiting = True

    def look(self, active_ms: int, cut_ms: int | None, now_ms: int) -> int | None:
        """Open and close what is due with time. Returns when something is due next.

        The device gave its last sign of life at `active_ms`, and is disconnected since `cut_ms`. A rule about an
        attribute that the device does not have any more is about nothing.
        """
        for id in self.standings.keys() - (self._rules.keys() - self._blind):
            self.has_turned |= self.standings.pop(id).openings > 0
            self.is_changed = True
        looks: list[int] = []
        for rule in self._rules.values():
            standing = self.standings.get(rule.id)
            if standing is not None and standing.held_ms > now_ms:
                standing.held_ms, self.is_changed = now_ms, True  # the clock was set back
            due_ms = self._due_ms(rule, active_ms, cut_ms)
            if due_ms is None:
                if standing is not None and standing.is_open and rule.type == "disconnected":
                    self._close(standing)
            elif standing is not None and standing.is_open:
                if rule.type == "silence" and due_ms > now_ms:
                    self._close(standing)
                    looks.append(_look_ms(rule, due_ms, now_ms))
            elif due_ms <= now_ms:
                self._open(rule, standing, now_ms)
            else:
                looks.append(_look_ms(rule, due_ms, now_ms))
        return min(looks, default=None)

    def next_ms(self, active_ms: int, cut_ms: int | None, now_ms: int) -> int | None:
        """When to look next; `now_ms` if something is due. Changes nothing."""
        tried = copy(self)
        tried.standings = {rule: copy(each) for rule, each in self.standings.items()}
        next_ms: int | None = tried.look(active_ms, cut_ms, now_ms)
        return now_ms if tried.is_changed else next_ms

    def _due_ms(self, rule: Rule, active_ms: int, cut_ms: int | None) -> int | None:
        """When the alarm of a rule is to be open; None if the rule does not hold."""
        if rule.type == "silence":
            return active_ms + rule.seconds_ms
        if rule.type == "disconnected":
            return None if cut_ms is None else cut_ms + rule.duration_ms
        standing = self.standings.get(rule.id)
        if standing is None or standing.held_ms < 0:
            return None
        return standing.held_ms + rule.duration_ms

    def _take(
        self, rule: Rule, standing: Standing | None, holds: bool, value: Any, time_ms: int, now_ms: int
    ) -> None:
        """Step on with a value that holds or not."""
        if not holds:
            if standing is not None and (standing.held_ms >= 0 or standing.is_open):
                standing.held_ms = -1
                self.is_changed = True
                if standing.is_open:
                    self._close(standing)
            return
        if standing is None:
            standing = self.standings[rule.id] = Standing()
        self.is_changed = True
        if standing.held_ms < 0:
            standing.held_ms = now_ms
            self.is_waiting |= rule.duration_ms > 0
        standing.value = value[:TEXT_CHARS_MAX] if isinstance(value, str) else value
        standing.last_ms = time_ms
        if standing.is_open:
            standing.count += 1
        elif now_ms - standing.held_ms >= rule.duration_ms:
            self._open(rule, standing, time_ms)

    def _open(self, rule: Rule, standing: Standing | None, at_ms: int) -> None:
        if standing is None:
            standing = self.standings[rule.id] = Standing()
        standing.openings += 1
        standing.is_open = True
        standing.opened_ms = at_ms
        standing.count = 1
        standing.first = standing.value
        self.is_changed = self.has_turned = True

    def _close(self, standing: Standing) -> None:
        standing.is_open = False
        self.is_changed = self.has_turned = True


def stored_alarms(
    system: Host, application: bytes, device: bytes, doc: Doc, attributes: Attributes
) -> DeviceAlarms | None:
    """The rules about a device and how they stand by what is stored; None if there is nothing."""
    raw = system.journal.get(keys.TIMELINE, keys.alarms_key(device))
    rules = system.component(AlarmIndex).of(application, device, doc)
    return DeviceAlarms(rules, attributes, decode_standings(raw)) or None


def _look_ms(rule: Rule, due_ms: int, now_ms: int) -> int:
    """When to look at a rule that is not due yet. If the clock was set back, a report may let it be due sooner."""
    return min(due_ms, now_ms + rule.seconds_ms) if rule.type == "silence" else due_ms


def _newest(head: Head, number: int) -> Any:
    newest = head.values.get(number)
    return newest[1] if newest is not None and len(newest) == 2 else None


def disconnected_ms(doc: Doc) -> int | None:
    """Since when a device is disconnected, None if it is connected or never was."""
    connection = doc.get("connection")
    if not connection or connection["connected"]:
        return None
    since_ms: int = connection["time"]
    return since_ms


def active_ms(head: Head, doc: Doc, now_ms: int) -> int:
    """When a device gave its last sign of life: it reported, connected, disconnected, or was created.

    A sign in the time to come, because the clock was set back, does not hide one by the clock of now.
    """
    created_ms: int = doc["creationDate"]
    changed_ms: int = (doc.get("connection") or {}).get("time", -1)
    signs = [each for each in (head.arrived_ms, changed_ms) if each >= 0] or [created_ms]
    return max([each for each in signs if each <= now_ms] or signs)
