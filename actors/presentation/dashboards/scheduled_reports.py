"""The reports that are due: a task that waits for the first due time, and queues the jobs that make the reports.

Owns the waiting, and what is done about a report that cannot be queued: it is tried again later, or left out this time
if it was refused for what it asks for. The job and the next due time of its report are in one batch
(`report_schedule.py`). A report that was due while the server was down is queued once, however often it was due.
Reports of a dashboard are made one after the other, since each dashboard has one such job at a time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from trunkline.actors.core.records import records
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.background import Background
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.errors import DomainError, Forbidden, Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.platform.jobs.messages import QueueJob
from trunkline.actors.presentation.dashboards.holder import find_holder
from trunkline.actors.presentation.dashboards.kind import DASHBOARD
from trunkline.actors.presentation.dashboards.messages import Report
from trunkline.actors.presentation.dashboards.report_options import report_options
from trunkline.actors.presentation.dashboards.report_schedule import (
    ReportDue,
    ReportTimes,
    as_report,
    job_kind,
    schedule,
    scheduled,
    scheduler_of,
)
from trunkline.actors.workflows.triggers.alarm import Alarm
from trunkline.limits.extras import how_to_install, lacks, library_missing
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.workflows.flows.due_times import Place
    from trunkline.store.snapshot import Snapshot

_AT_ONCE: Final = 16
"""Dashboards whose reports are queued together."""
_RETRY_S: Final = 60
"""When a report is tried again that could not be queued, if nothing says when."""

_log = structlog.get_logger("trunkline.reports")


class ScheduledReports(Moved):
    """Queues the reports of one system. A component. Its task begins with the first schedule."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._due = system.component(ReportDue)
        self.alarm = Alarm(system.clock, self._due, _AT_ONCE, self._ring, self._prepare)
        self._due.on_first = self._begin
        with system.store.snapshot() as snapshot:
            prefix = keys.REPORT_TIMES_PREFIX
            if next(snapshot.keys(keys.META, prefix, keys.prefix_end(prefix)), None) is not None:
                self._begin()

    def _begin(self) -> None:
        self._due.on_first = lambda: None
        self._system.component(Background).begin(self._run)

    async def _run(self) -> None:
        """Queue what is due, until cancelled."""
        await self._load()
        await self.alarm.run()

    async def come(self, application: bytes) -> None:
        """Queue what is due of an application."""
        await self._load(application)

    async def _load(self, holder: bytes = b"") -> None:
        """Note when the reports of the store are due, or those of an application."""
        for place, raw in await self._system.read(partial(_stored, holder)):
            if place not in self._due.times:
                self._due.schedule(place, ReportTimes.decoded(raw))
        self._correct(self._system.clock.wall_ms())

    async def _prepare(self, now_ms: int, was_set_back: bool) -> None:
        if was_set_back:
            self._correct(now_ms)

    def _correct(self, now_ms: int) -> None:
        """Look at the due times that were determined at a time that is to come, as the clock was set back."""
        late = [place for place, times in self._due.times.items() if now_ms < times.since_ms]
        for place in late:
            self._due.set(place, now_ms)

    async def _ring(self, places: list[Place], now_ms: int) -> None:
        for place in places:
            try:
                retry_ms = await self._queue_due(place, now_ms)
            except Exception:  # noqa: BLE001 - a bug here must not end the reports of others
                _log.exception("reports not queued", dashboard=place[1].hex())
                retry_ms = now_ms + 1000 * _RETRY_S
            times = self._due.times.get(place)
            if times is not None:
                self._due.set(place, max(times.first_ms, retry_ms))

    async def _queue_due(self, place: Place, now_ms: int) -> int:
        """Queue the reports of a dashboard that are due. Returns when to look again at the earliest."""
        with self._system.store.snapshot() as snapshot:
            holder, found = find_holder(snapshot, place[0]), records.find(snapshot, DASHBOARD, *place)
        times = self._due.times.get(place)
        configs = [] if found is None else scheduled(found.doc)
        if times is None or holder is None or found is None or len(configs) != len(times.due_ms):
            self._due.schedule(place, None)  # deleted, perhaps while due times were loaded; or its owner goes
            return 0
        times = times.corrected(configs, now_ms)
        self._due.schedule(place, times)
        for position, due_ms in enumerate(times.due_ms):
            if due_ms > now_ms:
                continue
            config = msgspec.convert(configs[position], Report)
            fire = partial(self._fire, place, times.written_ms, position, schedule(config).first(now_ms))
            try:
                message = await self._message(place, holder.kind, config, scheduler_of(found.doc), now_ms)
                await self._system.ask(Ref(job_kind(holder.kind).owner, ROOT, holder.id), message, fire)
            except (Invalid, Forbidden) as refusal:
                _log.warning("report left out", dashboard=place[1].hex(), reason=refusal.message)
                fire()
            except DomainError as refusal:
                return now_ms + round(1000 * getattr(refusal, "retry_after_s", _RETRY_S))
        return 0

    def _fire(
        self,
        place: Place,
        written_ms: int,
        position: int,
        next_ms: int,
        actor: Actor | None = None,
        _answer: object = None,
    ) -> None:
        """Note the next due time of a report, with an `actor` in its batch. A schedule that has changed has its own."""
        times = self._due.times.get(place)
        if times is None or times.written_ms != written_ms:
            return
        after = times.fired(position, next_ms, self._system.clock.wall_ms())
        if actor is None:
            self._due.schedule(place, after)
            return
        key = keys.report_times_key(*place)
        raw = actor.system.journal.get(keys.META, key)
        if raw is not None and ReportTimes.decoded(raw).written_ms == written_ms:
            actor.put(keys.META, key, after.encoded())
            actor.after_commit(partial(self._due.schedule, place, after))

    async def _message(self, place: Place, holder: str, config: Report, by: Creator, now_ms: int) -> QueueJob:
        """What queues the job of a report. Raises `Invalid` where the server makes no reports."""
        if await in_thread(SHORT, lacks, "reports"):
            cause, remedy = library_missing("reports"), how_to_install("reports")
            raise Invalid(f"This server makes no reports: {cause}; its operator can {remedy}.")
        options = await in_thread(SHORT, report_options, as_report(config), now_ms)
        return QueueJob(
            operation=job_kind(holder).operation,
            resource=place[1],
            input=options,
            by=by,
            callback_url=config.callback_url or None,
            result_to=config.to_email or [],
            level=Level.WRITE if holder == "application" else Level.MEMBER,
        )


def _stored(holder: bytes, snapshot: Snapshot) -> list[tuple[Place, bytes]]:
    size, prefix = keys.ID_BYTES, keys.REPORT_TIMES_PREFIX + holder
    return [
        ((bytes(key[-2 * size : -size]), bytes(key[-size:])), bytes(raw))
        for key, raw in snapshot.range(keys.META, prefix, keys.prefix_end(prefix))
    ]
