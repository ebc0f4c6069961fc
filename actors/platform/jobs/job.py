"""A kind of job, and one run of a job.

A job is work that a call queues and the server does later: exports, and changes of very many things. The call is
answered with 202 when the job is on disk. The application actor owns the records (`platform/jobs/owner.py`), a runner
(`platform/jobs/runner.py`) takes the queued jobs one after the other, and callers see them in the application's job log
(`platform/jobs/reads.py`).

How to add a kind of job:

1. Write `async def run(job: Job) -> Doc | None` in its own module. It does the work and returns the `output` that
   the log shows. Its parameters are in `job.input`.
2. Define a `JobKind` with it, and name that in the `feature.py` of its package.
3. In `http/resources` give the row `job=JobQueued` in addition to its own reply, or `ok=202` and `reply=JobQueued`
   if it always queues a job, and let its handler call `queue_job` of `http/resources/platform/jobs.py`.

The rules for a run:

- It may be started again at any time: after a crash, a restart, or a temporary failure (a full disk, a limit of
  the server). So every step must be idempotent. Work that writes in chunks saves its position with `job.save`,
  and finds it in `job.note` when it is started again.
- It reads with `job.read`, in a worker thread on a snapshot, and writes with `job.ask`, in chunks that
  leave the actor time for other messages. It keeps nothing large in memory.
- Work on many actors that must not be repeated is done with `job.do_part`, which saves the position in the batch of
  the work itself.
- It writes a result file with `job.write_file`, which returns the value for `file` in the output. A link to
  the file is sent to the recipients of notifications automatically.
- A permanent `DomainError` ends the job as `errored` with its message. After a temporary error the job is tried
  again; after `job_attempts_max` attempts it has `failed`.
- It sets `job.completed` and `job.total` (also from a worker thread); the log is updated every few seconds.
- It is cancelled when the server stops, and when its application is deleted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import mandates_of
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.machines import Machines
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.structs import Message
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.platform.jobs.messages import QueueJob, ResourceType, SaveProgress
from trunkline.actors.platform.jobs.results import Fill, Results
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")

_SHORT = re.compile(r"[0-9A-Za-z_-]{16}\Z")


class JobKind(NamedTuple):
    """A kind of job.

    `operation` is the operation that queues it, and its name in the log. `check` may refuse before the job is
    queued (an invalid query, a missing table); it runs within the turn, so it must be short. `gate` names the
    limit on the open jobs of this kind for one resource; None: no limit. `owner` is the kind of the actor that keeps
    the records, a `JobOwner`.
    """

    operation: str
    resource_type: ResourceType
    run: Callable[[Job], Awaitable[Doc | None]]
    check: Callable[[Snapshot, bytes, QueueJob], None] | None = None
    gate: str | None = None
    owner: str = "application"


class Job:
    """A run of a job. `by` requested it, with `level` at its owner; `attempt` counts from 1."""

    def __init__(self, system: System, owner: Ref, id: bytes, doc: Doc) -> None:
        self.system = system
        self.owner = owner
        self.id = id
        self.resource = bytes.fromhex(doc["resourceId"])
        self.input: Doc = doc["input"]
        self.note: Doc = doc.get("note", {})
        self.by = Creator(
            doc["requestedById"],
            doc["requestedByType"],
            doc.get("requestedByName", ""),
            mandates_of(doc.get("authors")),
        )
        self.level = Level(doc.get("level", Level.WRITE))
        self.attempt: int = doc["attempts"]
        self.queued_ms: int = doc["runQueuedAt"]
        self.completed: int = doc["progress"]["completed"] if self.note else 0
        self.total: int | None = doc["progress"].get("total") if self.note else None

    @property
    def application(self) -> bytes:
        """The application that owns the job."""
        return self.owner.id

    def check(self, place: bytes, level: Level) -> None:
        """Raise `Forbidden` unless who requested it still has a level in an application or an organization."""
        self.system.component(Authors).check_level(place, self.by.mandates, level)

    async def read(self, query: Callable[[Snapshot], T]) -> T:
        """Run a long read on its own snapshot in a worker thread. Cancelled at its next 256 entries.

        What other machines have is read from copies, also rows and other data that no record tells of.
        """
        await self.system.component(Machines).caught_up()
        return await self.system.read(query, wide=True)

    async def read_data(self) -> bytes:
        """Read the data that was queued with the job. Raises NotFound if the job has ended."""
        key = keys.job_data_key(self.application, self.id)
        raw = await self.read(lambda snapshot: snapshot.get(keys.META, key))
        if raw is None:
            raise NotFound("The data of the job is gone.")
        return raw

    async def ask(self, ref: Ref, message: Message) -> Any:
        """Ask an actor and return the value of its answer; its writes are on disk then."""
        return (await self.system.ask(ref, message)).value

    async def save(self, note: Doc) -> None:
        """Store the position of the work durably. After a restart the next run finds it in `note`."""
        self.note = note
        await self.ask(self.owner, self.progress_message(note))

    async def do_part(
        self, asks: Sequence[tuple[Ref, Message]], note: Callable[[list[Any]], Doc]
    ) -> list[Any]:
        """Ask different actors and store the position of the work in the same batch: the part is done exactly once.

        Returns the values of the answers, or the errors of actors that refuse. `note` makes the position from them,
        and may set `completed`. Raises errors that pass with time; then nothing of the part is stored.
        """

        def last(answers: list[Any]) -> tuple[Ref, Message]:
            self.note = note(answers)
            return self.owner, self.progress_message(self.note)

        return (await self.system.ask_each(asks, last))[:-1]

    async def write_file(self, name: str, content_type: str, fill: Fill) -> Doc:
        """Write a result file in a worker thread: `fill(snapshot, write)` writes its bytes, piece by piece.

        The write is atomic, and on disk when this returns; a later attempt replaces the file. Returns the value for
        `file` in the output. Raises PayloadTooLarge above `job_result_bytes_max`.
        """
        return await self.system.component(Results).write(self.owner.id, self.id, name, content_type, fill)

    def set_progress(self, completed: int, total: int) -> None:
        """Set how much is done, and how much there is; the log shows it within seconds."""
        self.completed, self.total = completed, total

    def progress_message(self, note: Doc | None = None) -> SaveProgress:
        """The message that stores the current progress, and `note`, if given."""
        return SaveProgress(id=self.id, completed=self.completed, total=self.total, note=note)


def short_job_id(id: bytes) -> str:
    """The short form of a job id, for the answer that queues it, where it may have at most 21 characters."""
    return base64.urlsafe_b64encode(id).decode()


def parse_job_id(text: str) -> bytes:
    """Parse a job id in either form: 24 hexadecimal digits, or the short form (`short_job_id`)."""
    if _SHORT.match(text) is not None:
        return base64.urlsafe_b64decode(text)
    if not is_id(text):
        raise Invalid(
            f"jobId: {text[:64]!r} is not the id of a job; give the jobId or the id that the server gave."
        )
    return bytes.fromhex(text)
