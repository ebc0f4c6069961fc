"""What the records of devices add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.fleet.devices.record import read_messages, reads
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.fleet.devices.record.portable import DEVICES
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS

FEATURE: Final = Feature(
    kinds=(DEVICE, DELETED_DEVICE),
    fields=(DEVICE_FIELDS,),
    readers={
        read_messages.GetDevice: reads.get_device,
        read_messages.GetAttribute: reads.get_attribute,
        read_messages.ListAttributes: reads.list_attributes,
    },
    portable=(DEVICES,),
)
