"""The index: which triggers of which workflows wait for what, by application, in memory.

Owns what is known of the triggers of enabled workflows; it follows from the records and definitions in the store. The
records of an application are read at the first use of any of its triggers, a definition at the first use of one of its
own. A workflow that changes says so in its turn, and is read again at the next use. Memory of an older epoch of the
journal is dropped, because it may know of writes that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.workflows.flows.changes import FlowChanges
from trunkline.actors.workflows.flows.kind import CLASSES, DEFAULT, FLOW, FLOW_VERSION, RESERVED, TRIGGER_KEYS
from trunkline.actors.workflows.flows.versions import VersionFound, default_version, find_version, id_bytes
from trunkline.actors.workflows.triggers.guards import Guard, guard_of, nodes_by_id
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
    return _watcher(flow, position, definition, flow_class, version, nodes_by_id(definition))


def _watcher(
    flow: bytes,
    position: int,
    definition: Doc,
    flow_class: str,
    version: str | None,
    nodes: Mapping[str, Doc],
) -> Watcher:
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
        guard_of(trigger, nodes),
    )


Place = tuple[str, str]
"""The type of a trigger and its key, in the form in which it is looked up."""


def _place(type: str, key: str) -> Place:
    return type, key.lower() if type in _KEYED_BY_ID else key


class _Flow:
    """The triggers of an enabled workflow. Its record names them; the definition is read when one is looked up."""

    __slots__ = ("_read", "_watchers", "places")

    def __init__(self, places: Iterable[Place], read: Callable[[], tuple[Watcher, ...]]) -> None:
        self.places = frozenset(places)
        self._read = read
        self._watchers: tuple[Watcher, ...] | None = None

    def watchers(self) -> tuple[Watcher, ...]:
        """All of them."""
        if self._watchers is None:
            self._watchers = self._read()
        return self._watchers


class Triggers:
    """The triggers of one application. It never changes: a changed index has a new one.

    For the event loop; what was looked up before may be looked up again in other threads.
    """

    __slots__ = ("_by_key", "_by_type", "_of_key", "_of_type")

    def __init__(self, flows: Iterable[_Flow]) -> None:
        by_key: dict[Place, list[_Flow]] = {}
        by_type: dict[str, list[_Flow]] = {}
        for flow in flows:
            for place in flow.places:
                by_key.setdefault(place, []).append(flow)
            for type in {type for type, _ in flow.places}:
                by_type.setdefault(type, []).append(flow)
        self._by_key = by_key
        self._by_type = by_type
        self._of_key: dict[Place, tuple[Watcher, ...]] = {}
        self._of_type: dict[str, tuple[Watcher, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_type)

    def get(self, type: str, key: str) -> tuple[Watcher, ...]:
        """The triggers of a type with a key."""
        place = (type, key)
        flows = self._by_key.get(place)
        if flows is None:
            return ()
        found = self._of_key.get(place)
        if found is None:
            found = self._of_key[place] = tuple(
                each for flow in flows for each in flow.watchers() if _place(each.type, each.key) == place
            )
        return found

    def has_type(self, type: str) -> bool:
        """Whether there may be a trigger of a type."""
        return type in self._by_type

    def of_type(self, type: str) -> tuple[Watcher, ...]:
        """The triggers of a type."""
        found = self._of_type.get(type)
        if found is None:
            flows = self._by_type.get(type, ())
            found = tuple(each for flow in flows for each in flow.watchers() if each.type == type)
            if flows:
                self._of_type[type] = found
        return found


_NONE: Final = Triggers(())


class FlowIndex:
    """The triggers of all applications that were used. A component of the system."""

    def __init__(self, system: Host) -> None:
        self._system = system
        self._epoch = -1
        self._found: dict[tuple[bytes, str | None], Triggers] = {}
        self._flows: dict[bytes, dict[bytes, _Flow]] = {}
        system.component(FlowChanges).listen(self._changed)
        system.forgotten.append(self._forget)

    def of(self, application: bytes, version: str | None = None) -> Triggers:
        """The triggers of an application; of the versions with this name, without a name of the default versions.

        As long as nothing has changed the answer is the same object. For the turns of actors: it knows what is
        submitted and not committed yet.
        """
        if self._epoch != self._system.journal.epoch:
            self._epoch = self._system.journal.epoch
            self._found.clear()
            self._flows.clear()
        found = self._found.get((application, version))
        if found is None:
            if version is not None and not self._is_used(application, version):
                return _NONE
            found = self._read(application, version)
        return found

    def of_name(self, application: bytes, name: str) -> Triggers:
        """The same for the name of a version of an experience, where `default` is a name as any other."""
        return _NONE if name == DEFAULT else self.of(application, name)

    def _is_used(self, application: bytes, version: str) -> bool:
        """Whether a workflow has a version of this name or id. Anybody may name one, so one look has to tell."""
        journal, id = self._system.journal, id_bytes(version)
        if version in RESERVED:
            return True
        if id is not None and records.raw_of(journal.get, FLOW_VERSION, application, id):
            return True
        db, low, high = index_range(FLOW_VERSION, application, "version", keys.sortable(version))
        assert high is not None
        return bool(journal.range(db, low, high))

    def _forget(self, application: bytes) -> None:
        """An application is deleted."""
        self._flows.pop(application, None)
        for place in [place for place in self._found if place[0] == application]:
            del self._found[place]

    def _changed(self, application: bytes, flow: bytes) -> None:
        self._flows.get(application, {}).pop(flow, None)
        for place in [place for place in self._found if place[0] == application]:
            del self._found[place]

    def _read(self, application: bytes, version: str | None) -> Triggers:
        journal = self._system.journal
        prefix = keys.record_prefix(FLOW.name, application)
        end = keys.prefix_end(prefix)
        assert end is not None
        records = journal.range(keys.RECORDS, prefix, end)
        if version is None:
            known = self._flows.setdefault(application, {})
            for key, raw in records:
                id = key[-keys.ID_BYTES :]
                if id not in known:
                    known[id] = self._flow(application, id, decode(raw))
            found = Triggers(known[key[-keys.ID_BYTES :]] for key, _ in records)
        else:
            named = [place for place in self._found if place[0] == application and place[1] is not None]
            if len(named) >= _VERSIONS_MAX:
                del self._found[named[0]]
            found = Triggers(
                self._flow_in(application, key[-keys.ID_BYTES :], decode(raw), version)
                for key, raw in records
            )
        self._found[application, version] = found
        return found

    def _flow(self, application: bytes, flow: bytes, record: Doc) -> _Flow:
        """The triggers of the default version, which the record names."""
        is_enabled = record["enabled"] and record["flowClass"] in CLASSES
        places = [_place(type, key) for type, key in record[TRIGGER_KEYS]] if is_enabled else []
        return _Flow(places, lambda: tuple(self._watchers(application, flow, record, None)))

    def _flow_in(self, application: bytes, flow: bytes, record: Doc, named: str) -> _Flow:
        """The triggers of a version with a name."""
        watchers = tuple(self._watchers(application, flow, record, named))
        return _Flow([_place(each.type, each.key) for each in watchers], lambda: watchers)

    def _watchers(self, application: bytes, flow: bytes, record: Doc, named: str | None) -> Iterator[Watcher]:
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
        nodes = nodes_by_id(definition)
        for position in range(len(definition.get("triggers", []))):
            yield _watcher(flow, position, definition, record["flowClass"], named, nodes)
