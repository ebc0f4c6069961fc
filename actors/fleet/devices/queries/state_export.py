"""The jobs that export the states of devices as CSV: of one device (`device.export`), of many (`data.export`).

Devices are read one after the other in order of creation, and states one by one, so memory does not grow with
their number. Exports of device records: `fleet/devices/queries/record_export.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.expiry import kept_since_ms
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.page import Match
from trunkline.actors.core.values.csv_text import CSV, CsvLines
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.queries.selection import device_filter
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.reads import Opened, open_device
from trunkline.actors.fleet.devices.state.history import points
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.actors.platform.jobs.archive import Archive
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.messages import QueueJob

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.store.snapshot import Snapshot


async def export_device(job: Job) -> Doc:
    """Write one line for each state in the range, oldest first: id, time and date, and the attributes.

    Input: `start` and `end` (milliseconds, both included), `attributes` (names; None for all), and `includeID`,
    `includeDate` and `includeBlobData` (the columns `deviceId`, `date`, and attributes of the type blob). A state
    without a value in any of the attribute columns is left out.
    """
    options = _kept_range(job, job.input)
    lines = CsvLines()

    def fill(snapshot: Snapshot, write: Write) -> None:
        device = open_device(snapshot, job.application, job.resource)
        columns = value_columns(device, options)
        write(header(lines, options, columns))
        for line in state_lines(snapshot, lines, options, device.id, list(columns.values())):
            write(line)
            job.completed += 1

    job.completed = 0
    file = await job.write_file(f"device-{job.resource.hex()}.csv", CSV, fill)
    return {"file": file, "rows": job.completed, "escapedTexts": lines.escaped}


def check_device_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise NotFound for an unknown device, Invalid for an attribute that it does not declare."""
    device = open_device(snapshot, application, message.resource)
    names = device.attributes.names.values()
    for position, name in enumerate(message.input["attributes"] or ()):
        if name not in names:
            raise Invalid(f"attributes[{position}]: the device declares no attribute {name}.")


def _kept_range(job: Job, options: Doc) -> Doc:
    """The options without the part of the range whose states are too old to be kept."""
    oldest_ms = kept_since_ms(job.system.limits.state_keep_days, job.system.clock.wall_ms())
    return {**options, "start": max(options["start"], oldest_ms)}


# Lines.


def value_columns(device: Opened, options: Doc) -> dict[str, int]:
    """Return name and number of the attributes that have a column, in the order of `attributes` if it is given."""
    blobs = options["includeBlobData"]
    columns = {doc["name"]: doc["n"] for doc in device.attributes.docs if blobs or doc["dataType"] != "blob"}
    wanted = options["attributes"]
    return columns if wanted is None else {name: columns[name] for name in wanted if name in columns}


def header(lines: CsvLines, options: Doc, names: Iterable[str]) -> bytes:
    """Return the line with the names of the columns. Attributes with the name of one of the first get a `$`."""
    first = ["deviceId", "time"] if options["includeID"] else ["time"]
    if options["includeDate"]:
        first.append("date")
    return lines.line([*first, *(f"${name}" if name in first else name for name in names)])


def state_lines(
    snapshot: Snapshot, lines: CsvLines, options: Doc, device: bytes, numbers: Sequence[int | None]
) -> Iterator[bytes]:
    """Yield a line for each state in the range that has a value for one of `numbers` (None: an empty column)."""
    before = [device.hex()] if options["includeID"] else []
    dated = options["includeDate"]
    for time_ms, point in points(snapshot, device, (options["start"], options["end"])):
        values = [None if number is None else point.get(number) for number in numbers]
        if any(value is not None for value in values):
            moment = [time_ms, iso(time_ms)] if dated else [time_ms]
            yield lines.line([*before, *moment, *values])


DEVICE_EXPORT = JobKind(
    operation="device.export",
    resource_type="device",
    run=export_device,
    check=check_device_export,
    gate="device_export_concurrent_calls_max",
)


# Many devices.


class DeviceSelection(NamedTuple):
    """A selection of devices: those with one of the ids, and those that match one of the predicates."""

    ids: frozenset[str]
    matches: list[Match]

    def scan(self, snapshot: Snapshot, application: bytes) -> Iterator[Opened]:
        """Yield the devices in order of creation. Without ids and predicates: all devices."""
        selects_all = not self.ids and not self.matches
        for id, doc in records.scan(snapshot, DEVICE, application):
            if selects_all or doc["id"] in self.ids or any(match(doc) for match in self.matches):
                yield open_device(snapshot, application, id)


