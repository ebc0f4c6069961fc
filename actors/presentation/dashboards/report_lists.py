"""The lists of a report: devices with their states and connections, and names of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.actors.fleet.devices.queries.lists import list_composite_states, list_devices
from trunkline.actors.fleet.devices.queries.selection import select
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import CompositePage, DevicePage, History
from trunkline.actors.fleet.devices.record.read_messages import (
    GetLogEntries,
    ListCompositeStates,
    ListDevices,
)
from trunkline.actors.fleet.devices.record.reads import tags_as_object
from trunkline.actors.fleet.devices.state.history import get_log_entries
from trunkline.actors.fleet.devices.state.signs_of_life import life_of
from trunkline.actors.presentation.dashboards.kind import DASHBOARD
from trunkline.actors.presentation.dashboards.report import (
    Cell,
    Moment,
    Paragraph,
    Part,
    RowKind,
    Table,
    Value,
    number_of,
)
from trunkline.actors.presentation.dashboards.report_formulas import fill_row, status_of
from trunkline.actors.presentation.dashboards.report_scene import Scene
from trunkline.actors.workflows.flows.kind import FLOW


def table(
    scene: Scene,
    columns: Iterable[str],
    rows: list[Any],
    total: int | None = None,
    *,
    of: RowKind = "",
    ids: Iterable[str] = (),
) -> list[Part]:
    if not rows:
        return [Paragraph("None.")]
    shown = rows[: scene.bounds.rows_max]
    return [Table(tuple(columns), shown, len(rows) if total is None else total, of, tuple(ids)[: len(shown)])]


# Devices.


def devices(scene: Scene, config: Doc) -> list[Part]:
    """A list of devices with their connection and chosen attributes."""
    columns = config.get("columns") or [
        {"type": "name"},
        *([] if config.get("excludeConnectionInfo") else [{"type": "connectionStatus"}]),
        *({"type": "attribute", "source": name} for name in config.get("additionalAttributes") or ()),
    ]
    page = DevicePage(
        sort_field=one_of(config.get("sortField"), ("id", "creationDate", "lastUpdated", "name"), "name"),
        sort_direction=direction_of(config.get("sortDirection"), "asc"),
        per_page=scene.bounds.rows_max,
        tags_as_object=True,
        query=_device_filter(scene, config),
    )
    message = ListDevices(application=scene.application("devices.get"), query=page, reach=None)
    found = list_devices(scene.reading, message)
    names = {
        column["source"] for column in columns if column.get("type") == "attribute" and column.get("source")
    }
    states = _states(scene, [item["id"] for item in found["items"]], names) if names else {}
    rows = [
        tuple(_device_cell(scene, column, item, states.get(item["id"], {})) for column in columns)
        for item in found["items"]
    ]
    headings = (heading_of(column) for column in columns)
    ids = (item["id"] for item in found["items"])
    return table(scene, headings, rows, found["totalCount"], of="device", ids=ids)


def _device_filter(scene: Scene, config: Doc) -> dict[str, Any]:
    parts: list[Any] = []
    query = parse_query(config.get("query") or "", "query")
    if query:
        parts.append(query)
    given = config.get("filter") or {}
    if isinstance(given, str):
        given = {"searchParam": given}
    chosen: list[Any] = []
    if given.get("ids"):
        chosen.append({"id": {"$in": given["ids"]}})
    for tag in scene.tags(given.get("tags", ())):
        sides = {"$tagKey": tag.key, "$tagValue": tag.value}
        chosen.append({"tags": {name: side for name, side in sides.items() if side is not UNSET}})
    if chosen and config.get("match") != "unfiltered":
        parts.append({"$and" if config.get("match") == "all" else "$or": chosen})
    if given.get("searchParam"):
        parts.append({"name": {"$contains": given["searchParam"]}})
    return {"$and": parts} if parts else {}


def _states(scene: Scene, ids: list[str], names: set[str]) -> dict[str, Doc]:
    """The composite states of devices by id: name to value and time."""
    query = CompositePage(
        end=scene.now_ms,
        attributes=",".join(sorted(names)) if names else None,
        query={"id": {"$in": ids}},
        per_page=1000,
    )
    application = scene.application("data.lastValueQuery")
    message = ListCompositeStates(application=application, query=query, now_ms=scene.now_ms, reach=None)
    return {
        item["id"]: item["compositeState"] for item in list_composite_states(scene.reading, message)["items"]
    }


def _device_cell(scene: Scene, column: Doc, item: Doc, state: Doc) -> Cell:
    source = column.get("source", "")
    values = {
        "id": item["id"],
        "name": item["name"],
        "created": Moment(parse_iso(item["creationDate"])),
        "updated": Moment(parse_iso(item["lastUpdated"])),
        "connectionStatus": _sign_of_life(scene, item) if column.get("type") == "connectionStatus" else None,
        "attribute": state.get(source, {}).get("value"),
        "tag": ", ".join(item["tags"].get(source, ())),
    }
    if column.get("type") == "custom":
        return template_cell(scene, column, {"device": item, **item})
    found: Cell = values.get(column.get("type", "name"))
    return found


def _sign_of_life(scene: Scene, item: Doc) -> str:
    """The connection of a device; of one that never had a connection, whether it reports."""
    if item.get("connectionInfo", {}).get("connected") == 0:
        return "disconnected"
    snapshot, id = scene.reading.snapshot, bytes.fromhex(item["id"])
    found = records.find(snapshot, DEVICE, scene.application("devices.get"), id)
    health = "neverSeen" if found is None else life_of(snapshot, id, found.doc).health(scene.now_ms)
    return "never seen" if health == "neverSeen" else health


def heading_of(column: Doc) -> str:
    return str(
        column.get("headerTemplate")
        or column.get("source")
        or column.get("attribute")
        or column.get("selectedTag")
        or _HEADINGS.get(column.get("type", ""), column.get("type", ""))
    )


_HEADINGS = {
    "id": "Id",
    "name": "Name",
    "connectionStatus": "Connection",
    "created": "Created",
    "updated": "Changed",
    "custom": "",
    "deviceId": "Id",
    "deviceName": "Device",
    "deviceTags": "Tags",
    "timestamp": "Time",
    "level": "Level",
    "subject": "Subject",
    "subjectWithMessage": "Subject",
    "state": "State",
    "creationDate": "Created",
    "creationDateWithSource": "Created",
    "lastUpdatedDate": "Changed",
    "lastUpdatedDateWithSource": "Changed",
    "sourceId": "Source",
}


def device_counts(scene: Scene, config: Doc) -> list[Part]:
    """How many devices match each query."""
    parts: list[Part] = []
    values: Doc = {**scene.values_of_templates}
    for number, segment in enumerate(config.get("segments", ())):
        query = parse_query(segment["query"], "query") or None
        page = DevicePage(per_page=1, query=query)
        message = ListDevices(application=scene.application("devices.get"), query=page, reach=None)
        count = list_devices(scene.reading, message)["totalCount"]
        parts.append(Value(str(segment["id"]), count))
        values[f"value-{number}"] = {"count": count}
    if not parts:
        return [Paragraph("None.")]
    status = status_of(config, values, scene.now_ms)
    return parts if status is None else [status, *parts]


def states(scene: Scene, config: Doc) -> list[Part]:
    """The states of devices: those in the range, the newest first, or the newest value of each attribute."""
    wanted = config.get("attributes") or None
    columns = config.get("columns")
    if columns:
        wanted = [column["attribute"] for column in columns if column.get("attribute")] or wanted
    rows = list(_state_rows(scene, config, wanted))
    if not columns:
        names = wanted or sorted({name for _, _, _, data in rows for name in data})
        columns = [
            {"type": "deviceName"},
            {"type": "timestamp"},
            *({"type": "attribute", "attribute": name} for name in names),
        ]
    shown = [tuple(_state_cell(scene, column, *row) for column in columns) for row in rows]
    headings = (heading_of(column) for column in columns)
    return table(scene, headings, shown, of="device", ids=(id for _, id, _, _ in rows))


def _state_rows(scene: Scene, config: Doc, wanted: list[str] | None) -> Iterator[tuple[Doc, str, int, Doc]]:
    duration_ms = scene.duration_ms(config)
    if duration_ms:
        # One more than is shown, so that the table says that there are more.
        tracks = scene.tracks(config, wanted, duration_ms, newest_max=scene.bounds.rows_max + 1)
        points = [(ms, of, data) for of, found in tracks for ms, data in found if data]
        for ms, of, data in sorted(points, key=lambda point: -point[0]):
            yield {"name": of.name}, of.id, ms, data
        return
    for device in chosen(scene, config):
        found = _states(scene, [device["id"]], set(wanted or ())).get(device["id"], {})
        if found:
            newest = max(parse_iso(each["time"]) for each in found.values())
            yield device, device["id"], newest, {name: each["value"] for name, each in found.items()}


def _state_cell(scene: Scene, column: Doc, device: Doc, id: str, ms: int, data: Doc) -> Cell:
    type = column.get("type", "attribute")
    if column.get("rowTemplate") and type not in ("deviceId", "deviceName", "timestamp"):
        values = {"value": data.get(column.get("attribute", "")), "data": data, "deviceName": device["name"]}
        return template_cell(scene, column, values)
    if type == "deviceName":
        return str(device["name"])
    if type == "deviceId":
        return id
    if type == "timestamp":
        return Moment(ms)
    if type == "deviceTags":
        tags = tags_as_object(device.get("tags", []))
        return ", ".join(f"{key}: {', '.join(values)}" for key, values in tags.items())
    return as_cell(data.get(column.get("attribute", "")))


def chosen(scene: Scene, config: Doc) -> list[Doc]:
    """The chosen devices, as many as a table shows."""
    application = scene.application("devices.get")
    choice = scene.choice(application, config)
    found = select(
        scene.reading,
        application,
        choice.get("device_ids", UNSET),
        choice.get("device_tags", UNSET),
        choice.get("device_query", UNSET),
        default_all=True,
    )
    limit = scene.bounds.rows_max
    return [device.found.doc | {"id": device.id.hex()} for device in found[:limit]]


def device_log(scene: Scene, config: Doc) -> list[Part]:
    """When devices connected and disconnected, the newest first."""
    limit = number_of(config.get("maxResultsPerDevice")) or 10
    rows: list[tuple[tuple[Cell, ...], str]] = []
    for device in chosen(scene, config):
        query = History(limit=min(max(round(limit), 1), scene.bounds.rows_max), end=scene.now_ms)
        message = GetLogEntries(
            application=scene.application("device.getLogEntries"),
            device=bytes.fromhex(device["id"]),
            query=query,
            now_ms=scene.now_ms,
        )
        for entry in get_log_entries(scene.reading, message):
            what = "connected" if entry["connected"] else "disconnected"
            at = Moment(parse_iso(entry["time"]))
            rows.append(((device["name"], at, what, entry.get("disconnectReason", "")), device["id"]))
    rows.sort(key=lambda row: -row[0][1].ms if isinstance(row[0][1], Moment) else 0)
    headings = ("Device", "Time", "Connection", "Reason")
    return table(scene, headings, [row for row, _ in rows], of="device", ids=(id for _, id in rows))


# Names.


_FLOW_CLASSES = {
    "includeCloud": "cloud",
    "includeEdge": "edge",
    "includeEmbedded": "embedded",
    "includeExperience": "experience",
}


def applications(scene: Scene, config: Doc) -> list[Part]:
    """The application of the block."""
    application = scene.application("application.get")
    found = records.find(scene.reading.snapshot, APPLICATION, ROOT, application)
    return _names(scene, [] if found is None else [(found.id, found.doc)], config, "")


def dashboards(scene: Scene, config: Doc) -> list[Part]:
    """The dashboards of the application."""
    found = records.scan(scene.reading.snapshot, DASHBOARD, scene.application("applicationDashboards.get"))
    return _names(scene, found, config, "dashboard")


def workflows(scene: Scene, config: Doc) -> list[Part]:
    """The workflows of the application."""
    wanted = {kind for name, kind in _FLOW_CLASSES.items() if config.get(name)}
    found = records.scan(scene.reading.snapshot, FLOW, scene.application("flows.get"))
    kept = [(id, doc) for id, doc in found if not wanted or doc["flowClass"] in wanted]
    return _names(scene, kept, config, "flow")


def _names(scene: Scene, found: Iterable[tuple[bytes, Doc]], config: Doc, of: RowKind) -> list[Part]:
    wanted = str(config.get("filter") or "").strip("*").casefold()
    named = [(str(doc["name"]), id.hex()) for id, doc in found]
    kept = sorted(
        (each for each in named if wanted in each[0].casefold()), key=lambda each: (each[0].casefold(), each)
    )
    return table(scene, ("Name",), [(name,) for name, _ in kept], of=of, ids=(id for _, id in kept if of))


# Cells and options.


def template_cell(scene: Scene, column: Doc, row: Doc) -> Cell:
    """The cell of a column with a template, for a row."""
    return as_cell(fill_row(column.get("rowTemplate", ""), scene.row_values(row), scene.now_ms))


def as_cell(value: Any) -> Cell:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return msgspec.json.encode(value).decode()


def one_of(value: Any, allowed: tuple[str, ...], default: str) -> Any:
    return value if value in allowed else default


def direction_of(value: Any, default: str) -> Any:
    return value.lower() if isinstance(value, str) and value.lower() in ("asc", "desc") else default
