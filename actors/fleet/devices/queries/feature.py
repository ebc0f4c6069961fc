"""What questions about many devices add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.fleet.devices.queries import (
    counts,
    health,
    lists,
    measurements,
    period_summaries,
    selection,
)
from trunkline.actors.fleet.devices.queries.measurement_messages import QueryLastValues, QueryTimeSeries
from trunkline.actors.fleet.devices.queries.payload_export import PAYLOAD_COUNTS_EXPORT
from trunkline.actors.fleet.devices.queries.record_export import DEVICES_EXPORT
from trunkline.actors.fleet.devices.queries.state_export import DATA_EXPORT, DEVICE_EXPORT
from trunkline.actors.fleet.devices.record import read_messages

FEATURE: Final = Feature(
    jobs=(DEVICE_EXPORT, DEVICES_EXPORT, DATA_EXPORT, PAYLOAD_COUNTS_EXPORT),
    readers={
        read_messages.ListDevices: lists.list_devices,
        read_messages.ListCompositeStates: lists.list_composite_states,
        health.ListDeviceHealth: health.list_device_health,
        read_messages.ListAttributeNames: lists.list_attribute_names,
        read_messages.ListDeviceNames: lists.list_device_names,
        read_messages.ListTagKeys: lists.list_tag_keys,
        read_messages.ListTagValues: lists.list_tag_values,
        read_messages.SelectDevices: selection.select_devices,
        QueryLastValues: measurements.query_last_values,
        QueryTimeSeries: measurements.query_time_series,
        counts.CountDevices: counts.count_devices,
        counts.CountDevicePayloads: counts.count_device_payloads,
        counts.BreakDownDevicePayloads: counts.break_down_device_payloads,
        period_summaries.ListPeriodSummaries: period_summaries.list_period_summaries,
    },
)
