"""Which function answers which reading message, and whether that would hold the event loop.

A short read runs inside the loop on a snapshot of its own; a long one (a scan of an application, a query
over history) runs the same function in a worker thread. Both see everything that was acknowledged before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from trunkline.actors.applications import counts
from trunkline.actors.applications import reads as listings
from trunkline.actors.devices import history, measurements
from trunkline.actors.devices import reads as device_records
from trunkline.actors.devices import selection as devices
from trunkline.actors.events import reads as events
from trunkline.actors.jobs import reads as job_logs
from trunkline.actors.messages import reads
from trunkline.actors.records import records
from trunkline.actors.records.kinds import API_TOKEN, APPLICATION, APPLICATION_KEY
from trunkline.actors.tables import pages as row_pages
from trunkline.actors.tables import reads as tables
from trunkline.actors.values.errors import Crashed, Overloaded
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message
from trunkline.store.errors import ReadQueueFull, StoreError

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.store.snapshot import Snapshot

LATER = object()
"""What is not answered at once."""

_log = structlog.get_logger("trunkline.actors")


class Reader(NamedTuple):
    """A read, and how to tell beforehand that it is long."""

    read: Callable[[Snapshot, Any], Any]
    is_long: Callable[[Snapshot, Any], bool]


def _never(_snapshot: Snapshot, _message: Message) -> bool:
    return False


def _always(_snapshot: Snapshot, _message: Message) -> bool:
    """For what reads many points, or counts hour by hour over up to a year and more."""
    return True


def _scans(snapshot: Snapshot, message: Any) -> bool:
    return devices.scans_application(snapshot, message.application)


def _scans_applications(snapshot: Snapshot, _message: Message) -> bool:
    return records.total(snapshot, APPLICATION, ROOT) > records.SCAN_INLINE_MAX


def _scans_keys(snapshot: Snapshot, message: Any) -> bool:
    return records.total(snapshot, APPLICATION_KEY, message.application) > records.SCAN_INLINE_MAX


def _scans_tokens(snapshot: Snapshot, message: Any) -> bool:
    return records.total(snapshot, API_TOKEN, message.parent) > records.SCAN_INLINE_MAX


READERS: dict[type[Message], Reader] = {
    reads.GetApplication: Reader(listings.get_application, _never),
    reads.ListApplications: Reader(listings.list_applications, _scans_applications),
    reads.GetRecord: Reader(listings.get_record, _never),
    reads.ListKeys: Reader(listings.list_keys, _scans_keys),
    reads.ListTokens: Reader(listings.list_tokens, _scans_tokens),
    reads.GetMe: Reader(listings.get_me, _scans_applications),
    reads.GetDevice: Reader(device_records.get_device, _never),
    reads.ListDevices: Reader(devices.list_devices, devices.list_devices_is_long),
    reads.GetState: Reader(history.get_state, history.get_state_is_long),
    reads.GetCommand: Reader(history.get_command, history.get_command_is_long),
    reads.GetLogEntries: Reader(history.get_log_entries, _never),
    reads.GetCompositeState: Reader(history.get_composite_state, history.composite_is_long),
    reads.ListCompositeStates: Reader(devices.list_composite_states, devices.list_composite_states_is_long),
    reads.GetAttribute: Reader(device_records.get_attribute, _never),
    reads.ListAttributes: Reader(device_records.list_attributes, _never),
    reads.ListAttributeNames: Reader(devices.list_attribute_names, _scans),
    reads.ListDeviceNames: Reader(devices.list_device_names, _scans),
    reads.ListTagKeys: Reader(devices.list_tag_keys, _scans),
    reads.ListTagValues: Reader(devices.list_tag_values, _scans),
    reads.SelectDevices: Reader(devices.select_devices, _scans),
    reads.QueryLastValues: Reader(measurements.query_last_values, _always),
    reads.QueryTimeSeries: Reader(measurements.query_time_series, _always),
    reads.CountDevices: Reader(counts.count_devices, _always),
    reads.CountMyDevices: Reader(counts.count_my_devices, _always),
    reads.CountPayloads: Reader(counts.count_payloads, _always),
    reads.CountDevicePayloads: Reader(counts.count_device_payloads, _always),
    reads.GetEvent: Reader(events.get_event, _never),
    reads.ListEvents: Reader(events.list_events, events.list_events_is_long),
    reads.GetMostRecentEvent: Reader(events.get_most_recent_event, events.get_most_recent_event_is_long),
    reads.ReplayCommands: Reader(history.replay_commands, _never),
    reads.GetJobLog: Reader(job_logs.get_job_log, _never),
    reads.ListJobLogs: Reader(job_logs.list_job_logs, job_logs.job_logs_are_long),
    reads.GetDataTable: Reader(tables.get_data_table, _never),
    reads.ListDataTables: Reader(tables.list_data_tables, tables.list_data_tables_is_long),
    reads.GetRow: Reader(row_pages.get_row, _never),
    reads.ListRows: Reader(row_pages.list_rows, row_pages.list_rows_is_long),
    reads.SelectRows: Reader(row_pages.select_rows, row_pages.select_rows_is_long),
}


async def read(system: System, message: Message) -> Any:
    """Answer a reading message. Raises the `DomainError` that the read ends with."""
    value = read_at_once(system, message)
    if value is not LATER:
        return value
    reader = READERS[type(message)]
    try:
        return await system.read(lambda beside: reader.read(beside, message))
    except ReadQueueFull as full:
        raise Overloaded(f"{full} Try again in a second.") from full
    except StoreError as broken:
        raise _broken(message, broken) from broken


def read_at_once(system: System, message: Message) -> Any:
    """Answer a reading message without waiting; `LATER` where the read is long. Raises as `read`."""
    reader = READERS[type(message)]
    try:
        with system.store.snapshot() as snapshot:
            return LATER if reader.is_long(snapshot, message) else reader.read(snapshot, message)
    except StoreError as broken:
        raise _broken(message, broken) from broken


def _broken(message: Message, broken: StoreError) -> Crashed:
    _log.error("read failed", message=type(message).__name__, exc_info=broken)
    return Crashed("The store failed to read; the fault is logged.")
