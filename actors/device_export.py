"""The export of what one device reported, as CSV: a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.csv_text import CSV, CsvLines
from trunkline.actors.device_records import open_device
from trunkline.actors.errors import Invalid
from trunkline.actors.history import points
from trunkline.actors.jobs import Job, JobKind
from trunkline.actors.messages.jobs import QueueJob
from trunkline.actors.moments import iso
from trunkline.actors.records import Doc

if TYPE_CHECKING:
    from trunkline.actors.job_results import Write
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
        columns = _columns(device.attributes.docs, wanted["attributes"], blobs=wanted["includeBlobData"])
        id = [job.resource.hex()] if wanted["includeID"] else []
        names = ["deviceId"] if id else []
        names.append("time")
        if wanted["includeDate"]:
            names.append("date")
        write(lines.line([*names, *columns.values()]))
        for time_ms, point in points(snapshot, job.resource, (wanted["start"], wanted["end"])):
            values = [point.get(number) for number in columns]
            if any(value is not None for value in values):
                moment = [time_ms, iso(time_ms)] if wanted["includeDate"] else [time_ms]
                write(lines.line([*id, *moment, *values]))
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


def _columns(declared: list[Doc], chosen: list[str] | None, *, blobs: bool) -> dict[int, str]:
    """The number and the name of each attribute that gets a column, in the order of the choice."""
    columns = {doc["name"]: doc["n"] for doc in declared if blobs or doc["dataType"] != "blob"}
    names = columns if chosen is None else dict.fromkeys(chosen)
    return {columns[name]: name for name in names if name in columns}


DEVICE_EXPORT = JobKind(
    operation="device.export",
    resource_type="device",
    run=export_device,
    check=check_device_export,
    gate="device_export_concurrent_calls_max",
)
