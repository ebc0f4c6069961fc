"""What the author of a workflow must be allowed to do, for a node to do it in the author's name.

A node may do what the author could do by calling these operations (`people/organizations/mandates.py`). `WRITES` says
it for nodes whose effect no operation of its own names: what they store is of the workflow, or what they do leaves the
server. It needs no scope, only that the author may still change the application. Types that stand nowhere here neither
read nor change anything beyond the payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.people.organizations.mandates import NO_OPERATION


class Need(NamedTuple):
    """An operation, and its access, read or write. `field`: only for a node whose field is set, or is not."""

    operation: str
    access: str
    field: str = ""
    is_set: bool = True

    def applies(self, config: Mapping[str, Any]) -> bool:
        """Whether a node with this configuration needs it."""
        return not self.field or bool(config.get(self.field)) is self.is_set


def _read(operation: str, field: str = "", *, is_set: bool = True) -> Need:
    return Need(operation, "read", field, is_set)


def _write(operation: str, field: str = "", *, is_set: bool = True) -> Need:
    return Need(operation, "write", field, is_set)


Needs = tuple[Need, ...]

WRITES: Final[Needs] = (_write(NO_OPERATION),)

NODE_RIGHTS: Final[Mapping[str, Needs]] = {
    "BranchOnChangeNode": WRITES,
    "CreateDeviceNode": (_write("devices.post"), _read("deviceRecipe.get", "recipeIdTemplate")),
    "CreateEventNode": (_write("events.post"),),
    "CreateExperienceGroupNode": (_write("experienceGroups.post"),),
    "CreateExperienceUserNode": (_write("experienceUsers.post"),),
    "DataTableDeleteRowNode": (_write("dataTableRow.delete"),),
    "DataTableInsertRowNode": (_write("dataTableRows.post"),),
    "DataTableQueryNode": (_read("dataTableRows.query"),),
    "DataTableUpdateRowNode": (_write("dataTableRow.patch"),),
    "DeleteEventNode": (_write("event.delete"),),
    "DeleteExperienceGroupNode": (_write("experienceGroup.delete"),),
    "DeleteExperienceUserNode": (_write("experienceUser.delete"),),
    "DeviceChangeStateNode": (_write("device.sendState"),),
    "DeviceDeleteWorkflowNode": (_write("device.delete"),),
    "DeviceSendCommandNode": (_write("device.sendCommand"),),
    "EndpointReplyNode": WRITES,
    "ExperienceGroupSummaryNode": (_read("experienceGroups.get"),),
    "ExperienceUserAuthNode": (_read("experienceUser.get"),),
    "ExperienceUserTokenNode": (_write("experienceUser.patch"),),
    "FileCreateNode": (
        _write("privateFiles.post", "private"),
        _write("files.post", "private", is_set=False),
    ),
    "FileGetNode": (_read("privateFile.get", "private"), _read("file.get", "private", is_set=False)),
    "GaugeNode": (_read("data.timeSeriesQuery"),),
    "GetDeviceNode": (_read("devices.get"),),
    "GetEventNode": (_read("events.get"),),
    "GetExperienceGroupNode": (_read("experienceGroups.get"),),
    "GetExperienceUserNode": (_read("experienceUsers.get"),),
    "GetValueNode": WRITES,
    "HttpNode": (*WRITES, _read("credential.get", "credentialNameTemplate")),
    "LatchNode": WRITES,
    "LosantApiNode": WRITES,
    "MqttMessageNode": (_write("application.mqttPublishMessage"),),
    "SendgridEmailNode": (*WRITES, _read("credential.get", "credentialNameTemplate")),
    "StoreValueNode": WRITES,
    "StructureEmailNode": WRITES,
    "ThrottleNode": WRITES,
    "TimeSeriesNode": (_read("data.timeSeriesQuery"),),
    "UpdateDeviceNode": (_write("device.patch"),),
    "UpdateEventNode": (_write("event.patch"),),
    "UpdateExperienceGroupNode": (_write("experienceGroup.patch"),),
    "UpdateExperienceUserNode": (_write("experienceUser.patch"),),
    "VerifyDeviceNode": (_read("experienceGroups.get"),),
    "VerifyExperienceGroupNode": (_read("experienceGroups.get"),),
    "WebhookReplyNode": WRITES,
    "WebsocketMessageNode": WRITES,
    "WorkflowTriggerNode": (_write("flow.pressVirtualButton"),),
}
"""By type. `LosantApiNode` makes calls, each of which is judged as a call of the author."""


def guarded(type: str, config: Mapping[str, Any], step: NodeStep) -> NodeStep:
    """The step of a node that is taken only if the authors of the run may take it."""
    if type not in NODE_RIGHTS:
        return step
    needs = tuple(need for need in NODE_RIGHTS[type] if need.applies(config))
    asked = tuple((need.operation, need.access) for need in needs)

    def take(visit: Visit) -> Any:
        visit.run.check(asked)
        return step(visit)

    return take
