"""The job that clones an application: a bundle of it is written to a file, checked, and imported as a new application.

The file is written once, beside the results of jobs, and removed when the job has ended; so an attempt after kill -9
goes on with the same bundle. The new application belongs to nobody until it is complete (`creation.py`).
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final

import trio

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Crashed
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.portability.bundles.checking import check_bundle
from trunkline.actors.portability.bundles.creation import create_from, is_published, publish
from trunkline.actors.portability.bundles.import_files import open_bundle
from trunkline.actors.portability.bundles.plan import Target
from trunkline.actors.portability.bundles.reader import Bundle
from trunkline.actors.portability.bundles.writer import write_bundle

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.actors.portability.bundles.reader import Source
    from trunkline.store.snapshot import Snapshot


async def clone_application(job: Job) -> Doc:
    """Clone an application for the owner of the job.

    Input: `applicationId`, `ownerType`, the options of `write_bundle`, and `dryRun`: only check it. The output has the
    `applicationId` of the clone and the numbers of `resources` by name. Raises `InvalidParts` if it cannot be cloned;
    then nothing was changed.
    """
    target = Target(new_application(job.id), is_new=True, job=(job.owner.id, job.id), by=job.by)
    if is_published(job.system, target.application):
        return {"applicationId": target.application.hex()}
    job.check(bytes.fromhex(job.input["applicationId"]), Level.READ)
    with closing(await _bundle_file(job)) as file:
        bundle = await job.read(lambda _: Bundle(file, job.system.limits))
        counts = await import_source(job, bundle, target, check_only=job.input["dryRun"])
    if job.input["dryRun"]:
        return {"resources": counts}
    await publish(job.system, target.application, job.owner.id, job.input["ownerType"])
    return {"applicationId": target.application.hex(), "resources": counts}


async def import_source(
    job: Job, source: Source, target: Target, *, check_only: bool = False
) -> dict[str, int]:
    """Check a bundle, and create all of it. Returns the numbers of resources by name. Raises `InvalidParts`.

    May be repeated with the same target after any interruption.
    """
    system = job.system
    checked = await job.read(lambda snapshot: check_bundle(system, system.kinds, snapshot, source, target))
    checked.require(system.limits)
    if check_only:
        return {name: count for name, count in checked.counts.items() if count}

    return await create_from(system, source, target, job.set_progress)


def new_application(job: bytes) -> bytes:
    """The id of the application that a job makes: the same in each attempt."""
    return job[:4] + hashlib.sha256(job + b"application").digest()[:8]


async def _bundle_file(job: Job) -> BinaryIO:
    """The bundle as a file; an earlier attempt may have written it."""

    def fill(snapshot: Snapshot, write: Write) -> None:
        application = bytes.fromhex(job.input["applicationId"])
        write_bundle(job.system, snapshot, application, job.input, write)

    opened = partial(open_bundle, job.system, job.owner.id, job.id)
    file = await trio.to_thread.run_sync(opened)
    if file is None:
        await job.system.component(Results).write(job.owner.id, job.id, "clone.zip", "application/zip", fill)
        file = await trio.to_thread.run_sync(opened)
    if file is None:
        raise Crashed("The bundle of the clone is gone.")
    return file


CLONE: Final = JobKind(
    operation="application.clone",
    resource_type="application",
    run=clone_application,
    gate="clone_or_import_concurrent_calls_max",
    owner="userJobs",
)
