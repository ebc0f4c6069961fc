"""The rules for the gateway of a peripheral and for the parent of a device.

Pure functions over documents. `find` returns the current document of a device of the same application, uncommitted
writes included; None if there is no such device.

The rules are checked when a device names its gateway or its parent. Deleting the named device later, or changing its
class, is not refused: finding all devices that name it would take a scan of the application. Such a reference gives no
access, because access is checked with the current class of the gateway (`authority.is_gateway_of`).
"""

from __future__ import annotations

from collections.abc import Callable

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.kind import GATEWAYS

ANCESTORS_MAX = 100
"""The most levels above a device that is named as a parent. A house has five levels.

Levels below the device that gets the parent are not counted, so a hierarchy that is put together from its lower parts
can become deeper. Reads follow at most a thousand ancestors.
"""

Find = Callable[[bytes], Doc | None]


def check_gateway(after: Doc, before: Doc, find: Find) -> None:
    """Raise `Invalid` unless a peripheral names an existing gateway and other classes name none.

    A peripheral may keep the gateway that it had `before`, which may be deleted and be restored again.
    """
    gateway_id = after.get("gatewayId")
    if after["deviceClass"] == "peripheral":
        if gateway_id is None:
            raise Invalid("gatewayId: is missing; a peripheral names the gateway that reports for it.")
        if (before.get("deviceClass"), before.get("gatewayId")) != ("peripheral", gateway_id):
            gateway = find(bytes.fromhex(gateway_id))
            if gateway is None or gateway["deviceClass"] not in GATEWAYS:
                raise Invalid(
                    f"gatewayId: {gateway_id} is not a gateway of this application; "
                    "name a device of class gateway or edgeCompute."
                )
    elif gateway_id is not None:
        raise Invalid(
            f"gatewayId: a device of class {after['deviceClass']} has no gateway; only a peripheral has one."
        )


def check_parent(own_id: bytes, parent_id: bytes, find: Find) -> None:
    """Raise `Invalid` unless all ancestors are system devices and the device is not its own ancestor."""
    above: bytes | None = parent_id
    for _ in range(ANCESTORS_MAX):
        if above is None:
            return
        if above == own_id:
            raise Invalid(
                f"parentId: {parent_id.hex()} is a descendant of this device and cannot be its parent."
            )
        doc = find(above)
        if doc is None or doc["deviceClass"] != "system":
            raise Invalid(
                f"parentId: {above.hex()} is not a system device of this application; only those have children."
            )
        above = bytes.fromhex(doc["parentId"]) if doc.get("parentId") else None
    raise Invalid(f"parentId: {parent_id.hex()} has {ANCESTORS_MAX} devices above it, which is the limit.")
