"""The sweeper: removes, a bounded slice at a time, what a deletion left behind.

Deleting an application removes its record at once and leaves a note; this task then removes its devices
with all they reported, its data tables, its keys, tokens and counters. It also removes devices whose time to
be restored has passed, and the rows of data tables that were emptied or deleted. The notes lie in the store,
so the work goes on after a restart. Each slice is one batch of the journal like any other write, and the task
rests between slices.

A record goes in one batch with its index entries and its share of the counter, after all that hangs on it:
whatever moment the sweep is stopped at, lists, indexes and counts agree, and it finds its way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
import trio

from trunkline.actors.catalogue import KINDS
from trunkline.actors.devices.kind import DELETED_DEVICE
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc, Kind
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.tables.tidy import tidy
from trunkline.actors.values.errors import DomainError
from trunkline.actors.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

SLICE_KEYS: Final = 500
"""Keys that one slice removes, or a few more: a commit of about a millisecond."""

REST_S: Final = 0.05
"""Between slices, so that a large deletion takes a few percent of the server and no more."""

DAY_MS: Final = 86_400_000
_UNDER_APPLICATION: Final = tuple(
    kind for kind in KINDS.values() if kind.home != "root" and kind is not APPLICATION
)
"""A kind that is in the catalogue is swept; none can be forgotten."""

_log = structlog.get_logger("trunkline.sweep")


class Step(NamedTuple):
    """Keys that go together; `counter` is the key of the count of records that goes down by one."""

    doomed: list[tuple[str, bytes]]
    counter: bytes | None = None


async def run_sweep(system: System) -> None:
    """Sweep until cancelled: soon after a deletion, and every few minutes for expired devices."""
    while True:
        try:
            more = await sweep(system)
        except (StoreError, DomainError) as refusal:
            _log.warning("sweep put off", reason=str(refusal))
            more = False
        except Exception:  # noqa: BLE001 - what can not be removed must not end the server
            _log.exception("sweep failed")
            more = False
        await trio.sleep(REST_S if more else system.limits.purge_interval_s)


async def sweep(system: System) -> bool:
    """Remove one slice. True where there may be more to do.

    Raises StoreError or DomainError where it was not stored.
    """
    oldest_ms = restorable_since_ms(system.clock.wall_ms(), system.limits)
    batch = await system.read(lambda snapshot: next_slice(snapshot, oldest_ms))
    if not batch:
        return await tidy(system)
    await system.journal.submit(batch).wait()
    return True


def restorable_since_ms(now_ms: int, limits: Limits) -> int:
    """Devices that were deleted before this moment are gone for good.

    Whoever restores a device must hold to it, too: then nothing is restored while it is being removed.
    """
    return now_ms - limits.device_restore_days * DAY_MS


def next_slice(snapshot: Snapshot, oldest_ms: int) -> Batch:
    """A batch that removes the next keys; an empty one where there is nothing to remove."""
    batch = Batch()
    left = SLICE_KEYS
    for step in _steps(snapshot, oldest_ms):
        for db, key in step.doomed:
            batch.delete(db, key)
        if step.counter is not None:
            batch.add(keys.COUNTS, step.counter, {"n": -1})
        left -= len(step.doomed)
        if left <= 0:
            break
    return batch


def _steps(snapshot: Snapshot, oldest_ms: int) -> Iterator[Step]:
    """All that is to be removed, in order. Of an application the note goes last."""
    for note in snapshot.keys(keys.META, keys.PURGE_PREFIX, keys.prefix_end(keys.PURGE_PREFIX)):
        yield from _of_application(snapshot, bytes(note[-12:]))
        yield Step([(keys.META, bytes(note))])
    for note in snapshot.keys(keys.META, keys.SWEEP_PREFIX, keys.prefix_end(keys.SWEEP_PREFIX)):
        yield from _of_rows(snapshot, bytes(note[len(keys.SWEEP_PREFIX) :]))
        yield Step([(keys.META, bytes(note))])
    for application, _ in records.scan(snapshot, APPLICATION, ROOT):
        yield from _expired(snapshot, application, oldest_ms)


def _of_application(snapshot: Snapshot, application: bytes) -> Iterator[Step]:
    """Every record of an application with what belongs to it, then what is left of the application."""
    for kind in _UNDER_APPLICATION:
        prefix = keys.record_prefix(kind.name, application)
        for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            id = bytes(key[-12:])
            yield from _held(snapshot, kind, application, id)
            yield _record(kind, application, id, decode(raw))
        counter = keys.total_key(kind.name, application)
        if snapshot.get(keys.COUNTS, counter) is not None:
            yield Step([(keys.COUNTS, counter)])
    yield from _held(snapshot, APPLICATION, ROOT, application)


def _held(snapshot: Snapshot, kind: Kind, parent: bytes, id: bytes) -> Iterator[Step]:
    """What a record holds beside itself."""
    for db, prefix in kind.owned_keys(parent, id):
        for key in snapshot.keys(db, prefix, keys.prefix_end(prefix)):
            yield Step([(db, bytes(key))])


def _of_rows(snapshot: Snapshot, prefix: bytes) -> Iterator[Step]:
    """The rows of one generation of a table, or the values of one column in the index."""
    for db in (keys.ROWS, keys.CELLS):
        for key in snapshot.keys(db, prefix, keys.prefix_end(prefix)):
            yield Step([(db, bytes(key))])


def _record(kind: Kind, parent: bytes, id: bytes, doc: Doc) -> Step:
    doomed = [(keys.INDEXES, key) for key in records.entries(kind, parent, id, doc)]
    doomed.append((keys.RECORDS, keys.record_key(kind.name, parent, id)))
    return Step(doomed, keys.total_key(kind.name, parent))


def _expired(snapshot: Snapshot, application: bytes, oldest_ms: int) -> Iterator[Step]:
    """Deleted devices whose time has passed, the oldest first."""
    prefix = keys.index_prefix(DELETED_DEVICE.name, application, "deletedAt")
    for key in snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix)):
        device = bytes(key[-12:])
        found = records.find(snapshot, DELETED_DEVICE, application, device)
        if found is None or found.doc["deletedAt"] >= oldest_ms:
            return
        yield from _held(snapshot, DELETED_DEVICE, application, device)
        yield _record(DELETED_DEVICE, application, device, found.doc)
