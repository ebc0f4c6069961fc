"""The connection of a device: the part of its actor that logs when it connected and disconnected.

That is told by an API call, or by a link of the device. While a link is open there is a marker in the store, with its
number and address; so it is not forgotten when the server is killed (`Links.recover`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.runtime.ref import application_streams
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.terms import Timestamp
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.actor.commands import DeviceCommands
from trunkline.actors.fleet.devices.commands.command_messages import LinkClosed, LinkOpened
from trunkline.actors.fleet.devices.commands.link_session import LinkEnd
from trunkline.actors.fleet.devices.record.kind import GATEWAYS
from trunkline.actors.fleet.devices.record.messages import (
    Connected,
    ConnectionStatus,
    DeleteDevice,
    Disconnected,
    SetConnectionStatus,
)
from trunkline.actors.fleet.devices.record.told import Method, told_connection
from trunkline.actors.fleet.devices.state.log_entries import log_entry
from trunkline.actors.fleet.devices.state.traffic import Change
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.workflows.triggers.index import FlowIndex, Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.actors.workflows.triggers.of_devices import What, watchers_of_device
from trunkline.store import keys
from trunkline.store.codec import decode, encode

CONNECTION_TOPIC = "connections"
"""The topic of the streams of an application that show the connections of its devices."""


class DeviceConnection(DeviceCommands):
    """The part of the device actor that handles the connection."""

    __slots__ = ()

    def on_set_connection_status(self, message: SetConnectionStatus) -> None:
        """Log that the device connected or disconnected, and store it as the current status."""
        self._set_status(message.body, message.origin, "rest")

    def on_link_opened(self, message: LinkOpened) -> tuple[bool, bytes | None]:
        """Log that the device connected, and note its link. Answers whether it is a gateway, and its own gateway."""
        self._end_link(None, LinkEnd.SUPERSEDED.value)
        now_ms = self.system.clock.wall_ms()
        self._set_status(Connected(ip_address=_given(message.address)), message.origin, "link")
        marker = {"number": message.number, "address": message.address}
        self.put(keys.META, self._marker(), encode(marker))
        if not self.waiting.since_ms:
            self.waiting.since_ms = now_ms
            self._save_waiting()
        return self.doc["deviceClass"] in GATEWAYS, self._named_gateway() or None

    def on_link_closed(self, message: LinkClosed) -> None:
        """Log that the device disconnected, if this link is the one that is open for the log."""
        counts = (message.messages_from_client, message.messages_to_client)
        if self._end_link(message.number, message.reason, counts):
            gateway = self._named_gateway()
            if gateway:
                self.after_commit(lambda: self._links.moved(self.ref.id, None, gateway))

    def on_delete_device(self, message: DeleteDevice) -> None:
        """Log the end of the link before the record goes."""
        check_match(message.if_match, self.raw)
        self._end_link(None, LinkEnd.GONE.value)
        self._end_alarms()
        super().on_delete_device(DeleteDevice())

    def _end_link(
        self, number: int | None, reason: str, counts: tuple[int | None, int | None] | None = None
    ) -> bool:
        """Log the end of the open link, if its number is this one, None for any. Whether there was one."""
        key = self._marker()
        raw = self.system.journal.get(keys.META, key)
        if raw is None:
            return False
        marker = decode(raw)
        if number is not None and marker["number"] != number:
            return False
        if counts is None:
            link = self._links.of(self.ref.id)
            counts = (
                link.session.counts()
                if link is not None and link.number == marker["number"]
                else (None, None)
            )
        self.delete(keys.META, key)
        self._set_status(
            Disconnected(
                disconnect_reason=reason,
                messages_from_client=_given(counts[0]),
                messages_to_client=_given(counts[1]),
                ip_address=_given(marker["address"]),
            ),
            None,
            "link",
        )
        return True

    def _marker(self) -> bytes:
        return keys.open_link_key(self.ref.parent, self.ref.id)

    def _set_status(self, status: ConnectionStatus, origin: Origin | None, method: Method) -> None:
        now_ms = self.system.clock.wall_ms()
        connection = dict(self.doc.get("connection") or {})
        if isinstance(status, Connected):
            time_ms = self._moment(status.connected_at, now_ms, "connectedAt")
            entry = log_entry(1, status)
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
            entry = log_entry(0, status)
            connection |= {"connected": 0, "time": time_ms, "disconnectedAt": time_ms}
            self._count("deviceDisconnect", 1, now_ms)
        self._log(time_ms, entry)
        self._store({**self.doc, "connection": connection})
        if self._has_alarm_rules():
            self._look_at_alarms(now_ms)
        watchers = self._watchers_of_connection(status)
        if watchers:
            is_secure = self.system.component(Results).base_url.startswith("https:")
            data = told_connection(status, connection.get("connectedAt"), method, is_secure=is_secure)
            stage(self, watchers, Cause(self.ref.id.hex(), data, time_ms, origin=origin, device=self.ref.id))
        self.after_commit(partial(self._announce_connection, time_ms, entry))

    def _announce_connection(self, time_ms: int, entry: dict[str, Any]) -> None:
        """Note and publish a change of the connection after its commit."""
        self._traffic.of(self.ref.parent).changes.append(Change(time_ms, self.ref.id, entry))
        ref = application_streams(self.ref.parent)
        if self.system.has_subscribers(ref, CONNECTION_TOPIC):
            shown = {"deviceId": self.ref.id.hex(), "deviceName": self.doc["name"], "time": iso(time_ms)}
            self.system.publish(ref, CONNECTION_TOPIC, [(0, msgspec.json.encode({**shown, **entry}))])

    def _watchers_of_connection(self, status: ConnectionStatus) -> tuple[Watcher, ...]:
        """The triggers that wait for this change of the connection."""
        triggers = self.system.component(FlowIndex).of(self.ref.parent)
        if not triggers:
            return ()
        what: What = "Connect" if isinstance(status, Connected) else "Disconnect"
        return watchers_of_device(triggers, what, self.ref.id, self.doc["tags"])

    def _moment(self, moment: Timestamp | None, now_ms: int, field: str) -> int:
        return now_ms if moment is None else self._time(moment, now_ms, field)

    def _log(self, time_ms: int, entry: dict[str, Any]) -> None:
        self.head.seq += 1
        self.put(keys.LOGS, keys.log_key(self.ref.id, time_ms, self.head.seq), encode(entry))


def _given(value: Any) -> Any:
    return UNSET if value is None else value
