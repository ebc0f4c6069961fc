"""The runner: takes queued jobs one after the other, at most `jobs_running_max` at a time.

Owns the attempts at doing a job and at telling of its end, and the retention of logs. Does not own the queue
(`jobs/queue.py`), nor the records; each step is asked of the application actor, and is on disk before the next.

At a start the queue is what the store holds as open,
so jobs go on after a restart and after kill -9; what had begun is begun again. Where the server stops in
good order, running jobs are put back, and the attempt does not count.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

import structlog
import trio

from trunkline.actors.jobs.job import Job, JobKind
from trunkline.actors.jobs.kind import JOB
from trunkline.actors.jobs.messages import ENDED, BeginJob, EndJob, ForgetJobs, JobStatus, PutBackJob, ToldJob
from trunkline.actors.jobs.notifications import Notifier
from trunkline.actors.jobs.owner import is_settled, open_jobs
from trunkline.actors.jobs.queue import JobQueue
from trunkline.actors.jobs.reads import show_job
from trunkline.actors.jobs.results import Results
from trunkline.actors.outgoing.http_calls import Undelivered
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.records.revision import Found
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.values.errors import Crashed, DomainError, NotFound, Overloaded, StorageFull
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message
from trunkline.store import keys
from trunkline.store.errors import StoreError, StoreFull

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.store.snapshot import Snapshot

STOP_S = 5.0
"""How long the end of the server waits for running jobs to be put back."""

PAUSE_MAX_S = 300.0
FORGET_SLICE = 100
DAY_MS = 86_400_000

_PASSING = (Overloaded, StorageFull, Crashed)
"""Refusals that say nothing about the job: another attempt may do."""

_log = structlog.get_logger("trunkline.jobs")


class End(NamedTuple):
    """What a run came to. `again` says that another attempt may do better."""

    status: JobStatus
    output: Doc | None = None
    error: dict[str, str] | None = None
    again: bool = False


class Jobs:
    """The jobs of one system: those that wait, and the tasks that do them."""

    def __init__(self, system: System, queue: JobQueue, notifier: Notifier) -> None:
        self.queue = queue
        self.running: dict[bytes, Job] = {}
        self.results = system.component(Results)
        self.notifier = notifier
        self._system = system
        self._scope = trio.CancelScope()
        self._stopped = trio.Event()
        self._stopped.set()
        self._nursery: trio.Nursery | None = None
        # A way each, so that slow callbacks keep no mail waiting.
        deliveries_max = system.limits.outgoing_deliveries_max
        self._outgoing = {by: trio.CapacityLimiter(deliveries_max) for by in ("email", "callback")}

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do jobs until `stop`, or until cancelled. Started when all that the store holds is in the queue."""
        self._stopped = trio.Event()
        try:
            with self._scope:
                with self._system.store.snapshot() as snapshot:
                    for application, id in open_jobs(snapshot):
                        self.queue.add(application, id)
                async with trio.open_nursery() as self._nursery:
                    for _ in range(self._system.limits.jobs_running_max):
                        self._nursery.start_soon(self._work)
                    self._nursery.start_soon(self._keep_logs_short)
                    task_status.started()
        finally:
            self._nursery = None
            self._stopped.set()

    async def stop(self) -> None:
        """End the runner: running jobs are put back into the queue."""
        self._scope.cancel()
        with trio.move_on_after(2 * STOP_S, shield=True):
            await self._stopped.wait()

    # The queue.

    async def _work(self) -> None:
        while True:
            application, id = await self.queue.next()
            try:
                await self._do(application, id)
            except Exception:  # noqa: BLE001 - a fault of the runner costs this run, not the runner
                _log.exception("run of a job broke off", application=application.hex(), job=id.hex())
                self._again(application, id, self._system.limits.job_attempts_max)

    async def _add_later(self, application: bytes, id: bytes, pause_s: float) -> None:
        await trio.sleep(pause_s)
        self.queue.add(application, id)

    def _again(self, application: bytes, id: bytes, attempt: int) -> None:
        pause_s = min(self._system.limits.job_pause_s * 2 ** (attempt - 1), PAUSE_MAX_S)
        assert self._nursery is not None
        self._nursery.start_soon(self._add_later, application, id, pause_s)

    # One job.

    async def _do(self, application: bytes, id: bytes) -> None:
        """One attempt of a job, from its beginning to what came of it."""
        try:
            doc = await self._ask(application, BeginJob(id=id))
        except NotFound:
            return  # its application was deleted
        except DomainError:
            self._again(application, id, 1)
            return
        assert self._nursery is not None
        if doc is None:  # it has ended, before or by this
            self._nursery.start_soon(self._tell, application, id)
            return
        job = self.running[id] = Job(self._system, application, id, doc)
        left = True
        try:
            end = await self._outcome(job, self.queue.kinds.get(doc["name"]))
            left = False
            if end is None:
                return
            if end.again and job.attempt < self._system.limits.job_attempts_max:
                _log.info("job is begun again later", job=id.hex(), attempt=job.attempt, error=end.error)
                self._again(application, id, job.attempt)
                return
            await self._end(job, end)
            self._nursery.start_soon(self._tell, application, id)
        finally:
            del self.running[id]
            if left:
                await self._put_back(job)

    async def _outcome(self, job: Job, kind: JobKind | None) -> End | None:
        """Do the work; None where the application is gone. Raises nothing but cancellation."""
        if kind is None:
            return End("errored", error=_error("Unsupported", "This version of the server has no such job."))
        outcome: End | None = None

        async def work() -> None:
            nonlocal outcome
            outcome = await self._attempt(job, kind)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._show_progress, job, nursery.cancel_scope)
            nursery.start_soon(work)
        return outcome

    async def _attempt(self, job: Job, kind: JobKind) -> End:
        try:
            return End("completed", output=await kind.run(job))
        except _PASSING as refusal:
            return End("failed", error=_error(refusal.type, refusal.message), again=True)
        except DomainError as refusal:
            return End("errored", error=_error(refusal.type, refusal.message))
        except StoreError as refusal:
            name = (StorageFull if isinstance(refusal, StoreFull) else Overloaded).type
            return End("failed", error=_error(name, str(refusal)), again=True)
        except Exception as bug:  # noqa: BLE001 - whatever it is, the job gets its end and the runner goes on
            _log.error("job failed", name=kind.operation, job=job.id.hex(), exc_info=bug)
            sentence = "The server failed to do this job; the fault is logged."
            return End("failed", error=_error(Crashed.type, sentence), again=True)

    async def _show_progress(self, job: Job, work: trio.CancelScope) -> None:
        """Bring the log up to date now and then; end the work where the application is gone."""
        shown = (job.completed, job.total)
        while True:
            await trio.sleep(self._system.limits.job_progress_s)
            try:
                if shown != (job.completed, job.total):
                    shown = (job.completed, job.total)
                    await job.ask(job.owner, job.noted())
                elif not self._is_there(job.application):
                    work.cancel()
            except NotFound:
                work.cancel()
            except (DomainError, StoreError):
                continue  # the log lags behind, no more

    def _is_there(self, application: bytes) -> bool:
        with self._system.store.snapshot() as snapshot:
            return records.find(snapshot, APPLICATION, ROOT, application) is not None

    async def _end(self, job: Job, end: End) -> None:
        """Write the end of a job. Until that is stored it holds its place here."""
        ended = EndJob(
            id=job.id,
            status=end.status,
            completed=job.completed,
            total=job.total,
            output=end.output,
            error=end.error,
        )
        await self._store(job.application, ended)

    async def _store(self, application: bytes, message: EndJob | ToldJob) -> None:
        """Ask until it is stored, however long the disk is full, or until the application is gone."""
        pause_s = self._system.limits.job_pause_s
        while True:
            try:
                await self._ask(application, message)
            except NotFound:
                return
            except DomainError as refusal:
                _log.warning("end of a job not stored yet", job=message.id.hex(), reason=refusal.message)
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
            else:
                return

    async def _put_back(self, job: Job) -> None:
        """The server stops. Where this is not stored any more, the next start finds an attempt that broke off."""
        with trio.move_on_after(STOP_S, shield=True), contextlib.suppress(DomainError):
            await job.ask(job.owner, PutBackJob(id=job.id))

    async def _ask(self, application: bytes, message: Message) -> Doc | None:
        answer = await self._system.ask(Ref("application", ROOT, application), message)
        value: Doc | None = answer.value
        return value

    # Telling.

    async def _tell(self, application: bytes, id: bytes) -> None:
        """Tell everybody who is to be told of the end of a job, at least once. Raises nothing but cancellation."""
        try:
            found = self._found(application, id)
            if found is None or found.doc["status"] not in ENDED:
                return
            async with trio.open_nursery() as nursery:
                for way in found.doc["tell"]:
                    if not is_settled(way):
                        nursery.start_soon(self._tell_one_way, application, id, way)
        except Exception:  # noqa: BLE001 - it must not end the runner; the next start tells them
            _log.exception("telling left to the next start", application=application.hex(), job=id.hex())

    async def _tell_one_way(self, application: bytes, id: bytes, way: Doc) -> None:
        """Try `outgoing_attempts_max` times with doubling pauses; then the log says what was wrong."""
        limits = self._system.limits
        problem: str | None = None
        for attempt in range(limits.outgoing_attempts_max):
            if attempt:
                await trio.sleep(limits.outgoing_pause_s * 2 ** (attempt - 1))
            found = self._found(application, id)
            if found is None:
                return
            problem = await self._attempt_to_tell(way, self.shown(application, found))
            if problem is None:
                break
        if problem is not None:
            _log.warning("nobody could be told of a job", job=id.hex(), by=way["by"], reason=problem)
        await self._store(application, ToldJob(id=id, by=way["by"], problem=problem))

    async def _attempt_to_tell(self, way: Doc, shown: Doc) -> str | None:
        """Tell once; what went wrong, None where nothing did."""
        try:
            async with self._outgoing[way["by"]]:
                await self.notifier.tell(way, shown, self._system.clock.wall_ms())
        except Undelivered as failure:
            return str(failure)
        except Exception as bug:  # noqa: BLE001 - a fault here must not end the runner
            _log.error("telling failed", by=way["by"], exc_info=bug)
            return "The server failed to do this; the fault is logged."
        return None

    def shown(self, application: bytes, found: Found) -> Doc:
        """A job as its log shows it, with the link to its result."""
        shown = show_job(application, found)
        self.results.add_link(application, found.id, shown)
        return shown

    def _found(self, application: bytes, id: bytes) -> Found | None:
        with self._system.store.snapshot() as snapshot:
            return records.find(snapshot, JOB, application, id)

    # The logs.

    async def _keep_logs_short(self) -> None:
        """Forget ended jobs beyond the bounds, and results that have expired, every `purge_interval_s`."""
        while True:
            await trio.sleep(self._system.limits.purge_interval_s)
            try:
                await self.forget_old()
                await self.results.sweep()
            except (DomainError, StoreError) as refusal:
                _log.warning("old jobs are forgotten later", reason=str(refusal))
            except Exception:  # noqa: BLE001 - what can not be forgotten must not end the server
                _log.exception("forgetting old jobs failed")

    async def forget_old(self) -> None:
        """Forget the jobs that are over the bounds in number or age, a slice at a time."""
        limits, now_ms = self._system.limits, self._system.clock.wall_ms()
        oldest_ms = now_ms - limits.job_log_days * DAY_MS
        found = await self._system.read(lambda snapshot: old_jobs(snapshot, limits.job_logs_max, oldest_ms))
        for application, ids in found.items():
            for start in range(0, len(ids), FORGET_SLICE):
                with contextlib.suppress(NotFound):
                    await self._ask(application, ForgetJobs(ids=ids[start : start + FORGET_SLICE]))


def old_jobs(snapshot: Snapshot, length_max: int, oldest_ms: int) -> dict[bytes, list[bytes]]:
    """By application the ended jobs that are to be forgotten: the oldest beyond the bound, and those too old."""
    found: dict[bytes, list[bytes]] = {}
    for application, _ in records.scan(snapshot, APPLICATION, ROOT):
        surplus = records.total(snapshot, JOB, application) - length_max
        if surplus <= 0 and not _has_old(snapshot, application, oldest_ms):
            continue
        ended = [
            (id, doc["runCompletedAt"])
            for id, doc in records.scan(snapshot, JOB, application)
            if "runCompletedAt" in doc
        ]
        old = [id for place, (id, ms) in enumerate(ended) if place < surplus or ms < oldest_ms]
        if old:
            found[application] = old
    return found


def _has_old(snapshot: Snapshot, application: bytes, oldest_ms: int) -> bool:
    """Whether the oldest job, which is the first by its id, was queued before that moment."""
    prefix = keys.record_prefix(JOB.name, application)
    first = next(snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)), None)
    return first is not None and int.from_bytes(first[-12:-8], "big") * 1000 < oldest_ms


def _error(name: str, message: str) -> dict[str, str]:
    return {"name": name, "message": message}
