"""What a run is told: the payload that its first nodes get.

Owns the decoded records of applications and devices that payloads name, as long as the stored bytes are the same.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.devices.kind import DEVICE
from trunkline.actors.devices.told import told_device
from trunkline.actors.engine.copies import copied
from trunkline.actors.engine.programs import CompiledFlow, decoded_globals
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.runtime.host import Host
from trunkline.actors.triggers.intake import TriggerRecord
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.timestamps import iso
from trunkline.store import keys
from trunkline.store.codec import decode

_CACHED_MAX: Final = 10_000
"""Applications, and devices, whose decoded records are kept."""


class Told:
    """Makes the payloads of runs."""

    def __init__(self, system: Host) -> None:
        self._system = system
        self._applications: dict[bytes, tuple[bytes, str, Doc]] = {}
        self._devices: dict[bytes, tuple[bytes, Doc]] = {}

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
            payload |= self._device(record.application, cause.device)
        payload |= cause.more
        own = {**globals, **payload.get("globals", {}), **compiled.globals}
        payload["globals"] = copied(own) if own else {}
        return payload

    def application(self, id: bytes) -> tuple[str, Doc] | None:
        """The name and the globals of an application; None if it is gone."""
        raw = self._system.journal.get(keys.RECORDS, keys.record_key(APPLICATION.name, ROOT, id))
        if raw is None:
            return None
        known = self._applications.get(id)
        if known is None or known[0] != raw:
            doc = decode(raw)
            if len(self._applications) >= _CACHED_MAX:
                self._applications.clear()
            known = self._applications[id] = (raw, doc["name"], decoded_globals(doc.get("globals", [])))
        return known[1], known[2]

    def _device(self, application: bytes, id: bytes) -> Doc:
        """The fields of the payload about the device of a trigger; none if it is deleted."""
        raw = self._system.journal.get(keys.RECORDS, keys.record_key(DEVICE.name, application, id))
        if raw is None:
            return {}
        known = self._devices.get(id)
        if known is None or known[0] != raw:
            if len(self._devices) >= _CACHED_MAX:
                self._devices.clear()
            known = self._devices[id] = (raw, _told_of(id, decode(raw)))
        return copied(known[1])  # type: ignore[no-any-return]


def _told_of(id: bytes, doc: Doc) -> Doc:
    """The fields of the payload about a device."""
    tags: dict[str, list[str]] = {}
    for tag in doc["tags"]:
        tags.setdefault(tag["key"], []).append(tag["value"])
    return {"device": told_device(id, doc), "deviceName": doc["name"], "deviceTags": tags}
