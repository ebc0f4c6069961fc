"""The records of jobs: the part of the application actor that queues, begins, updates, ends and deletes them.

Owns the life cycle of a job's record and the gates. Does not own the work, nor when it is done
(`platform/jobs/runner.py`).

The open jobs of an application are also stored in one value, which changes in the same batches as their records.
So a gate is exact: it counts the jobs that are stored or submitted, even after a failed commit or a restart. And
at a start the runner finds the open jobs without reading any other record.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.outgoing.http_calls import check_url
from trunkline.actors.core.outgoing.mail_head import check_address
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.mandate import stored_mandates
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Overloaded, TooManyRequests
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.membership import ORGANIZATION
from trunkline.actors.platform.jobs.job import JobKind
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import (
    ENDED,
    BeginJob,
    DeleteJobs,
    EndJob,
    EndNotification,
    QueueJob,
    RequeueJob,
    SaveProgress,
)
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunkline.store.snapshot import Snapshot

_GATE_RETRY_S: Final = 5
"""`Retry-After` of a closed gate: most jobs take seconds."""
OpenJobs = dict[bytes, list[Any]]
"""The jobs that have something left to do, by id: the operation and the resource. A third entry, NOTIFYING, means
that only notifications are left; such a job does not count at a gate."""

NOTIFYING = "telling"


class JobOwner(Actor):
    """The part of the application actor that keeps its jobs."""

    __slots__ = ()

    def on_queue_job(self, message: QueueJob) -> bytes:
        """Queue a job; the answer is its id. Raises TooManyRequests at its gate, and errors of its kind's `check`."""
        jobs, application = self.system.component(JobQueue), self.ref.id
        kind = jobs.kinds[message.operation]
        limits = self.system.limits
        room, own = limits.jobs_waiting_length_max - len(jobs), jobs.waiting_of(self.ref)
        if own > room or not room:
            raise Overloaded(
                f"{len(jobs)} jobs wait, {own} of them of this owner; there is no room for more now. "
                "Try again in a minute.",
                retry_after_s=60,
            )
        opened = self._open_jobs()
        _check_gate(jobs.kinds, kind, message.resource, opened, limits)
        if kind.check is not None:
            with self.system.store.snapshot() as snapshot:
                kind.check(snapshot, application, message)
        now_ms = self.system.clock.wall_ms()
        id = message.id or self.system.ids.new(now_ms)
        doc: Doc = {
            "name": message.operation,
            "status": "queued",
            "runQueuedAt": now_ms,
            "executionId": id.hex(),
            "requestedById": message.by.id,
            "requestedByType": message.by.type,
            "requestedByName": message.by.name,
            "authors": stored_mandates(message.by.mandates),
            "level": int(message.level),
            "resourceType": kind.resource_type,
            "resourceId": message.resource.hex(),
            "attempts": 0,
            "progress": {"completed": 0},
            "input": message.input,
            "tell": self._notifications(message),
        }
        records.write(self, JOB, application, id, None, doc)
        if message.data is not None:
            self.put(keys.META, keys.job_data_key(application, id), message.data)
        self._keep_open(opened | {id: [message.operation, message.resource]})
        self.after_commit(partial(jobs.add, self.ref, id))
        return id

    def on_begin_job(self, message: BeginJob) -> Doc | None:
        """Begin an attempt. None if the job has ended; a job that had too many attempts is ended here."""
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

    def on_save_progress(self, message: SaveProgress) -> None:
        """Update the progress of a running job."""
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

    def on_end_notification(self, message: EndNotification) -> None:
        """Store that a notification was delivered or given up. After the last one the job is no longer open."""
        found = self._job(message.id)
        if found is None:
            return
        now_ms = self.system.clock.wall_ms()
        news: Doc = {"at": now_ms} if message.problem is None else {"problem": message.problem}
        ended = (message.by, message.to)
        notifications = [each | news if (each["by"], each["to"]) == ended else each for each in found["tell"]]
        records.write(self, JOB, self.ref.id, message.id, found, {**found, "tell": notifications})
        if all(map(is_settled, notifications)):
            opened = self._open_jobs()
            opened.pop(message.id, None)
            self._keep_open(opened)

    def on_requeue_job(self, message: RequeueJob) -> None:
        """Queue a running job again; the attempt does not count."""
        found = self._job(message.id)
        if found is None or found["status"] != "inProgress":
            return
        back = {**found, "status": "queued", "attempts": found["attempts"] - 1}
        records.write(self, JOB, self.ref.id, message.id, found, back)

    def on_delete_jobs(self, message: DeleteJobs) -> None:
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
        self.delete(keys.META, keys.job_data_key(self.ref.id, id))
        opened = self._open_jobs()
        if ended["tell"]:
            opened[id] = [*opened[id][:2], NOTIFYING]
        else:
            opened.pop(id, None)
        self._keep_open(opened)
        self.after_commit(partial(self.system.component(JobQueue).end, id, ended["name"], ended["status"]))

    def _notifications(self, message: QueueJob) -> list[Doc]:
        """The notifications to send at the end. Raises Invalid for an unusable address or URL."""
        notifications: list[Doc] = []
        email = message.email or self._address(message.user)
        if message.result_to is not None:
            email = None
            for number, address in enumerate(dict.fromkeys(message.result_to)):
                check_address(address, f"toEmail[{number}]")
                notifications.append({"by": "email", "to": address, "part": number})
        if email is not None:
            check_address(email)
            notifications.append({"by": "email", "to": email})
        if message.callback_url is not None:
            check_url(message.callback_url, private=may_be_private(self.system, message.callback_url))
            notifications.append({"by": "callback", "to": message.callback_url})
        return notifications

    def _address(self, user: bytes | None) -> str | None:
        """The e-mail address of a user; without a user, of the owner of the application, if there is one."""
        if user is None:
            raw = records.raw_of(self.system.journal.get, APPLICATION, ROOT, self.ref.id)
            user = None if raw is None else bytes.fromhex(decode(raw)["ownerId"])
        if user is None:
            return None
        for kind, field in ((USER, "email"), (ORGANIZATION, "billingEmail")):
            raw = records.raw_of(self.system.journal.get, kind, ROOT, user)
            if raw is not None:
                address: str | None = decode(raw).get(field)
                return address
        return None

    def _job(self, id: bytes) -> Doc | None:
        return records.doc_of(self.system.journal, JOB, self.ref.id, id)

    def _open_jobs(self) -> OpenJobs:
        raw = self.system.journal.get(keys.META, keys.jobs_key(self.ref.id))
        return {} if raw is None else decode(raw)

    def _keep_open(self, opened: OpenJobs) -> None:
        key = keys.jobs_key(self.ref.id)
        if opened:
            self.put(keys.META, key, encode(opened))
        else:
            self.delete(keys.META, key)


