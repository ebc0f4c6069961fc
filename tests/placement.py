"""Holds every batch of a system to the placement of keys and the forms of values, for all tests that run actors."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.placement import misplaced_writes
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.store.backup import form_problem
from trunkline.store.batch import Batch


def hold_placement(system: System, kinds: Mapping[str, Kind] = KINDS, *, forms: bool = False) -> None:
    """Let a turn fail that writes a key which lives elsewhere and is no exception of the list.

    With `forms` also one that writes a value which the check of the store would call damaged.
    """

    def check(ref: Ref, batch: Batch) -> None:
        found = list(misplaced_writes(kinds, ref, batch))
        assert not found, found
        if forms:
            _check_forms(batch)

    system.check_batch = check


def _check_forms(batch: Batch) -> None:
    for db, writes in batch.writes.items():
        for key, value in writes.items():
            problem = None if value is None else form_problem(db, key, bytes(value))
            assert problem is None, f"`trunkline check` would call {db} {key.hex()} damaged: {problem}"
