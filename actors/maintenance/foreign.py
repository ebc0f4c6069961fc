"""What a partition has of applications that are in another one: copies that were not taken over, and what is left of
applications that were moved.

Owns that it goes, and that it never counts. What is left of an application that was moved is removed by the sweep while
the server runs, as that of a deleted one. A copy that was given up may be half of an application, so it is removed at
once, and so is all that is there at a start: nothing has looked at the store then, and what works in the background
would take it for an application.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.application_keys import held_keys, switched, triggers
from trunkline.store import keys
from trunkline.store.arrived_copies import foreign, is_given
from trunkline.store.batch import Batch
from trunkline.store.codec import decode, encode
from trunkline.store.partitioned import SETTLE, Partitions
from trunkline.store.snapshot import Snapshot

if TYPE_CHECKING:
    from trunkline.store.blobs import Blobs
    from trunkline.store.env import Store
    from trunkline.store.journal import Journal
    from trunkline.store.memory_map import MemoryMap

KEYS_AT_ONCE: Final = 5_000
AGAIN_S: Final = 0.05
"""How often it is tried to decide while another process does."""


class OpenStore(Protocol):
    """The parts of a store that are used here."""

    journal: Journal
    memory_map: MemoryMap


def markers(snapshot: Snapshot, prefix: bytes) -> Iterator[bytes]:
    """Yield the applications with a marker of this prefix in META."""
    for key in snapshot.keys(keys.META, prefix, keys.prefix_end(prefix)):
        yield bytes(key[len(prefix) :])


def is_awaited(partitions: Partitions, application: bytes, marker: bytes) -> bool:
    """Whether the partition where an application went still looks for its marker here (`settle`). Raises StoreError."""
    with partitions.snapshot_of(decode(marker)["partition"]) as snapshot:
        return snapshot.get(keys.META, keys.arrived_key(application)) is not None


def _slice(snapshot: Snapshot, application: bytes) -> Batch:
    """A batch that removes the next keys of a foreign application; empty if there are none."""
    batch = Batch()
    batch.completes = "deletion"
    for db, key in islice(held_keys(snapshot, application), KEYS_AT_ONCE):
        batch.delete(db, key)
    return batch


def _without_marker(application: bytes) -> Batch:
    batch = Batch()
    batch.completes = "deletion"
    batch.delete(keys.META, keys.foreign_key(application))
    return batch


async def remove_copy(store: Store, application: bytes) -> None:
    """Remove a copy that was given up. Nothing if the application is not foreign.

    Raises StoreError; then the next start removes it.
    """
    while True:
        with store.snapshot(own=True) as snapshot:
            if snapshot.get(keys.META, keys.foreign_key(application)) is None:
                return
            batch = _slice(snapshot, application)
        if not batch:
            await trio.to_thread.run_sync(remove_results, store.own_results, application)
            batch = _without_marker(application)
        await store.journal.submit(batch).wait()


def remove_results(results: Blobs | None, application: bytes) -> None:
    """Remove the results of its jobs, unless they are where the other partition has its own. Blocks."""
    if results is None:
        return
    for name in results.names():
        if name.startswith(application.hex()):
            results.remove(name)


def settle(store: OpenStore, partitions: Partitions, results: Blobs | None) -> None:
    """At a start: decide for each application that has arrived whether it belongs here, and remove what is foreign.

    It belongs here if the partition where it came from has given it away to this one, and to no other after it took it
    back; there the marker stays until the one here is gone. Raises StoreError.
    """
    for batch in _decisions(store, partitions, results, waits=True):
        group = store.journal.submit(batch)
        store.journal.flush()
        if group.error is not None:
            raise group.error


async def settle_with_log(store: OpenStore, partitions: Partitions, results: Blobs | None) -> None:
    """The same where the journal has a log. It runs, and nothing else has looked at the store. Raises StoreError."""
    for batch in _decisions(store, partitions, results, waits=False):
        if batch:
            await store.journal.submit(batch).wait()
        else:
            await trio.sleep(AGAIN_S)


def is_settled(memory_map: MemoryMap) -> bool:
    """Whether a store has nothing that `settle` would decide or remove. Raises StoreError."""
    with Snapshot(memory_map) as snapshot:
        return not foreign(snapshot) and next(markers(snapshot, keys.ARRIVED_PREFIX), None) is None


def _decisions(
    store: OpenStore, partitions: Partitions, results: Blobs | None, *, waits: bool
) -> Iterator[Batch]:
    """Yield the batches that `settle` commits, each of them before the next one is made.

    Unless it `waits`, an empty one says that another process decides just now.
    """
    with Snapshot(store.memory_map) as snapshot:
        arrived = list(markers(snapshot, keys.ARRIVED_PREFIX))
    for application in arrived:
        is_decided = False
        while not is_decided:
            with partitions.locked(SETTLE, waits=waits) as is_decided:
                yield _decision(store, partitions, application) if is_decided else Batch()
    yield from _removals(store, partitions, results)


def _decision(store: OpenStore, partitions: Partitions, application: bytes) -> Batch:
    key = keys.arrived_key(application)
    with Snapshot(store.memory_map) as snapshot:
        marker = snapshot.get(keys.META, key)
        assert marker is not None
        with partitions.snapshot_of(decode(marker)["from"]) as source:
            is_ours = is_given(source, application, partitions.own)
        batch = Batch() if is_ours else made_foreign(snapshot, application, decode(marker)["from"])
    batch.delete(keys.META, key)
    return batch


def made_foreign(snapshot: Snapshot, application: bytes, place: int) -> Batch:
    """What ends that an application belongs here, and that anything is done for it: it is in partition `place`."""
    batch = Batch()
    batch.completes = "deletion"
    found = records.find(snapshot, APPLICATION, ROOT, application)
    if found is not None:
        batch.delete(keys.RECORDS, keys.record_key(APPLICATION.name, ROOT, application))
        batch.delete_all(keys.INDEXES, records.entries(APPLICATION, ROOT, application, found.doc))
        counted = {name: -number for name, number in records.counted_of(APPLICATION, found.doc).items()}
        batch.add(keys.COUNTS, keys.total_key(APPLICATION.name, ROOT), counted)
    for db, key, _ in switched(snapshot, application):
        batch.delete(db, key)
    batch.delete_all(keys.TRIGGERS, [key for key, _ in triggers(snapshot, application)])
    batch.put(keys.META, keys.foreign_key(application), encode({"partition": place}))
    batch.delete(keys.META, keys.arrived_key(application))
    return batch


def _removals(store: OpenStore, partitions: Partitions, results: Blobs | None) -> Iterator[Batch]:
    """Yield batches that remove all that is foreign. Nothing else uses the store yet. Raises StoreError."""
    with Snapshot(store.memory_map) as snapshot:
        marked = {each: snapshot.get(keys.META, keys.foreign_key(each)) for each in sorted(foreign(snapshot))}
    for application, marker in marked.items():
        assert marker is not None
        remove_results(results, application)
        while True:
            with Snapshot(store.memory_map) as snapshot:
                batch = _slice(snapshot, application)
            if not batch:
                break
            yield batch
        if not is_awaited(partitions, application, marker):
            yield _without_marker(application)
