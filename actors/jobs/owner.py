"""The records of jobs, as the application actor keeps them: queued, begun, moved on, ended, forgotten.

Owns the life of a job's record and the gates. Does not own the work, nor when it is done (`jobs/runner.py`).

The open jobs of an application stand in one value beside the records, which changes in the batches that
change them. So a gate is exact: it counts what is on disk or on its way there, never more (a commit that
failed closes none) and never less (a restart opens none). And the runner finds them at a start without
looking at any other record.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trunkline.actors.jobs.job import JobKind
from trunkline.actors.jobs.kind import JOB
from trunkline.actors.jobs.messages import (
    ENDED,
    BeginJob,
    EndJob,
    ForgetJobs,
    NoteJob,
    PutBackJob,
    QueueJob,
    ToldJob,
)
from trunkline.actors.jobs.queue import JobQueue
from trunkline.actors.outgoing.http_calls import check_url
from trunkline.actors.outgoing.mail import check_address
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.kinds import APPLICATION, USER
from trunkline.actors.runtime.actor import Actor
from trunkline.actors.values.errors import Overloaded, TooManyRequests
from trunkline.actors.values.ids import ROOT
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline.store.snapshot import Snapshot

OpenJobs = dict[bytes, list[Any]]
"""By id the jobs that have still something to do: the operation and the resource. A third entry, TELLING, where
the work is done and only somebody is still to be told; such a job holds no gate."""

TELLING = "telling"


class JobOwner(Actor):
    """The part of the application actor that keeps its jobs."""

    __slots__ = ()

    def on_queue_job(self, message: QueueJob) -> bytes:
        """Queue a job; the answer is its id. Raises TooManyRequests at its gate and what its kind refuses."""
        jobs, application = self.system.component(JobQueue), self.ref.id
        kind = jobs.kinds[message.operation]
        limits = self.system.limits
        if len(jobs) >= limits.jobs_waiting_length_max:
            raise Overloaded(
                f"{len(jobs)} jobs wait, which is the bound of this server. Try again in a minute.",
                retry_after_s=60,
            )
        opened = self._open_jobs()
        _check_gate(kind, message.resource, opened, limits)
        if kind.check is not None:
            with self.system.store.snapshot() as snapshot:
                kind.check(snapshot, application, message)
        now_ms = self.system.clock.wall_ms()
        id = self.system.ids.new(now_ms)
        doc: Doc = {
            "name": message.operation,
            "status": "queued",
            "runQueuedAt": now_ms,
            "executionId": id.hex(),
            "requestedById": message.by.id,
            "requestedByType": message.by.type,
            "requestedByName": message.by.name,
            "resourceType": kind.resource_type,
            "resourceId": message.resource.hex(),
            "attempts": 0,
            "progress": {"completed": 0},
            "input": message.input,
            "tell": self._ways(message),
        }
        records.write(self, JOB, application, id, None, doc)
        self._keep_open(opened | {id: [message.operation, message.resource]})
        self.after_commit(partial(jobs.add, application, id))
        return id

    def on_begin_job(self, message: BeginJob) -> Doc | None:
        """Count an attempt. None where the job has ended, also by this: it was begun too often."""
        found = self._job(message.id)
        if found is None or found["status"] in ENDED:
            return None
        attempts_max = self.system.limits.job_attempts_max
        if found["attempts"] >= attempts_max:
            problem = f"The job was begun {attempts_max} times and never came to its end."
            self._end(
                message.id, found, {"status": "failed", "error": {"name": "Failed", "message": problem}}
            )
            return None
        now_ms = self.system.clock.wall_ms()
        begun = {
            **found,
            "status": "inProgress",
            "runStartedAt": now_ms,
            "executionId": self.system.ids.new(now_ms).hex(),
            "attempts": found["attempts"] + 1,
        }
        records.write(self, JOB, self.ref.id, message.id, found, begun)
        return begun

    def on_note_job(self, message: NoteJob) -> None:
        """Bring the log of a running job up to date."""
        found = self._job(message.id)
        if found is None or found["status"] != "inProgress":
            return
        changed = {**found, "progress": _progress(message)}
        if message.note is not None:
            changed["note"] = message.note
        if changed != found:
            records.write(self, JOB, self.ref.id, message.id, found, changed)

    def on_end_job(self, message: EndJob) -> None:
        """End a job, once."""
        found = self._job(message.id)
        if found is None or found["status"] in ENDED:
            return
        changes: Doc = {"status": message.status, "progress": _progress(message)}
        if message.output is not None:
            changes["output"] = message.output
        if message.error is not None:
            changes["error"] = message.error
        self._end(message.id, found, changes)

    def on_told_job(self, message: ToldJob) -> None:
        """Note that somebody was told, or could not be. With the last one the job is over."""
        found = self._job(message.id)
        if found is None:
            return
        now_ms = self.system.clock.wall_ms()
        news: Doc = {"at": now_ms} if message.problem is None else {"problem": message.problem}
        told = [way | news if way["by"] == message.by else way for way in found["tell"]]
        records.write(self, JOB, self.ref.id, message.id, found, {**found, "tell": told})
        if all(map(is_settled, told)):
            opened = self._open_jobs()
            opened.pop(message.id, None)
            self._keep_open(opened)

    def on_put_back_job(self, message: PutBackJob) -> None:
        """Queue a running job again; the attempt does not count."""
        found = self._job(message.id)
        if found is None or found["status"] != "inProgress":
            return
        back = {**found, "status": "queued", "attempts": found["attempts"] - 1}
        records.write(self, JOB, self.ref.id, message.id, found, back)

    def on_forget_jobs(self, message: ForgetJobs) -> None:
        """Remove the records of jobs that have nothing left to do."""
        opened = self._open_jobs()
        for id in message.ids:
            found = self._job(id)
            if found is not None and id not in opened:
                records.erase(self, JOB, self.ref.id, id, found)

    def _end(self, id: bytes, found: Doc, changes: Doc) -> None:
        ended = {**found, **changes, "runCompletedAt": self.system.clock.wall_ms()}
        ended.pop("note", None)
        records.write(self, JOB, self.ref.id, id, found, ended)
        opened = self._open_jobs()
        if ended["tell"]:
            opened[id] = [*opened[id][:2], TELLING]
        else:
            opened.pop(id, None)
        self._keep_open(opened)
        self.after_commit(partial(self.system.component(JobQueue).count, ended["status"]))

    def _ways(self, message: QueueJob) -> list[Doc]:
        """How somebody will be told of the end. Raises Invalid for what can not be written to or called."""
        ways: list[Doc] = []
        email = message.email or self._address(message.user)
        if email is not None:
            check_address(email)
            ways.append({"by": "email", "to": email})
        if message.callback_url is not None:
            check_url(message.callback_url, private=self.system.component(JobQueue).calls_private_networks)
            ways.append({"by": "callback", "to": message.callback_url})
        return ways

    def _address(self, user: bytes | None) -> str | None:
        """The e-mail address of a user's account; without a user, of the owner of the application."""
        if user is None:
            raw = self.system.journal.get(keys.RECORDS, keys.record_key(APPLICATION.name, ROOT, self.ref.id))
            user = None if raw is None else bytes.fromhex(decode(raw)["ownerId"])
        if user is None:
            return None
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(USER.name, ROOT, user))
        return None if raw is None else str(decode(raw)["email"])

    def _job(self, id: bytes) -> Doc | None:
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(JOB.name, self.ref.id, id))
        return None if raw is None else decode(raw)

    def _open_jobs(self) -> OpenJobs:
        raw = self.system.journal.get(keys.META, keys.jobs_key(self.ref.id))
        return {} if raw is None else decode(raw)

    def _keep_open(self, opened: OpenJobs) -> None:
        key = keys.jobs_key(self.ref.id)
        if opened:
            self.put(keys.META, key, encode(opened))
        else:
            self.delete(keys.META, key)


