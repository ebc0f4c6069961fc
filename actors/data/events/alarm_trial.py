"""The trial of an alarm rule over the last day: of a rule about events here, of the others by `fleet/alarms/trial.py`.

Owns the walk over the events that were created or changed in the day. What each was at which time follows from its
record and its updates, which have the old values of what they changed. A pure read, bounded in events and updates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.fleet.alarms.index import Rule
from trunkline.actors.fleet.alarms.messages import TryAlarmRule
from trunkline.actors.fleet.alarms.trial import TRIED_RULE, Trial, Tried, try_on_states
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.people.accounts.scopes import check_reads
from trunkline.store import keys
from trunkline.store.codec import decode

_FIELDS = ("level", "state", "subject", "deviceId")


class _Span(NamedTuple):
    """From when to when an event held; to None if it still does."""

    began_ms: int
    ended_ms: int | None
    subject: str


def try_alarm_rule(reading: Reading, message: TryAlarmRule) -> Doc:
    """What a rule would have done in the last day.

    Raises `Invalid` for a rule that could not be saved, `Forbidden` for a token that may not read what it is about.
    """
    trial = Trial(reading, message)
    check_reads(message.scopes, "events.get" if trial.rules.heard else "data.timeSeriesQuery")
    if trial.rules.heard:
        _try_on_events(trial)
    else:
        try_on_states(trial)
    return trial.answer()


def _try_on_events(trial: Trial) -> None:
    snapshot, application = trial.snapshot, trial.application
    spans: dict[str | None, list[_Span]] = {}
    rules: dict[str | None, Rule | None] = {}
    names: dict[str | None, str] = {}
    looked = 0
    db, first_key, high = index_range(EVENT, application, "lastUpdated")
    low = first_key + keys.sortable(trial.since_ms)
    for key in snapshot.keys(db, low, high):
        found = records.find(snapshot, EVENT, application, bytes(key[-keys.ID_BYTES :]))
        if found is None or "alarm" in found.doc:
            continue
        first, end = found.doc["updates"]
        if looked > trial.limits.tried_states_max:
            trial.is_whole = False
            break
        looked += 1 + end - first
        trial.events += 1
        trial.is_whole &= first == 0
        steps = list(_steps(trial, found.id, found.doc))
        for device in {step["deviceId"] for _, step in steps}:
            if device not in rules:
                rules[device], names[device] = _rule_of(trial, device)
            rule = rules[device]
            if rule is not None:
                spans.setdefault(device, []).extend(_spans(trial, steps, device, rule))
    trial.devices = sum(device is not None for device in spans)
    for device, each in spans.items():
        trial.alarms += _alarms(device, names[device], sorted(each, key=lambda span: span.began_ms))


def _rule_of(trial: Trial, device: str | None) -> tuple[Rule | None, str]:
    """The rule if it is about events of the device, and the name of the device."""
    heard = trial.rules.heard
    if device is None:
        return heard.of_none().get(TRIED_RULE), ""
    id = bytes.fromhex(device)
    doc = records.doc_of(trial.snapshot, DEVICE, trial.application, id)
    return (None, "") if doc is None else (heard.of(id, doc).get(TRIED_RULE), doc["name"])


def _steps(trial: Trial, event: bytes, doc: Doc) -> Iterator[tuple[int, Doc]]:
    """What an event was, and since when."""
    updates: list[Doc] = []
    prefix = keys.event_updates_prefix(trial.application, event)
    for _, raw in trial.snapshot.range(keys.EVENTS, prefix, keys.prefix_end(prefix)):
        updates.append(decode(raw))
    now = {field: doc.get(field) for field in _FIELDS}
    was = [now]
    for update in reversed(updates):
        now = {
            **now,
            **{field: update[f"{field}Change"].get("old") for field in _FIELDS if f"{field}Change" in update},
        }
        was.append(now)
    times = [doc["creationDate"], *(update["creationDate"] for update in updates)]
    return zip(times, reversed(was), strict=True)


def _spans(trial: Trial, steps: list[tuple[int, Doc]], device: str | None, rule: Rule) -> Iterator[_Span]:
    """When the event held the rule for a device; what began before the day opens nothing."""
    held, began_ms, subject = False, 0, ""
    for time_ms, step in steps:
        holds = step["deviceId"] == device and step["state"] != "resolved" and rule.hears(step)
        if holds and not held:
            began_ms, subject = time_ms, step["subject"]
        elif held and not holds and began_ms >= trial.since_ms:
            yield _Span(began_ms, time_ms, subject)
        held = holds
    if held and began_ms >= trial.since_ms:
        yield _Span(began_ms, None, subject)


def _alarms(device: str | None, name: str, spans: list[_Span]) -> Iterator[Tried]:
    """The alarms of a device: each is open as long as one of the events holds."""
    open: _Span | None = None
    id = None if device is None else bytes.fromhex(device)
    for span in spans:
        if open is not None and (open.ended_ms is None or span.began_ms <= open.ended_ms):
            ended_ms = (
                None
                if None in (open.ended_ms, span.ended_ms)
                else max(open.ended_ms or 0, span.ended_ms or 0)
            )
            open = open._replace(ended_ms=ended_ms)
            continue
        if open is not None:
            yield Tried(id, name, open.began_ms, open.ended_ms, open.subject)
        open = span
    if open is not None:
        yield Tried(id, name, open.began_ms, open.ended_ms, open.subject)
