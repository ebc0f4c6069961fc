"""What changes of many devices add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.fleet.devices.bulk.bulk_jobs import DELETE_DEVICES, PATCH_DEVICES, RESTORE_DEVICES
from trunkline.actors.fleet.devices.bulk.bulk_messages import ChooseDevices
from trunkline.actors.fleet.devices.bulk.bulk_selection import choose_devices
from trunkline.actors.fleet.devices.bulk.removal_jobs import REMOVE_DEVICE_DATA, REMOVE_DEVICES_DATA

FEATURE: Final = Feature(
    jobs=(PATCH_DEVICES, DELETE_DEVICES, RESTORE_DEVICES, REMOVE_DEVICE_DATA, REMOVE_DEVICES_DATA),
    readers={ChooseDevices: choose_devices},
)
