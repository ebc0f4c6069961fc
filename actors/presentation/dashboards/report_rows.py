"""Events and rows of data tables in a report."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import iso, parse_iso
from trunkline.actors.data.events.messages import EventPage, ListEvents
from trunkline.actors.data.events.reads import list_events
from trunkline.actors.data.tables.messages import ListRows, RowsPage
from trunkline.actors.data.tables.pages import list_rows
from trunkline.actors.presentation.dashboards.report import Cell, Moment, Part, Value, number_of
from trunkline.actors.presentation.dashboards.report_lists import (
    as_cell,
    direction_of,
    heading_of,
    one_of,
    table,
    template_cell,
)
from trunkline.actors.presentation.dashboards.report_scene import Scene


def events(scene: Scene, config: Doc) -> list[Part]:
    """Events, the newest first."""
    columns = config.get("columns") or [
        {"type": "level"},
        {"type": "subject"},
        {"type": "state"},
        {"type": "deviceName"},
        {"type": "creationDate"},
    ]
    state = config.get("eventState")
    fields = ("creationDate", "subject", "id", "lastUpdated", "level", "state", "deviceId")
    page = EventPage(
        sort_field=one_of(config.get("sortField"), fields, "creationDate"),
        sort_direction=direction_of(config.get("sortDirection"), "desc"),
        per_page=scene.bounds.rows_max,
        state=state if state in ("new", "acknowledged", "resolved") else None,
        filter_field="subject" if config.get("filter") else None,
        filter=f"*{config['filter']}*" if config.get("filter") else None,
        query=_event_query(scene, config),
    )
    found = list_events(scene.reading, ListEvents(application=scene.application("events.get"), query=page))
    rows = [tuple(_event_cell(scene, column, item) for column in columns) for item in found["items"]]
    headings = (heading_of(column) for column in columns)
    ids = (item["id"] for item in found["items"])
    return table(scene, headings, rows, found["totalCount"], of="event", ids=ids)


def _event_query(scene: Scene, config: Doc) -> dict[str, Any]:
    """The query of a block, and that the event is not newer than the report."""
    parts = [{"creationDate": {"$lte": {"$date": iso(scene.now_ms)}}}]
    query = parse_query(config.get("query") or "", "query")
    return {"$and": [*parts, query]} if query else parts[0]


def _event_cell(scene: Scene, column: Doc, item: Doc) -> Cell:
    type = column.get("type", "subject")
    if type == "custom":
        return template_cell(scene, column, {"event": item, **item})
    if type == "subjectWithMessage":
        return f"{item['subject']}: {item['message']}" if item.get("message") else str(item["subject"])
    if type.startswith("creationDate"):
        return Moment(parse_iso(item["creationDate"]))
    if type.startswith("lastUpdated"):
        return Moment(parse_iso(item["lastUpdated"]))
    if type == "tag":
        return as_cell(item["eventTags"].get(column.get("selectedTag", "")))
    return as_cell(item.get(type))


def open_events(scene: Scene, config: Doc) -> list[Part]:
    """How many events are not resolved, by level."""
    parts: list[Part] = []
    for level in ("critical", "error", "warning", "info"):
        query = {"$and": [_event_query(scene, config), {"state": {"$ne": "resolved"}}, {"level": level}]}
        page = EventPage(per_page=1, query=query)
        found = list_events(
            scene.reading, ListEvents(application=scene.application("events.get"), query=page)
        )
        if found["totalCount"]:
            parts.append(Value(level, found["totalCount"]))
    return parts or [Value("open", 0)]


def row_options(segment: Doc) -> Doc:
    """The options of a query of a custom chart under the names of a list of rows."""
    return {
        "defaultSortColumn": segment.get("sortColumn"),
        "defaultSortDirection": segment.get("sortDirection"),
        "defaultLimit": segment.get("limit"),
        "defaultOffset": segment.get("offset"),
    }


def rows(scene: Scene, config: Doc) -> list[Part]:
    """Rows of a data table."""
    if not config.get("dataTableId"):
        raise Invalid("The block names no data table.")
    wanted = number_of(config.get("defaultLimit")) or scene.bounds.rows_max
    query = parse_query(config.get("query") or "", "query")
    if isinstance(query, list):
        query = {"$or" if config.get("queryMode") == "$or" else "$and": query} if query else {}
    page = RowsPage(
        sort_column=config.get("defaultSortColumn") or None,
        sort_direction=direction_of(config.get("defaultSortDirection"), "asc"),
        limit=max(0, min(round(wanted), scene.bounds.rows_max)),
        offset=max(0, round(number_of(config.get("defaultOffset")) or 0)),
    )
    message = ListRows(
        application=scene.application("dataTableRows.get"),
        data_table=bytes.fromhex(config["dataTableId"]),
        query=page,
        body=query or None,
    )
    found = list_rows(scene.reading, message)
    items = msgspec.json.decode(found["items"])
    columns = config.get("columns") or [
        {"type": name} for name in (items[0] if items else ()) if name not in ("id", "createdAt", "updatedAt")
    ]
    cells = [tuple(_row_cell(scene, column, item) for column in columns) for item in items]
    return table(scene, (heading_of(column) for column in columns), cells, found["totalCount"])


def _row_cell(scene: Scene, column: Doc, item: Doc) -> Cell:
    if column.get("rowTemplate"):
        return template_cell(scene, column, {"row": item, **item})
    value = item.get(column.get("type", ""))
    if column.get("type") in ("createdAt", "updatedAt") and isinstance(value, str):
        return Moment(parse_iso(value))
    return as_cell(value)
