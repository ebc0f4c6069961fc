"""What a run is told: the payload that its first nodes get.

Owns what is told of the applications and devices that payloads name.
"""

from __future__ import annotations

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.made import Made
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.values.global_values import global_values
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.plain_json import as_json
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.engine.copies import copied
from trunkline.actors.engine.programs import CompiledFlow
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.told import told_device
from trunkline.actors.workflows.triggers.intake import TriggerRecord


class Told:
    """Makes the payloads of runs."""

    def __init__(self, system: Host) -> None:
        self._applications = Made(system, APPLICATION.name, _name_and_globals)
        self._devices = Made(system, DEVICE.name, _told_of)

    def payload(self, record: TriggerRecord, compiled: CompiledFlow, application: tuple[str, Doc]) -> Doc:
        """The payload that the first nodes get. Of globals the last ones count: those of the workflow.

        A cause may have globals of its own, such as those of a version of an experience.
        """
        cause = record.cause
        name, globals = application
        payload: Doc = {
            "time": iso(cause.time_ms),
            "data": cause.data,
            "applicationId": record.application.hex(),
            "applicationName": name,
            "triggerId": cause.trigger_id,
            "triggerType": record.type,
            "flowId": record.flow.hex(),
            "flowName": compiled.name,
        }
        if record.version is not None:
            payload["flowVersion"] = compiled.version
        if cause.origin is not None:
            payload["relayId"], payload["relayType"] = cause.origin.id, cause.origin.type
        if cause.device is not None:
            device = self._devices.get(record.application, cause.device)
            if device is not None:
                payload |= msgspec.msgpack.decode(device)  # takes half the time of a copy
        # An earlier version of the server stored `meta` that JSON cannot say.
        payload |= as_json(cause.more) if cause.device is not None else cause.more
        own = payload.get("globals")
        if globals or own or compiled.globals:
            payload["globals"] = copied({**globals, **(own or {}), **compiled.globals})
        else:
            payload["globals"] = {}
        return payload

    def application(self, id: bytes) -> tuple[str, Doc] | None:
        """The name and the globals of an application; None if it is gone."""
        return self._applications.get(ROOT, id)


def _name_and_globals(_id: bytes, doc: Doc) -> tuple[str, Doc]:
    """The name and the globals of an application."""
    return doc["name"], global_values(doc.get("globals", []))


def _told_of(id: bytes, doc: Doc) -> bytes:
    """The fields of the payload about a device, encoded."""
    device = told_device(id, doc)
    return msgspec.msgpack.encode({"device": device, "deviceName": doc["name"], "deviceTags": device["tags"]})
