"""The side of a move that takes an application: the owner of the partition where it will be.

Owns the order of a move:

1. A marker says that what comes is foreign here (`foreign.py`).
2. The application is copied while its owner serves it, as often as more than a little has changed meanwhile.
3. The owner pauses it, and what has changed is copied.
4. It is complete here (`keys.arrived_key`), then it departs there, which is the commit that moves it.
5. This process serves it.

Killed at any place, the application is in one of the two partitions as a whole, and the other one removes what it has
of it. While it is paused its calls are refused, and may be repeated. Does not own the pause itself (`moving.py`), nor
what the other side does (`move_source.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
import trio

from trunkline.actors import moving
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.turns import as_domain_error
from trunkline.actors.core.values.errors import DomainError, Invalid, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.application_copy import ApplicationCopy, paired_runs
from trunkline.actors.maintenance.application_keys import switched, triggers
from trunkline.actors.maintenance.foreign import made_foreign, remove_copy
from trunkline.actors.maintenance.move_source import PATIENCE_S
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.blobs import Blobs
from trunkline.store.codec import decode, encode
from trunkline.store.errors import StoreError
from trunkline.store.file_stores import RESULTS
from trunkline.store.flusher import Flusher
from trunkline.store.partitions import MOVE, partition_directory
from trunkline.store.snapshot import Snapshot
from trunkline.store.sorted_runs import SortedRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.actors.core.runtime.system import System

PASSES_MAX: Final = 4
LITTLE_BYTES: Final = 1 << 20
"""With so little to copy in a pass the application is paused."""
TOKEN_BYTES: Final = 16
AGAIN_S: Final = 0.1
"""So soon is asked again whether the application has departed, where the answer did not come."""

_log = structlog.get_logger("trunkline.moves")


class Moved(NamedTuple):
    """What a move has done: the partition before, the bytes of keys and values, and how long the pause was."""

    before: int
    copied_bytes: int
    pause_s: float


class MoveTarget:
    """The moves of applications into this partition, one at a time. A component of the system."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._flusher = system.component(Flusher)
        self._places = system.component(Places)
        self._is_busy = False
        system.tells["move.take"] = self.take

    async def take(self, application: bytes) -> dict[str, Any]:
        """Move an application into this partition (`Moved`).

        Raises `Invalid` if there is no such application or it is here, `Overloaded` if that cannot be done now.
        """
        partitions = self._system.store.partitions
        assert partitions is not None
        before = self._places.find(application)
        if before is None:
            raise Invalid(f"There is no application {application.hex()}.")
        if before == self._places.own:
            raise Invalid(f"The application is in partition {before} already.")
        if partitions.freshness is not None and not partitions.freshness.is_own(before):
            raise Invalid(
                f"The application is in partition {before}, which another machine serves. Let one machine serve both "
                "partitions first: `trunkline cluster give`."
            )
        if self._is_busy:
            raise Overloaded("Another application is being moved to this partition; move this one after it.")
        with self._system.store.snapshot(own=True) as snapshot:
            if snapshot.get(keys.META, keys.foreign_key(application)) is not None:
                raise Overloaded(
                    "What is left of this application here, from an earlier move, is still being removed; try again "
                    "in a minute."
                )
        with partitions.locked(MOVE) as is_alone:
            if not is_alone:
                raise Overloaded(
                    "A backup or a check is being made, or another application is being moved; try again after it."
                )
            self._is_busy = True
            self._places.arriving.add(application)
            try:
                moved = await _Move(self._system, self._flusher, self._places, application, before).run()
            except StoreError as error:
                raise as_domain_error(error) from error
            finally:
                self._is_busy = False
                self._places.arriving.discard(application)
        _log.info(
            "an application was moved", application=application.hex(), to=self._places.own, **moved._asdict()
        )
        return moved._asdict()


