"""Retention: removes in the background what is older than the limits say (`state_keep_days` and its neighbours).

What an application archives is not removed before it is archived (`platform/applications/archive_days.py`).

Owns when and in which order entries are searched and removed. Does not own what is too old and may go: that is decided
beside the data, each package names its searches in its `feature.py` (`core/records/expiry.py`), and each actor removes
its own entries, in turns like any other, so that nothing is removed which a turn has just changed.

One owner after the other is searched: each application (its devices, its events, its workflows, its counts), and the
server as a whole (the audit logs of organizations). A search reads a bounded number of devices in a worker thread and
finds a bounded number of entries; these are one batch, then the task sleeps. What was found tells when the owner's next
entry will be too old, so an owner with nothing to remove is not searched again before that, or for a day. All this is
in memory: after a restart every owner is searched once, and what is too old is found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.catalogue import FEATURES
from trunkline.actors.core.records.expiry import NEVER_MS, Searching, Step
from trunkline.actors.core.records.kept_answers import oldest_kept_ms, remove_expired
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.ids import ROOT
from trunkline.limits.table import DAY_MS
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

_EXPIRIES: Final = tuple(expiry for feature in FEATURES for expiry in feature.expiries)
"""What becomes too old, as the packages say in their `feature.py`."""

_COUNTS: Final = {message: kinds for expiry in _EXPIRIES for message, kinds in expiry.counts.items()}
"""By message: what its answer counts, in this order."""

_log = structlog.get_logger("trunkline.retention")


class Retention:
    """The background task of a system, and its counts of removed entries by kind."""

    def __init__(self, system: System) -> None:
        self.removed = {"answer": 0} | {kind: 0 for kinds in _COUNTS.values() for kind in kinds}
        self._system = system
        self._due_s: dict[bytes, float] = {}

    async def run(self) -> None:
        """Search until cancelled: the owners that are due, every `purge_interval_s`."""
        while True:
            await trio.sleep(self._system.limits.purge_interval_s)
            try:
                await self.remove_expired()
            except (StoreError, DomainError) as refusal:
                _log.warning("removal of expired entries put off", reason=str(refusal))
            except Exception:  # noqa: BLE001 - data that cannot be removed must not stop the server
                _log.exception("removal of expired entries failed")

    async def remove_expired(self) -> None:
        """Remove everything that is too old of the owners that are due. Raises StoreError or DomainError."""
        now_s = self._system.clock.monotonic_s()
        owners = await self._system.read(_owners)
        self._due_s = {owner: self._due_s.get(owner, 0.0) for owner in owners}
        for owner in owners:
            if self._due_s[owner] <= now_s and owner not in self._system.moves.away:
                searches = [each.search for each in _EXPIRIES if each.of_server == (owner == ROOT)]
                wait_ms = min([await self._search(search, owner) for search in searches])
                wait_s = max(self._system.limits.retention_interval_s, min(wait_ms, DAY_MS) / 1000)
                self._due_s[owner] = now_s + wait_s

    async def _search(self, search: Searching, owner: bytes) -> int:
        """Remove what one search finds, part by part; return the time in ms until there will be more."""
        system, limits = self._system, self._system.limits
        start: bytes | None = b""
        wait_ms = NEVER_MS
        while start is not None:
            step = Step(owner, start, limits, system.clock.wall_ms())
            part = await system.read(partial(search, step=step))
            accepted = await self._remove(part.asks)
            await self._remove_answers(part.answers)
            wait_ms = min(wait_ms, part.wait_ms)
            start = part.start if accepted or not part.asks else part.past
            if start is not None:
                await trio.sleep(limits.retention_pause_s)
        return wait_ms

    async def _remove(self, asks: list[Ask]) -> bool:
        """Let the actors remove their entries, as one batch; return whether one of them did."""
        if not asks:
            return False
        accepted = False
        if asks[0][0].parent in self._system.moves.away:
            return False
        answers = await self._system.ask_each(asks)
        for (_, message), answer in zip(asks, answers, strict=True):
            if isinstance(answer, DomainError):
                continue  # its device or its application was deleted
            for kind, number in zip(_COUNTS[type(message)], answer, strict=True):
                self.removed[kind] += number
                accepted = accepted or number > 0
        return accepted

    async def _remove_answers(self, owners: Sequence[bytes]) -> None:
        """Remove expired answers of calls, owner by owner."""
        system = self._system
        for owner in owners:
            removed = system.limits.removed_entries_max
            while removed == system.limits.removed_entries_max:
                batch, oldest_ms = Batch(), oldest_kept_ms(system.limits, system.clock.wall_ms())
                removed = remove_expired(system.journal.get, batch, owner, oldest_ms, removed)
                if batch:
                    await system.journal.submit(batch).wait()
                    await trio.sleep(system.limits.retention_pause_s)
                self.removed["answer"] += removed


def _owners(snapshot: Snapshot) -> list[bytes]:
    prefix = keys.record_prefix(APPLICATION.name, ROOT)
    applications = snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix))
    return [ROOT, *(bytes(key[-keys.ID_BYTES :]) for key in applications)]
