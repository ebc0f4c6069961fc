"""Archives: operations that queue the writing of an archive.

They are GET requests and need the rights of a write: they replace files of an archive, and decide what retention waits
for.
"""

from __future__ import annotations

from trunkline.actors.core.records.expiry import kept_since_ms
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import iso, resolve_timestamp
from trunkline.actors.platform.applications.archive_days import day_text, last_due_day
from trunkline.actors.portability.archives.messages import ArchiveDate
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import job
from trunkline.http.resources.platform.jobs import queue_job
from trunkline.limits.table import DAY_MS

_ALSO = {
    400: "The application has no `archiveConfig`, or the date cannot be archived",
    429: "The same archive is already queued or running, or the application has too many jobs",
    507: "The disk is full; nothing was stored",
}


async def archive_data(call: Call) -> Response:
    """Queue the archive of a day (UTC): what the devices reported, and events if the configuration includes them.

    Files of a day that was archived before are replaced. They have what the server has of the day now.
    """
    query: ArchiveDate = call.query
    age_min_days = call.service.system.limits.archive_age_min_days
    time_ms = resolve_timestamp(query.date, call.now_ms, field="date")
    newest_ms = call.now_ms - age_min_days * DAY_MS
    if time_ms >= newest_ms:
        raise Invalid(
            f"date: must be older than {age_min_days} days, since younger data may still change; "
            f"give a time before {iso(newest_ms)}."
        )
    keep_days = call.service.system.limits.state_keep_days
    if time_ms // DAY_MS * DAY_MS < kept_since_ms(keep_days, call.now_ms):
        raise Invalid(
            f"date: must be newer than {keep_days} days, after which this server removes states; what is older was "
            "archived before, or cannot be archived any more."
        )
    day = day_text(time_ms // DAY_MS)
    return await queue_job(call, call.application, {"first": day, "last": day, "again": True})


async def backfill(call: Call) -> Response:
    """Queue the archive of all days that are old enough and not archived yet, the oldest first.

    From then on these days also wait for their archive before retention removes them.
    """
    last = last_due_day(call.now_ms, 0, call.service.system.limits)
    return await queue_job(call, call.application, {"first": None, "last": day_text(last), "again": False})


async def archive_tables(call: Call) -> Response:
    """Queue an archive of all rows of the data tables that the configuration selects, a file each."""
    return await queue_job(call, call.application, {})


async def archive_events(call: Call) -> Response:
    """Queue an archive of all events of the application with their updates, in one file."""
    return await queue_job(call, call.application, {})


ROUTES = (
    job(
        APP_PATH + "/archiveData",
        "application.archiveData",
        "Archive the data of a day",
        archive_data,
        method="GET",
        access="write",
        query=ArchiveDate,
        also=_ALSO,
    ),
    job(
        APP_PATH + "/backfillArchiveData",
        "application.backfillArchiveData",
        "Archive all days that are not archived yet",
        backfill,
        method="GET",
        access="write",
        also=_ALSO,
    ),
    job(
        APP_PATH + "/fullDataTablesArchive",
        "application.fullDataTablesArchive",
        "Archive all rows of the data tables",
        archive_tables,
        method="GET",
        access="write",
        also=_ALSO,
    ),
    job(
        APP_PATH + "/fullEventsArchive",
        "application.fullEventsArchive",
        "Archive all events",
        archive_events,
        method="GET",
        access="write",
        also=_ALSO,
    ),
)
