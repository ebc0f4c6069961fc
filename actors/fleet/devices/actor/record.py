"""The record of a device, as its actor keeps it: created, changed, deleted, restored, with its attributes.

Owns the memory that all parts of the actor share: the bytes of the record, the declared attributes, the head and its
payload counts. State, commands and the connection are in `fleet/devices/actor/actor.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Created, Message, Renamed
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.actors.fleet.devices.actor.inactivity import Inactivity
from trunkline.actors.fleet.devices.bulk.bulk_change import applied
from trunkline.actors.fleet.devices.bulk.bulk_messages import ChangeDevice, RestoreDevice
from trunkline.actors.fleet.devices.record import hierarchy
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE, restorable_since_ms
from trunkline.actors.fleet.devices.record.messages import (
    AddAttribute,
    CreateDevice,
    DeleteAttribute,
    DeleteDevice,
    DevicePatch,
    DevicePost,
    PatchAttribute,
    PatchDevice,
)
from trunkline.actors.fleet.devices.record.told import told_new_device
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.store import keys
from trunkline.store.codec import decode

_PLAIN_FIELDS = (
    "name",
    "description",
    "device_class",
    "gateway_id",
    "system_interval",
    "keep_duplicates",
    "expected_interval_seconds",
)
_CAMEL = {
    "device_class": "deviceClass",
    "gateway_id": "gatewayId",
    "system_interval": "systemInterval",
    "keep_duplicates": "keepDuplicates",
    "expected_interval_seconds": "expectedIntervalSeconds",
}


class DeviceRecord(Actor):
    """The part of the device actor that keeps the record. `ref.parent` is the application's id."""

    kind: ClassVar[str] = "device"
    noun: ClassVar[str] = "device"
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateDevice, RestoreDevice})

    __slots__ = ("attributes", "head", "raw")

    def __init__(self, system: Any, ref: Ref) -> None:
        self.raw = b""
        self.head = Head()
        self.attributes = Attributes([], 0)
        super().__init__(system, ref)

    def load(self) -> bool:
        journal = self.system.journal
        raw = records.raw_of(journal.get, DEVICE, self.ref.parent, self.ref.id)
        if raw is None:
            return False
        self.raw = raw
        doc = self.doc
        self.attributes = Attributes(doc["attributes"], doc["attributeNext"]).shared()
        self.head = Head.read(journal, self.ref.id)
        return True

    @property
    def doc(self) -> Doc:
        """The record, decoded on each access: it is seldom needed, and much larger in memory than its bytes."""
        return decode(self.raw) if self.raw else {}

    # The record.

    def on_create_device(self, message: CreateDevice) -> Created:
        """Create the record; the answer is its id."""
        if self.exists:
            raise Invalid(f"id: there is already a device {self.ref.id.hex()}.")
        if not self._parent_exists():
            raise NotFound(f"There is no application {self.ref.parent.hex()}.")
        now_ms = self.system.clock.wall_ms()
        body = message.body
        attributes = Attributes([], 0)
        if body.attributes is not msgspec.UNSET:
            attributes = attributes.replaced(body.attributes)
        doc: Doc = {
            "creationDate": now_ms,
            "lastUpdated": now_ms,
            "tags": [],
            "deviceClass": "standalone",
        }
        doc |= self._changes(body, doc)
        self.attributes = attributes.shared()
        self.exists = True
        doc |= {"attributes": attributes.docs, "attributeNext": attributes.next_number}
        self.raw = records.write(self, DEVICE, self.ref.parent, self.ref.id, None, doc)
        self._check_size(0)
        self._count("deviceCreate", 1, now_ms)
        self._tell_inactivity()
        if not message.is_bulk:
            self._trigger_creation(doc, message.origin, now_ms)
        return Created(self.ref.id)

    def _trigger_creation(self, doc: Doc, origin: Origin | None, now_ms: int) -> None:
        watchers = self.system.component(FlowIndex).of(self.ref.parent).of_type("deviceCreate")
        if watchers:
            data = {"device": told_new_device(self.ref.parent, self.ref.id, doc)}
            stage(self, watchers, Cause(self.ref.id.hex(), data, now_ms, origin=origin))

    def on_patch_device(self, message: PatchDevice) -> None:
        """Change the fields that the body sets."""
        check_match(message.if_match, self.raw)
        body = message.body
        doc = {**self.doc, **self._changes(body, self.doc)}
        attributes = self.attributes
        if body.attributes is not msgspec.UNSET:
            attributes = attributes.replaced(body.attributes)
        self._redeclare(attributes, doc)

    def on_delete_device(self, message: DeleteDevice) -> None:
        """Move the record to the deleted devices, end its streams, and revoke the device's tokens."""
        check_match(message.if_match, self.raw)
        now_ms = self.system.clock.wall_ms()
        records.erase(self, DEVICE, self.ref.parent, self.ref.id, self.doc)
        records.write(
            self, DELETED_DEVICE, self.ref.parent, self.ref.id, None, {**self.doc, "deletedAt": now_ms}
        )
        self._count("deviceDelete", 1, now_ms)
        self.flush()
        self.exists = False

    def on_change_device(self, message: ChangeDevice) -> bool:
        """Apply a change of many devices to this one; the answer is whether anything changed."""
        before = self.doc
        patch, attributes = applied(message.change, before, self.attributes)
        doc = {**before, **self._changes(patch, before)}
        if attributes.docs == self.attributes.docs and _given(doc) == _given(before):
            return False
        self._redeclare(attributes, doc)
        return True

    def on_restore_device(self, _message: RestoreDevice) -> None:
        """Move the record back from the deleted devices. States, commands, logs and counts were never removed.

        The gateway and the parent stay as they were, even if they are deleted: such a reference gives no access, and
        is valid again when they are restored.
        """
        if self.exists:
            raise Invalid(f"id: the device {self.ref.id.hex()} is not deleted.")
        journal, application = self.system.journal, self.ref.parent
        raw = records.raw_of(journal.get, DELETED_DEVICE, application, self.ref.id)
        now_ms = self.system.clock.wall_ms()
        doc = {} if raw is None else decode(raw)
        if (
            not doc
            or not self._parent_exists()
            or doc["deletedAt"] < restorable_since_ms(now_ms, self.system.limits)
        ):
            raise NotFound(f"There is no deleted device {self.ref.id.hex()} here that can be restored.")
        records.erase(self, DELETED_DEVICE, application, self.ref.id, doc)
        restored = {name: value for name, value in doc.items() if name != "deletedAt"}
        restored["lastUpdated"] = records.next_update_ms(now_ms, doc)
        self.raw = records.write(self, DEVICE, application, self.ref.id, None, restored)
        self.attributes = Attributes(doc["attributes"], doc["attributeNext"]).shared()
        self.head = Head.read(journal, self.ref.id)
        self.exists = True
        self._tell_inactivity()
        self._count("deviceRestore", 1, now_ms)

    def _changes(self, body: DevicePost | DevicePatch, before: Doc) -> Doc:
        """Return the fields that `body` sets, checked together with the record's other fields."""
        changes: Doc = {}
        for field in _PLAIN_FIELDS:
            value = getattr(body, field)
            if value is not msgspec.UNSET:
                changes[_CAMEL.get(field, field)] = value
        if body.tags is not msgspec.UNSET:
            changes["tags"] = [{"key": tag.key, "value": tag.value} for tag in body.tags]
        if body.parent_id is not msgspec.UNSET:
            changes["parentId"] = body.parent_id.lower() if body.parent_id is not None else None
        if "gatewayId" in changes:
            changes["gatewayId"] = changes["gatewayId"].lower()
        if changes.get("deviceClass", "peripheral") != "peripheral" and before.get("gatewayId") is not None:
            # A device that is no longer a peripheral loses its gateway, so the gateway loses access to it.
            changes.setdefault("gatewayId", None)
        after = {**before, **changes}
        hierarchy.check_gateway(after, before, self._other)
        if after.get("parentId") not in (None, before.get("parentId")):
            hierarchy.check_parent(self.ref.id, bytes.fromhex(changes["parentId"]), self._other)
        return changes

    def _other(self, id: bytes) -> Doc | None:
        return records.doc_of(self.system.journal, DEVICE, self.ref.parent, id)

    # Attributes.

    def on_add_attribute(self, message: AddAttribute) -> Renamed:
        """Declare one more attribute; the answer is its name."""
        self._redeclare(self.attributes.added(message.body), dict(self.doc))
        return Renamed(message.body.name)

    def on_patch_attribute(self, message: PatchAttribute) -> Renamed:
        """Change an attribute; the answer is its name, which may have changed."""
        changed, name = self.attributes.patched(message.name, message.body)
        self._redeclare(changed, dict(self.doc))
        return Renamed(name)

    def on_delete_attribute(self, message: DeleteAttribute) -> None:
        """Delete an attribute."""
        self._redeclare(self.attributes.removed(message.name), dict(self.doc))

    def _redeclare(self, attributes: Attributes, doc: Doc) -> None:
        self.attributes = attributes.shared()
        values = self.head.values
        self.head.values = {number: values[number] for number in values if number in attributes.names}
        doc |= {"attributes": attributes.docs, "attributeNext": attributes.next_number}
        doc["lastUpdated"] = records.next_update_ms(self.system.clock.wall_ms(), self.doc)
        size_before = len(self.raw)
        self._store(doc)
        self._check_size(size_before)

    def _check_size(self, size_before: int) -> None:
        """Raise `Invalid` if the record has grown above its bound."""
        size, size_max = len(self.raw), self.system.limits.device_bytes_max
        if size > size_max and size > size_before:
            raise Invalid(
                f"attributes: the device and its attributes would take {size} bytes, and a device takes at most "
                f"{size_max}; shorten descriptions, attributeTags or childAttributes."
            )

    def _tell_inactivity(self) -> None:
        """Tell who waits for the silence of devices that this one may be due earlier than before."""
        changed = self.system.component(Inactivity).changed
        self.after_commit(partial(changed, self.ref.parent, self.ref.id))

    def _store(self, doc: Doc) -> None:
        self.raw = records.write(self, DEVICE, self.ref.parent, self.ref.id, self.doc, doc)

    # Counting.

    def _count(self, name: str, by: int, now_ms: int) -> None:
        """Count payloads of the device (by hour, in its head) and of its application (added at the commit)."""
        hour = now_ms // HOUR_MS
        head = self.head
        if hour != head.hour:
            if head.counts:
                self.add(keys.TIMELINE, keys.counts_key(self.ref.id, head.hour), head.counts)
            head.hour, head.counts = hour, {}
        head.counts[name] = head.counts.get(name, 0) + by
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.parent, hour), {name: by})


def _given(doc: Doc) -> Doc:
    """The fields of a record that have a value."""
    return {name: value for name, value in doc.items() if value is not None}
