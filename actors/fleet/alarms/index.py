"""The index of alarm rules: which rules are about a device, in memory, of what is on disk.

Owns the rules of all applications as they are looked up: by the id of a device, by a tag, or by asking each rule that
chooses its devices by a query (`wide_alarm_rules_max` of an application, at most). It is read once, when the server
starts or an application comes. After that a rule that changes says so after its commit; so a device turn never reads
rules, and a change of one rule does not read the others again.

Rules about events are beside the others: devices do not see them, the event log looks them up for each event.

Who remembers the rules of a device is told by `FlowChanges`, as of a changed workflow: the device looks them up again
with its next state. So a state costs the same with rules and without while no rule changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.page import Match
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.fleet.alarms.conditions import Hears, Holds, compare, hears
from trunkline.actors.fleet.alarms.kind import ALARM_RULE
from trunkline.actors.fleet.devices.queries.selection import own_filter
from trunkline.actors.workflows.flows.changes import FlowChanges
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host

TIMED: Final = frozenset({"silence", "disconnected"})
"""Types of conditions that begin to hold without a report."""

_Tag = tuple[str | None, str | None]
_NO_FLOW: Final = bytes(keys.ID_BYTES)


class Rule:
    """An enabled rule. What is compiled is compiled at its first use."""

    __slots__ = ("_hears", "_holds", "_match", "condition", "doc", "duration_ms", "id", "type")

    def __init__(self, id: bytes, doc: Doc) -> None:
        self.id = id
        self.doc = doc
        self.condition: Doc = doc["condition"]
        self.type: str = self.condition["type"]
        self.duration_ms = round(1000 * float(doc["durationSeconds"]))
        self._holds: Holds | None = None
        self._hears: Hears | None = None
        self._match: Match | None = None

    @property
    def seconds_ms(self) -> int:
        """How long a device must be silent."""
        return round(1000 * float(self.condition["seconds"]))

    def holds(self, value: Any, is_held: bool) -> bool:
        """Whether a value holds, given whether the one before did."""
        if self._holds is None:
            self._holds = compare(self.condition)
        return self._holds(value, is_held)

    def hears(self, event: Doc) -> bool:
        """Whether an event holds that nobody has resolved."""
        if self._hears is None:
            self._hears = hears(self.condition)
        return self._hears(event["level"], event["subject"])

    def is_about(self, device: Doc) -> bool:
        """Whether a device is one of those of the query, or of all; `device` has its id."""
        query = self.doc.get("deviceQuery")
        if query is None:
            return True
        if self._match is None:
            self._match = own_filter(query, "deviceQuery")
        return self._match(device)


class _Chosen:
    """Enabled rules by what they choose their devices by."""

    __slots__ = ("_by_id", "_by_tag", "_wide")

    def __init__(self) -> None:
        self._by_id: dict[bytes, dict[bytes, Rule]] = {}
        self._by_tag: dict[_Tag, dict[bytes, Rule]] = {}
        self._wide: dict[bytes, Rule] = {}

    def __bool__(self) -> bool:
        return bool(self._by_id or self._by_tag or self._wide)

    def add(self, rule: Rule) -> None:
        for device in rule.doc.get("deviceIds") or ():
            self._by_id.setdefault(bytes.fromhex(device), {})[rule.id] = rule
        for place in _tags(rule.doc):
            self._by_tag.setdefault(place, {})[rule.id] = rule
        if is_wide(rule.doc):
            self._wide[rule.id] = rule

    def remove(self, id: bytes, doc: Doc) -> None:
        for device in doc.get("deviceIds") or ():
            _drop(self._by_id, bytes.fromhex(device), id)
        for place in _tags(doc):
            _drop(self._by_tag, place, id)
        self._wide.pop(id, None)

    def of(self, device: bytes, doc: Doc) -> dict[bytes, Rule]:
        """Those about a device."""
        found = dict(self._by_id.get(device, {}))
        if self._by_tag:
            for tag in doc["tags"]:
                for place in ((tag["key"], tag["value"]), (tag["key"], None), (None, tag["value"])):
                    found |= self._by_tag.get(place, {})
            if doc["tags"]:
                found |= self._by_tag.get((None, None), {})
        if self._wide:
            shown = {**doc, "id": device.hex()}
            found |= {id: rule for id, rule in self._wide.items() if id not in found and rule.is_about(shown)}
        return found

    def of_none(self) -> dict[bytes, Rule]:
        """Those about all devices, which are about no device as well."""
        return {id: rule for id, rule in self._wide.items() if not rule.doc.get("deviceQuery")}


class Rules:
    """The rules of one application. `all` has the disabled ones, which count as well.

    `judged` are those that a device judges, `heard` those about events, which the event log judges.
    """

    __slots__ = ("all", "heard", "judged", "timed", "wide_count")

    def __init__(self) -> None:
        self.all: dict[bytes, Doc] = {}
        self.judged = _Chosen()
        self.heard = _Chosen()
        self.wide_count = 0
        self.timed = 0

    def add(self, id: bytes, doc: Doc) -> None:
        self.all[id] = doc
        self.wide_count += is_wide(doc)
        if doc["enabled"]:
            self.timed += doc["condition"]["type"] in TIMED
            self._place(doc).add(Rule(id, doc))

    def remove(self, id: bytes) -> None:
        doc = self.all.pop(id, None)
        if doc is None:
            return
        self.wide_count -= is_wide(doc)
        if doc["enabled"]:
            self.timed -= doc["condition"]["type"] in TIMED
            self._place(doc).remove(id, doc)

    def _place(self, doc: Doc) -> _Chosen:
        return self.heard if is_heard(doc) else self.judged


class AlarmIndex(Moved):
    """The alarm rules of all applications. A component of the system."""

    def __init__(self, system: Host) -> None:
        self._system = system
        self._rules: dict[bytes, Rules] = {}
        self.on_change: Callable[[bytes], None] = lambda _application: None
        """Called with the application when alarms may begin or end without a report of a device."""
        self.on_heard_change: Callable[[bytes], None] = lambda _application: None
        """Called with the application when a rule about events has changed."""
        self._read(keys.kind_prefix(ALARM_RULE.name))
        system.forgotten.append(self._forget)

    async def load(self, application: bytes) -> None:
        """Read the rules of an application."""
        self._read(keys.record_prefix(ALARM_RULE.name, application))

    def _read(self, prefix: bytes) -> None:
        with self._system.store.snapshot() as snapshot:
            for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
                application, id = (
                    bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES]),
                    bytes(key[-keys.ID_BYTES :]),
                )
                self._rules.setdefault(application, Rules()).add(id, decode(raw))

    def _forget(self, application: bytes) -> None:
        """An application is deleted, or has left."""
        self._rules.pop(application, None)

    @property
    def applications(self) -> list[bytes]:
        """The applications with rules."""
        return list(self._rules)

    def count(self, application: bytes) -> int:
        """How many rules an application has."""
        rules = self._rules.get(application)
        return 0 if rules is None else len(rules.all)

    def wide(self, application: bytes) -> int:
        """How many of them each device must be asked about."""
        rules = self._rules.get(application)
        return 0 if rules is None else rules.wide_count

    def is_timed(self, application: bytes) -> bool:
        """Whether alarms of an application may begin without a report."""
        rules = self._rules.get(application)
        return rules is not None and rules.timed > 0

    def of(self, application: bytes, device: bytes, doc: Doc) -> tuple[Rule, ...]:
        """The rules that a device judges, the oldest first: at most `device_alarm_rules_max`."""
        rules = self._rules.get(application)
        return () if rules is None else self._oldest(rules.judged.of(device, doc))

    def hears(self, application: bytes) -> bool:
        """Whether an application has rules about events."""
        rules = self._rules.get(application)
        return rules is not None and bool(rules.heard)

    def heard(self, application: bytes, device: bytes | None, doc: Doc | None) -> tuple[Rule, ...]:
        """The rules about the events of a device, or about those without one, as `of`. None if it does not exist."""
        rules = self._rules.get(application)
        if rules is None or (device is not None and doc is None):
            return ()
        return self._oldest(
            rules.heard.of_none() if device is None or doc is None else rules.heard.of(device, doc)
        )

    def _oldest(self, found: dict[bytes, Rule]) -> tuple[Rule, ...]:
        return tuple(found[id] for id in sorted(found)[: self._system.limits.device_alarm_rules_max])

    def telling(self, application: bytes, group: str) -> list[str]:
        """The names of the rules that tell a group."""
        rules = self._rules.get(application)
        return [
            doc["name"]
            for doc in (() if rules is None else rules.all.values())
            if any(group in step.get("groupIds", ()) for step in (doc.get("notify") or {}).get("steps", ()))
        ]

    def set(self, application: bytes, id: bytes, doc: Doc | None) -> None:
        """A rule is stored as this, or deleted."""
        rules = self._rules.setdefault(application, Rules())
        before = rules.all.get(id)
        rules.remove(id)
        if doc is not None:
            rules.add(id, doc)
        if not rules.all:
            del self._rules[application]
        self._system.component(FlowChanges).changed(application, _NO_FLOW)
        if before is not None and is_heard(before):
            self.on_heard_change(application)
        if before is not None or (doc is not None and doc["condition"]["type"] in TIMED):
            self.on_change(application)


def is_heard(doc: Doc) -> bool:
    """Whether a rule is about events, which the event log judges, not the device."""
    return bool(doc["condition"]["type"] == "event")


def is_wide(doc: Doc) -> bool:
    """Whether each device must be asked whether a rule is about it: by a query, or because it is about all."""
    return bool(doc.get("deviceQuery")) or not (doc.get("deviceIds") or doc.get("deviceTags"))


def _tags(doc: Doc) -> Iterable[_Tag]:
    return ((each.get("key"), each.get("value")) for each in doc.get("deviceTags") or ())


def _drop(places: dict[Any, dict[bytes, Rule]], place: Any, id: bytes) -> None:
    rules = places.get(place, {})
    rules.pop(id, None)
    if not rules:
        places.pop(place, None)
