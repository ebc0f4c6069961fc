"""What the author of a workflow must be allowed to do, for a run to be told what its trigger tells.

A run is told of a device, an event, a row or a file only if the author could read it by calling these operations. What
somebody sends to workflows (presses of buttons, requests to webhooks and endpoints, messages of brokers) is for them,
and no operation reads it. The right is asked for when the run begins: what it is told is stored with its cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trunkline.actors.core.records.mandate import Mandates
from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.workflows.triggers.intake import TriggerRecord

Asked = tuple[tuple[str, str], ...]


def _read(*operations: str) -> Asked:
    return tuple((operation, "read") for operation in operations)


_DEVICE: Final = _read("device.get")
_STATE: Final = _read("device.get", "device.getState")

TRIGGER_RIGHTS: Final[Mapping[str, Asked]] = {
    "appFile": _read("file.get"),
    "dataTable": _read("dataTableRow.get"),
    "deviceCreate": _DEVICE,
    "deviceId": _STATE,
    "deviceIdConnect": _DEVICE,
    "deviceIdDisconnect": _DEVICE,
    "deviceIdInactivity": _DEVICE,
    "deviceTag": _STATE,
    "deviceTagConnect": _DEVICE,
    "deviceTagDisconnect": _DEVICE,
    "deviceTagInactivity": _DEVICE,
    "event": _read("event.get"),
    "flowError": _read("flowRun.get"),
}
"""By type of trigger."""

TELLS_NOTHING_STORED: Final = frozenset(
    {"endpoint", "integration", "mqttTopic", "timer", "virtualButton", "webhook"}
)
"""Types whose runs are told what was sent to them, or only the time."""

_PRIVATE_FILE: Final = _read("privateFile.get")


def rights_of_trigger(record: TriggerRecord) -> Asked:
    """What the authors of a run must be allowed to read for its trigger."""
    asked = TRIGGER_RIGHTS.get(record.type, ())
    if record.type == "appFile" and _told(record.cause.data, "file", "isPrivate"):
        return _PRIVATE_FILE
    if record.type == "flowError" and _told(record.cause.data, "errorInfo", "flowId") == record.flow.hex():
        return ()  # what its own runs were told
    return asked


def refusal_of(authors: Authors, record: TriggerRecord, mandates: Mandates) -> str | None:
    """Why a run may not be told what started it; None if it may."""
    try:
        for operation, access in rights_of_trigger(record):
            authors.check(record.application, mandates, operation, access)
    except Forbidden as refusal:
        return f"{refusal.message} So the workflow is not told what started it."
    return None


def _told(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data
