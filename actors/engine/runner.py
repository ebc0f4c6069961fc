"""The runner: takes triggers from the queue and runs workflows for them.

Owns the attempts to run, what a run is told, and what becomes of it: sums, a record, the workflows that wait for
errors. Does not own the order (`triggers/queue.py`), nor the turn of a run (`share.py`), nor what is stored at its end
(`ends.py`).

At a start the triggers in the store are queued again. So each trigger is run at least once; what a run has already done
inside the server is not done again (`world.py`). A trigger whose run was in progress at several crashes is abandoned.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
import trio

from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.ends import Ends
from trunkline.actors.engine.errors import RunFailed
from trunkline.actors.engine.executor import execute
from trunkline.actors.engine.programs import CompiledFlow, Programs
from trunkline.actors.engine.record_of_run import run_record
from trunkline.actors.engine.share import Share
from trunkline.actors.engine.told import Told
from trunkline.actors.engine.visit import Bounds, Run
from trunkline.actors.engine.world import RunWorld, done_at
from trunkline.actors.flows.run_records import RunRecord, packed, run_id
from trunkline.actors.records.kind import Doc
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.scripts.pool import ScriptPool
from trunkline.actors.triggers.index import FlowIndex, Watcher, watcher_of
from trunkline.actors.triggers.intake import Cause, TriggerRecord, decode_trigger
from trunkline.actors.triggers.queue import Queued, TriggerQueue
from trunkline.actors.values.origin import HOPS_MAX, Origin
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.store.snapshot import Snapshot

RUN_TOPIC: Final = "runs"
"""The topic of the streams of a workflow that shows its runs."""

ERRORED_BYTES_MAX: Final = 256 * 1024
_DROPS_TOLD_S: Final = 5.0
_TOO_LARGE: Final = "Payload data omitted due to size"

_log = structlog.get_logger("trunkline.flows")


class FlowRunner:
    """Runs the workflows of one system. A component; run `run` in a nursery for as long as it is used."""

    def __init__(self, system: System) -> None:
        self.runs = 0
        self.failed = 0
        self.running = 0
        self._system = system
        self._queue = system.component(TriggerQueue)
        self._index = system.component(FlowIndex)
        self._programs = system.component(Programs)
        self._pool = system.component(ScriptPool)
        self._share = Share()
        self._ends = Ends(system, self._queue)
        self._idle = trio.lowlevel.ParkingLot()
        self._woken = 0
        self._leftover: dict[int, list[tuple[bytes, bytes]]] = {}
        self._drops: dict[tuple[bytes, bytes, str], int] = {}
        self._told = Told(system)

    # Running.

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run workflows until cancelled. Started when the triggers of the store are in the queue."""
        await self._load()
        self._queue.on_work = self._wake
        self._share.on_free = self._wake
        try:
            async with trio.open_nursery() as nursery:
                for _ in range(self._system.limits.flow_runs_max):
                    nursery.start_soon(self._work)
                nursery.start_soon(self._tell_drops)
                task_status.started()
        finally:
            self._queue.on_work = lambda: None
            self._share.on_free = lambda: None
            self._ends.flush()

    async def _load(self) -> None:
        """Queue the triggers of the store."""

        def stored(snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
            return [(bytes(key), bytes(raw)) for key, raw in snapshot.range(keys.TRIGGERS, b"", None)]

        entries: list[Queued] = []
        for key, raw in await self._system.store.read(stored):
            number = keys.trigger_number(key)
            if len(key) > keys.TRIGGER_KEY_BYTES:
                self._leftover.setdefault(number, []).append((key, raw))
                continue
            record = decode_trigger(raw)
            entry = Queued(number, key, record.application, record.flow, record.cause.trigger_id, raw)
            entry.attempts = record.attempts + 1
            entries.append(entry)
        if entries:
            self._queue.begin_after(entries[-1].number)
        self._queue.add(entries)

    def _wake(self) -> None:
        if self._idle and not self._woken:
            self._woken += 1
            self._idle.unpark()

    async def _work(self) -> None:
        """Run triggers, one after the other, while there are some and the turn lasts."""
        while True:
            await self._share.enter()
            try:
                self._note_drops()
                while (entry := self._queue.take()) is not None:
                    await self._take(entry)
                    if self._share.is_used_up_now():
                        self._ends.flush()
                        await self._share.pause()
                self._ends.flush()
            finally:
                self._share.leave()
            await self._idle.park()
            self._woken -= 1

    async def _take(self, entry: Queued) -> None:
        """Run what a trigger begins. Raises nothing but cancellation."""
        self.running += 1
        try:
            await self._run(entry)
        except Exception:  # noqa: BLE001 - a bug ends this run, not the runner
            _log.exception("run of a workflow failed", flow=entry.flow.hex())
            self._remove(entry, [])
        finally:
            self.running -= 1
            self._queue.done(entry)

    async def _run(self, entry: Queued) -> None:
        raw = entry.raw or self._system.journal.get(keys.TRIGGERS, entry.key)
        if raw is None:
            return
        record = decode_trigger(raw)
        compiled = self._programs.get(entry.application, entry.flow, record.version)
        at = None if compiled is None else compiled.trigger(record.index, record.type, record.key)
        application = self._told.application(entry.application)
        if compiled is None or at is None or application is None or not compiled.is_enabled:
            self._remove(entry, [key for key, _ in self._leftover.pop(entry.number, [])])
            return
        began_ms = self._system.clock.wall_ms()
        if entry.attempts and not await self._begin_again(entry, record, raw, compiled, began_ms):
            return
        world = RunWorld(
            self._system,
            entry.application,
            entry.flow,
            compiled.name,
            hops=0 if record.cause.origin is None else record.cause.origin.hops,
            number=entry.number,
            done={done_at(key): (key, value) for key, value in self._leftover.pop(entry.number, [])},
            flush=self._ends.flush,
        )
        run = self._new_run(entry, compiled, application)
        run.world = world
        failed: RunFailed | None = None
        began_s = trio.current_time()
        try:
            await execute(compiled.program, at, self._told.payload(record, compiled, application), run)
        except RunFailed as failure:
            failed = failure
        took_us = int((trio.current_time() - began_s) * 1e6)
        self._end(entry, raw, record, compiled, run, failed, began_ms, took_us)
        for key in world.markers:
            self._ends.remove(key)

    async def _begin_again(
        self, entry: Queued, record: TriggerRecord, raw: bytes, compiled: CompiledFlow, now_ms: int
    ) -> bool:
        """Note one more attempt after a crash, on disk. False if there were too many."""
        attempts_max = self._system.limits.run_attempts_max
        if entry.attempts >= attempts_max:
            sentence = f"The server has stopped {attempts_max} times during this run; it is not tried again."
            self._abandon(entry, record, raw, compiled, now_ms, sentence)
            return False
        again = msgspec.structs.replace(record, attempts=entry.attempts)
        self._ends.put_trigger(entry.key, again.encoded())
        self._ends.flush()
        return True

    def _new_run(self, entry: Queued, compiled: CompiledFlow, application: tuple[str, Doc]) -> Run:
        limits = self._system.limits
        run = Run(
            Bounds(limits.run_steps_max, limits.run_loop_items_max, limits.run_payload_bytes_max),
            entry.queued_ms,
            Random(entry.number),  # noqa: S311 - a run must be repeatable
            partial(self._pool.call, application=entry.application),
            {
                "applicationId": entry.application.hex(),
                "flowId": entry.flow.hex(),
                "flowName": compiled.name,
                "flowVersion": compiled.version,
            },
            [compiled.program],
        )
        run.share = self._share
        run.deadline_s = trio.current_time() + limits.run_deadline_s
        run.find_program = partial(self._programs.custom_node, entry.application)
        run.application_globals = application[1]
        return run

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
        self.runs += 1
        counts = {"runs": 1, "paths": run.paths_completed, "us": took_us}
        if failed is not None:
            self.failed += 1
            counts["failed"] = 1
        ends.count(application, flow, compiled.version_id, ended_ms, counts)
        ref = Ref("flow", application, flow)
        is_watched = self._system.has_subscribers(ref, RUN_TOPIC)
        may_keep = ends.may_keep(application, flow, ended_ms, failed=failed is not None)
        if may_keep or is_watched:
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
            position = ends.keep(application, flow, entry.number, kept)
            if is_watched:
                self._publish(ref, position, entry.number, kept)
        if failed is not None and record.type != "flowError":
            self._tell_of_error(entry, record, compiled, run, failed, ended_ms)
        ends.remove(entry.key)

    def _publish(self, ref: Ref, position: int, number: int, record: RunRecord) -> None:
        shown = msgspec.json.encode({"id": run_id(number), **msgspec.structs.asdict(record)})
        self._system.publish(ref, RUN_TOPIC, position, shown)

    def _remove(self, entry: Queued, markers: list[bytes]) -> None:
        self._ends.remove(entry.key)
        for key in markers:
            self._ends.remove(key)

    def _abandon(
        self,
        entry: Queued,
        record: TriggerRecord,
        raw: bytes,
        compiled: CompiledFlow,
        now_ms: int,
        sentence: str,
    ) -> None:
        kept = RunRecord(
            outcome="abandoned",
            version=compiled.version,
            version_id=compiled.version_id,
            trigger_type=record.type,
            trigger_key=record.key,
            trigger_id=record.cause.trigger_id,
            queued_ms=entry.queued_ms,
            began_ms=now_ms,
            ended_ms=now_ms,
            error=[-1, "RunAbandoned", sentence],
            device=record.cause.device,
            trigger=packed(raw),
        )
        self._ends.keep(entry.application, entry.flow, entry.number, kept)
        counts = {"runs": 1, "failed": 1}
        self._ends.count(entry.application, entry.flow, compiled.version_id, now_ms, counts)
        self._remove(entry, [key for key, _ in self._leftover.pop(entry.number, [])])

    def _tell_of_error(
        self,
        entry: Queued,
        record: TriggerRecord,
        compiled: CompiledFlow,
        run: Run,
        failed: RunFailed,
        now_ms: int,
    ) -> None:
        """Queue the runs that wait for errors: of the narrowest scope that has some."""
        watchers = _local_watchers(compiled, record.version)
        triggers = self._index.of(entry.application)
        scope = "experience" if compiled.flow_class == "experience" else "cloud"
        found = watchers or triggers.get("flowError", scope) or triggers.get("flowError", "global")
        hops = 1 if record.cause.origin is None else record.cause.origin.hops + 1
        if not found or hops > HOPS_MAX:
            return
        node = run.programs[failed.program].nodes[failed.node]
        payload = failed.payload
        if size_of(payload, ERRORED_BYTES_MAX) > ERRORED_BYTES_MAX:
            payload = _TOO_LARGE
        error = {"name": failed.error.name, "message": str(failed.error), "stack": ""}
        data: Doc = {
            "errorInfo": {
                "error": error,
                "nodeId": node.id,
                "nodeType": node.type,
                "nodeLabel": node.label,
                "flowId": entry.flow.hex(),
                "flowName": compiled.name,
                "flowVersion": compiled.version,
            },
            "erroredPayload": copied(payload),
        }
        given = record.cause.data
        if isinstance(given, dict) and "replyId" in given:
            data["replyId"] = given["replyId"]
        origin = Origin(entry.flow.hex(), "flow", hops)
        cause = Cause(f"{entry.flow.hex()}-flowError", data, now_ms, origin=origin)
        entries = []
        for each in found:
            number = self._queue.next_number()
            key = keys.trigger_key(number, "application", entry.application)
            new = TriggerRecord(
                entry.application, each.flow, each.version, each.position, each.type, each.key, 0, cause
            ).encoded()
            self._ends.put_trigger(key, new)
            entries.append(Queued(number, key, entry.application, each.flow, cause.trigger_id, new))
        self._queue.add(entries)

    # What is dropped.

    def _note_drops(self) -> None:
        dropped, self._queue.dropped = self._queue.dropped, []
        for each in dropped:
            if each.key is not None:
                self._ends.remove(each.key)
            place = (each.application, each.flow, each.reason)
            self._drops[place] = self._drops.get(place, 0) + 1

    async def _tell_drops(self) -> None:
        """Store one error for all triggers of a workflow that were dropped in a few seconds."""
        while True:
            await trio.sleep(_DROPS_TOLD_S)
            self._note_drops()
            drops, self._drops = self._drops, {}
            now_ms = self._system.clock.wall_ms()
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


def _local_watchers(compiled: CompiledFlow, version: str | None) -> tuple[Watcher, ...]:
    return tuple(
        watcher_of(compiled.flow, index, each, compiled.flow_class, version)
        for index, each in enumerate(compiled.triggers)
        if each["type"] == "flowError" and each.get("key") == "local"
    )
