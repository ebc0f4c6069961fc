"""The commands of a device: the part of its actor that logs them, keeps those that wait, and gives them to links.

A command waits from the first link of the device, or of its gateway, until the device acknowledges it or its time to
live ends. One with a time to live waits in any case. What happened to it stands in its entry of the log; what waits is
a list beside it (`fleet/devices/commands/waiting.py`), so that a link finds it without a search. Commands of other
devices are only logged. Does not own the links (`fleet/devices/commands/links.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.core.values.terms import Timestamp
from trunkline.actors.core.values.timestamps import SECONDS_BELOW, iso, parse_report_time
from trunkline.actors.fleet.devices.actor.due import DeviceDue
from trunkline.actors.fleet.devices.bulk.bulk_messages import RestoreDevice
from trunkline.actors.fleet.devices.commands.command_messages import (
    AcknowledgeCommand,
    DeliverCommands,
    GiveUpCommand,
    LinkCommand,
)
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.actors.fleet.devices.commands.waiting import Due, Waiting
from trunkline.actors.fleet.devices.record.kind import GATEWAYS
from trunkline.actors.fleet.devices.record.messages import (
    CommandPost,
    CommandToMany,
    DeleteDevice,
    SendCommand,
)
from trunkline.actors.fleet.devices.state.head import POSITION_SHIFT
from trunkline.actors.fleet.devices.state.log_entries import (
    ACKNOWLEDGED,
    DROPPED,
    EXPIRES,
    SENT,
    shown_command,
)
from trunkline.actors.fleet.devices.state.traffic import Traffic
from trunkline.store import keys
from trunkline.store.codec import decode, encode, encode_with

_PAGE_BYTES_MAX: Final = 1024 * 1024
"""Bytes of a page of commands: as many as a connection has room for."""
COMMAND_TOPIC = "commands"
"""The topic of the device's command streams."""


