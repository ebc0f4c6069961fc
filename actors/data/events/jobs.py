"""Jobs that change more events than one call may change. They process the events in parts, in the order of ids.

A job changes events that existed when it began and that match when their part is processed. Each part is one batch
of the event log, which also contains the progress of the job. So a job that is restarted after an interruption
repeats no part and skips none, and its count is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events.actor import Progress
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.events.messages import (
    BeginEventJob,
    DeleteSomeEvents,
    EventChoice,
    EventPatch,
    PatchSomeEvents,
)
from trunkline.actors.data.events.reads import matching_between
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

PART_EVENTS: Final = 100
"""Events in one part: a turn of about 5 ms; other messages are handled between two parts."""

SEARCH_EVENTS: Final = 2000
"""Ids that one search returns: 200 kB, enough for twenty parts."""

_Message = Callable[[list[bytes]], Message]


async def patch_events(job: Job) -> Doc:
    """Update the events. Input: `choice` and `body` as in the call; of a workflow also `tags` and `origin`."""
    choice = msgspec.convert(job.input["choice"], EventChoice)
    body = msgspec.convert(job.input["body"], EventPatch)
    tags = job.input.get("tags", {})
    origin = msgspec.convert(job.input.get("origin"), Origin | None)

    def message(ids: list[bytes]) -> Message:
        return PatchSomeEvents(
            job=job.id, ids=ids, choice=choice, body=body, by=job.by, tags=tags, origin=origin
        )

    return {"changed": await _process(job, choice, message)}


async def delete_events(job: Job) -> Doc:
    """Delete the events. Input: `query`."""
    choice = EventChoice(query=job.input["query"])

    def message(ids: list[bytes]) -> Message:
        return DeleteSomeEvents(job=job.id, ids=ids, choice=choice)

    return {"removed": await _process(job, choice, message)}


async def _process(job: Job, choice: EventChoice, message: _Message) -> int:
    """Send the ids of matching events to the event log, part by part. Return the number of changed events."""
    log = Ref("eventLog", job.application, job.application)
    begin = await job.read(partial(_begin, application=job.application, job=job.id))
    progress: Progress = await job.ask(log, begin)

    def left(snapshot: Snapshot) -> Iterator[bytes]:
        return matching_between(snapshot, job.application, choice, progress.last, progress.end)

    job.total = progress.changed + await job.read(lambda snapshot: sum(1 for _ in left(snapshot)))
    job.completed = progress.changed
    part = min(PART_EVENTS, job.system.limits.changed_events_max)
    while ids := await job.read(lambda snapshot: list(islice(left(snapshot), SEARCH_EVENTS))):
        while ids:
            progress = await job.ask(log, message(ids[:part]))
            job.completed = progress.changed
            ids = [id for id in ids if id > progress.last]
    return job.completed


def _begin(snapshot: Snapshot, application: bytes, job: bytes) -> BeginEventJob:
    """Return the message that begins the job: with the newest event, and the ended jobs that still have a progress."""
    events = keys.record_prefix(EVENT.name, application)
    newest = next(snapshot.keys(keys.RECORDS, events, keys.prefix_end(events), reverse=True), b"")
    prefix = keys.event_jobs_prefix(application)
    stored = (bytes(key[-12:]) for key in snapshot.keys(keys.META, prefix, keys.prefix_end(prefix)))
    found = ((id, records.find(snapshot, JOB, application, id)) for id in stored)
    ended = [id for id, log in found if log is None or "runCompletedAt" in log.doc]
    return BeginEventJob(job=job, end=bytes(newest[-12:]), ended=ended)


PATCH_EVENTS = JobKind(operation="events.patch", resource_type="event", run=patch_events)
DELETE_EVENTS = JobKind(operation="events.delete", resource_type="event", run=delete_events)
