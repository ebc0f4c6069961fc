"""The export of what one device reported, as CSV: a job, and the lines that an export of many devices shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from trunkline.actors.devices.history import points
from trunkline.actors.devices.reads import Opened, open_device
from trunkline.actors.jobs.job import Job, JobKind
from trunkline.actors.jobs.messages import QueueJob
from trunkline.actors.records.kind import Doc
from trunkline.actors.values.csv_text import CSV, CsvLines
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.timestamps import iso

if TYPE_CHECKING:
    from trunkline.actors.jobs.results import Write
    from trunkline.store.snapshot import Snapshot


async def export_device(job: Job) -> Doc:
    """Write the states of a range, oldest first, a line for each: id, time and date, and the attributes.

    Input: `start` and `end` (milliseconds, both included), `attributes` (names; None for all), and whether
    the columns `deviceId` and `date`, and attributes of the type blob, are wanted. A state without a value for
    any of the columns has no line.
    """
    wanted = job.input
    lines = CsvLines()

    def fill(snapshot: Snapshot, write: Write) -> None:
        device = open_device(snapshot, job.application, job.resource)
        columns = value_columns(device, wanted)
        if wanted["attributes"] is not None:
            columns = {name: columns[name] for name in wanted["attributes"] if name in columns}
        write(header(lines, wanted, columns))
        for line in state_lines(snapshot, lines, wanted, device.id, list(columns.values())):
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


# Lines.


def value_columns(device: Opened, wanted: Doc) -> dict[str, int]:
    """The name and the number of each attribute of a device that may have a column."""
    blobs = wanted["includeBlobData"]
    return {doc["name"]: doc["n"] for doc in device.attributes.docs if blobs or doc["dataType"] != "blob"}


def header(lines: CsvLines, wanted: Doc, names: Iterable[str]) -> bytes:
    """The line with the names of the columns."""
    before = ["deviceId", "time"] if wanted["includeID"] else ["time"]
    return lines.line([*before, *(["date"] if wanted["includeDate"] else []), *names])


def state_lines(
    snapshot: Snapshot, lines: CsvLines, wanted: Doc, device: bytes, numbers: Sequence[int | None]
) -> Iterator[bytes]:
    """A line for each state of the range that has a value for one of `numbers` (None: an empty column)."""
    before = [device.hex()] if wanted["includeID"] else []
    dated = wanted["includeDate"]
    for time_ms, point in points(snapshot, device, (wanted["start"], wanted["end"])):
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
