"""The job that exports the records of devices, as CSV or JSON. Exports of states:
`fleet/devices/queries/state_export.py`.

Devices are read one after the other in order of creation, so memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.revision import Found
from trunkline.actors.fleet.devices.queries.selection import device_filter
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import DeviceShape
from trunkline.actors.fleet.devices.record.reads import Ancestors, open_device, show_device
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.messages import QueueJob
from trunkline.actors.platform.jobs.record_export import export_records

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

DEVICE_COLUMNS: Final = (
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


async def export_devices(job: Job) -> Doc:
    """Write the records of the devices that match. Input: `query` (None for all), and `format` (csv or json)."""

    def shown(snapshot: Snapshot) -> Iterator[Doc]:
        found = (
            open_device(snapshot, job.application, id).found for id, _ in matching_devices(job, snapshot)
        )
        return shown_devices(snapshot, job.application, found)

    return await export_records(job, "devices", DEVICE_COLUMNS, shown, device_row)


def shown_devices(snapshot: Snapshot, application: bytes, found: Iterable[Found]) -> Iterator[Doc]:
    """Yield the devices as an export writes them."""
    ancestors = Ancestors(snapshot, application)
    for each in found:
        device = show_device(ancestors, each, DeviceShape())
        yield {name: value for name, value in device.items() if not name.startswith("_")}


def matching_devices(job: Job, snapshot: Snapshot) -> Iterator[tuple[bytes, Doc]]:
    """Yield `(id, document)` of the devices that the `query` of a job matches. Without a query the total is known."""
    query, match = job.input["query"], None
    if query is None:
        job.total = records.total(snapshot, DEVICE, job.application)
    else:
        match = device_filter(snapshot, job.application, query).match
    for id, doc in records.scan(snapshot, DEVICE, job.application):
        if match is None or match(doc):
            yield id, doc


def device_row(device: Doc) -> Doc:
    """A device as a line of CSV."""
    connection = device["connectionInfo"]
    return {**device, "connected": connection["connected"], "connectionTime": connection.get("time")}


def check_devices_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise `QueryError` for an invalid query."""
    if message.input["query"] is not None:
        device_filter(snapshot, application, message.input["query"])


DEVICES_EXPORT = JobKind(
    operation="devices.export",
    resource_type="device",
    run=export_devices,
    check=check_devices_export,
    gate="devices_export_concurrent_calls_max",
)
