"""The new stores of a division: writing them, and comparing them with what the old ones hold.

Owns which new store an entry goes to, and what each of them says of itself: its runs, the number of the last commit,
the number of its applications. Does not own how a store is written (`store/store_draft.py`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.survey import (
    TOTAL_KEY,
    Fingerprint,
    Source,
    Survey,
    Told,
    added,
    entries,
    totals,
)
from trunkline.store import keys
from trunkline.store.codec import decode, encode
from trunkline.store.column_codec import header
from trunkline.store.errors import StoreDamaged
from trunkline.store.offline_store import flushed_value
from trunkline.store.sorted_runs import SortedRun, encoded_runs
from trunkline.store.store_draft import StoreDraft

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_APPLICATIONS = keys.record_prefix(APPLICATION.name, ROOT)


class NewStores:
    """The new stores `drafts` of what `survey` has found; `placed` is the new store of each application."""

    def __init__(self, survey: Survey, placed: Mapping[bytes, int], drafts: Sequence[StoreDraft]) -> None:
        self._survey = survey
        self._placed = placed
        self._drafts = drafts
        self._runs: dict[tuple[int, int], SortedRun] = {}
        self._totals: list[Counter[str]] = [Counter() for _ in drafts]

    def place(self, source: int, application: bytes | None) -> int:
        """The new store of what belongs to an application, to the server (ROOT), or to nobody known, which stays."""
        if application is None:
            return source if source < len(self._drafts) else 0
        return 0 if application == ROOT else self._placed[application]

    def write(self, sources: Sequence[Source], told: Told) -> None:
        """Write all entries of the sources into the new stores. Raises StoreError."""
        with ExitStack() as stack:
            opened = [(source, stack.enter_context(source.store.snapshot())) for source in sources]
            for db in keys.DATABASES:
                self._write(db, opened, told)
        seq = max(source.store.flushed_seq for source in sources)
        for number, draft in enumerate(self._drafts):
            runs = [run for (of, _), run in sorted(self._runs.items()) if of == number]
            draft.put(keys.META, keys.RUNS_KEY, encoded_runs(runs))
            draft.put(keys.META, keys.FLUSHED_KEY, flushed_value(seq))
            counted = {TOTAL_KEY: self._totals[number]} if self._totals[number] else {}
            if number == 0:
                counted |= {key: count for key, count in self._survey.totals.items() if key != TOTAL_KEY}
            for key, numbers in counted.items():
                draft.put(keys.COUNTS, key, encode(dict(numbers)))

    def _write(self, db: str, opened: Sequence[tuple[Source, Snapshot]], told: Told) -> None:
        """Write a database. All sources are read at a time, so the entries of each new store come in order."""
        found = heapq.merge(*(_numbered(source, snapshot, db) for source, snapshot in opened))
        for key, source, value in renumbered(found) if db == keys.TRIGGERS else found:
            number = self.place(source, self._survey.owners.of(db, key, value))
            self._drafts[number].put(db, key, value)
            if db == keys.RUNS:
                self._note_block(number, key, value)
            elif db == keys.RECORDS and key.startswith(_APPLICATIONS):
                self._totals[number].update(records.counted_of(APPLICATION, decode(value)))
            told(len(key) + len(value))

    def _note_block(self, store: int, key: bytes, value: bytes) -> None:
        try:
            head = header(value)
        except ValueError as error:
            raise StoreDamaged(f"{keys.RUNS} {key.hex()}: the block is damaged: {error}.") from error
        number = int.from_bytes(key[:4], "big")
        run = self._runs.get((store, number), SortedRun(number, 0, head.first_ms, head.last_ms))
        self._runs[store, number] = SortedRun(
            number,
            run.rows + head.rows,
            min(run.first_ms, head.first_ms),
            max(run.last_ms, head.last_ms),
        )

    def compare(self, told: Told) -> None:
        """Read the new stores, and compare all that they hold with what the sources held. Raises StoreDamaged."""
        fingerprint, counted = Fingerprint(), dict[bytes, Counter[str]]()
        for number, draft in enumerate(self._drafts):
            with draft.snapshot() as snapshot:
                counted = added(counted, totals(snapshot))
                for db in keys.DATABASES:
                    for key, value in entries(snapshot, db):
                        application = self._survey.owners.of(db, key, value)
                        if application is not None and self.place(number, application) != number:
                            raise StoreDamaged(
                                f"The new partition {number} has a foreign key: {db} {key.hex()}."
                            )
                        fingerprint.add(db, key, value)
                        told(len(key) + len(value))
        different = self._survey.fingerprint.differences(fingerprint)
        if different:
            raise StoreDamaged(
                f"The new stores do not hold what the old ones do: {', '.join(different)}. Nothing was changed."
            )
        if counted != self._survey.totals:
            raise StoreDamaged(
                "The numbers of records are not what the stores have counted; `trunkline check` tells more. Nothing "
                "was changed."
            )


def _numbered(source: Source, snapshot: Snapshot, db: str) -> Iterator[tuple[bytes, int, bytes]]:
    for key, value in source.entries(snapshot, db):
        yield key, source.number, value


def renumbered(found: Iterator[tuple[bytes, int, bytes]]) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield the entries of TRIGGERS with other numbers for triggers that have that of a trigger in another source.

    The order of the triggers of a source stays. A number says when its trigger was queued, in units of about a
    nanosecond, so the next one is as good.
    """
    last, before, given = 0, -1, dict[int, int]()
    for key, source, value in found:
        number = keys.trigger_number(key)
        if number != before:
            before, given = number, {}
        if source not in given:
            last = given[source] = max(last + 1, number)
        yield given[source].to_bytes(8, "big") + key[8:], source, value
