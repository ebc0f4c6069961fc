"""Inactivity: a task that looks at devices when a trigger of inactivity or an alarm may be due for them.

Owns when to look. A report tells nothing here: a look that finds one puts the next look off. A device for which all
triggers have fired is not looked at again before it reports. Whether a trigger fires is decided in the turn of the
device, which writes it down in the batch of the trigger, so a trigger fires once also across restarts. So it is with
alarms: of silence, of lost connections, and those of values that must hold for some time.

In memory is one entry for each device with such a trigger or rule, up to `inactivity_devices_max`, of which an owner
gets at most half. They are found in the store at the start, and when a workflow with such a trigger or a rule changes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.fleet.alarms.index import AlarmIndex
from trunkline.actors.fleet.alarms.standing import active_ms, disconnected_ms, stored_alarms
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import FireInactivity
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.actors.fleet.devices.state.silence import decode_fired, last_sign_ms, silence_of
from trunkline.actors.workflows.flows.due_times import INACTIVITY, DueTimes, Place, Watches
from trunkline.actors.workflows.triggers.alarm import Alarm
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.of_devices import watchers_of_device
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.store.snapshot import Snapshot

_AT_ONCE: Final = 64
"""Devices that are looked at before other tasks have their turn. What fires is in one commit."""
_ADDED_AT_ONCE: Final = 1_000
"""Devices of an application that are noted before other tasks have their turn: about a millisecond."""
_RETRY_MS: Final = 1_000

_log = structlog.get_logger("trunkline.flows")


class Inactivity(Moved):
    """Looks at the devices of one system. A component; run `run` in a nursery for as long as it is used."""

    def __init__(self, system: Host) -> None:
        self._system = system
        self._watches = system.component(Watches)
        self._rules = system.component(AlarmIndex)
        self._owners = system.component(Owners)
        self._looks = DueTimes(system.moves.away)
        self._devices = Counter[bytes]()
        """How many are looked at, by the owner who is charged for them."""
        self._applications: dict[bytes, tuple[bytes, int]] = {}
        """Of each application, who is charged for its devices, and how many are looked at."""
        self._to_scan: dict[bytes, None] = {}
        self._is_full = False
        self.alarm = Alarm(system.clock, self._looks, _AT_ONCE, self._ring, self._prepare)
        system.forgotten.append(self._forget)

    async def run(self) -> None:
        """Look at devices, until cancelled."""
        self._watches.on_change = self._rules.on_change = self._scan_later
        self._scan_all()
        await self.alarm.run()

    def _forget(self, application: bytes) -> None:
        """An application is deleted, or has left."""
        self._count(application, -self._looks.forget(application))
        self._to_scan.pop(application, None)

    async def come(self, application: bytes) -> None:
        """Look at the devices of an application."""
        self._scan_later(application)

    async def _ring(self, places: list[Place], now_ms: int) -> None:
        for application, _ in places:
            self._count(application, -1)
        async with trio.open_nursery() as nursery:
            for place in places:
                next_ms = self._next_ms(*place, now_ms)
                if next_ms is None:
                    continue
                if next_ms <= now_ms:
                    nursery.start_soon(self._fire, place, now_ms)
                else:
                    self._set(place, next_ms)

    async def _prepare(self, now_ms: int, was_set_back: bool) -> None:
        if was_set_back:
            self._scan_all()
        while self._to_scan:
            await self._scan(self._to_scan.popitem()[0], now_ms)

    def changed(self, application: bytes, device: bytes) -> None:
        """A device was created or changed, has reported after a trigger had fired, or waits for an alarm."""
        if self._watches.since(application) or self._rules.count(application):
            self._add((application, device), self._system.clock.wall_ms())

    def _scan_all(self) -> None:
        self._to_scan.update(dict.fromkeys((*self._watches.applications, *self._rules.applications)))

    def _scan_later(self, application: bytes) -> None:
        self._to_scan[application] = None
        self.alarm.look()

    def _add(self, place: Place, now_ms: int) -> None:
        devices_max = self._system.limits.inactivity_devices_max
        if place in self._looks or self._has_room(place[0], devices_max):
            self._set(place, now_ms)
        elif not self._is_full:
            self._is_full = True
            _log.warning(
                "no more devices are watched for inactivity, or no more of an owner", devices_max=devices_max
            )

    def _has_room(self, application: bytes, devices_max: int) -> bool:
        """Whether one more device of an application may be looked at: an owner has at most half of them."""
        owner, _ = self._applications.get(application) or (self._owners.of(application), 0)
        return self._devices[owner] < devices_max - len(self._looks)

    def _set(self, place: Place, at_ms: int) -> None:
        if place[0] in self._system.moves.away:
            return
        if place not in self._looks:
            self._count(place[0], 1)
        self._looks.set(place, at_ms)

    def _count(self, application: bytes, more: int) -> None:
        owner, count = self._applications.get(application) or (self._owners.of(application), 0)
        self._devices[owner] += more
        if not self._devices[owner]:
            del self._devices[owner]
        if count + more:
            self._applications[application] = owner, count + more
        else:
            self._applications.pop(application, None)

    async def _scan(self, application: bytes, now_ms: int) -> None:
        """Look at all devices of an application with such triggers: they may be due earlier than before."""
        triggers = self._system.component(FlowIndex).of(application)
        # All of them are looked up here, for the thread below.
        watched = sum(len(triggers.of_type(each)) for each in INACTIVITY)
        is_timed = self._rules.is_timed(application)

        def found(snapshot: Snapshot) -> list[bytes]:
            return [
                id
                for id, doc in records.scan(snapshot, DEVICE, application)
                if is_timed
                or (watched and watchers_of_device(triggers, "Inactivity", id, doc["tags"]))
                or snapshot.get(keys.TIMELINE, keys.alarms_key(id)) is not None
            ]

        try:
            devices = await self._system.read(found)
        except StoreError as broken:  # damage of one application must not end the others' triggers
            _log.error("silent devices not found", application=application.hex(), reason=str(broken))
            return
        for number, device in enumerate(devices, 1):
            self._add((application, device), now_ms)
            if not number % _ADDED_AT_ONCE:
                await trio.lowlevel.checkpoint()

    async def _fire(self, place: Place, now_ms: int) -> None:
        """Let the triggers of a device fire that are due, and note when to look again."""
        application, device = place
        try:
            next_ms = (await self._system.ask(Ref("device", application, device), FireInactivity())).value
        except NotFound:
            return
        except DomainError as refusal:
            _log.warning("inactivity postponed", device=device.hex(), reason=refusal.message)
            next_ms = now_ms + _RETRY_MS
        if next_ms is not None:
            self._set(place, next_ms)

    def _next_ms(self, application: bytes, device: bytes, now_ms: int) -> int | None:
        """When a trigger of a device is due, from what is stored; None if there is nothing to wait for."""
        journal = self._system.journal
        raw = records.raw_of(journal.get, DEVICE, application, device)
        if raw is None:
            return None
        doc, head = decode(raw), Head.read(journal, device)
        due = (
            self._inactive_ms(application, device, doc, head, now_ms),
            self._alarm_ms(application, device, doc, head, now_ms),
        )
        return min((each for each in due if each is not None), default=None)

    def _inactive_ms(
        self, application: bytes, device: bytes, doc: Doc, head: Head, now_ms: int
    ) -> int | None:
        since = self._watches.since(application)
        triggers = self._system.component(FlowIndex).of(application) if since else None
        watchers = triggers and watchers_of_device(triggers, "Inactivity", device, doc["tags"])
        if not watchers:
            return None
        fired = decode_fired(self._system.journal.get(keys.TIMELINE, keys.silence_key(device)))
        found = silence_of(watchers, since, last_sign_ms(head, doc), fired, now_ms)
        return now_ms if found.due else found.next_ms

    def _alarm_ms(self, application: bytes, device: bytes, doc: Doc, head: Head, now_ms: int) -> int | None:
        attributes = Attributes(doc["attributes"], doc["attributeNext"])
        alarms = stored_alarms(self._system, application, device, doc, attributes)
        return (
            None
            if alarms is None
            else alarms.next_ms(active_ms(head, doc, now_ms), disconnected_ms(doc), now_ms)
        )