class _Wanted:
    """The attributes that an export asks for, and those of them that no device seen so far declares."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self._names = names or ()
        self._missing = set(self._names)

    def see(self, device: Opened) -> None:
        if self._missing:
            self._missing.difference_update(device.attributes.names.values())

    def check(self) -> None:
        """Raise `Invalid` for a name that none of the devices declares."""
        for position, name in enumerate(self._names):
            if name in self._missing:
                raise Invalid(f"attributes[{position}]: none of the devices declares an attribute {name}.")


def read_selection(
    snapshot: Snapshot, application: bytes, options: Doc, *, query_field: str = "deviceQuery"
) -> DeviceSelection:
    """Read `deviceIds`, `deviceTags` and `deviceQuery` of a job's input. Callers know the query as `query_field`.

    Raises `Invalid` for an unknown device, `QueryError` for an invalid query.
    """
    ids = [text.lower() for text in options["deviceIds"] or ()]
    for position, text in enumerate(ids):
        if not records.exists(snapshot, DEVICE, application, bytes.fromhex(text)):
            raise Invalid(f"deviceIds[{position}]: there is no device {text} in this application.")
    matches: list[Match] = []
    if options["deviceTags"]:
        matches.append(lambda doc: has_tag(doc["tags"], options["deviceTags"]))
    if options["deviceQuery"] is not None:
        match = device_filter(snapshot, application, options["deviceQuery"], query_field).match
        matches.append(match or (lambda _doc: True))
    return DeviceSelection(frozenset(ids), matches)


async def export_data(job: Job) -> Doc:
    """Write the states of devices in a range, to one table or, if `filePerDevice`, to a zip with a table for each.

    Input: `deviceIds`, `deviceTags`, `deviceQuery` (each may be None; without any of them all devices), `start`
    and `end` (milliseconds, both included), `filePerDevice`, and the options of an export of one device. An
    attribute that none of the devices declares is refused; a device that declares none of them has no lines.
    """
    # The input of a job that an earlier version queued has no `attributes`.
    options = _kept_range(job, {"attributes": None, **job.input})
    limits = job.system.limits
    lines = CsvLines()

    def as_table(snapshot: Snapshot, write: Write) -> None:
        selection = read_selection(snapshot, job.application, options)
        table = table_lines(snapshot, job.application, selection, options, lines, limits.export_columns_max)
        write(next(table))
        for line in table:
            write(line)
            job.completed += 1

    def as_archive(snapshot: Snapshot, write: Write) -> None:
        selection = read_selection(snapshot, job.application, options)
        wanted = _Wanted(options["attributes"])

        def counted(device: Opened) -> Iterator[bytes]:
            columns = value_columns(device, options)
            yield header(lines, options, columns)
            for line in state_lines(snapshot, lines, options, device.id, list(columns.values())):
                yield line
                job.completed += 1

        with Archive(write) as archive:
            for number, device in enumerate(selection.scan(snapshot, job.application)):
                if number >= limits.export_files_max:
                    raise PayloadTooLarge(
                        f"More than {limits.export_files_max} devices are selected, which is the most for one archive; "
                        "narrow the query, or ask for one table."
                    )
                wanted.see(device)
                archive.add(f"device-{device.id.hex()}.csv", counted(device))
        wanted.check()

    job.completed, job.total = 0, None
    name = f"data-{job.application.hex()}"
    if options["filePerDevice"]:
        file = await job.write_file(f"{name}.zip", "application/zip", as_archive)
    else:
        file = await job.write_file(f"{name}.csv", CSV, as_table)
    return {"file": file, "rows": job.completed, "escapedTexts": lines.escaped}


def table_lines(
    snapshot: Snapshot,
    application: bytes,
    selection: DeviceSelection,
    options: Doc,
    lines: CsvLines,
    columns_max: int,
) -> Iterator[bytes]:
    """Yield one table of the states of devices: the line with the columns, then a line for each state.

    `options` are those of an export of one device. Raises `Invalid` for an attribute that none of the devices declares,
    `PayloadTooLarge` for more than `columns_max` columns.
    """
    wanted = _Wanted(options["attributes"])
    names: dict[str, None] = {}
    for device in selection.scan(snapshot, application):
        wanted.see(device)
        names |= dict.fromkeys(value_columns(device, options))
        if len(names) > columns_max:
            raise PayloadTooLarge(
                f"These devices have more than {columns_max} attributes together, which is the most for one table; "
                "ask for some of the attributes, for a filePerDevice, or for fewer devices."
            )
    wanted.check()
    if options["attributes"] is not None:
        names = {name: None for name in options["attributes"] if name in names}
    yield header(lines, options, names)
    for device in selection.scan(snapshot, application):
        columns = value_columns(device, options)
        numbers = [columns.get(name) for name in names]
        yield from state_lines(snapshot, lines, options, device.id, numbers)


def check_data_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise `Invalid` for an unknown device, `QueryError` for an invalid query."""
    read_selection(snapshot, application, message.input)


DATA_EXPORT = JobKind(
    operation="data.export",
    resource_type="device",
    run=export_data,
    check=check_data_export,
    gate="data_export_concurrent_calls_max",
)
