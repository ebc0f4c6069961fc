"""The sweeper: removes, a bounded slice at a time, what a deletion left behind.

Deleting an application removes its record at once and leaves a note; this task then removes its devices
with all they reported, its keys, tokens and counters. It also removes devices whose time to be restored
has passed. The notes lie in the store, so the work goes on after a restart. Each slice is one batch of
the journal like any other write, and the task rests between slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import structlog
import trio

from trunkline.actors import records
from trunkline.actors.ids import ROOT
from trunkline.actors.kinds import API_TOKEN, APPLICATION, APPLICATION_KEY, DELETED_DEVICE, DEVICE
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.system import System
    from trunkline.store.snapshot import Snapshot

SLICE_KEYS = 500
DAY_MS = 86_400_000
_UNDER_APPLICATION = (DEVICE, DELETED_DEVICE, APPLICATION_KEY, API_TOKEN)
_log = structlog.get_logger("trunkline.purge")

Doomed = tuple[str, bytes]


class Slice(NamedTuple):
    """Keys to remove. `expired` is the application whose deleted devices they are, None for a whole application."""

    doomed: list[Doomed]
    expired: bytes | None = None


async def run_purge(system: System) -> None:
    """Sweep until cancelled: soon after a deletion, and every few minutes for expired devices."""
    while True:
        try:
            more = await sweep(system)
        except StoreError as refusal:
            _log.warning("sweep put off", reason=str(refusal))
            more = False
        await trio.sleep(0.05 if more else system.limits.purge_interval_s)


async def sweep(system: System) -> bool:
    """Remove one slice. True where there may be more to do."""
    found = await system.read(lambda snapshot: _next_slice(snapshot, system))
    if not found.doomed:
        return False
    batch = Batch()
    for db, key in found.doomed:
        batch.delete(db, key)
        if found.expired is not None and db == keys.RECORDS:
            batch.add(keys.COUNTS, keys.total_key(DELETED_DEVICE.name, found.expired), {"n": -1})
    await system.journal.submit(batch).wait()
    return True


def _next_slice(snapshot: Snapshot, system: System) -> Slice:
    """Up to `SLICE_KEYS` keys to remove; the note itself goes last, when nothing else is left."""
    for note in snapshot.keys(keys.META, keys.PURGE_PREFIX, keys.prefix_end(keys.PURGE_PREFIX)):
        application = bytes(note[-12:])
        return Slice(_take(_of_application(snapshot, application)) or [(keys.META, bytes(note))])
    oldest_ms = system.clock.wall_ms() - system.limits.device_restore_days * DAY_MS
    for application, _ in records.scan(snapshot, APPLICATION, ROOT):
        doomed = _take(_expired(snapshot, application, oldest_ms))
        if doomed:
            return Slice(doomed, application)
    return Slice([])


def _take(found: Iterator[Doomed]) -> list[Doomed]:
    return [doomed for doomed, _ in zip(found, range(SLICE_KEYS), strict=False)]


def _of_application(snapshot: Snapshot, application: bytes) -> Iterator[Doomed]:
    for kind in (DEVICE, DELETED_DEVICE):
        prefix = keys.record_prefix(kind.name, application)
        for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            yield from _of_device(snapshot, bytes(key[-12:]))
            yield keys.RECORDS, bytes(key)
    for kind in _UNDER_APPLICATION:
        prefix = keys.record_prefix(kind.name, application)
        for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            yield keys.RECORDS, bytes(key)
        for field in kind.indexes:
            prefix = keys.index_prefix(kind.name, application, field)
            for key in snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix)):
                yield keys.INDEXES, bytes(key)
        if snapshot.get(keys.COUNTS, keys.total_key(kind.name, application)) is not None:
            yield keys.COUNTS, keys.total_key(kind.name, application)
    for key in snapshot.keys(keys.COUNTS, application, keys.prefix_end(application)):
        yield keys.COUNTS, bytes(key)


def _of_device(snapshot: Snapshot, device: bytes) -> Iterator[Doomed]:
    for db in (keys.TIMELINE, keys.COMMANDS, keys.LOGS):
        for key in snapshot.keys(db, device, keys.prefix_end(device)):
            yield db, bytes(key)


def _expired(snapshot: Snapshot, application: bytes, oldest_ms: int) -> Iterator[Doomed]:
    """Deleted devices whose time has passed: first what they reported, then the record and its indexes."""
    prefix = keys.index_prefix(DELETED_DEVICE.name, application, "deletedAt")
    for key in snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix)):
        device = bytes(key[-12:])
        found = records.find(snapshot, DELETED_DEVICE, application, device)
        if found is None or found.doc["deletedAt"] > oldest_ms:
            return
        yield from _of_device(snapshot, device)
        for field in DELETED_DEVICE.indexes:
            value = keys.sortable(DELETED_DEVICE.sort_key(found.doc, field))
            yield keys.INDEXES, keys.index_key(DELETED_DEVICE.name, application, field, value, device)
        yield keys.RECORDS, keys.record_key(DELETED_DEVICE.name, application, device)
