"""The schedule of archives: queues the days that have become old enough, and the daily copies of data tables.

It looks every `archive_interval_s` and at each start. What is archived is noted in the store, so a day that was missed
or that failed is queued at the next look, and one that is archived never again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog
import trio

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.unreadable import UNREADABLE
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, TooManyRequests
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.archive_days import (
    configured,
    day_text,
    find_days,
    includes,
    includes_days,
    last_due_day,
    read_config,
)
from trunkline.actors.platform.jobs.messages import QueueJob
from trunkline.actors.platform.jobs.owner import is_open
from trunkline.actors.portability.archives.jobs import ARCHIVE_DATA, ARCHIVE_TABLES, BACKFILL
from trunkline.limits.table import DAY_MS
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.records.kind import Doc
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

_log = structlog.get_logger("trunkline.archives")


class Due(NamedTuple):
    """A job that is to be queued."""

    application: bytes
    operation: str
    input: Doc


class Schedule(Moved):
    """The look for archives that are due. A component."""

    def __init__(self, system: System) -> None:
        self._system = system

    async def run(self) -> None:
        """Queue what is due, until cancelled."""
        while True:
            await self._look()
            await trio.sleep(self._system.limits.archive_interval_s)

    async def come(self, application: bytes) -> None:
        """Queue what is due of an application."""
        await self._look(application)

    async def _look(self, application: bytes | None = None) -> None:
        try:
            await queue_due(self._system, application)
        except (StoreError, DomainError) as refusal:
            _log.warning("archives postponed", reason=str(refusal))
        except Exception:  # noqa: BLE001 - a failed look must not stop the server
            _log.exception("look for due archives failed")


async def queue_due(system: System, application: bytes | None = None) -> None:
    """Queue the jobs that are due now, of all applications or of one."""
    now_ms = system.clock.wall_ms()
    for due in await system.read(lambda snapshot: due_jobs(snapshot, now_ms, system, application)):
        if due.application in system.moves.away:
            continue
        message = QueueJob(
            operation=due.operation,
            resource=due.application,
            input=due.input,
            by=Creator(due.application.hex(), "system", "schedule"),
            result_to=[],  # nobody gets a mail each day
        )
        try:
            await system.ask(Ref("application", ROOT, due.application), message)
        except TooManyRequests:
            continue  # it is queued or runs already
        except DomainError as refusal:
            _log.warning("archive postponed", application=due.application.hex(), reason=refusal.message)


def due_jobs(snapshot: Snapshot, now_ms: int, system: System, only: bytes | None = None) -> list[Due]:
    """The jobs that are due, of all applications or of one."""
    due: list[Due] = []
    today = now_ms // DAY_MS
    for application in configured(snapshot) if only is None else (only,):
        try:
            config, days = read_config(snapshot, application), find_days(snapshot, application)
        except UNREADABLE:
            continue  # reported by whatever else reads the application
        if config is None or days is None:
            continue  # the application is deleted
        first = days.next_open(days.since)
        last = last_due_day(now_ms, config.get("delayDays", 0), system.limits)
        if (
            first <= last
            and (includes_days(config) or includes(config, "export"))
            and not is_open(snapshot, application, BACKFILL.operation)  # it archives these days
        ):
            span = {"first": day_text(first), "last": day_text(last), "again": False}
            due.append(Due(application, ARCHIVE_DATA.operation, span))
        if days.tables_day < today and includes(config, "tables"):
            due.append(Due(application, ARCHIVE_TABLES.operation, {}))
    return due
