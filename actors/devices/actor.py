"""The device actor: the only writer of a device's record, state, commands and connection log.

A handler changes the state in memory and stages what is to be stored; the answer is sent when the batch is on
disk. States and commands are published to streams right after that commit, in the same turn of the event loop, so
no client sees data that a power failure could undo.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import msgspec

from trunkline.actors.devices import hierarchy
from trunkline.actors.devices.attributes import FLOW_VERSION, META, Attributes
from trunkline.actors.devices.head import POSITION_SHIFT, STATE_COUNT, Head
from trunkline.actors.devices.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.devices.log_entries import log_entry, shown_command
from trunkline.actors.devices.messages import (
    AddAttribute,
    CommandPost,
    CommandToMany,
    Connected,
    CreateDevice,
    DeleteAttribute,
    DeleteDevice,
    DevicePatch,
    DevicePost,
    PatchAttribute,
    PatchDevice,
    SendCommand,
    SendState,
    SetConnectionStatus,
    StateReport,
)
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.revision import check_match
from trunkline.actors.runtime.actor import Actor
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.values.errors import Invalid, NotFound, PayloadTooLarge
from trunkline.actors.values.nesting import check_nesting
from trunkline.actors.values.structs import Created, Message, Renamed
from trunkline.actors.values.terms import Timestamp
from trunkline.actors.values.timestamps import HOUR_MS, SECONDS_BELOW, iso, parse_report_time
from trunkline.store import keys
from trunkline.store.codec import decode, encode, encode_numbered

STATE_TOPIC = "states"
COMMAND_TOPIC = "commands"
"""Topics of the device's streams."""

_PLAIN_FIELDS = ("name", "description", "device_class", "gateway_id", "system_interval", "keep_duplicates")
_CAMEL = {
    "device_class": "deviceClass",
    "gateway_id": "gatewayId",
    "system_interval": "systemInterval",
    "keep_duplicates": "keepDuplicates",
}


