"""The job that exports an application as a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.portability.bundles.writer import Counts, count_resources, write_bundle

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.store.snapshot import Snapshot

ZIP: Final = "application/zip"


async def export_application(job: Job) -> Doc:
    """Write a bundle of the application. Input: the options of `write_bundle`."""
    counts: Counts = {}

    def count() -> None:
        job.completed += 1

    def fill(snapshot: Snapshot, write: Write) -> None:
        job.total = count_resources(snapshot, job.application, job.input)
        counts.update(write_bundle(job.system, snapshot, job.application, job.input, write, count))
        job.total = job.completed  # records that are being deleted are counted, and are in no bundle

    job.completed, job.total = 0, None
    file = await job.write_file(f"application-{job.application.hex()}.zip", ZIP, fill)
    return {"file": file, "resources": counts}


APPLICATION_EXPORT = JobKind(
    operation="application.export",
    resource_type="application",
    run=export_application,
    gate="application_export_concurrent_calls_max",
)
