"""What a job is: a kind, which says how the work is done, and a run of it.

A job is work that a call only queues: exports, and changes of very many things. The call is answered with 202
when the job is on disk. The application actor owns the records (`jobs/owner.py`), a runner (`jobs/runner.py`)
takes the queued jobs one after the other, and whoever asks sees them in the application's job log
(`jobs/reads.py`).

How to add a kind of job:

1. Write `async def run(job: Job) -> Doc | None` in a module of its own. It does the work and returns what the
   log shows as `output`. What it needs to know stands in `job.input`.
2. Make it a `JobKind`, and put that into `JOB_KINDS` of `catalogue.py`.
3. In `http/resources` give the row `job=JobQueued` beside its own reply, or `ok=202` and `reply=JobQueued`
   where it always queues one, and let its handler call `queue_job` of `http/resources/jobs.py`.

What a run may rely on, and what it must keep to:

- It may be begun again from the start at any time: after a crash, a restart, or a failure that may pass (a
  full disk, a bound of the server). So doing a part twice must be as good as doing it once. Work that writes
  in chunks notes with `job.save` where it is, and finds that in `job.note` when it is begun again.
- Reads go through `job.read`, in a worker thread on a snapshot; writes through `job.ask`, in chunks that
  leave the actor time for others. Nothing large is held in memory.
- A result that is a file is written by `job.write_file`, which returns what belongs into the output as `file`.
  Who queued the job is sent a link to it; nothing needs to be done for that.
- A `DomainError` that says what is wrong ends the job as `errored` with its sentence. What may pass is tried
  again; after `job_attempts_max` attempts the job has `failed`.
- It sets `job.completed` and `job.total` (from a worker thread, too); the log follows every few seconds.
- It is cancelled when the server stops, and when its application is deleted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trunkline.actors.jobs.messages import NoteJob, QueueJob, ResourceType
from trunkline.actors.jobs.results import Fill, Results
from trunkline.actors.records.kind import Doc
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.values.ids import ROOT, parse_id
from trunkline.actors.values.structs import Message

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")

_SHORT = re.compile(r"[0-9A-Za-z_-]{16}\Z")


class JobKind(NamedTuple):
    """A kind of job.

    `operation` is the one that queues it, and its name in the log. `check` may refuse before anything is
    queued (a query that can not be read, a table that is not there); it runs within the turn, so it must be
    short. `gate` names the limit of how many jobs of this kind one resource may have open; None for no such.
    """

    operation: str
    resource_type: ResourceType
    run: Callable[[Job], Awaitable[Doc | None]]
    check: Callable[[Snapshot, bytes, QueueJob], None] | None = None
    gate: str | None = None


class Job:
    """A run of a job. `by` is who asked for it, `attempt` counts from 1."""

    def __init__(self, system: System, application: bytes, id: bytes, doc: Doc) -> None:
        self.system = system
        self.application = application
        self.id = id
        self.resource = bytes.fromhex(doc["resourceId"])
        self.input: Doc = doc["input"]
        self.note: Doc = doc.get("note", {})
        self.by_id: str = doc["requestedById"]
        self.by_type: str = doc["requestedByType"]
        self.by_name: str = doc.get("requestedByName", "")
        self.attempt: int = doc["attempts"]
        self.queued_ms: int = doc["runQueuedAt"]
        self.completed: int = doc["progress"]["completed"] if self.note else 0
        self.total: int | None = doc["progress"].get("total") if self.note else None

    @property
    def owner(self) -> Ref:
        """The application actor, which owns the job's record."""
        return Ref("application", ROOT, self.application)

    async def read(self, query: Callable[[Snapshot], T]) -> T:
        """Run a long read on its own snapshot in a worker thread. Cancelled at its next 256 entries."""
        return await self.system.read(query)

    async def ask(self, ref: Ref, message: Message) -> Any:
        """What an actor answers; what it wrote is on disk by then."""
        return (await self.system.ask(ref, message)).value

    async def save(self, note: Doc) -> None:
        """Note durably where the work is. After a restart the next run finds it in `note`."""
        self.note = note
        await self.ask(self.owner, self.noted(note))

    async def write_file(self, name: str, content_type: str, fill: Fill) -> Doc:
        """Write a file in a worker thread: `fill(snapshot, write)` writes its bytes, piece by piece.

        It is there whole or not at all, and on disk when this returns; a later attempt replaces it. Returns what
        is put into the output as `file`. Raises PayloadTooLarge over `job_result_bytes_max`.
        """
        return await self.system.component(Results).write(self.application, self.id, name, content_type, fill)

    def noted(self, note: Doc | None = None) -> NoteJob:
        """The message that brings the log up to date."""
        return NoteJob(id=self.id, completed=self.completed, total=self.total, note=note)


def short_job_id(id: bytes) -> str:
    """The id of a job as the answer that queues it carries it: at most 21 characters are allowed there."""
    return base64.urlsafe_b64encode(id).decode()


def parse_job_id(text: str) -> bytes:
    """The id of a job in either form: 24 hexadecimal digits, or as the answer that queued it."""
    if _SHORT.match(text) is not None:
        return base64.urlsafe_b64decode(text)
    return parse_id(text, "jobId")