def is_settled(way: Doc) -> bool:
    """Whether somebody was told this way, or it was given up."""
    return "at" in way or "problem" in way


def open_jobs(snapshot: Snapshot) -> Iterator[tuple[bytes, bytes]]:
    """Application and id of every job that has something left to do, by application and age."""
    prefix = keys.JOBS_PREFIX
    for key, raw in snapshot.range(keys.META, prefix, keys.prefix_end(prefix)):
        for id in sorted(decode(raw)):
            yield bytes(key[len(prefix) :]), id


def _check_gate(kind: JobKind, resource: bytes, opened: OpenJobs, limits: Limits) -> None:
    """Raise TooManyRequests where the resource, or the application, has as many open jobs as it may have."""
    if len(opened) >= limits.application_jobs_max:
        raise TooManyRequests(
            f"The application has {len(opened)} open jobs, which is the most; come back when one has ended.",
            bucket="application_jobs_max",
            retry_after_s=limits.gate_retry_s,
        )
    if kind.gate is None:
        return
    holders = sum(entry == [kind.operation, resource] for entry in opened.values())
    if holders >= getattr(limits, kind.gate):
        per = Limits.__dataclass_fields__[kind.gate].metadata["per"]
        raise TooManyRequests(
            f"A {kind.operation} of this {per} is queued or runs already; come back when its job has ended.",
            bucket=kind.gate,
            retry_after_s=limits.gate_retry_s,
        )


def _progress(message: NoteJob | EndJob) -> Doc:
    progress: Doc = {"completed": message.completed}
    if message.total is not None:
        progress["total"] = message.total
    return progress
