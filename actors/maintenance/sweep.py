"""The sweeper: removes the data of deleted records in the background, a bounded slice at a time.

Deleting an application removes its record at once and stores a marker; this task then removes everything else of
it: devices with their data, data tables, keys, tokens, counters. It also removes devices that can no longer be
restored, the rows of data tables that were truncated or deleted, the versions and storage entries of deleted
workflows, and the contents of files that no record names. The markers are in the store, so the work
continues after a restart. Each slice is one batch of the journal like any other write, and the task sleeps between
slices.

The data that belongs to a record is removed first, then the record itself in one batch with its index entries and
its part of the counter. So lists, indexes and counts agree whenever the sweep is interrupted, and it can continue.

A record that cannot be read never stops the sweep: it is logged once. Where its application was deleted it is removed
all the same, and the index entries that cannot be computed from it are found by their prefix.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
import trio

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.listing import ids_of_facet, index_range
from trunkline.actors.core.records.places import ROOT_PARTITION, Places
from trunkline.actors.core.records.unreadable import UNREADABLE, log_unreadable
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.tables.removed_columns import tidy_rows
from trunkline.actors.fleet.deployments.kind import EDGE_DEPLOYMENT, EMBEDDED_DEPLOYMENT
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, restorable_since_ms
from trunkline.actors.maintenance.foreign import is_awaited, markers, remove_results
from trunkline.actors.people.audit.messages import AUDIT_ENTRY
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.platform.jobs.kind import JOB, OWNERS
from trunkline.actors.platform.jobs.messages import ENDED
from trunkline.actors.workflows.flows.kind import FLOW_VERSION
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.partitioned import Partitions
    from trunkline.store.snapshot import Snapshot

SLICE_KEYS: Final = 500
"""Keys that one slice removes (a few more are possible): a commit of about a millisecond."""

_UNDER_APPLICATION: Final = tuple(
    kind
    for kind in KINDS.values()
    if (kind.home != "root" or kind is AUDIT_ENTRY) and kind is not APPLICATION
)
"""Derived from the catalogue, so that no kind can be forgotten. An audit log goes with the organization or the user."""

_log = structlog.get_logger("trunkline.sweep")


class Step(NamedTuple):
    """Keys (with their databases) to delete in one batch. `counter` is the key of a count to decrease by one.

    `wiped` is a device whose reports are removed.
    """

    deletes: list[tuple[str, bytes]]
    counter: bytes | None = None
    wiped: bytes | None = None


async def run_sweep(system: System) -> None:
    """Sweep until cancelled: slice after slice while there is work, then again every `purge_interval_s`."""
    limits = system.limits
    while True:
        try:
            more = await sweep(system)
        except (StoreError, DomainError) as refusal:
            _log.warning("sweep put off", reason=str(refusal))
            more = False
        except Exception:  # noqa: BLE001 - data that cannot be removed must not stop the server
            _log.exception("sweep failed")
            more = False
        with trio.move_on_after(limits.purge_pause_s if more else limits.purge_interval_s):
            await _something_left(system, is_busy=more)


async def _something_left(system: System, *, is_busy: bool) -> None:
    """Return when an application was moved away, unless the sweep is busy already."""
    if is_busy or system.store.partitions is None:
        await trio.sleep_forever()
    places = system.component(Places)
    await places.has_left.wait()
    places.has_left = trio.Event()


async def sweep(system: System) -> bool:
    """Remove one slice. Return True if there may be more to do.

    Raises StoreError or DomainError if the slice was not stored.
    """
    await _delete_unfinished(system)
    oldest_ms = restorable_since_ms(system.clock.wall_ms(), system.limits)
    batch = await system.read(lambda snapshot: next_slice(snapshot, oldest_ms), own=True)
    if not batch and system.store.partitions is not None:
        batch = await _of_others(system)
    contents = system.component(Contents)
    for marker in _purge_markers(batch):
        # It stays until the contents of the files are removed; the rest goes on without them.
        if not await contents.remove_application(marker[-keys.ID_BYTES :]):
            batch = _without(batch, marker)
    if batch:
        await system.journal.submit(batch).wait()
        more = True
    else:
        more = await tidy_rows(system)
    # Each time: the contents of deleted files need not wait until a large application of somebody else is removed.
    return await contents.sweep() or more


async def _of_others(system: System) -> Batch:
    """The next slice of what this partition has of others: of applications, and of users and organizations."""
    places, partitions = system.component(Places), system.store.partitions
    assert partitions is not None
    batch = await system.read(
        lambda snapshot: _slice(_moved_steps(snapshot, partitions, places.arriving)), own=True
    )
    for key in batch.writes.get(keys.META, {}):
        if key.startswith(keys.FOREIGN_PREFIX):
            application = key[len(keys.FOREIGN_PREFIX) :]
            await trio.to_thread.run_sync(remove_results, system.store.own_results, application)
    if batch or places.own == ROOT_PARTITION:
        return batch
    return await system.read(lambda snapshot: _slice(_lost_audit_steps(snapshot)))


async def _delete_unfinished(system: System) -> None:
    """Delete the applications that a job began to build, if that job will not go on."""
    with system.store.snapshot() as snapshot:
        unfinished = [
            bytes(marker[len(keys.BUILDING_PREFIX) :])
            for marker, raw in snapshot.range(
                keys.META, keys.BUILDING_PREFIX, keys.prefix_end(keys.BUILDING_PREFIX)
            )
            if not _goes_on(snapshot, *decode(raw))
        ]
    for application in unfinished:
        with contextlib.suppress(NotFound):  # a commit that still waits has deleted it
            await system.ask(Ref("application", ROOT, application), DeleteApplication())


def _goes_on(snapshot: Snapshot, owner: bytes, job: bytes) -> bool:
    """Whether a job has not ended. It ends with its owner."""
    found = records.find(snapshot, JOB, owner, job)
    if found is None or found.doc["status"] in ENDED:
        return False
    return any(records.find(snapshot, kind, ROOT, owner) is not None for kind in OWNERS)


def _purge_markers(batch: Batch) -> list[bytes]:
    """The markers of deleted applications that a batch removes."""
    return [key for key in batch.writes.get(keys.META, {}) if key.startswith(keys.PURGE_PREFIX)]


def _without(batch: Batch, marker: bytes) -> Batch:
    """The batch without one key of META."""
    return Batch.from_plain([each for each in batch.to_plain() if each[:2] != [keys.META, marker]])


def next_slice(snapshot: Snapshot, oldest_ms: int) -> Batch:
    """Return a batch that removes the next keys; an empty one if there is nothing to remove."""
    return _slice(_steps(snapshot, oldest_ms))


def _slice(steps: Iterator[Step]) -> Batch:
    batch = Batch()
    left = SLICE_KEYS
    counted: set[bytes] = set()
    for step in steps:
        if step.counter is not None:
            # A deployment may go with its device and with its workflow, and is counted once.
            _, record = step.deletes[-1]
            if record in counted:
                continue
            counted.add(record)
        for db, key in step.deletes:
            batch.delete(db, key)
        if step.wiped is not None:
            batch.report_wiped(step.wiped)
        if step.counter is not None:
            batch.add(keys.COUNTS, step.counter, {"n": -1})
        left -= max(1, len(step.deletes))
        if left <= 0:
            break
    return batch


def _steps(snapshot: Snapshot, oldest_ms: int) -> Iterator[Step]:
    """Yield all that is to be removed, in order. A marker is removed after the data that it stands for."""
    for marker in snapshot.keys(keys.META, keys.PURGE_PREFIX, keys.prefix_end(keys.PURGE_PREFIX)):
        yield from _application_steps(snapshot, bytes(marker[-12:]))
        yield Step([(keys.META, bytes(marker))])
    for marker in snapshot.keys(keys.META, keys.SWEEP_PREFIX, keys.prefix_end(keys.SWEEP_PREFIX)):
        yield from _row_steps(snapshot, bytes(marker[len(keys.SWEEP_PREFIX) :]))
        yield Step([(keys.META, bytes(marker))])
    for marker in snapshot.keys(keys.META, keys.FLOW_SWEEP_PREFIX, keys.prefix_end(keys.FLOW_SWEEP_PREFIX)):
        yield from _flow_steps(snapshot, bytes(marker[len(keys.FLOW_SWEEP_PREFIX) :]))
        yield Step([(keys.META, bytes(marker))])
    prefix = keys.record_prefix(APPLICATION.name, ROOT)
    for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        yield from _expired_device_steps(snapshot, bytes(key[-12:]), oldest_ms)


def _moved_steps(snapshot: Snapshot, partitions: Partitions, arriving: Container[bytes]) -> Iterator[Step]:
    """Yield what is left of applications that were moved to another partition. Their names are not theirs here."""
    for application in markers(snapshot, keys.FOREIGN_PREFIX):
        if application in arriving:
            continue
        for step in _application_steps(snapshot, application):
            yield step._replace(deletes=[each for each in step.deletes if each[0] != keys.UNIQUE])
        key = keys.foreign_key(application)
        marker = snapshot.get(keys.META, key)
        if marker is not None and not is_awaited(partitions, application, marker):
            yield Step([(keys.META, key)])


def _lost_audit_steps(snapshot: Snapshot) -> Iterator[Step]:
    """Yield the entries of audit logs in a partition that is not the root, whose owners the root does not have."""
    low, end = keys.kind_prefix(AUDIT_ENTRY.name), keys.prefix_end(keys.kind_prefix(AUDIT_ENTRY.name))
    while (key := next(snapshot.keys(keys.RECORDS, low, end), None)) is not None:
        owner = bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES])
        prefix = keys.record_prefix(AUDIT_ENTRY.name, owner)
        after = keys.prefix_end(prefix)
        assert after is not None
        if not any(records.exists(snapshot, kind, ROOT, owner) for kind in OWNERS):
            for entry, raw in snapshot.range(keys.RECORDS, prefix, after):
                yield _record_step(AUDIT_ENTRY, owner, bytes(entry[-keys.ID_BYTES :]), decode(raw))
            yield Step([(keys.COUNTS, keys.total_key(AUDIT_ENTRY.name, owner))])
        low = after


def _application_steps(snapshot: Snapshot, application: bytes) -> Iterator[Step]:
    """Yield every record of an application with the data that belongs to it, then the application's other data."""
    for kind in _UNDER_APPLICATION:
        prefix = keys.record_prefix(kind.name, application)
        for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            id = bytes(key[-12:])
            yield from _data_steps(snapshot, kind, application, id)
            try:
                yield _record_step(kind, application, id, decode(raw))
            except UNREADABLE:
                log_unreadable(keys.RECORDS, bytes(key))
                yield Step([(keys.RECORDS, bytes(key))], keys.total_key(kind.name, application))
        # What is left here belongs to records that could not be read.
        for entry in snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix)):
            yield Step([(keys.INDEXES, bytes(entry))])
        counter = keys.total_key(kind.name, application)
        if snapshot.get(keys.COUNTS, counter) is not None:
            yield Step([(keys.COUNTS, counter)])
    yield from _data_steps(snapshot, APPLICATION, ROOT, application)