class DeviceCommands(DeviceDue):
    """The part of the device actor that handles commands."""

    __slots__ = ("_links", "_traffic", "_waiting")

    def __init__(self, system: Any, ref: Ref) -> None:
        self._links: Links = system.component(Links)
        self._traffic: Traffic = system.component(Traffic)
        self._waiting: Waiting | None = None
        super().__init__(system, ref)

    def on_send_command(self, message: SendCommand) -> None:
        """Log the command and push it to the link and to every open command stream as soon as it is on disk."""
        body = message.body
        now_ms = self.system.clock.wall_ms()
        given_ms = now_ms if body.time is None else self._time(body.time, now_ms)
        if message.payload is None and body.payload is not msgspec.UNSET:
            check_nesting(body.payload, "payload")
        head = self.head
        head.seq += 1
        head.command_ms = max(now_ms, head.command_ms)
        entry: dict[str, Any] = {"name": body.name, "time": given_ms}
        if body.payload is not msgspec.UNSET:
            entry["payload"] = body.payload
        gateway = self._gateway()
        waits = bool(body.ttl_seconds) or self._is_waited_for(gateway)
        if waits:
            self._wait(entry, now_ms, body.ttl_seconds, gateway)
        known = message.payload
        raw = encode(entry) if known is None else encode_with(entry, "payload", known)
        self.put(keys.COMMANDS, keys.command_key(self.ref.id, head.command_ms, head.seq), raw)
        self._count("deviceCommand", 1, now_ms)
        self.after_commit(
            partial(self._announce_command, head.command_ms << POSITION_SHIFT | head.seq, entry)
        )
        if waits:
            command = _link_command(head.seq, entry)
            self.after_commit(partial(self._links.announce, self.ref.id, gateway, command))

    def _announce_command(self, position: int, entry: dict[str, Any]) -> None:
        """Count a command after its commit, and publish it, also to streams that were opened since the turn.

        Such a stream could not read the command from the log when it was opened.
        """
        self._traffic.of(self.ref.parent).count_command(self.system.clock.wall_ms())
        if self.system.has_subscribers(self.ref, COMMAND_TOPIC):
            event = msgspec.json.encode(shown_command(entry))
            self.system.publish(self.ref, COMMAND_TOPIC, [(position, event)])

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

    # What waits.

    @property
    def waiting(self) -> Waiting:
        """What waits for the device, read when it is needed first."""
        if self._waiting is None:
            self._waiting = Waiting(self.system.journal.get(keys.TIMELINE, keys.waiting_key(self.ref.id)))
        return self._waiting

    def _is_waited_for(self, gateway: bytes | None) -> bool:
        """Whether the device has used a link, or its gateway has."""
        if self.waiting.since_ms:
            return True
        if gateway is None:
            return False
        raw = self.system.journal.get(keys.TIMELINE, keys.waiting_key(gateway))
        return raw is not None and Waiting(raw).since_ms > 0

    def _wait(self, entry: dict[str, Any], now_ms: int, ttl_s: int | None, gateway: bytes | None) -> None:
        """Add the newest command to what waits, and note in its entry what happens to it."""
        head, waiting = self.head, self.waiting
        most = self.system.limits.waiting_commands_max
        if len(waiting.commands) >= most:
            self._drop(waiting.expired(now_ms))
            while len(waiting.commands) >= most:
                number = next(iter(waiting.commands))
                self._note(number, DROPPED, now_ms)
                self._drop([number])
        expires_ms = now_ms + ttl_s * 1000 if ttl_s else 0
        entry[EXPIRES] = expires_ms
        link = self._links.carrier(self.ref.id, gateway)
        is_sent = link is not None and link.is_ready(self.ref.id)
        if is_sent:
            entry[SENT] = now_ms
        waiting.commands[head.seq] = Due(head.command_ms, expires_ms, is_sent)
        self._save_waiting()

    def _note(self, number: int, field: str, now_ms: int) -> Doc | None:
        """Write what happened to a waiting command into its entry; return that, None if it was removed meanwhile."""
        key = keys.command_key(self.ref.id, self.waiting.commands[number].time_ms, number)
        raw = self.system.journal.get(keys.COMMANDS, key)
        if raw is None:
            return None
        entry: Doc = {**decode(raw), field: now_ms}
        self.put(keys.COMMANDS, key, encode(entry))
        return entry

    def _drop(self, numbers: list[int]) -> None:
        """Let commands wait no longer, as they expired."""
        for number in numbers:
            del self.waiting.commands[number]
        if numbers:
            self.after_commit(partial(self._links.count_expired, len(numbers)))

    def _save_waiting(self) -> None:
        """Store what waits. A peripheral for which something waits is noted with its gateway, so that this finds it."""
        waiting, id, parent = self.waiting, self.ref.id, self.ref.parent
        gateway = self._named_gateway() if waiting.commands and self.exists else b""
        if gateway != waiting.gateway:
            if waiting.gateway:
                self.delete(keys.META, keys.waiting_peripheral_key(parent, waiting.gateway, id))
            if gateway:
                self.put(keys.META, keys.waiting_peripheral_key(parent, gateway, id), b"")
            waiting.gateway = gateway
        raw = waiting.encoded()
        if raw is None:
            self.delete(keys.TIMELINE, keys.waiting_key(id))
        else:
            self.put(keys.TIMELINE, keys.waiting_key(id), raw)

    # Links.

    def on_deliver_commands(self, message: DeliverCommands) -> None:
        """Give the next waiting commands to the link after the commit. It may take live ones when it has all."""
        own = self._links.of(self.ref.id)
        self._check_gateway(None if message.holder == self.ref.id else message.holder)
        link = self._links.of(message.holder)
        if link is None or link.number != message.number or (own is not None and own is not link):
            raise NotFound(f"The link {message.number} does not carry the device {self.ref.id.hex()}.")
        now_ms, waiting, limits = self.system.clock.wall_ms(), self.waiting, self.system.limits
        gone = waiting.expired(now_ms)
        self._drop(gone)
        found: list[LinkCommand] = []
        changed, size_bytes, last = bool(gone), 0, link.given.get(self.ref.id, 0)
        is_complete = True
        for number, due in list(waiting.after(last)):
            if len(found) >= limits.link_page_commands_max or size_bytes >= _PAGE_BYTES_MAX:
                is_complete = False
                break
            key = keys.command_key(self.ref.id, due.time_ms, number)
            raw = self.system.journal.get(keys.COMMANDS, key)
            last = number
            if raw is None:
                del waiting.commands[number]  # it was removed from the log
                changed = True
                continue
            entry, size_bytes = decode(raw), size_bytes + len(raw)
            if not due.is_sent:
                self.put(keys.COMMANDS, key, encode({**entry, SENT: now_ms}))
                waiting.commands[number] = due._replace(is_sent=True)
                changed = True
            device = None if link.device == self.ref.id else self.ref.id
            found.append(_link_command(number, entry, device))
        if changed:
            self._save_waiting()
        # In this turn, not after its commit: a command of the next turn goes to the link directly and is noted as sent.
        link.given[self.ref.id] = last
        if is_complete:
            link.behind.pop(self.ref.id, None)
        if found:
            self.after_commit(partial(self._links.give, link, found))

    def on_acknowledge_command(self, message: AcknowledgeCommand) -> bool:
        """Note that the device has the command. Answers False if it does not wait (any more)."""
        return self._settle(message, ACKNOWLEDGED, self._links.count_acknowledged)

    def on_give_up_command(self, message: GiveUpCommand) -> bool:
        """Let a command expire that is too large for the client. Answers False if it does not wait (any more)."""
        return self._settle(message, DROPPED, partial(self._links.count_expired, 1))

    def _settle(
        self, message: AcknowledgeCommand | GiveUpCommand, field: str, counted: Callable[[], None]
    ) -> bool:
        """Let a command wait no longer, and note why in its entry."""
        self._check_gateway(message.gateway)
        if message.id not in self.waiting.commands:
            return False
        self._note(message.id, field, self.system.clock.wall_ms())
        del self.waiting.commands[message.id]
        self._save_waiting()
        self.after_commit(counted)
        return True

    def _check_gateway(self, gateway: bytes | None) -> None:
        if gateway is not None and gateway != self._gateway():
            raise NotFound(f"There is no device {self.ref.id.hex()} whose gateway is {gateway.hex()}.")

    # The gateway of a peripheral.

    def _gateway(self) -> bytes | None:
        """The gateway of a peripheral, if it is one (`hierarchy.py` says why it may not be)."""
        gateway = self._named_gateway()
        other = self._other(gateway) if gateway else None
        return gateway if other is not None and other["deviceClass"] in GATEWAYS else None

    def _store(self, doc: Doc) -> None:
        before = self._named_gateway()
        super()._store(doc)
        after = self._named_gateway()
        if before != after:
            if self.waiting.commands:
                self._save_waiting()
            self.after_commit(partial(self._links.moved, self.ref.id, before or None, after or None))

    def _named_gateway(self) -> bytes:
        """The gateway that the record of a peripheral names; empty for other devices.

        Most of these are told by the bytes of the record, without decoding it.
        """
        if b"peripheral" not in self.raw:
            return b""
        doc = self.doc
        return bytes.fromhex(doc.get("gatewayId") or "") if doc["deviceClass"] == "peripheral" else b""

    def on_delete_device(self, message: DeleteDevice) -> None:
        gateway = self._named_gateway()
        super().on_delete_device(message)
        if self.waiting.gateway:
            self._save_waiting()
        self.after_commit(partial(self._links.gone, self.ref.id, gateway or None))

    def on_restore_device(self, message: RestoreDevice) -> None:
        super().on_restore_device(message)
        if self.waiting.commands:
            self._save_waiting()


def command_for_many(body: CommandToMany | CommandPost) -> SendCommand:
    """The message with a command for many devices: its payload is checked and encoded once. Raises `Invalid`."""
    if body.payload is msgspec.UNSET:
        return SendCommand(body=body)
    check_nesting(body.payload, "payload")
    return SendCommand(body=body, payload=encode(body.payload))


def _link_command(number: int, entry: Doc, device: bytes | None = None) -> LinkCommand:
    return LinkCommand(number, entry["name"], entry.get("payload", msgspec.UNSET), entry["time"], device)
