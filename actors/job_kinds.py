"""The kinds of jobs that this server does."""

from __future__ import annotations

from trunkline.actors.device_export import DEVICE_EXPORT
from trunkline.actors.event_export import EVENT_EXPORT
from trunkline.actors.event_jobs import DELETE_EVENTS, PATCH_EVENTS
from trunkline.actors.fleet_exports import DATA_EXPORT, DEVICES_EXPORT
from trunkline.actors.jobs import JobKind
from trunkline.actors.row_export import ROW_EXPORT

JOB_KINDS: tuple[JobKind, ...] = (
    DEVICE_EXPORT,
    DEVICES_EXPORT,
    DATA_EXPORT,
    ROW_EXPORT,
    EVENT_EXPORT,
    PATCH_EVENTS,
    DELETE_EVENTS,
)
