"""What a run is told: the payload that its first nodes get.

Owns the decoded records of applications and devices that payloads name, as long as the stored bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

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
from trunkline.store.journal import Journal

_CACHED_MAX: Final = 10_000
"""Applications, and devices, whose decoded records are kept."""


class Told:
    """Makes the payloads of runs."""

    def __init__(self, system: Host) -> None:
        self._applications = _Made(system.journal, APPLICATION.name, _name_and_globals)
        self._devices = _Made(system.journal, DEVICE.name, _told_of)

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
        payload |= cause.more
        own = payload.get("globals")
        if globals or own or compiled.globals:
            payload["globals"] = copied({**globals, **(own or {}), **compiled.globals})
        else:
            payload["globals"] = {}
        return payload

    def application(self, id: bytes) -> tuple[str, Doc] | None:
        """The name and the globals of an application; None if it is gone."""
        return self._applications.get(ROOT, id)


T = TypeVar("T")


class _Made(Generic[T]):
    """What was made of the records of a kind, as long as they are the same."""

    def __init__(self, journal: Journal, kind: str, make: Callable[[bytes, Doc], T]) -> None:
        self._journal = journal
        self._kind = kind
        self._make = make
        self._changes = -1
        self._sure: dict[bytes, T] = {}
        """What holds, as no record has changed since."""
        self._made: dict[bytes, tuple[bytes, T]] = {}
        """The same, and what holds if the record has not changed."""

    def get(self, home: bytes, id: bytes) -> T | None:
        """What was made of a record; None if it is deleted."""
        if self._changes != self._journal.record_changes:
            self._changes = self._journal.record_changes
            self._sure.clear()
        made = self._sure.get(id)
        return self._looked_up(home, id) if made is None else made

    def _looked_up(self, home: bytes, id: bytes) -> T | None:
        raw = self._journal.get(keys.RECORDS, keys.record_key(self._kind, home, id))
        if raw is None:
            return None
        known = self._made.get(id)
        if known is None or known[0] != raw:
            if len(self._made) >= _CACHED_MAX:
                self._made.clear()
                self._sure.clear()
            known = self._made[id] = (raw, self._make(id, decode(raw)))
        self._sure[id] = known[1]
        return known[1]


def _name_and_globals(_id: bytes, doc: Doc) -> tuple[str, Doc]:
    """The name and the globals of an application."""
    return doc["name"], decoded_globals(doc.get("globals", []))


def _told_of(id: bytes, doc: Doc) -> bytes:
    """The fields of the payload about a device, encoded."""
    tags: dict[str, list[str]] = {}
    for tag in doc["tags"]:
        tags.setdefault(tag["key"], []).append(tag["value"])
    told = {"device": told_device(id, doc), "deviceName": doc["name"], "deviceTags": tags}
    return msgspec.msgpack.encode(told)
