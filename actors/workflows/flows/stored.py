"""A workflow as it is stored, and what follows from each change of it: due times, and who is told.

Its record and its sums are in memory; definitions are read when they are needed.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.actors.workflows.flows.changes import FlowChanges
from trunkline.actors.workflows.flows.due_times import (
    DueTimes,
    Firing,
    Timed,
    Watches,
    aligned,
    corrected,
    fire,
    is_timed,
)
from trunkline.actors.workflows.flows.kind import CLASSES, FLOW, TRIGGER_KEYS
from trunkline.actors.workflows.flows.messages import FireTimers
from trunkline.actors.workflows.flows.versions import default_version
from trunkline.store import keys
from trunkline.store.codec import decode, encode

_NO_SUMS: Final = {"versions": 0, "generation": 0, "keys": 0, "bytes": 0, "states": 0}


class StoredFlow(Actor):
    """The base of the actor of a workflow. `ref.parent` is the application's id."""

    __slots__ = ("_staged", "doc", "raw", "sums")

    def __init__(self, system: Any, ref: Any) -> None:
        self._staged: tuple[bytes, Doc] = (b"", {})
        """The last definition that this turn has stored, and what it is decoded: a long one takes milliseconds."""
        self.doc: Doc = {}
        self.raw = b""
        self.sums: dict[str, int] = dict(_NO_SUMS)
        super().__init__(system, ref)

    def load(self) -> bool:
        journal = self.system.journal
        raw = records.raw_of(journal.get, FLOW, self.ref.parent, self.ref.id)
        if raw is None:
            return False
        self.raw, self.doc = raw, decode(raw)
        sums = journal.get(keys.FLOWS, self._head_key)
        if sums is not None:
            self.sums = {**_NO_SUMS, **decode(sums)}
        return True

    def flush(self) -> None:
        if keys.RECORDS in self.writes().writes:  # else only storage entries or due times have changed
            self.system.component(FlowChanges).changed(self.ref.parent, self.ref.id)
            self._align()
        self._staged = (b"", {})

    # Timers.

    def on_fire_timers(self, message: FireTimers) -> list[Firing]:  # noqa: ARG002
        """Note the next due times of timers that are due; return those, whose triggers are in the same batch."""
        now_ms = self.system.clock.wall_ms()
        before = self._timed()
        timers, firings = fire(before.timers, now_ms)
        self._put_timed(before, Timed(timers, corrected(before.watches, now_ms)))
        if firings:
            hour = keys.app_counts_key(self.ref.parent, now_ms // HOUR_MS)
            self.add(keys.COUNTS, hour, {"timer": len(firings)})
        return firings

    def _align(self) -> None:
        """Let the due times follow a change of the workflow."""
        before = self._timed()
        triggers: list[Doc] = []
        doc = self.doc
        if self.exists and doc["enabled"] and doc["flowClass"] in CLASSES:
            version = default_version(Staged(self).get, self.ref.parent, self.ref.id, doc)
            if version.doc.get("enabled", True) and is_timed(doc[TRIGGER_KEYS]):
                triggers = self._definition(version.id).get("triggers", [])
        self._put_timed(before, aligned(triggers, before, self.system.clock.wall_ms()))

    def _timed(self) -> Timed:
        key = keys.flow_timers_key(self.ref.parent, self.ref.id)
        return Timed.decoded(self.system.journal.get(keys.META, key))

    def _put_timed(self, before: Timed, timed: Timed) -> None:
        key = keys.flow_timers_key(self.ref.parent, self.ref.id)
        if any(timed) and timed != before:
            self.put(keys.META, key, timed.encoded())
        elif not any(timed) and self.system.journal.get(keys.META, key) is not None:
            self.delete(keys.META, key)
        self.after_commit(partial(self._know, timed))

    def _know(self, timed: Timed) -> None:
        place = (self.ref.parent, self.ref.id)
        first_ms = min((each.due_ms for each in timed.timers), default=None)
        self.system.component(DueTimes).set(place, first_ms)
        self.system.component(Watches).set(place, timed.watches)

    # Parts.

    @property
    def _head_key(self) -> bytes:
        return keys.flow_head_key(self.ref.parent, self.ref.id)

    def add_sums(self, **changes: int) -> None:
        """Stage changed sums."""
        self.sums = {name: value + changes.get(name, 0) for name, value in self.sums.items()}
        self.put(keys.FLOWS, self._head_key, encode(self.sums))

    def _definition(self, version: bytes) -> Doc:
        raw = Staged(self).get(keys.FLOWS, keys.flow_definition_key(self.ref.parent, self.ref.id, version))
        staged, definition = self._staged
        return {} if raw is None else definition if raw is staged else decode(raw)

    def put_definition(self, version: bytes, definition: Doc) -> None:
        """Stage the definition of a version."""
        raw = encode(definition)
        self.put(keys.FLOWS, keys.flow_definition_key(self.ref.parent, self.ref.id, version), raw)
        self._staged = (raw, definition)