def is_settled(notification: Doc) -> bool:
    """Whether a notification was delivered or given up."""
    return "at" in notification or "problem" in notification


def is_open(snapshot: Snapshot, parent: bytes, operation: str) -> bool:
    """Whether a job of an operation is queued or runs."""
    raw = snapshot.get(keys.META, keys.jobs_key(parent))
    opened: OpenJobs = {} if raw is None else decode(raw)
    return any(entry[0] == operation and NOTIFYING not in entry for entry in opened.values())


def open_jobs(snapshot: Snapshot, parent: bytes = b"") -> Iterator[tuple[bytes, bytes, str]]:
    """Yield parent, id and operation of every job that has something left to do, by parent and age.

    With a parent only those of it.
    """
    prefix = keys.JOBS_PREFIX + parent
    for key, raw in snapshot.range(keys.META, prefix, keys.prefix_end(prefix)):
        for id, entry in sorted(decode(raw).items()):
            yield bytes(key[len(keys.JOBS_PREFIX) :]), id, entry[0]


def _check_gate(
    kinds: Mapping[str, JobKind], kind: JobKind, resource: bytes, opened: OpenJobs, limits: Limits
) -> None:
    """Raise TooManyRequests if the resource, or the application, has reached its limit of open jobs.

    Kinds of jobs with the same gate count together.
    """
    if len(opened) >= limits.application_jobs_max:
        raise TooManyRequests(
            f"The application has {len(opened)} open jobs, which is the most; come back when one has ended.",
            bucket="application_jobs_max",
            retry_after_s=_GATE_RETRY_S,
        )
    if kind.gate is None:
        return
    sharing = {each.operation for each in kinds.values() if each.gate == kind.gate}
    holders = sum(
        entry[0] in sharing and entry[1] == resource and NOTIFYING not in entry for entry in opened.values()
    )
    if holders >= getattr(limits, kind.gate):
        per = Limits.__dataclass_fields__[kind.gate].metadata["per"]
        raise TooManyRequests(
            f"A {kind.operation} of this {per} is queued or runs already; come back when its job has ended.",
            bucket=kind.gate,
            retry_after_s=_GATE_RETRY_S,
        )


def _progress(message: SaveProgress | EndJob) -> Doc:
    progress: Doc = {"completed": message.completed}
    if message.total is not None:
        progress["total"] = message.total
    return progress