def _data_steps(snapshot: Snapshot, kind: Kind, parent: bytes, id: bytes) -> Iterator[Step]:
    """Yield the data outside the record that belongs to it."""
    for db, prefix in kind.owned_keys(parent, id):
        if db == keys.RUNS:
            # The flusher removes it, with all that has arrived of the device before. After that it has no head.
            if snapshot.head(prefix).head is not None:
                yield Step([], wiped=prefix)
            continue
        for key in snapshot.keys(db, prefix, keys.prefix_end(prefix)):
            yield Step([(db, bytes(key))])


def _row_steps(snapshot: Snapshot, prefix: bytes) -> Iterator[Step]:
    """Yield the rows and index entries of one generation of a table, or the index entries of one column."""
    for db in (keys.ROWS, keys.CELLS):
        for key in snapshot.keys(db, prefix, keys.prefix_end(prefix)):
            yield Step([(db, bytes(key))])


def _flow_steps(snapshot: Snapshot, prefix: bytes) -> Iterator[Step]:
    """Yield the parts of workflows with this prefix; if it is that of a whole workflow, first its versions.

    Nothing if the application was deleted as well, because it is swept as a whole.
    """
    if not records.exists(snapshot, APPLICATION, ROOT, prefix[: keys.ID_BYTES]):
        return
    if len(prefix) == 2 * keys.ID_BYTES:
        application, flow = prefix[: keys.ID_BYTES], prefix[keys.ID_BYTES :]
        for id in ids_of_facet(snapshot, FLOW_VERSION, application, flow.hex()):
            yield from _steps_of(snapshot, FLOW_VERSION, application, id)
        yield from _deployment_steps(snapshot, application, "flowId", flow)
    for key in snapshot.keys(keys.FLOWS, prefix, keys.prefix_end(prefix)):
        yield Step([(keys.FLOWS, bytes(key))])


