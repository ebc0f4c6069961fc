"""The kinds of jobs that this server does."""

from __future__ import annotations

from trunkline.actors.devices.device_export import DEVICE_EXPORT
from trunkline.actors.devices.fleet_exports import DATA_EXPORT, DEVICES_EXPORT
from trunkline.actors.events.export import EVENT_EXPORT
from trunkline.actors.events.jobs import DELETE_EVENTS, PATCH_EVENTS
from trunkline.actors.jobs.kind import JobKind
from trunkline.actors.tables.export import ROW_EXPORT

JOB_KINDS: tuple[JobKind, ...] = (
    DEVICE_EXPORT,
    DEVICES_EXPORT,
    DATA_EXPORT,
    ROW_EXPORT,
    EVENT_EXPORT,
    PATCH_EVENTS,
    DELETE_EVENTS,
)
