"""The job that exports the inputs of a notebook: a zip with a file for each, as an execution would get them.

Owns the inputs: how their templates, times and queries are resolved when the export is asked for, and which export of
the server writes each type. The parts that write devices, rows and events are those of the other exports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.named import PIECE_BYTES
from trunkline.actors.core.outgoing.http_calls import Undelivered, get_public, is_given_here
from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.expiry import kept_since_ms
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.values.csv_text import CsvLines
from trunkline.actors.core.values.errors import Forbidden, Invalid, NotFound
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.template import fill_all, has_template
from trunkline.actors.core.values.timestamps import resolve_range
from trunkline.actors.data.events.export import EVENT_COLUMNS, shown_events
from trunkline.actors.data.files.kind import TREES
from trunkline.actors.data.files.paths import split_path
from trunkline.actors.data.files.tree import Tree
from trunkline.actors.data.tables.export import row_header
from trunkline.actors.data.tables.pages import open_rows, walk_rows
from trunkline.actors.fleet.devices.queries.connection_export import connection_lines
from trunkline.actors.fleet.devices.queries.record_export import DEVICE_COLUMNS, device_row, shown_devices
from trunkline.actors.fleet.devices.queries.state_export import DeviceSelection, read_selection, table_lines
from trunkline.actors.people.accounts.scopes import check_reads
from trunkline.actors.platform.jobs.archive import Archive
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.actors.platform.jobs.record_export import csv_pieces, json_pieces
from trunkline.actors.presentation.notebooks.forms import FILE_NAME, FILE_NAME_FORM, check_inputs, check_query
from trunkline.actors.presentation.notebooks.messages import PrepareInputs
from trunkline.actors.presentation.notebooks.resource import NOTEBOOK
from trunkline.store.codec import decode, encode
from trunkline.store.object_store import Stored

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

_OF_DEVICES: Final = ("deviceData", "deviceConnectionHistory", "deviceMetadata")
_READ_BY: Final = {
    "deviceData": "data.timeSeriesQuery",
    "deviceConnectionHistory": "device.getLogEntries",
    "deviceMetadata": "devices.get",
    "dataTable": "dataTableRows.get",
    "eventData": "events.get",
    "applicationFile": "file.get",
}
"""By type of input: the operation for which a token needs a scope as well. What lies at a URL needs none."""
_SCAN_INLINE_INPUTS: Final = 4


# Before the job: what the inputs are.


def prepare_inputs(reading: Reading, message: PrepareInputs) -> list[Doc]:
    """The inputs of a notebook as the job takes them. A template or a reference that leads to nothing is refused.

    Each has `inputType` and `fileName`. Those of devices have `deviceIds`, `deviceTags` and `deviceQuery`, those with
    a range `start` and `end` in milliseconds; `query` is the parsed query of rows and events.
    """
    found = records.find(reading.snapshot, NOTEBOOK, message.application, message.notebook)
    if found is None:
        raise missing(NOTEBOOK, message.notebook)
    inputs: list[Doc] = found.doc["inputs"]
    if not inputs:
        raise Invalid("inputs: the notebook has none; there is nothing to export.")
    reading.check_time(is_long=len(inputs) > _SCAN_INLINE_INPUTS)
    filled = [_filled(each, message.context, f"inputs[{position}]") for position, each in enumerate(inputs)]
    for position, each in enumerate(filled):
        _check_scope(message.scopes, each, f"inputs[{position}]")
    check_inputs(filled, private=lambda url: message.private or is_given_here(url, message.base_url))
    return [
        _resolved(reading.snapshot, message, each, f"inputs[{position}]")
        for position, each in enumerate(filled)
    ]


def _filled(input: Doc, context: Doc, at: str) -> Doc:
    """The input with its templates filled in; they must give what the fields need."""
    new: Doc = fill_all(input, context)
    for field, value in new.items():
        if isinstance(input[field], str):
            new[field] = value = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if field == "queryJson" and input[field].strip() and not value.strip():
            raise Invalid(f"{at}.queryJson: the template gives nothing; {{}} is the query for all.")
        if _has_template(value):
            raise Invalid(
                f"{at}.{field}: has a template that this server does not fill in; it fills in {{{{path}}}} only."
            )
    if FILE_NAME.fullmatch(new["fileName"]) is None:
        raise Invalid(
            f"{at}.fileName: the template gives {new['fileName'][:60]!r}; needed are {FILE_NAME_FORM}."
        )
    for id in [*new.get("deviceIds", ()), *([new["dataTableId"]] if "dataTableId" in new else [])]:
        if not (isinstance(id, str) and is_id(id)):
            field = "deviceIds" if "deviceIds" in new else "dataTableId"
            raise Invalid(
                f"{at}.{field}: the template gives {str(id)[:60]!r}, which is not a valid id of 24 hexadecimal digits."
            )
    return new


def _check_scope(scopes: frozenset[str], input: Doc, at: str) -> None:
    """Raise `Forbidden` for an input that a token with these scopes could not read elsewhere."""
    operation = _READ_BY.get(input["inputType"])
    if operation == "file.get" and input.get("private"):
        operation = "privateFile.get"
    if operation is not None:
        try:
            check_reads(scopes, operation)
        except Forbidden as refusal:
            raise Forbidden(f"{at}: {refusal.message}") from None


def _has_template(value: Any) -> bool:
    if isinstance(value, str):
        return has_template(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_template, parts))


def _resolved(snapshot: Snapshot, message: PrepareInputs, input: Doc, at: str) -> Doc:
    """The input as the job takes it. Raises `Invalid` for a device or a table that does not exist."""
    type, text = input["inputType"], input.get("queryJson")
    query = check_query(text, type, f"{at}.queryJson") if text is not None else None
    new = {name: value for name, value in input.items() if name not in ("queryJson", "start", "end")}
    if "start" in input:
        span = resolve_range(message.now_ms, start=input["start"], end=input["end"])
        new |= {"start": span.start_ms, "end": span.end_ms}
    try:
        if type in _OF_DEVICES:
            new["deviceQuery"] = query
            _selection(snapshot, message.application, new)
        elif type == "dataTable":
            new["query"] = query
            table = open_rows(snapshot, message.application, bytes.fromhex(input["dataTableId"])).table
            if query is not None:
                compile_query(query, table.columns.fields, at="queryJson")
        elif type == "eventData":
            new["query"] = query
        elif type == "applicationFile":
            _find_file(snapshot, message.application, input)
    except NotFound:
        raise Invalid(
            f"{at}.dataTableId: there is no data table {input['dataTableId']} in this application."
        ) from None
    except Invalid as refusal:
        raise Invalid(f"{at}.{refusal.message}") from None
    return new


def _selection(snapshot: Snapshot, application: bytes, input: Doc) -> DeviceSelection:
    options = {"deviceIds": None, "deviceTags": None, **input}
    return read_selection(snapshot, application, options, query_field="queryJson")


def _find_file(snapshot: Snapshot, application: bytes, input: Doc) -> tuple[bytes, Stored]:
    """The content of a file of the application. Raises `Invalid` if there is no complete file at the path."""
    tree = Tree(snapshot.get, application, TREES["privateFile" if input.get("private") else "file"])
    found = tree.find(split_path(input["filePath"], "filePath"))
    contents = () if found is None or tree.kind.contents is None else tree.kind.contents(found.doc)
    for content, stored in contents:
        return content, stored
    raise Invalid(f"filePath: there is no complete file {input['filePath'][:100]}.")


# The job.


def data_of(inputs: list[Doc]) -> bytes:
    """The data of the job: the inputs that `prepare_inputs` made."""
    return encode(inputs)


async def export_inputs(job: Job) -> Doc:
    """Write the inputs. The data of the job is made by `data_of`."""
    limits, now_ms = job.system.limits, job.system.clock.wall_ms()
    inputs = [_kept(each, limits, now_ms) for each in decode(await job.read_data())]
    job.completed, job.total = 0, len(inputs)
    fetched = await _fetch(job, inputs)
    contents = job.system.component(Contents)
    lines = CsvLines()

    def write_inputs(snapshot: Snapshot, write: Write) -> None:
        job.completed = 0
        with Archive(write) as archive:
            for position, each in enumerate(inputs):
                if position in fetched:
                    archive.add(each["fileName"], [fetched[position]])
                elif each["inputType"] == "applicationFile":
                    archive.add(each["fileName"], _file_pieces(contents, snapshot, job.application, each))
                else:
                    pieces = _PIECES[each["inputType"]](snapshot, job.application, each, lines, limits)
                    archive.add(each["fileName"], pieces)
                job.completed += 1

    name = f"notebook-{job.resource.hex()}-inputs.zip"
    file = await job.write_file(name, "application/zip", write_inputs)
    return {"file": file, "inputs": job.completed, "escapedTexts": lines.escaped}


def _kept(input: Doc, limits: Limits, now_ms: int) -> Doc:
    """The input without the part of its range that is too old to be kept."""
    days = {"deviceData": limits.state_keep_days, "deviceConnectionHistory": limits.log_keep_days}
    if input["inputType"] not in days:
        return input
    return {**input, "start": max(input["start"], kept_since_ms(days[input["inputType"]], now_ms))}


async def _fetch(job: Job, inputs: list[Doc]) -> dict[int, bytes]:
    """What lies at the URLs of inputs, by their position. They are in memory, so all together have a bound."""
    limits = job.system.limits
    fetched: dict[int, bytes] = {}
    left = limits.notebook_external_bytes_max
    for position, each in enumerate(inputs):
        if each["inputType"] != "externalUrl":
            continue
        try:
            fetched[position] = await get_public(
                each["sourceUrl"],
                timeout_s=limits.outgoing_timeout_s,
                bytes_max=max(left, 1),
                private=may_be_private(job.system, each["sourceUrl"]),
            )
        except Undelivered as failure:
            raise Invalid(f"inputs[{position}].sourceUrl: {failure}") from None
        left -= len(fetched[position])
    return fetched


def _file_pieces(contents: Contents, snapshot: Snapshot, application: bytes, input: Doc) -> Iterator[bytes]:
    with contents.open(application, *_find_file(snapshot, application, input)) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _states(
    snapshot: Snapshot, application: bytes, input: Doc, lines: CsvLines, limits: Limits
) -> Iterator[bytes]:
    options = {"attributes": None, "includeID": True, "includeDate": True, "includeBlobData": False, **input}
    selection = _selection(snapshot, application, input)
    return table_lines(snapshot, application, selection, options, lines, limits.export_columns_max)


def _connections(
    snapshot: Snapshot, application: bytes, input: Doc, lines: CsvLines, _limits: Limits
) -> Iterator[bytes]:
    devices = (device.id for device in _selection(snapshot, application, input).scan(snapshot, application))
    return connection_lines(snapshot, lines, devices, input["start"], input["end"])


def _devices(
    snapshot: Snapshot, application: bytes, input: Doc, lines: CsvLines, _limits: Limits
) -> Iterator[bytes]:
    selected = (
        device.found for device in _selection(snapshot, application, input).scan(snapshot, application)
    )
    shown = shown_devices(snapshot, application, selected)
    if input.get("format") == "json":
        return json_pieces(shown)
    return csv_pieces(lines, DEVICE_COLUMNS, shown, device_row)


def _rows(
    snapshot: Snapshot, application: bytes, input: Doc, lines: CsvLines, _limits: Limits
) -> Iterator[bytes]:
    table, rows = walk_rows(snapshot, application, bytes.fromhex(input["dataTableId"]), input["query"])
    yield row_header(lines, table)
    for row in rows:
        yield lines.line(row.values())


def _events(
    snapshot: Snapshot, application: bytes, input: Doc, lines: CsvLines, _limits: Limits
) -> Iterator[bytes]:
    shown = shown_events(snapshot, application, input["query"])
    return json_pieces(shown) if input.get("format") == "json" else csv_pieces(lines, EVENT_COLUMNS, shown)


_PIECES: Final[dict[str, Callable[[Snapshot, bytes, Doc, CsvLines, Limits], Iterator[bytes]]]] = {
    "deviceData": _states,
    "deviceConnectionHistory": _connections,
    "deviceMetadata": _devices,
    "dataTable": _rows,
    "eventData": _events,
}
"""By type of input: the pieces of its file."""


INPUT_EXPORT: Final = JobKind(
    operation="notebook.requestInputDataExport", resource_type="notebook", run=export_inputs
)