def _deployment_steps(snapshot: Snapshot, application: bytes, field: str, id: bytes) -> Iterator[Step]:
    """Yield the edge deployments of a device or a workflow."""
    _, low, high = index_range(EDGE_DEPLOYMENT, application, field, keys.sortable(id.hex()))
    for key in snapshot.keys(keys.INDEXES, low, high):
        yield from _steps_of(snapshot, EDGE_DEPLOYMENT, application, bytes(key[-12:]))


def _steps_of(snapshot: Snapshot, kind: Kind, application: bytes, id: bytes) -> Iterator[Step]:
    """Yield the step of a record, if it exists and can be read."""
    try:
        found = records.find(snapshot, kind, application, id)
    except UNREADABLE:
        log_unreadable(keys.RECORDS, keys.record_key(kind.name, application, id))
        return
    if found is not None:
        yield _record_step(kind, application, id, found.doc)


def _record_step(kind: Kind, parent: bytes, id: bytes, doc: Doc) -> Step:
    deletes = [(keys.INDEXES, key) for key in records.entries(kind, parent, id, doc)]
    deletes += [(keys.UNIQUE, key) for key in records.unique_keys(kind, parent, doc).values()]
    deletes.append((keys.RECORDS, keys.record_key(kind.name, parent, id)))
    return Step(deletes, keys.total_key(kind.name, parent))


def _expired_device_steps(snapshot: Snapshot, application: bytes, oldest_ms: int) -> Iterator[Step]:
    """Yield the deleted devices that can no longer be restored, the oldest first."""
    prefix = keys.index_prefix(DELETED_DEVICE.name, application, "deletedAt")
    for key in snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix)):
        device = bytes(key[-12:])
        try:
            found = records.find(snapshot, DELETED_DEVICE, application, device)
            if found is None:
                continue
            if found.doc["deletedAt"] >= oldest_ms:
                return
            step = _record_step(DELETED_DEVICE, application, device, found.doc)
        except UNREADABLE:
            log_unreadable(keys.RECORDS, keys.record_key(DELETED_DEVICE.name, application, device))
            continue
        yield from _data_steps(snapshot, DELETED_DEVICE, application, device)
        yield from _deployment_steps(snapshot, application, "deviceId", device)
        yield from _steps_of(snapshot, EMBEDDED_DEPLOYMENT, application, device)
        yield step
