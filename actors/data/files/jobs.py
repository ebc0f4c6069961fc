"""The jobs that delete directories with all that is in them: one kind for each tree.

The directory is marked in the batch that queues the job, and takes nothing new from then on. Each part removes some
records, what is in a directory before the directory itself; its batch also contains the position of the job. So the
job removes and counts each record once, however often it is interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE, TreeName
from trunkline.actors.data.files.messages import EraseFiles
from trunkline.actors.data.files.tree import below
from trunkline.actors.platform.jobs.job import Job, JobKind

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


async def delete_directory(job: Job, kind: Kind, tree: TreeName) -> Doc:
    """Delete a directory. Input: `id` and `path`."""
    directory = bytes.fromhex(job.input["id"])
    job.total = job.completed + await job.read(
        lambda snapshot: sum(1 for _ in _left(snapshot, job.application, kind, directory))
    )
    while await delete_part(job, kind, tree):
        pass
    return {"removed": job.completed}


async def delete_part(job: Job, kind: Kind, tree: TreeName) -> bool:
    """Delete a part of a directory; False if nothing is left."""
    directory, most = bytes.fromhex(job.input["id"]), job.system.limits.erased_files_max
    ids = await job.read(
        lambda snapshot: list(islice(_left(snapshot, job.application, kind, directory), most))
    )

    def note(answers: list[Any]) -> Doc:
        if isinstance(answers[0], DomainError):
            raise answers[0]
        job.completed += answers[0]
        return {"removed": job.completed}

    if ids:
        files = Ref("fileTree", job.application, job.application)
        await job.do_part([(files, EraseFiles(tree=tree, ids=ids))], note)
    return bool(ids)


def _left(snapshot: Snapshot, application: bytes, kind: Kind, directory: bytes) -> Iterator[bytes]:
    if records.find(snapshot, kind, application, directory) is not None:
        yield from below(snapshot, application, kind, directory)


async def _delete_public(job: Job) -> Doc:
    return await delete_directory(job, FILE, "file")


async def _delete_private(job: Job) -> Doc:
    return await delete_directory(job, PRIVATE_FILE, "privateFile")


DELETE_DIRECTORY: Final = JobKind(operation="file.delete", resource_type="application", run=_delete_public)
DELETE_PRIVATE_DIRECTORY: Final = JobKind(
    operation="privateFile.delete", resource_type="application", run=_delete_private
)
