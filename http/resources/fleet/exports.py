"""Exports: operations that queue a job, which writes a file."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from trunkline.actors.core.values.timestamps import resolve_range
from trunkline.actors.data.events.messages import EventExport
from trunkline.actors.data.tables.messages import RowExport
from trunkline.actors.fleet.devices.queries.export_messages import (
    DataExport,
    DeviceExport,
    DeviceExportQuery,
    DevicesExport,
    PayloadCountsExport,
)
from trunkline.actors.fleet.devices.record.messages import PayloadRange
from trunkline.actors.platform.applications.payload_counts import hour_span
from trunkline.actors.platform.jobs.messages import NotifyQuery
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import APP_PATH, DATA_TABLE_PATH, DEVICE_PATH
from trunkline.http.calls.verbs import job
from trunkline.http.resources.platform.jobs import queue_job

_ALSO = {
    429: "The same export is already queued or running, or the application has too many jobs",
    507: "The disk is full; nothing was stored",
}


async def export_device(call: Call) -> Response:
    """Queue an export of the states of a device as CSV. The body takes precedence over the query string."""
    query: DeviceExportQuery = call.query
    body: DeviceExport = call.body or DeviceExport()
    span = resolve_range(
        call.now_ms,
        start=query.start if body.start is UNSET else body.start,
        end=query.end if body.end is UNSET else body.end,
    )
    options = body.options
    return await queue_job(
        call,
        call.ids["device"],
        {
            "start": span.start_ms,
            "end": span.end_ms,
            "attributes": body.attributes or None,
            "includeDate": options.include_date,
            "includeID": options.include_id,
            "includeBlobData": options.include_blob_data or query.include_blob_data,
        },
        notify=(body, query),
    )


async def export_data(call: Call) -> Response:
    """Queue an export of the states of many devices: one CSV file, or a zip archive with one for each device."""
    body: DataExport = call.body
    span = resolve_range(
        call.now_ms,
        start=None if body.start is UNSET else body.start,
        end=None if body.end is UNSET else body.end,
    )
    options = body.options
    return await queue_job(
        call,
        call.application,
        {
            "deviceIds": body.device_ids or None,
            "deviceTags": msgspec.to_builtins(body.device_tags or []),
            "deviceQuery": None if body.device_query is UNSET else body.device_query,
            "attributes": body.attributes or None,
            "start": span.start_ms,
            "end": span.end_ms,
            "includeDate": options.include_date,
            "includeID": options.include_id,
            "includeBlobData": options.include_blob_data,
            "filePerDevice": options.file_per_device,
        },
        notify=(body,),
    )


async def export_devices(call: Call) -> Response:
    """Queue an export of the records of devices as CSV or as one JSON array, in order of creation."""
    query: NotifyQuery = call.query
    body: DevicesExport = call.body or DevicesExport()
    return await queue_job(
        call,
        call.application,
        {"query": None if body.query is UNSET else body.query, "format": body.format},
        notify=(body, query),
    )


async def export_payload_counts(call: Call) -> Response:
    """Queue a count of the payloads of devices by kind, as CSV with a line for each device."""
    body: PayloadCountsExport = call.body or PayloadCountsExport()
    start = PayloadRange().start if body.start is UNSET else body.start
    first, last = hour_span(start, 0 if body.end is UNSET else body.end, call.now_ms)
    return await queue_job(
        call,
        call.application,
        {
            "query": None if body.query is UNSET else body.query,
            "first": first,
            "last": last,
            "format": "csv",
        },
        notify=(body,),
    )


async def export_rows(call: Call) -> Response:
    """Queue an export of the rows of a data table as CSV: `id`, `createdAt`, `updatedAt` and the columns."""
    body: RowExport = call.body
    options = body.query_options
    return await queue_job(
        call,
        call.ids["dataTable"],
        {
            "query": body.query or None,
            "sortColumn": options.sort_column or None,
            "sortDirection": options.sort_direction.lower() or "asc",
            "offset": options.offset,
            "limit": None if options.limit is UNSET else options.limit,
        },
        notify=(body,),
    )


async def export_events(call: Call) -> Response:
    """Queue an export of the events of an application, the oldest first, as CSV or as one JSON array."""
    body: EventExport = call.body or EventExport()
    return await queue_job(
        call,
        call.application,
        {
            "query": None if body.query is UNSET else body.query,
            "format": body.format,
            "excludeUpdates": body.exclude_updates,
        },
        notify=(body,),
    )


ROUTES = (
    job(
        DEVICE_PATH + "/export",
        "device.export",
        "Export the states of a device as CSV",
        export_device,
        query=DeviceExportQuery,
        body=DeviceExport,
        optional_body=True,
        also=_ALSO,
    ),
    job(
        APP_PATH + "/devices/export",
        "devices.export",
        "Export the records of devices as CSV or JSON",
        export_devices,
        query=NotifyQuery,
        body=DevicesExport,
        optional_body=True,
        also=_ALSO,
    ),
    job(
        APP_PATH + "/devices/payloadCounts",
        "devices.payloadCounts",
        "Count the payloads of many devices, as CSV",
        export_payload_counts,
        body=PayloadCountsExport,
        optional_body=True,
        also=_ALSO,
    ),
    job(
        APP_PATH + "/data/export",
        "data.export",
        "Export the states of many devices as CSV",
        export_data,
        body=DataExport,
        also=_ALSO,
    ),
    job(
        DATA_TABLE_PATH + "/rows/export",
        "dataTableRows.export",
        "Export the rows of a data table as CSV",
        export_rows,
        body=RowExport,
        also=_ALSO,
    ),
    job(
        APP_PATH + "/events/export",
        "events.export",
        "Export the events of an application as CSV or JSON",
        export_events,
        body=EventExport,
        optional_body=True,
        also=_ALSO,
    ),
)
