"""The job that deletes more versions of a workflow than one call may."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from trunkline.actors.flows.messages import DeleteSomeVersions
from trunkline.actors.flows.presenter import find_flow
from trunkline.actors.flows.reads import matching_versions
from trunkline.actors.flows.views import VersionsDeleted
from trunkline.actors.jobs.job import Job, JobKind
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.reading import Reading
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.values.errors import NotFound

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

PART_VERSIONS: Final = 50
"""Versions that are deleted in one turn: a few milliseconds; other messages are handled between two parts."""


async def delete_versions(job: Job) -> Doc:
    """Delete the versions that match, part by part. Input: `flowId` and `query`.

    What an interrupted attempt has deleted is noted, so the number is exact but for one part.
    """
    removed = int(job.note.get("removed", 0))
    try:
        ids = await job.read(partial(_matching, job=job))
    except NotFound:
        return {"removed": removed, "failed": 0}
    failed = 0
    job.completed, job.total = removed, removed + len(ids)
    flow = Ref("flow", job.application, bytes.fromhex(job.input["flowId"]))
    for start in range(0, len(ids), PART_VERSIONS):
        done: VersionsDeleted = await job.ask(
            flow, DeleteSomeVersions(ids=ids[start : start + PART_VERSIONS])
        )
        removed, failed = removed + done.removed, failed + done.failed
        job.completed = removed
        await job.save({"removed": removed})
    return {"removed": removed, "failed": failed}


def _matching(snapshot: Snapshot, *, job: Job) -> list[bytes]:
    flow = find_flow(snapshot, job.application, bytes.fromhex(job.input["flowId"]))
    reading = Reading(snapshot, job.system.limits, in_loop=False)
    return matching_versions(reading, job.application, flow, job.input["query"])


DELETE_VERSIONS = JobKind(operation="flowVersions.delete", resource_type="application", run=delete_versions)