class _Move:
    def __init__(
        self, system: System, flusher: Flusher, places: Places, application: bytes, before: int
    ) -> None:
        self._system = system
        self._flusher = flusher
        self._places = places
        self._application = application
        self._before = before
        self._token = os.urandom(TOKEN_BYTES)
        assert system.store.partitions is not None
        self._partitions = system.store.partitions
        self._copy = ApplicationCopy(
            application,
            partial(self._partitions.snapshot_of, before),
            partial(system.store.snapshot, own=True, wait=True),
        )

    async def run(self) -> Moved:
        """Do it. Raises what ends it; then the application stays where it was."""
        with self._flusher.no_compaction():
            await self._flusher.flush_all()  # a step that was under way has ended then
            marker = Batch()
            marker.put(keys.META, keys.foreign_key(self._application), encode({"partition": self._before}))
            await self._commit(marker)
            failure: DomainError | StoreError | None = None
            async with trio.open_nursery() as nursery:
                try:
                    await self._ask("move.prepare", self._places.own)
                    nursery.start_soon(self._renew)
                    await self._precopy()
                    pause_s = await self._switch()
                except (DomainError, StoreError) as error:
                    failure = error
                    with suppress(DomainError):  # otherwise it takes the application back by itself
                        await self._ask("move.back")
                nursery.cancel_scope.cancel()
        if failure is not None:
            await remove_copy(self._system.store, self._application)
            raise failure
        return Moved(self._before, self._copy.copied_bytes, round(pause_s, 3))

    async def _precopy(self) -> None:
        """Copy while the application is served there."""
        for _ in range(PASSES_MAX):
            copied = self._copy.copied_bytes
            await self._pair(await self._ask("move.renew"))
            await self._pass(rests=True)
            if self._copy.copied_bytes - copied <= LITTLE_BYTES:
                return

    async def _ask(self, step: str, *arguments: Any) -> Any:
        peers = self._system.peers
        assert peers is not None
        return await peers.command(self._before, step, self._application, self._token, *arguments)

    async def _renew(self) -> None:
        """Let the other side know that the move goes on."""
        while True:
            await trio.sleep(PATIENCE_S / 5)
            with suppress(DomainError):  # the next step tells it
                await self._ask("move.renew")

    # Copying.

    async def _pair(self, source: Sequence[SortedRun]) -> None:
        """Let the runs have places for those of the other side."""

        def pair(runs: Sequence[SortedRun]) -> Sequence[SortedRun]:
            self._copy.runs, after = paired_runs(source, runs, self._copy.runs)
            return after

        await self._flusher.change_runs(pair)

    async def _pass(self, *, rests: bool = False) -> None:
        """Make the copy the same; with `rests` the event loop belongs to others half of the time."""
        batches = self._copy.batches()
        while True:
            began_s = trio.current_time()
            batch = await trio.to_thread.run_sync(next, batches, None)
            if batch is None:
                return
            if batch:
                await self._commit(batch)
            if rests:
                await trio.sleep(trio.current_time() - began_s)

    async def _commit(self, batch: Batch) -> None:
        await self._system.journal.submit(batch).wait()

    # The switch.

    async def _switch(self) -> float:
        """Pause the application there, copy what is left, and take it over. Return how long it was paused."""
        began_s = trio.current_time()
        runs, seq = await self._ask("move.pause")
        await self._pair(runs)
        await self._pass()
        await trio.to_thread.run_sync(self._take_results)
        await self._system.pause(self._application)
        try:
            await self._arrive(seq)
            self._partitions.numbers.note_move()  # whoever has opened a store before that opens it again
            await self._depart()
            self._places.moved(self._application, self._places.own)
        except BaseException:
            self._system.resume(self._application)
            raise
        arrived = Batch()
        arrived.delete(keys.META, keys.arrived_key(self._application))
        try:
            await self._commit(arrived)
        except StoreError as error:  # the next start removes it
            _log.error("the note that an application has arrived stays", reason=str(error))
        await moving.come(self._system, self._application)
        return trio.current_time() - began_s

    async def _arrive(self, seq: int) -> None:
        """Store what says that the copy is complete. It does not count before the other side has given it away."""
        application, batch = self._application, Batch()
        with (
            self._partitions.snapshot_of(self._before) as there,
            self._system.store.snapshot(own=True) as here,
        ):
            key = keys.record_key(APPLICATION.name, ROOT, application)
            raw = there.get(keys.RECORDS, key)
            if raw is None:
                raise Invalid("The application was deleted while it was moved.")
            doc = decode(raw)
            batch.put(keys.RECORDS, key, bytes(raw))
            for index in records.entries(APPLICATION, ROOT, application, doc):
                batch.put(keys.INDEXES, index, b"")
            batch.add(
                keys.COUNTS, keys.total_key(APPLICATION.name, ROOT), records.counted_of(APPLICATION, doc)
            )
            for db, key, value in switched(there, application):
                batch.put(db, key, value)
            for trigger, value in renumbered_triggers(there, here, application):
                batch.put(keys.TRIGGERS, trigger, value)
        marker = {"from": self._before, "token": self._token}
        batch.put(keys.META, keys.arrived_key(application), encode(marker))
        batch.delete(keys.META, keys.foreign_key(application))
        skipped = max(self._system.store.arrivals.seq + 1, seq)
        batch.put(keys.META, keys.SKIPPED_KEY, encode(skipped))
        self._system.store.arrivals.skip_to(skipped)
        await self._commit(batch)

    async def _depart(self) -> None:
        """Have the other side give the application away. Raises `Overloaded` if it has taken it back."""
        is_late = False
        while True:
            try:
                has_departed = await self._ask("move.depart")
            except DomainError as unknown:
                if not is_late:
                    application = self._application.hex()
                    _log.warning(
                        "a move waits for the other partition",
                        application=application,
                        reason=unknown.message,
                    )
                is_late = True
                await trio.sleep(AGAIN_S)
                continue
            if has_departed:
                return
            await self._give_up()
            raise Overloaded("The other partition has taken the application back; move it again.")

    async def _give_up(self) -> None:
        """Note that the copy is void. Tried until it is stored, as this process would go on to take it for its own."""
        is_late = False
        while True:
            with self._system.store.snapshot(own=True) as snapshot:
                batch = made_foreign(snapshot, self._application, self._before)
            try:
                await self._commit(batch)
            except StoreError as error:
                if not is_late:
                    application = self._application.hex()
                    _log.warning("a copy cannot be given up yet", application=application, reason=str(error))
                is_late = True
                await trio.sleep(AGAIN_S)
            else:
                return

    def _take_results(self) -> None:
        """Have the results of its jobs here as well, unless they are where all partitions have theirs. Blocks."""
        results = self._system.store.own_results
        if results is None:
            return
        folder = partition_directory(self._partitions.directory, self._before) / RESULTS
        names = Blobs(folder).names() if folder.is_dir() else ()
        results.take(folder / name for name in names if name.startswith(self._application.hex()))


def renumbered_triggers(there: Snapshot, here: Snapshot, application: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the triggers of an application with numbers that no trigger here has, in the same order."""
    taken = {keys.trigger_number(bytes(key)) for key in here.keys(keys.TRIGGERS, b"", None)}
    given: dict[int, int] = {}
    last = 0
    for key, value in triggers(there, application):
        number = keys.trigger_number(key)
        if number not in given:
            last = max(number, last + 1)
            while last in taken:
                last += 1
            given[number] = last
        yield given[number].to_bytes(8, "big") + key[8:], value
