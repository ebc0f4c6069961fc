"""The index: which triggers of which workflows wait for what, by application, in memory.

Owns what is known of the triggers of enabled workflows; it follows from the records and definitions in the store. The
triggers of an application are read at their first use. A workflow that changes says so in its turn, and is read again
at the next use. Memory of an older epoch of the journal is dropped, because it may know of writes that failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from trunkline.actors.flows.changes import FlowChanges
from trunkline.actors.flows.kind import CLASSES, FLOW, FLOW_VERSION, RESERVED
from trunkline.actors.flows.versions import VersionFound, default_version, find_version, id_bytes
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.listing import index_range
from trunkline.actors.runtime.host import Host
from trunkline.actors.triggers.guards import Guard, guard_of
from trunkline.store import keys
from trunkline.store.codec import decode

_KEYED_BY_ID: Final = frozenset(
    {"dataTable", "deviceId", "deviceIdConnect", "deviceIdDisconnect", "deviceIdInactivity", "webhook"}
)
"""Types of triggers whose key is an id, in capital or small letters."""

_VERSIONS_MAX: Final = 64
"""Named versions of an application whose triggers are kept in memory."""


class Watcher(NamedTuple):
    """A trigger of an enabled workflow. `version` is the name of the version, None for the default version.

    Where `guard` is false for the data of a cause, no run is needed.
    """

    flow: bytes
    position: int
    type: str
    key: str
    config: Doc
    meta: Doc
    flow_class: str
    version: str | None
    guard: Guard | None = None

    def wants(self, flag: str, flags: frozenset[str]) -> bool:
        """Whether the configuration sets one of some flags; if it has none of them, all count as set."""
        return self.config.get(flag) is True or flags.isdisjoint(self.config)


def watcher_of(flow: bytes, position: int, definition: Doc, flow_class: str, version: str | None) -> Watcher:
    """The watcher of the trigger at `position` in a definition."""
    trigger: Doc = definition["triggers"][position]
    return Watcher(
        flow,
        position,
        trigger["type"],
        trigger.get("key", ""),
        trigger.get("config") or {},
        trigger.get("meta") or {},
        flow_class,
        version,
        guard_of(trigger, definition),
    )


class Triggers:
    """The triggers of one application. It never changes: a changed index has a new one."""

    __slots__ = ("_by_key", "_by_type")

    def __init__(self, watchers: Iterator[Watcher]) -> None:
        by_key: dict[tuple[str, str], list[Watcher]] = {}
        by_type: dict[str, list[Watcher]] = {}
        for each in watchers:
            place = (each.type, each.key.lower() if each.type in _KEYED_BY_ID else each.key)
            by_key.setdefault(place, []).append(each)
            by_type.setdefault(each.type, []).append(each)
        self._by_key = {place: tuple(found) for place, found in by_key.items()}
        self._by_type = {type: tuple(found) for type, found in by_type.items()}

    def __bool__(self) -> bool:
        return bool(self._by_type)

    def get(self, type: str, key: str) -> tuple[Watcher, ...]:
        """The triggers of a type with a key."""
        return self._by_key.get((type, key), ())

    def of_type(self, type: str) -> tuple[Watcher, ...]:
        """The triggers of a type."""
        return self._by_type.get(type, ())


_NONE: Final = Triggers(iter(()))


class FlowIndex:
    """The triggers of all applications that were used. A component of the system."""

    def __init__(self, system: Host) -> None:
        self._system = system
        self._epoch = -1
        self._found: dict[tuple[bytes, str | None], Triggers] = {}
        self._watchers: dict[bytes, dict[bytes, tuple[Watcher, ...]]] = {}
        system.component(FlowChanges).listen(self._changed)

    def of(self, application: bytes, version: str | None = None) -> Triggers:
        """The triggers of an application; of the versions with this name, without a name of the default versions.

        As long as nothing has changed the answer is the same object. For the turns of actors: it knows what is
        submitted and not committed yet.
        """
        if self._epoch != self._system.journal.epoch:
            self._epoch = self._system.journal.epoch
            self._found.clear()
            self._watchers.clear()
        found = self._found.get((application, version))
        if found is None:
            if version is not None and not self._is_used(application, version):
                return _NONE
            found = self._read(application, version)
        return found

    def _is_used(self, application: bytes, version: str) -> bool:
        """Whether a workflow has a version of this name or id. Anybody may name one, so one look has to tell."""
        journal, id = self._system.journal, id_bytes(version)
        if version in RESERVED:
            return True
        if id is not None and journal.get(keys.RECORDS, keys.record_key(FLOW_VERSION.name, application, id)):
            return True
        db, low, high = index_range(FLOW_VERSION, application, "version", keys.sortable(version))
        assert high is not None
        return bool(journal.range(db, low, high))

    def _changed(self, application: bytes, flow: bytes) -> None:
        self._watchers.get(application, {}).pop(flow, None)
        for place in [place for place in self._found if place[0] == application]:
            del self._found[place]

    def _read(self, application: bytes, version: str | None) -> Triggers:
        journal = self._system.journal
        prefix = keys.record_prefix(FLOW.name, application)
        end = keys.prefix_end(prefix)
        assert end is not None
        records = journal.range(keys.RECORDS, prefix, end)
        if version is None:
            known = self._watchers.setdefault(application, {})
            for key, raw in records:
                id = key[-keys.ID_BYTES :]
                if id not in known:
                    known[id] = tuple(self._of_flow(application, id, decode(raw), None))
            found = Triggers(each for key, _ in records for each in known[key[-keys.ID_BYTES :]])
        else:
            named = [place for place in self._found if place[0] == application and place[1] is not None]
            if len(named) >= _VERSIONS_MAX:
                del self._found[named[0]]
            found = Triggers(
                each
                for key, raw in records
                for each in self._of_flow(application, key[-keys.ID_BYTES :], decode(raw), version)
            )
        self._found[application, version] = found
        return found

    def _of_flow(self, application: bytes, flow: bytes, record: Doc, named: str | None) -> Iterator[Watcher]:
        if not record["enabled"] or record["flowClass"] not in CLASSES:
            return
        get = self._system.journal.get
        version: VersionFound | None
        if named is None:
            version = default_version(get, application, flow, record)
        else:
            version = find_version(get, application, flow, record, named)
        if version is None or not version.doc.get("enabled", True):
            return
        raw = get(keys.FLOWS, keys.flow_definition_key(application, flow, version.id))
        definition: Doc = {} if raw is None else decode(raw)
        for position in range(len(definition.get("triggers", []))):
            yield watcher_of(flow, position, definition, record["flowClass"], named)
