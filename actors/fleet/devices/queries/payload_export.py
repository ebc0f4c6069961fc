"""The job that counts the payloads of many devices (`devices.payloadCounts`): one line of CSV for each device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.fleet.devices.queries.counts import DEVICE_PAYLOADS, device_payloads
from trunkline.actors.fleet.devices.queries.record_export import check_devices_export, matching_devices
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.record_export import export_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline.store.snapshot import Snapshot


async def export_payload_counts(job: Job) -> Doc:
    """Write the payloads of the devices that match, by kind.

    Input: `query` (None for all), `first` and `last` (hours since the epoch, both included), and `format`.
    """

    def shown(snapshot: Snapshot) -> Iterator[Doc]:
        for id, doc in matching_devices(job, snapshot):
            counts = device_payloads(snapshot, id, job.input["first"], job.input["last"])
            yield {"id": id.hex(), "name": doc["name"], **counts}

    columns = ("id", "name", *DEVICE_PAYLOADS)
    return await export_records(job, "devices", columns, shown, file="payload-counts")


PAYLOAD_COUNTS_EXPORT: Final = JobKind(
    operation="devices.payloadCounts",
    resource_type="device",
    run=export_payload_counts,
    check=check_devices_export,
    gate="payload_counts_concurrent_calls_max",
)
