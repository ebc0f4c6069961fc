"""The runner: takes queued jobs one after the other, at most `jobs_running_max` at a time.

Owns the attempts to do a job and to send its notifications, and the retention of logs. Does not own the queue
(`platform/jobs/queue.py`), nor the records (`platform/jobs/owner.py`): each step is an ask of the application actor,
and on disk before the next.

At a start the open jobs in the store are queued, so jobs continue after a restart and after kill -9; a job that was
running is started again. On a regular stop running jobs are put back into the queue, and the attempt does not count.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.runtime import work
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.work import Work
from trunkline.actors.core.runtime.works import Works
from trunkline.actors.core.values.errors import Crashed, DomainError, NotFound, Overloaded, StorageFull
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import (
    ENDED,
    BeginJob,
    DeleteJobs,
    EndJob,
    EndNotification,
    RequeueJob,
)
from trunkline.actors.platform.jobs.notifications import Notifier
from trunkline.actors.platform.jobs.old_jobs import expired_jobs
from trunkline.actors.platform.jobs.outcome import Outcome, error_of, error_of_store, refused
from trunkline.actors.platform.jobs.owner import is_settled, open_jobs
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.reads import show_job
from trunkline.actors.platform.jobs.results import Results
from trunkline.limits.table import DAY_MS
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from trunkline.actors.core.runtime.system import System

_PAUSE_MAX_S: Final = 300
"""The longest pause before another attempt, in seconds."""
STOP_S = 5.0
"""How long the server waits at its stop until running jobs are put back into the queue."""

DELETE_SLICE = 100

_PASSING = (Overloaded, StorageFull, Crashed)
"""Temporary errors, which are not caused by the job: another attempt may succeed."""

_log = structlog.get_logger("trunkline.jobs")


class Jobs(Moved):
    """The jobs of one system: the queue, and the tasks that do the jobs."""

    def __init__(self, system: System, queue: JobQueue, notifier: Notifier) -> None:
        self.queue = queue
        self.running: dict[bytes, Job] = {}
        self.results = system.component(Results)
        self.notifier = notifier
        self._system = system
        self._works = Works(system.moves.away)
        self._scope = trio.CancelScope()
        self._stopped = trio.Event()
        self._stopped.set()
        self._nursery: trio.Nursery | None = None
        # Places for each, so that slow callbacks do not delay mail.
        places = system.limits.outgoing_deliveries_max
        self._outgoing = {
            by: OwnerShares("notifications", places, sys.maxsize, leaves=1) for by in ("email", "callback")
        }

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do jobs until `stop`, or until cancelled. Started when all open jobs of the store are in the queue."""
        self._stopped = trio.Event()
        try:
            with self._scope:
                self._load()
                async with trio.open_nursery() as self._nursery:
                    for _ in range(self._system.limits.jobs_running_max):
                        self._nursery.start_soon(self._work)
                    self._nursery.start_soon(self._delete_expired)
                    task_status.started()
        finally:
            self._nursery = None
            self._stopped.set()

    async def stop(self) -> None:
        """Stop the runner; running jobs are put back into the queue."""
        self._scope.cancel()
        with trio.move_on_after(2 * STOP_S, shield=True):
            await self._stopped.wait()

    async def leave(self, application: bytes) -> None:
        """Put the running jobs of an application back; they go on where it comes, and so do its notifications."""
        self.queue.held.ignore(application)
        self.queue.forget(application)
        await self._works.end(application)

    async def load(self, application: bytes) -> None:
        """Queue the open jobs of an application; none of them is done before it has come."""
        self.queue.held.keep(application)
        self._load(application)

    async def come(self, application: bytes) -> None:
        """Do jobs of an application again."""
        for owner, id in self.queue.held.release(application):
            self.queue.add(owner, id)

    # The queue.

    def _load(self, parent: bytes = b"") -> None:
        """Queue the open jobs of the store, or those of an application."""
        with self._system.store.snapshot() as snapshot:
            for holder, id, operation in open_jobs(snapshot, parent):
                self.queue.add(self.queue.owner_of(operation, holder), id)

    async def _work(self) -> None:
        while True:
            owner, id = await self.queue.next()
            try:
                with self._works.of(owner.id):
                    await self._run_job(owner, id)
            except Exception:  # noqa: BLE001 - a bug ends this run, not the runner
                _log.exception("run of a job failed", owner=owner.id.hex(), job=id.hex())
                self._retry_later(owner, id, self._system.limits.job_attempts_max)
            finally:
                self.queue.leave(id)

    async def _add_later(self, owner: Ref, id: bytes, pause_s: float) -> None:
        with self._works.of(owner.id):
            await trio.sleep(pause_s)
            self.queue.add(owner, id)

    def _retry_later(self, owner: Ref, id: bytes, attempt: int) -> None:
        pause_s = min(self._system.limits.job_pause_s * 2 ** (attempt - 1), _PAUSE_MAX_S)
        assert self._nursery is not None
        self._nursery.start_soon(self._add_later, owner, id, pause_s)

    # One job.

    async def _run_job(self, owner: Ref, id: bytes) -> None:
        """Make one attempt of a job, and store its outcome."""
        try:
            doc = await self._ask(owner, BeginJob(id=id))
        except NotFound:
            return  # its application was deleted
        except DomainError:
            self._retry_later(owner, id, 1)
            return
        assert self._nursery is not None
        if doc is None:  # it has ended, earlier or because it had too many attempts
            self._nursery.start_soon(self._notify, owner, id)
            return
        job = self.running[id] = Job(self._system, owner, id, doc)
        application = owner.id if owner.kind == "application" else None
        work.begin(Work("job", doc["name"], application, f"job {id.hex()}", payer=owner.id))
        unfinished = True
        try:
            end = await self._run_kind(job, self.queue.kinds.get(doc["name"]))
            unfinished = False
            if end is None:
                return
            if end.retry and job.attempt < self._system.limits.job_attempts_max:
                _log.info("job will be tried again", job=id.hex(), attempt=job.attempt, error=end.error)
                self._retry_later(owner, id, job.attempt)
                return
            await self._end(job, end)
            self._nursery.start_soon(self._notify, owner, id)
        finally:
            work.end()
            del self.running[id]
            if unfinished:
                await self._requeue(job)

    async def _run_kind(self, job: Job, kind: JobKind | None) -> Outcome | None:
        """Do the work; None if the application was deleted. Raises nothing but cancellation.

        The work ends, where it is, when who requested it loses the right to it.
        """
        if kind is None:
            return Outcome(
                "errored", error=error_of("Unsupported", "This version of the server has no such job.")
            )
        outcome: Outcome | None = None

        async def work() -> None:
            nonlocal outcome
            outcome = await self._attempt(job, kind)
            nursery.cancel_scope.cancel()

        async def watch() -> None:
            nonlocal outcome
            ended = await self._watch(job)
            if outcome is None:
                outcome = ended
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            nursery.start_soon(work)
        return outcome

    async def _attempt(self, job: Job, kind: JobKind) -> Outcome:
        try:
            job.check(job.owner.id, job.level)
            return Outcome("completed", output=await kind.run(job))
        except _PASSING as refusal:
            return Outcome("failed", error=error_of(refusal.type, refusal.message), retry=True)
        except DomainError as refusal:
            return refused(refusal)
        except StoreError as refusal:
            _log.warning(
                "a job could not read or write", name=kind.operation, job=job.id.hex(), reason=str(refusal)
            )
            return Outcome("failed", error=error_of_store(refusal), retry=True)
        except Exception as bug:  # noqa: BLE001 - any bug ends the attempt, not the runner
            _log.error("job failed", name=kind.operation, job=job.id.hex(), exc_info=bug)
            sentence = "The server failed to do this job; the fault is logged."
            return Outcome("failed", error=error_of(Crashed.type, sentence), retry=True)

    async def _watch(self, job: Job) -> Outcome | None:
        """Update the log regularly. Returns when the work must end: None if the application was deleted."""
        shown = (job.completed, job.total)
        while True:
            await trio.sleep(self._system.limits.job_progress_s)
            try:
                job.check(job.owner.id, job.level)
            except _PASSING:
                continue
            except DomainError as refusal:
                return refused(refusal) if self._owner_exists(job.owner) else None
            try:
                if shown != (job.completed, job.total):
                    shown = (job.completed, job.total)
                    await job.ask(job.owner, job.progress_message())
                elif not self._owner_exists(job.owner):
                    return None
            except NotFound:
                return None
            except (DomainError, StoreError):
                continue  # only the log is late

    def _owner_exists(self, owner: Ref) -> bool:
        if owner.kind != "application":
            return True  # its jobs are short
        with self._system.store.snapshot() as snapshot:
            return records.find(snapshot, APPLICATION, ROOT, owner.id) is not None

    async def _end(self, job: Job, end: Outcome) -> None:
        """Store the end of a job. Until that succeeds, the job occupies its place in the runner."""
        ended = EndJob(
            id=job.id,
            status=end.status,
            completed=job.completed,
            total=job.total,
            output=end.output,
            error=end.error,
        )
        await self._store(job.owner, ended)

    async def _store(self, owner: Ref, message: EndJob | EndNotification) -> None:
        """Repeat the ask until it is stored, however long the disk is full, or until the application is deleted."""
        pause_s = self._system.limits.job_pause_s
        while True:
            try:
                await self._ask(owner, message)
            except NotFound:
                return
            except DomainError as refusal:
                _log.warning("end of a job not stored yet", job=message.id.hex(), reason=refusal.message)
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
            else:
                return

    async def _requeue(self, job: Job) -> None:
        """Put a job back into the queue at a stop. If this is not stored, the attempt counts after the next start."""
        with trio.move_on_after(STOP_S, shield=True), contextlib.suppress(DomainError):
            await job.ask(job.owner, RequeueJob(id=job.id))

    async def _ask(self, owner: Ref, message: Message) -> Doc | None:
        answer = await self._system.ask(owner, message)
        value: Doc | None = answer.value
        return value

    # Notifications.

    async def _notify(self, owner: Ref, id: bytes) -> None:
        """Deliver all notifications of the end of a job, at least once. Raises nothing but cancellation."""
        try:
            found = self._found(owner.id, id)
            if found is None or found.doc["status"] not in ENDED:
                return
            with self._works.of(owner.id):
                async with trio.open_nursery() as nursery:
                    for notification in found.doc["tell"]:
                        if not is_settled(notification):
                            nursery.start_soon(self._deliver, owner, id, notification)
        except Exception:  # noqa: BLE001 - it must not end the runner; they are sent after the next start
            _log.exception("notifications postponed to the next start", owner=owner.id.hex(), job=id.hex())

    async def _deliver(self, owner: Ref, id: bytes, notification: Doc) -> None:
        """Try `outgoing_attempts_max` times with doubling pauses; after that the log shows the problem."""
        limits = self._system.limits
        problem: str | None = None
        for attempt in range(limits.outgoing_attempts_max):
            if attempt:
                await trio.sleep(limits.outgoing_pause_s * 2 ** (attempt - 1))
            found = self._found(owner.id, id)
            if found is None:
                return
            payer = self.queue.payer_of(owner)
            problem = await self._attempt_to_notify(payer, notification, self.shown(owner, found))
            if problem is None:
                break
        if problem is not None:
            _log.warning(
                "notification of a job given up", job=id.hex(), by=notification["by"], reason=problem
            )
        await self._store(
            owner, EndNotification(id=id, by=notification["by"], to=notification["to"], problem=problem)
        )

    async def _attempt_to_notify(self, payer: Hashable, notification: Doc, shown: Doc) -> str | None:
        """Try to send once; return a sentence about the problem, None if there was none."""
        try:
            async with self._outgoing[notification["by"]].place(payer):
                await self.notifier.send(notification, shown, self._system.clock.wall_ms())
        except Undelivered as failure:
            return str(failure)
        except Exception as bug:  # noqa: BLE001 - a bug here must not end the runner
            _log.error("notification of a job failed", by=notification["by"], exc_info=bug)
            return "The server failed to do this; the fault is logged."
        return None

    def shown(self, owner: Ref, found: Found) -> Doc:
        """A job as its log shows it, with the link to its result."""
        shown = show_job(owner.id, found)
        if owner.kind != "application":
            del shown["applicationId"]
            with self._system.store.snapshot() as snapshot:
                is_user = records.find(snapshot, USER, ROOT, owner.id) is not None
            shown["ownerType"] = "user" if is_user else "organization"
        self.results.add_link(owner.id, found.id, shown)
        return shown

    def _found(self, application: bytes, id: bytes) -> Found | None:
        with self._system.store.snapshot() as snapshot:
            return records.find(snapshot, JOB, application, id)

    # The logs.

    async def _delete_expired(self) -> None:
        """Delete ended jobs above the limits, and expired results, every `purge_interval_s`."""
        while True:
            await trio.sleep(self._system.limits.purge_interval_s)
            try:
                await self.delete_old()
                await self.results.sweep()
            except (DomainError, StoreError) as refusal:
                _log.warning("deletion of old jobs postponed", reason=str(refusal))
            except Exception:  # noqa: BLE001 - a failed deletion must not end the server
                _log.exception("deletion of old jobs failed")

    async def delete_old(self) -> None:
        """Delete the jobs above the limits in number or age, a slice at a time."""
        limits, now_ms = self._system.limits, self._system.clock.wall_ms()
        oldest_ms = now_ms - limits.job_log_days * DAY_MS
        found = await self._system.read(
            lambda snapshot: expired_jobs(snapshot, limits.job_logs_max, oldest_ms)
        )
        for owner, ids in found.items():
            if owner.id in self._system.moves.away:
                continue
            for start in range(0, len(ids), DELETE_SLICE):
                with contextlib.suppress(NotFound):
                    await self._ask(owner, DeleteJobs(ids=ids[start : start + DELETE_SLICE]))
