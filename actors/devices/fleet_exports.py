"""The exports of many devices: their records, and what they reported. Two jobs.

Devices are read one after the other in order of creation, so memory does not grow with their number.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunkline.actors.accounts.reach import has_tag
from trunkline.actors.devices.device_export import header, state_lines, value_columns
from trunkline.actors.devices.kind import DEVICE
from trunkline.actors.devices.messages import DeviceShape
from trunkline.actors.devices.reads import Opened, open_device, show_device
from trunkline.actors.devices.selection import device_query
from trunkline.actors.jobs.job import Job, JobKind
from trunkline.actors.jobs.messages import QueueJob
from trunkline.actors.jobs.record_export import export_records
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.page import Match
from trunkline.actors.values.csv_text import CSV, CsvLines
from trunkline.actors.values.errors import Invalid, PayloadTooLarge

if TYPE_CHECKING:
    from trunkline.actors.jobs.results import Write
    from trunkline.store.snapshot import Snapshot

COLUMNS_MAX: Final = 2000
"""Attributes of all devices together that one table may have; spreadsheets end at 16,384 columns."""

FILES_MAX: Final = 10_000
"""Files in one archive. Its directory is kept in memory until the end: some 5 MB."""

_MEMBER_BUFFER_BYTES: Final = 64 * 1024
_COLUMNS: Final = (
    "id",
    "name",
    "description",
    "deviceClass",
    "creationDate",
    "lastUpdated",
    "gatewayId",
    "parentId",
    "connected",
    "connectionTime",
    "tags",
    "attributes",
)


# Records.


async def export_devices(job: Job) -> Doc:
    """Write the records of the devices that match. Input: `query` (None for all), and `format` (csv or json)."""
    wanted = job.input

    def shown(snapshot: Snapshot) -> Iterator[Doc]:
        match = None
        if wanted["query"] is None:
            job.total = records.total(snapshot, DEVICE, job.application)
        else:
            match = device_query(snapshot, job.application, wanted["query"]).match
        for id, doc in records.scan(snapshot, DEVICE, job.application):
            if match is None or match(doc):
                found = open_device(snapshot, job.application, id).found
                device = show_device(snapshot, job.application, found, DeviceShape())
                yield {name: value for name, value in device.items() if not name.startswith("_")}

    return await export_records(job, "devices", _COLUMNS, shown, _row)


def _row(device: Doc) -> Doc:
    connection = device["connectionInfo"]
    return {**device, "connected": connection["connected"], "connectionTime": connection.get("time")}


def check_devices_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise `QueryError` for a query that is none."""
    if message.input["query"] is not None:
        device_query(snapshot, application, message.input["query"])


# Reports.


class Chosen(NamedTuple):
    """Which devices are meant: those with one of the ids, and those that one of the predicates takes."""

    ids: frozenset[str]
    matches: list[Match]

    def walk(self, snapshot: Snapshot, application: bytes) -> Iterator[Opened]:
        """The devices, one after the other. Without an id and a predicate all of them."""
        everything = not self.ids and not self.matches
        for id, doc in records.scan(snapshot, DEVICE, application):
            if everything or doc["id"] in self.ids or any(match(doc) for match in self.matches):
                yield open_device(snapshot, application, id)


def choose(snapshot: Snapshot, application: bytes, wanted: Doc) -> Chosen:
    """Read `deviceIds`, `deviceTags` and `deviceQuery` of an input. Raises `Invalid` naming what is wrong."""
    ids = [text.lower() for text in wanted["deviceIds"] or ()]
    for position, text in enumerate(ids):
        if records.find(snapshot, DEVICE, application, bytes.fromhex(text)) is None:
            raise Invalid(f"deviceIds[{position}]: there is no device {text} in this application.")
    matches: list[Match] = []
    if wanted["deviceTags"]:
        matches.append(lambda doc: has_tag(doc["tags"], wanted["deviceTags"]))
    if wanted["deviceQuery"] is not None:
        match = device_query(snapshot, application, wanted["deviceQuery"], "deviceQuery").match
        matches.append(match or (lambda _doc: True))
    return Chosen(frozenset(ids), matches)


async def export_data(job: Job) -> Doc:
    """Write what the devices reported in a range, in one table or, as an archive, in one for each device.

    Input: `deviceIds`, `deviceTags`, `deviceQuery` (each may be None; without any of them all devices), `start`
    and `end` (milliseconds, both included), `filePerDevice`, and the options of an export of one device.
    """
    wanted = job.input
    lines = CsvLines()

    def as_table(snapshot: Snapshot, write: Write) -> None:
        chosen = choose(snapshot, job.application, wanted)
        names: dict[str, None] = {}
        for device in chosen.walk(snapshot, job.application):
            names |= dict.fromkeys(value_columns(device, wanted))
            if len(names) > COLUMNS_MAX:
                raise PayloadTooLarge(
                    f"These devices have more than {COLUMNS_MAX} attributes together, which is the most for one "
                    "table; ask for a filePerDevice, or for fewer devices."
                )
        write(header(lines, wanted, names))
        for device in chosen.walk(snapshot, job.application):
            columns = value_columns(device, wanted)
            numbers = [columns.get(name) for name in names]
            for line in state_lines(snapshot, lines, wanted, device.id, numbers):
                write(line)
                job.completed += 1

    def as_archive(snapshot: Snapshot, write: Write) -> None:
        chosen = choose(snapshot, job.application, wanted)
        with zipfile.ZipFile(_Sink(write), "w", zipfile.ZIP_DEFLATED) as archive:
            for number, device in enumerate(chosen.walk(snapshot, job.application)):
                if number >= FILES_MAX:
                    raise PayloadTooLarge(
                        f"More than {FILES_MAX} devices are meant, which is the most for one archive; "
                        "narrow the query, or ask for one table."
                    )
                columns = value_columns(device, wanted)
                with (
                    archive.open(f"device-{device.id.hex()}.csv", "w", force_zip64=True) as member,
                    io.BufferedWriter(member, _MEMBER_BUFFER_BYTES) as file,
                ):
                    file.write(header(lines, wanted, columns))
                    for line in state_lines(snapshot, lines, wanted, device.id, list(columns.values())):
                        file.write(line)
                        job.completed += 1

    job.completed, job.total = 0, None
    name = f"data-{job.application.hex()}"
    if wanted["filePerDevice"]:
        file = await job.write_file(f"{name}.zip", "application/zip", as_archive)
    else:
        file = await job.write_file(f"{name}.csv", CSV, as_table)
    return {"file": file, "rows": job.completed, "escapedTexts": lines.escaped}


def check_data_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise Invalid for an unknown device, `QueryError` for a query that is none."""
    choose(snapshot, application, message.input)


class _Sink(io.RawIOBase):
    """What an archive is written to: forwards only, so that nothing of it is kept."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        content = bytes(piece)
        self._write(content)
        return len(content)


DEVICES_EXPORT = JobKind(
    operation="devices.export",
    resource_type="device",
    run=export_devices,
    check=check_devices_export,
    gate="devices_export_concurrent_calls_max",
)

DATA_EXPORT = JobKind(
    operation="data.export",
    resource_type="device",
    run=export_data,
    check=check_data_export,
    gate="data_export_concurrent_calls_max",
)
