"""The job that deletes more versions of a workflow than one call may."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.workflows.flows.messages import DeleteSomeVersions
from trunkline.actors.workflows.flows.presenter import find_flow
from trunkline.actors.workflows.flows.reads import matching_versions
from trunkline.actors.workflows.flows.views import VersionsDeleted

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


async def delete_versions(job: Job) -> Doc:
    """Delete the versions that match, part by part. Input: `flowId` and `query`."""
    if not job.note:
        job.note = {"removed": 0}
    try:
        ids = await job.read(partial(_matching, job=job))
    except NotFound:
        return {**job.note, "failed": 0}
    failed, part = 0, job.system.limits.deleted_versions_max
    job.completed, job.total = job.note["removed"], job.note["removed"] + len(ids)
    flow = Ref("flow", job.application, bytes.fromhex(job.input["flowId"]))
    for start in range(0, len(ids), part):
        message = DeleteSomeVersions(ids=ids[start : start + part])
        done = (await job.do_part([(flow, message)], partial(_noted, job)))[0]
        failed += done.failed
    return {**job.note, "failed": failed}


def _noted(job: Job, answers: list[Any]) -> Doc:
    """What was deleted; it is stored with the deletion."""
    done: VersionsDeleted | DomainError = answers[0]
    if isinstance(done, DomainError):
        raise done
    job.completed = job.note["removed"] + done.removed
    return {"removed": job.completed}


def _matching(snapshot: Snapshot, *, job: Job) -> list[bytes]:
    flow = find_flow(snapshot, job.application, bytes.fromhex(job.input["flowId"]))
    reading = Reading(snapshot, job.system.limits, in_loop=False)
    return matching_versions(reading, job.application, flow, job.input["query"])


DELETE_VERSIONS = JobKind(operation="flowVersions.delete", resource_type="application", run=delete_versions)