class Device(Actor):
    """One device of one application. `ref.parent` is the application's id."""

    kind: ClassVar[str] = "device"
    noun: ClassVar[str] = "device"
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateDevice})

    __slots__ = ("_head_deferred", "attributes", "head", "raw")

    def __init__(self, system: Any, ref: Ref) -> None:
        self.raw = b""
        self.head = Head()
        self._head_deferred = False
        self.attributes = Attributes([], 0)
        super().__init__(system, ref)

    def load(self) -> bool:
        journal = self.system.journal
        raw = journal.get(keys.RECORDS, keys.record_key(DEVICE.name, self.ref.parent, self.ref.id))
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

    def flush(self) -> None:
        if self._head_deferred:
            self._head_deferred = False  # the head follows from the stored head and the point of this turn
        elif self.exists:
            self.put(keys.TIMELINE, keys.head_key(self.ref.id), self.head.encoded())

    # State.

    def on_send_state(self, message: SendState) -> None:
        """Store the states, all or none, and publish them to the state streams."""
        body = message.body
        now_ms = self.system.clock.wall_ms()
        head, id = self.head, self.ref.id
        checked = self._checked(body, now_ms) if isinstance(body, list) else [self._check(body, now_ms)]
        if len(checked) == 1 and checked[0][0] > head.newest_ms:
            ((time_ms, point),) = checked
            self.put(keys.TIMELINE, keys.point_key(id, time_ms), encode_numbered(point))
            self._head_deferred = head.can_defer_write(now_ms)
            head.points_ahead += self._head_deferred
            head.report(time_ms, point)
        elif checked:
            merged = self._merged(checked)
            points = {
                keys.point_key(id, time_ms): encode_numbered(point) for time_ms, point in merged.items()
            }
            self.put_all(keys.TIMELINE, points)
            head.report_all(checked)
        if checked:
            self._count(STATE_COUNT, len(checked), now_ms)
            self.after_commit(partial(self._announce_states, self.attributes, checked))

    def _announce_states(self, attributes: Attributes, checked: list[tuple[int, dict[int, Any]]]) -> None:
        """Publish states after their commit, with the attribute names of the time when they were reported.

        The subscribers are those after the commit, not those of the turn. Otherwise a client that opens a stream
        and then reads the stored states could miss a state that was handled before the one and committed after
        the other.
        """
        if self.system.has_subscribers(self.ref, STATE_TOPIC):
            for time_ms, point in checked:
                event = msgspec.json.encode(attributes.entry(time_ms, point))
                self.system.publish(self.ref, STATE_TOPIC, time_ms, event)

    def _checked(self, reports: list[StateReport], now_ms: int) -> list[tuple[int, dict[int, Any]]]:
        states_max = self.system.limits.states_per_call_max
        if len(reports) > states_max:
            raise PayloadTooLarge(f"{len(reports)} states in one call; send at most {states_max} a call.")
        checked: list[tuple[int, dict[int, Any]]] = []
        try:
            for report in reports:
                checked.append(self._check(report, now_ms))  # noqa: PERF401 - how many passed is part of the refusal
        except Invalid as refusal:
            raise Invalid(f"[{len(checked)}].{refusal.message}") from None
        return checked

    def _check(self, report: StateReport, now_ms: int) -> tuple[int, dict[int, Any]]:
        """Return the report as it will be stored. Raises `Invalid`."""
        time_ms = now_ms if report.time is None else self._time(report.time, now_ms)
        point = self.attributes.point(report.data, self.system.limits.string_bytes_max)
        if report.meta is not msgspec.UNSET:
            check_nesting(report.meta, "meta")
            point[META] = report.meta
        if report.flow_version is not msgspec.UNSET:
            point[FLOW_VERSION] = report.flow_version
        return time_ms, point

    def _time(self, moment: Timestamp, now_ms: int, field: str = "time") -> int:
        if type(moment) is int and SECONDS_BELOW <= moment <= now_ms:
            return moment
        time_ms = parse_report_time(moment, now_ms, field=field)
        ahead_s = (time_ms - now_ms) / 1000
        if ahead_s > self.system.limits.future_state_max_s:
            raise Invalid(
                f"{field}: {iso(time_ms)} lies more than a day ahead of the server's {iso(now_ms)}; "
                "check the clock of the sender, or leave the field out for now."
            )
        return time_ms

    def _merged(self, checked: list[tuple[int, dict[int, Any]]]) -> dict[int, dict[int, Any]]:
        """Merge reports into one point for each millisecond. A report overwrites only the attributes that it sends."""
        newest_ms = self.head.newest_ms
        merged = dict(checked)
        if len(merged) == len(checked) and min(merged, default=newest_ms) > newest_ms:
            return merged
        merged = {}
        for time_ms, point in checked:
            before = merged.get(time_ms)
            if before is None and time_ms <= newest_ms:
                raw = self.system.journal.get(keys.TIMELINE, keys.point_key(self.ref.id, time_ms))
                before = None if raw is None else decode(raw)
            merged[time_ms] = point if before is None else {**before, **point}
        return merged

    # Commands.

    def on_send_command(self, message: SendCommand) -> None:
        """Log the command and push it to every open command stream as soon as it is on disk."""
        body: CommandPost | CommandToMany = message.body
        now_ms = self.system.clock.wall_ms()
        given_ms = now_ms if body.time is None else self._time(body.time, now_ms)
        if body.payload is not msgspec.UNSET:
            check_nesting(body.payload, "payload")
        head = self.head
        head.seq += 1
        head.command_ms = max(now_ms, head.command_ms)
        entry: dict[str, Any] = {"name": body.name, "time": given_ms}
        if body.payload is not msgspec.UNSET:
            entry["payload"] = body.payload
        self.put(keys.COMMANDS, keys.command_key(self.ref.id, head.command_ms, head.seq), encode(entry))
        self._count("deviceCommand", 1, now_ms)
        self.after_commit(
            partial(self._announce_command, head.command_ms << POSITION_SHIFT | head.seq, entry)
        )

    def _announce_command(self, position: int, entry: dict[str, Any]) -> None:
        """Publish a command after its commit, also to streams that were opened since the turn.

        Such a stream could not read the command from the log when it was opened.
        """
        if self.system.has_subscribers(self.ref, COMMAND_TOPIC):
            event = msgspec.json.encode(shown_command(entry))
            self.system.publish(self.ref, COMMAND_TOPIC, position, event)

    # Connection.

    def on_set_connection_status(self, message: SetConnectionStatus) -> None:
        """Log that the device connected or disconnected, and store it as the current status."""
        now_ms = self.system.clock.wall_ms()
        status = message.body
        connection = dict(self.doc.get("connection") or {})
        if isinstance(status, Connected):
            time_ms = self._moment(status.connected_at, now_ms, "connectedAt")
            self._log(time_ms, log_entry(1, status))
            connection |= {"connected": 1, "time": time_ms, "connectedAt": time_ms}
            self._count("deviceConnect", 1, now_ms)
        else:
            time_ms = self._moment(status.disconnected_at, now_ms, "disconnectedAt")
            if status.connected_at is not None:
                since_ms = self._moment(status.connected_at, now_ms, "connectedAt")
                if since_ms > time_ms:
                    raise Invalid(
                        f"connectedAt: {iso(since_ms)} is later than disconnectedAt, {iso(time_ms)}; "
                        "a connection begins before it ends."
                    )
                if connection.get("connectedAt") != since_ms:
                    self._log(since_ms, {"connected": 1})
                    connection["connectedAt"] = since_ms
            self._log(time_ms, log_entry(0, status))
            connection |= {"connected": 0, "time": time_ms, "disconnectedAt": time_ms}
            self._count("deviceDisconnect", 1, now_ms)
        self._store({**self.doc, "connection": connection})

    def _moment(self, moment: Timestamp | None, now_ms: int, field: str) -> int:
        return now_ms if moment is None else self._time(moment, now_ms, field)

    def _log(self, time_ms: int, entry: dict[str, Any]) -> None:
        self.head.seq += 1
        self.put(keys.LOGS, keys.log_key(self.ref.id, time_ms, self.head.seq), encode(entry))

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
        return Created(self.ref.id)

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
        hierarchy.check_gateway(after, changes, self._other)
        if changes.get("parentId") is not None:
            hierarchy.check_parent(self.ref.id, bytes.fromhex(changes["parentId"]), self._other)
        return changes

    def _other(self, id: bytes) -> Doc | None:
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(DEVICE.name, self.ref.parent, id))
        return None if raw is None else decode(raw)

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
