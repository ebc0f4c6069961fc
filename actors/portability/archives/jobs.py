"""The jobs that write archives: some days, all earlier days, all data tables, all events.

Days are archived one after the other, the oldest first. After each day its number is noted, so a job that is started
again begins with the day in which it was interrupted. Writing a day again replaces the same files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import trio

from trunkline.actors.core.records.expiry import kept_since_ms
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.platform.applications.archive_days import (
    ArchiveDays,
    ArchiveSince,
    NoteArchived,
    NoteTables,
    day_number,
    find_days,
    includes,
    includes_days,
    last_due_day,
    read_config,
)
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.messages import QueueJob
from trunkline.actors.portability.archives.archives import Archives
from trunkline.actors.portability.archives.manifest import What
from trunkline.actors.portability.archives.slices import FAILED_FILES_MAX, Place, Written
from trunkline.actors.portability.archives.writing import (
    first_day,
    write_day,
    write_events,
    write_export,
    write_tables,
)
from trunkline.limits.table import DAY_MS
from trunkline.store.archive_bucket import BucketRefuses

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


class _Chosen(NamedTuple):
    """The archive of a job, and which of its days are archived."""

    place: Place
    days: ArchiveDays


async def archive_days(job: Job) -> Doc:
    """Archive the days from `first` to `last` (`yyyy-mm-dd`).

    The schedule's days also bring an export of the application, if the configuration includes one.

    Input: `first` is None for the oldest day that has anything; then the `delayDays` of the configuration count as
    well. Without `again`, days that are archived are left out.
    """
    last, again = day_number(job.input["last"]), job.input["again"]
    done = Written(*job.note.get("written", ()))
    chosen = await _choose(job)
    if job.input["first"] is None:
        delay_days = chosen.place.config.get("delayDays", 0)
        last = min(last, last_due_day(job.queued_ms, delay_days, job.system.limits))
    begun_ms = chosen.days.begun_ms
    day: int
    if "next" in job.note:
        day = job.note["next"]
    elif job.input["first"] is not None:
        day = day_number(job.input["first"])
    else:
        found = await first_day(job, chosen.place.config)
        day = last + 1 if found is None else found
        await job.ask(job.owner, ArchiveSince(begun_ms=begun_ms, day=min(day, last + 1)))
    start: int = job.note.get("start", day)
    job.total = max(last + 1 - start, 0)
    while True:
        chosen = await _choose(job, chosen)
        chosen.days.check(begun_ms)
        day = day if again else chosen.days.next_open(day)
        job.completed = min(day, last + 1) - start
        if day > last:
            break
        written, next_day = await write_day(job, chosen.place, day, _complete(job, chosen.days, day))
        following = last + 1 if next_day is None else min(next_day, last + 1)
        if not written.failures:
            await job.ask(job.owner, NoteArchived(begun_ms=begun_ms, first=day, last=following - 1))
        done = done.plus(written)
        done = done._replace(failures=done.failures[:FAILED_FILES_MAX])
        day = following
        await job.save({"next": day, "start": start, "written": done})
    if job.input["first"] is not None and not again and includes(chosen.place.config, "export"):
        done = done.plus(await write_export(job, chosen.place, job.queued_ms // DAY_MS))
    return _output(done)


def _complete(job: Job, days: ArchiveDays, day: int) -> frozenset[What]:
    """What is still complete for a day. The rest is not written, since it would replace files that hold more."""
    limits, now_ms = job.system.limits, job.system.clock.wall_ms()
    keep_days: dict[What, int] = {
        "states": limits.state_keep_days,
        "commands": limits.command_keep_days,
        "connections": limits.log_keep_days,
        "events": limits.event_keep_days,
    }
    was_kept = days.was_kept(day)
    return frozenset(
        what
        for what, number in keep_days.items()
        if was_kept or day * DAY_MS >= kept_since_ms(number, now_ms)
    )


async def archive_tables(job: Job) -> Doc:
    """Write all rows of the selected data tables."""
    chosen, day = await _choose(job), job.queued_ms // DAY_MS
    done = await write_tables(job, chosen.place, day)
    if not done.failures:
        await job.ask(job.owner, NoteTables(begun_ms=chosen.days.begun_ms, day=day))
    return _output(done)


async def archive_events(job: Job) -> Doc:
    """Write all events."""
    return _output(await write_events(job, (await _choose(job)).place, job.queued_ms // DAY_MS))


def _output(done: Written) -> Doc:
    """What the log of the job shows. Raises `Invalid` if something was not written, so that somebody looks at it."""
    if done.failures:
        raise Invalid(
            f"Not archived, because the server cannot read it: {'; '.join(done.failures)}. All else is archived "
            f"(files: {done.files}). The server tries these days again; its log has the reasons."
        )
    return {"files": done.files, "rows": done.rows, "bytes": done.bytes}


async def _choose(job: Job, before: _Chosen | None = None) -> _Chosen:
    """Read the configuration. The place of `before` is used again if it has not changed."""

    def read(snapshot: Snapshot) -> tuple[Doc, ArchiveDays]:
        config, days = _config(snapshot, job.application), find_days(snapshot, job.application)
        assert days is not None, "the note is stored with the configuration"
        return config, days

    config, days = await job.read(read)
    if before is not None and before.place.config == config:
        return _Chosen(before.place, days)
    archives = job.system.component(Archives)
    return _Chosen(await trio.to_thread.run_sync(archives.place, job.application, config), days)


def _config(snapshot: Snapshot, application: bytes) -> Doc:
    config = read_config(snapshot, application)
    if config is None:
        raise Invalid(
            "archiveConfig: the application has none; set it first, it says what is archived and where."
        )
    return config


def _run(work: Callable[[Job], Awaitable[Doc]]) -> Callable[[Job], Awaitable[Doc]]:
    """The work, ended at once where the bucket refuses it: another attempt would be refused as well."""

    async def run(job: Job) -> Doc:
        try:
            return await work(job)
        except BucketRefuses as refusal:
            raise Invalid(f"archiveConfig.s3: {refusal}") from refusal

    return run


def _check(snapshot: Snapshot, application: bytes, _message: QueueJob) -> None:
    _config(snapshot, application)


def _check_days(snapshot: Snapshot, application: bytes, _message: QueueJob) -> None:
    config = _config(snapshot, application)
    if not includes_days(config) and not includes(config, "export"):
        raise Invalid("archiveConfig: includes neither devices nor events, so a day has nothing to archive.")


ARCHIVE_DATA = JobKind(
    operation="application.archiveData",
    resource_type="application",
    run=_run(archive_days),
    check=_check_days,
    gate="archive_data_concurrent_calls_max",
)
BACKFILL = JobKind(
    operation="application.backfillArchiveData",
    resource_type="application",
    run=_run(archive_days),
    check=_check_days,
    gate="backfill_archive_data_concurrent_calls_max",
)
ARCHIVE_TABLES = JobKind(
    operation="application.fullDataTablesArchive",
    resource_type="application",
    run=_run(archive_tables),
    check=_check,
    gate="full_data_tables_archive_concurrent_calls_max",
)
ARCHIVE_EVENTS = JobKind(
    operation="application.fullEventsArchive",
    resource_type="application",
    run=_run(archive_events),
    check=_check,
    gate="full_events_archive_concurrent_calls_max",
)
