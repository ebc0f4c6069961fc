"""Start-up: opens the store of a data directory, creates the actor system on it, and runs it.

The server and the command line start here, so neither of them imports the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from inspect import signature
from pathlib import Path

import trio

from trunkline.actors.catalogue import ACTORS, FEATURES, JOB_KINDS, KINDS, RESOURCES, UPLOADS
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.core.outgoing.mail import Mail
from trunkline.actors.core.records import records
from trunkline.actors.core.records.feature import Start
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.names import Names
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime import threads
from trunkline.actors.core.runtime.background import Background
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.machines import Machines
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.clock import Clock, SystemClock
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.store_errors import outdated
from trunkline.actors.fleet.devices.state.arrays import load_arrays
from trunkline.actors.maintenance.data_directory import contents_place_of, keys_file_of
from trunkline.actors.maintenance.foreign import settle
from trunkline.actors.maintenance.move_source import MoveSource
from trunkline.actors.maintenance.move_target import MoveTarget
from trunkline.actors.maintenance.retention import Retention
from trunkline.actors.maintenance.sweep import run_sweep
from trunkline.actors.people.accounts.passwords import use_threads
from trunkline.actors.platform.jobs.notifications import Notifier
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.actors.readers import read
from trunkline.limits.settings import Settings
from trunkline.store.env import Store
from trunkline.store.errors import StoreError
from trunkline.store.flusher import Flusher
from trunkline.store.journal import Journal
from trunkline.store.simulated_disk import SimulatedDisk, write_calls


@contextmanager
def opened(
    settings: Settings,
    clock: Clock | None = None,
    partition: int = 0,
    journal: Callable[..., Journal] | None = None,
) -> Iterator[System]:
    """Open the data directory, or one partition of it, and create the actor system on it; nothing runs yet.

    `journal` makes its writer, if it is not the usual one.

    If the body raises and the directory was made here, it is removed, unless `store.directory.keep` was called.
    Raises `StoreError` if the directory is in use, of a newer format, or broken.
    """
    limits = settings.limits
    store = Store.open(
        Path(settings.data_dir),
        partition=partition,
        encryption_keys=keys_file_of(settings),
        contents_place=contents_place_of(settings),
        part_bytes=limits.blobs_part_bytes,
        file_threads_max=limits.file_threads_max,
        map_size_bytes=settings.map_size_bytes,
        store_size_max_bytes=settings.store_size_max_bytes,
        journal_bytes_max=limits.journal_bytes_max,
        journal_batches_max=limits.journal_batches_max,
        arrival_window_bytes=limits.arrival_window_bytes,
        arrivals_bytes_max=limits.arrivals_bytes_max,
        read_threads_max=limits.read_threads_max,
        read_queue_length_max=limits.read_queue_length_max,
        start_check_s=limits.start_check_s,
        sync_delay_s=_sync_delay(settings),
        outbox_length_max=limits.outbox_length_max,
        journal=journal,
        keeps_log=journal is not None,
    )
    try:
        if store.partitions is not None and journal is None:
            settle(store, store.partitions, store.own_results)
        system = System(store, limits, clock or SystemClock(), ACTORS)
        add_parts(system, settings)
        yield system
    except BaseException:
        store.directory.discard()
        raise
    finally:
        store.close()


def _sync_delay(settings: Settings) -> Callable[[], float] | None:
    """The delay of commits by a simulated disk, if there is one."""
    delay_s = settings.sync_delay_ms / 1000
    if settings.disk_writes_per_s:
        return SimulatedDisk(delay_s, settings.disk_writes_per_s, write_calls()).delay_s
    return (lambda: delay_s) if delay_s else None


async def flush_reports(system: System) -> None:
    """Bring all that devices reported into sorted runs, for measurements of what states cost on the disk."""
    await system.component(Flusher).flush_all()


def _owner_of(system: System, application: bytes) -> str | None:
    """The id of the owner of an application; None if it is deleted, or cannot be read: the watch must go on."""
    try:
        with system.store.snapshot() as snapshot:
            found = records.find(snapshot, APPLICATION, ROOT, application)
    except StoreError:
        return None
    return None if found is None else found.doc["ownerId"]


def add_parts(system: System, settings: Settings) -> None:
    """Add the components of a system: what packages add by their features, and what needs all features."""
    system.add_component(system.store.keyring)
    system.add_component(Machines())
    if system.store.partitions is not None:
        places = Places(system.store.partitions, KINDS)
        system.store.partitions.placing = places
        system.add_component(places)
        names = Names(system, system.store.partitions)
        if system.store.partitions.freshness is not None:
            system.claim_names = names.claim
            system.store.partitions.outdated = outdated  # type: ignore[method-assign]
        system.revocations.shared = system.store.partitions.numbers
        system.store.partitions.numbers.begin()
    system.add_component(LoopWatch(system.limits, system.clock.wall_ms, partial(_owner_of, system)))
    owners = Owners(system)
    system.add_component(owners)
    system.payer = owners.of_work
    system.add_component(Background())
    start = Start(system, settings, system.store.directory.secret(), partial(read, system))
    for feature in FEATURES:
        for part in feature.parts(start):
            system.add_component(part)
    system.add_component(RESOURCES)
    system.add_component(Uploads(system, UPLOADS))
    queue = JobQueue(
        JOB_KINDS,
        places=system.limits.jobs_running_max,
        payer_of=lambda owner: (owners.of if owner.kind == "application" else owners.payer)(owner.id),
        calls_private_networks=settings.callback_private_networks,
    )
    system.add_component(queue)
    notifier = Notifier(settings, system.limits, system.component(Mail), system.component(Results))
    system.add_component(Jobs(system, queue, notifier))
    system.add_component(Retention(system))
    if system.store.partitions is not None:
        system.add_component(MoveSource(system))
        system.add_component(MoveTarget(system))


@asynccontextmanager
async def running(system: System) -> AsyncIterator[System]:
    """Run the system, its background tasks and the jobs while the body runs; at its end commit what still waits."""
    use_threads(system.limits.password_threads_max, system.payer)
    threads.charge(system.payer)
    if has_applications(system):
        await load_arrays()
    async with trio.open_nursery() as nursery:
        await nursery.start(system.run)
        await system.journal.begun()
        nursery.start_soon(system.component(Flusher).run)
        first_tasks = [task for feature in FEATURES for task in feature.first_tasks]
        for task in (*first_tasks, *(task for feature in FEATURES for task in feature.tasks)):
            await _begin(nursery, system.component(task).run)
        nursery.start_soon(run_sweep, system)
        nursery.start_soon(system.component(Retention).run)
        system.component(Background).open(nursery)
        try:
            yield system
        finally:
            for feature in reversed(FEATURES):
                for stopped in feature.stops:
                    await system.component(stopped).stop()
            system.drain()
            nursery.cancel_scope.cancel()


async def _begin(nursery: trio.Nursery, run: Callable[..., Awaitable[None]]) -> None:
    """Start a task in the background. Where it takes `task_status`, wait until it says that it has begun."""
    if "task_status" in signature(run).parameters:
        await nursery.start(run)
    else:
        nursery.start_soon(run)


def has_applications(system: System) -> bool:
    """Whether there is an application, and so may be a device."""
    with system.store.snapshot() as snapshot:
        return records.total(snapshot, APPLICATION, ROOT) > 0
