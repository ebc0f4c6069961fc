"""Holds every batch of a system to the placement of keys, for all tests that run actors."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.placement import misplaced_writes
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.store.batch import Batch


def hold_placement(system: System, kinds: Mapping[str, Kind] = KINDS) -> None:
    """Let a turn fail that writes a key which lives elsewhere and is no exception of the list."""

    def check(ref: Ref, batch: Batch) -> None:
        found = list(misplaced_writes(kinds, ref, batch))
        assert not found, found

    system.check_batch = check
