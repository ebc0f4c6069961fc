"""The runner: takes triggers from the queue and runs workflows for them.

Owns the attempts to run, what a run is told, and what becomes of it: sums, a record, the workflows that wait for
errors. Does not own the order (`workflows/triggers/queue.py`), nor the turn of a run (`share.py`), nor its end
(`ends.py`). At a start the triggers in the store are queued again, so each is run at least once; what a run has already
done inside the server is not done again (`world.py`). A trigger that was in progress at several crashes is abandoned.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
import trio

from trunkline.actors.core.records.mandate import Mandates
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime import work
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.work import Work
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.core.values.store_errors import Outdated
from trunkline.actors.engine.branch_memory import BranchMemory
from trunkline.actors.engine.ends import Ends
from trunkline.actors.engine.error_runs import error_cause, error_watchers, fault_of
from trunkline.actors.engine.errors import RunFailed
from trunkline.actors.engine.executor import execute
from trunkline.actors.engine.programs import CompiledFlow, Programs
from trunkline.actors.engine.record_of_run import last_nodes, run_record, unrun_record
from trunkline.actors.engine.share import Share
from trunkline.actors.engine.told import Told
from trunkline.actors.engine.trigger_rights import refusal_of
from trunkline.actors.engine.visit import Bounds, Run
from trunkline.actors.engine.workers import Workers
from trunkline.actors.engine.world import RunWorld
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.actors.workflows.flows.run_records import RUN_TOPIC, RunRecord
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.intake import (
    Cause,
    TriggerRecord,
    decode_trigger,
    record_for,
    stored_triggers,
)
from trunkline.actors.workflows.triggers.queue import Queued, TriggerQueue
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

_DROPS_TOLD_S: Final = 5.0
_log = structlog.get_logger("trunkline.flows")


class FlowRunner(Moved):
    """Runs the workflows of one system. A component; run `run` in a nursery for as long as it is used."""

    def __init__(self, system: System) -> None:
        self.runs = 0
        self.failed = 0
        self._system = system
        self._queue = system.component(TriggerQueue)
        self._index = system.component(FlowIndex)
        self._programs = system.component(Programs)
        self._pool = system.component(ScriptPool)
        self._owners = system.component(Owners)
        self._share = system.component(Share)
        self._authors = system.component(Authors)
        self._ends = Ends(system, self._queue)
        limits = system.limits
        self._workers = Workers(
            self._queue,
            self._share,
            limits.flow_runs_max,
            run=self._attempt,
            begin=self._note_drops,
            end=self._ends.flush,
        )
        self._scope = trio.CancelScope()
        self._stopped = trio.Event()
        self._stopped.set()
        self._leftover: dict[int, list[tuple[bytes, bytes]]] = {}
        """By the number of a trigger, what a run of it has done before it was ended."""
        self._drops: dict[tuple[bytes, bytes, str], int] = {}
        self._told = Told(system)
        self._bounds = Bounds(limits.run_steps_max, limits.run_loop_items_max, limits.run_payload_bytes_max)

    @property
    def running(self) -> int:
        """How many run now."""
        return self._workers.running

    # Running.

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run workflows until cancelled. Started when the triggers of the store are in the queue."""
        await self._load()
        self._stopped = trio.Event()
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._tell_drops)
                    self._workers.open(nursery)
                    task_status.started()
        finally:
            self._workers.close()
            self._ends.flush()
            self._stopped.set()

    async def stop(self) -> None:
        """End the runs. They are repeated after the next start."""
        self._scope.cancel()
        await self._stopped.wait()

    async def leave(self, application: bytes) -> None:
        """End the runs of an application, which are repeated where it comes."""
        self._queue.held.ignore(application)
        self._queue.forget(application)
        await self._workers.end_runs(application)
        self.tell()
        await self._system.settle()

    async def load(self, application: bytes) -> None:
        """Queue the triggers of an application; none of them is run before it has come."""
        self._queue.held.keep(application)
        await self._load(application)

    async def come(self, application: bytes) -> None:
        """Run workflows of an application again."""
        self._queue.add(self._queue.held.release(application))

    async def _load(self, application: bytes | None = None) -> None:
        """Queue the triggers of the store, or those of an application."""
        entries: list[Queued] = []
        leftover: dict[int, list[tuple[bytes, bytes]]] = {}
        for key, raw in await self._system.store.read(partial(stored_triggers, application)):
            number = keys.trigger_number(key)
            if len(key) > keys.TRIGGER_KEY_BYTES:
                leftover.setdefault(number, []).append((key, raw))
                continue
            record = decode_trigger(raw)
            entry = Queued(number, key, record.application, record.flow, record.cause.trigger_id, raw)
            entry.attempts = record.attempts + 1
            entries.append(entry)
        if entries:
            self._queue.begin_after(entries[-1].number)
        self._leftover |= leftover
        for number in leftover.keys() - {entry.number for entry in entries}:
            self._forget_markers(number)
        self._queue.add(entries)

    async def _attempt(self, entry: Queued) -> None:
        """Run what a trigger begins, once; as soon as it is known what its authors may do."""
        try:
            while True:
                if not self._system.is_readable:
                    async with self._share.outside():
                        await self._system.until_readable()
                try:
                    await self._run(entry)
                    return
                except Outdated:
                    continue
        except trio.Cancelled:
            if entry.attempts:  # it is ended in good order, so the attempt does not count
                self._note_attempts(entry, entry.attempts - 1)
            raise
        except Exception as bug:  # noqa: BLE001 - what cannot begin is no reason to end the server
            _log.error("a run could not begin", flow=entry.flow.hex(), exc_info=bug)
            self._remove(entry)

    async def _run(self, entry: Queued) -> None:
        """Run what a trigger begins. Raises nothing but cancellation, and `Outdated` before it begins."""
        raw = entry.raw or self._system.journal.get(keys.TRIGGERS, entry.key)
        if raw is None:
            return
        record = decode_trigger(raw)
        compiled = await self._programs.get_for_run(entry, record.version, self._owners, self._share)
        at = None if compiled is None else compiled.trigger(record.index, record.type, record.key)
        application = self._told.application(entry.application)
        if compiled is None or at is None or application is None or not compiled.is_enabled:
            self._remove(entry)
            return
        began_ms = self._system.clock.wall_ms()
        if entry.attempts and not self._begin_again(entry, record, raw, compiled, began_ms):
            return
        if (refused := refusal_of(self._authors, record, compiled.program.mandates)) is not None:
            kept = unrun_record(entry, record, compiled, began_ms, "failed", ("Forbidden", refused), None)
            self._leave_out(entry, kept, compiled.version_id)
            return
        authors = [compiled.program.mandates]
        run = Run(
            self._bounds,
            entry.queued_ms,
            entry.number,
            partial(self._pool.call, owner=self._owners.of(entry.application)),
            compiled.identity,
            [compiled.program],
            open_world=partial(self._open_world, entry, record, compiled, authors),
            find_program=compiled.find_program,
            application_globals=application[1],
            share=self._share,
            deadline_s=self._share.began_s + self._system.limits.run_deadline_s,
            judge=self._authors.judge(entry.application),
            authors=authors,
            owner=self._owners.of(entry.application),
            memory=self._system.component(BranchMemory),
            until_readable=self._system.until_readable,
        )
        failed: RunFailed | None = None
        work.begin(Work("run", compiled.name, entry.application, detail=last_nodes(run)))
        began_ns = time.perf_counter_ns()
        try:
            await execute(compiled.program, at, self._told.payload(record, compiled, application), run)
        except RunFailed as failure:
            failed = failure.without_frames()
        except Exception as bug:  # noqa: BLE001 - a bug ends this run, not the runner
            _log.error("run of a workflow failed", flow=entry.flow.hex(), exc_info=bug)
            failed = fault_of(run)
        took_us = (time.perf_counter_ns() - began_ns) // 1000
        self._end(entry, raw, record, compiled, run, failed, began_ms, took_us)
        if isinstance(run.opened_world, RunWorld):
            for key in run.opened_world.markers:
                self._ends.remove(key)
        elif self._leftover:
            self._forget_markers(entry.number)

    def _open_world(
        self, entry: Queued, record: TriggerRecord, compiled: CompiledFlow, authors: list[Mandates]
    ) -> RunWorld:
        return RunWorld(
            self._system,
            entry.application,
            entry.flow,
            compiled.name,
            hops=0 if record.cause.origin is None else record.cause.origin.hops,
            number=entry.number,
            trigger=record.cause.trigger_id,
            done=dict(self._leftover.pop(entry.number, [])),
            flush=self._ends.flush,
            authors=authors,
        )

    def _begin_again(
        self, entry: Queued, record: TriggerRecord, raw: bytes, compiled: CompiledFlow, now_ms: int
    ) -> bool:
        """Note one more attempt after a crash, on disk. False if there were too many."""
        attempts_max = self._system.limits.run_attempts_max
        if entry.attempts >= attempts_max:
            sentence = f"The server has stopped {attempts_max} times during this run; it is not tried again."
            error = "RunAbandoned", sentence
            kept = unrun_record(entry, record, compiled, now_ms, "abandoned", error, raw)
            self._leave_out(entry, kept, compiled.version_id)
            return False
        self._note_attempts(entry, entry.attempts)
        self._ends.flush()
        return True

    def _note_attempts(self, entry: Queued, attempts: int) -> None:
        raw = entry.raw or self._system.journal.get(keys.TRIGGERS, entry.key)
        if raw is not None:
            changed = msgspec.structs.replace(decode_trigger(raw), attempts=attempts)
            self._ends.put_trigger(entry.key, changed.encoded())

    # The end of a run.

    def _end(
        self,
        entry: Queued,
        raw: bytes,
        record: TriggerRecord,
        compiled: CompiledFlow,
        run: Run,
        failed: RunFailed | None,
        began_ms: int,
        took_us: int,
    ) -> None:
        ends, application, flow = self._ends, entry.application, entry.flow
        ended_ms = max(began_ms, self._system.clock.wall_ms())
        if run.has_waited and not self._exists(application, flow):
            ends.remove(entry.key)
            return
        self.runs += 1
        counts = {"runs": 1, "paths": run.paths_completed, "us": took_us}
        if failed is not None:
            self.failed += 1
            counts["failed"] = 1
        ends.count(application, flow, compiled.version_id, ended_ms, counts)
        may_keep = ends.may_keep(application, flow, ended_ms, failed=failed is not None)
        if may_keep or self._system.has_subscribers(Ref("flow", application, flow), RUN_TOPIC):
            kept = run_record(
                entry,
                raw,
                record,
                compiled,
                run,
                failed,
                (began_ms, ended_ms, took_us),
                self._system.limits.run_record_payload_bytes_max,
            )
            ends.keep(application, flow, entry.number, kept)
        if failed is not None:
            cause = error_cause(record, compiled, run, failed, ended_ms)
            self._queue_error_runs(entry, cause, compiled, record)
        ends.remove(entry.key)

    def _exists(self, application: bytes, flow: bytes) -> bool:
        """Whether a workflow was not deleted meanwhile: nothing may be stored for it then."""
        key = keys.record_key(FLOW.name, application, flow)
        return bool(self._system.journal.get(keys.RECORDS, key) and self._told.application(application))

    def _remove(self, entry: Queued) -> None:
        """Remove a trigger that is not run."""
        self._ends.remove(entry.key)
        self._forget_markers(entry.number)

    def _forget_markers(self, number: int) -> None:
        """Remove what a run has done before a crash."""
        for key, _ in self._leftover.pop(number, ()):
            self._ends.remove(key)

    def _leave_out(self, entry: Queued, kept: RunRecord, version_id: bytes) -> None:
        """Store why a trigger is not run, and remove it."""
        ends, application, flow = self._ends, entry.application, entry.flow
        if ends.may_keep(application, flow, kept.ended_ms, failed=True):
            ends.keep(application, flow, entry.number, kept)
        ends.count(application, flow, version_id, kept.ended_ms, {"runs": 1, "failed": 1})
        self._remove(entry)

    def _queue_error_runs(
        self, entry: Queued, cause: Cause | None, compiled: CompiledFlow, record: TriggerRecord
    ) -> None:
        """Queue the runs that wait for errors, the narrowest scope first."""
        if cause is None:
            return
        entries: list[Queued] = []
        for each in error_watchers(compiled, record, self._index):
            number = self._queue.next_number()
            key = keys.trigger_key(number, "application", entry.application)
            new = record_for(entry.application, each, cause).encoded()
            self._ends.put_trigger(key, new)
            entries.append(Queued(number, key, entry.application, each.flow, cause.trigger_id, new))
        self._queue.add(entries)

    # What is dropped.

    def _note_drops(self) -> None:
        dropped, self._queue.dropped = self._queue.dropped, []
        for each in dropped:
            if each.key is not None:
                self._ends.remove(each.key)
                self._forget_markers(keys.trigger_number(each.key))
            place = (each.application, each.flow, each.reason)
            self._drops[place] = self._drops.get(place, 0) + 1

    async def _tell_drops(self) -> None:
        while True:
            await trio.sleep(_DROPS_TOLD_S)
            self.tell()

    def tell(self) -> None:
        """Store what was passed over and dropped in the last seconds: one error for each workflow and reason."""
        self._note_drops()
        drops, self._drops = self._drops, {}
        now_ms = self._system.clock.wall_ms()
        self._count_passed_over(now_ms)
        for (application, flow, reason), count in drops.items():
            compiled = self._programs.get(application, flow, None)
            if compiled is None:
                continue
            record = RunRecord(
                outcome="dropped",
                version=compiled.version,
                version_id=compiled.version_id,
                ended_ms=now_ms,
                error=[-1, "TriggersDropped", reason],
                dropped=count,
            )
            self._ends.keep(application, flow, self._queue.next_number(), record)
            self._ends.count(application, flow, compiled.version_id, now_ms, {"dropped": count})
        self._ends.flush()

    def _count_passed_over(self, now_ms: int) -> None:
        """Count the causes that needed no run as runs."""
        passed, self._queue.passed_over = self._queue.passed_over, {}
        for (application, flow, version), count in passed.items():
            compiled = self._programs.get(application, flow, version)
            if compiled is not None:
                self.runs += count
                counts = {"runs": count, "paths": count}
                self._ends.count(application, flow, compiled.version_id, now_ms, counts)
