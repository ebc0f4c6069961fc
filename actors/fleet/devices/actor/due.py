"""What is due of a device: triggers of inactivity and alarms, by its reports and with time.

Owns when they fire, open and close in the turns of the device. Does not own when a device is looked at without a report
(`inactivity.py`), nor the steps of alarms (`fleet/alarms/standing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.timestamps import HOUR_MS, iso
from trunkline.actors.fleet.alarms.index import AlarmIndex
from trunkline.actors.fleet.alarms.outbox import AlarmOutbox
from trunkline.actors.fleet.alarms.standing import (
    DeviceAlarms,
    active_ms,
    disconnected_ms,
    encode_standings,
    stored_alarms,
)
from trunkline.actors.fleet.devices.actor.removal import DeviceRemoval
from trunkline.actors.fleet.devices.record.messages import FireInactivity
from trunkline.actors.fleet.devices.state.silence import decode_fired, encode_fired, last_sign_ms, silence_of
from trunkline.actors.workflows.flows.due_times import Watches
from trunkline.actors.workflows.triggers.index import FlowIndex, Triggers, Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.actors.workflows.triggers.of_devices import watchers_of_device
from trunkline.store import keys

_MARKED = b"\x01"


class DeviceDue(DeviceRemoval):
    """The part of the device actor that fires triggers of inactivity, and opens and closes alarms."""

    __slots__ = ("_alarms",)

    def __init__(self, system: Any, ref: Ref) -> None:
        self._alarms: DeviceAlarms | None = None
        super().__init__(system, ref)

    def on_fire_inactivity(self, message: FireInactivity) -> int | None:  # noqa: ARG002
        """Stage the triggers of inactivity that are due, and note that they have fired; look at the alarms."""
        now_ms, head, id = self.system.clock.wall_ms(), self.head, self.ref.id
        key = keys.silence_key(id)
        fired = decode_fired(self.system.journal.get(keys.TIMELINE, key))
        since = self.system.component(Watches).since(self.ref.parent)
        watchers = self._inactivity_watchers(self.system.component(FlowIndex).of(self.ref.parent))
        last_ms = last_sign_ms(head, self.doc)
        silence = silence_of(watchers, since, last_ms, fired, now_ms)
        if silence.due:
            head.is_silent = True
            self.put(keys.TIMELINE, key, encode_fired(silence.fired))
            hour = keys.app_counts_key(self.ref.parent, now_ms // HOUR_MS)
            self.add(keys.COUNTS, hour, {"timer": len(silence.due)})
        last = iso(head.arrived_ms) if head.arrived_ms >= 0 else None
        for watcher in silence.due:
            data = {"inactivitySeconds": watcher.config["seconds"], "lastActivity": last}
            cause = Cause(id.hex(), data, now_ms, {"relayType": "timer"}, device=id)
            stage(self, (watcher,), cause)
        due = [each for each in (silence.next_ms, self._look_at_alarms(now_ms)) if each is not None]
        return min(due, default=None)

    def _end_silence(self) -> None:
        """The device reports again: no trigger has fired since."""
        self.delete(keys.TIMELINE, keys.silence_key(self.ref.id))

    def _inactivity_watchers(self, triggers: Triggers) -> tuple[Watcher, ...]:
        return watchers_of_device(triggers, "Inactivity", self.ref.id, self.doc["tags"])

    # Alarms.

    def _watch_alarms(self) -> None:
        """Note the alarm rules about the device."""
        self._alarms = self._alarm_rules() if self._has_alarm_rules() else None

    def _has_alarm_rules(self) -> bool:
        """Whether the application has any."""
        return self.system.component(AlarmIndex).count(self.ref.parent) > 0

    def _alarm_rules(self) -> DeviceAlarms | None:
        """The rules about the device and how they stand; None if there is nothing."""
        return stored_alarms(self.system, self.ref.parent, self.ref.id, self.doc, self.attributes)

    def _judge(self, alarms: DeviceAlarms, points: Sequence[tuple[int, dict[int, Any]]], now_ms: int) -> None:
        """Open and close alarms by what the device reports. The head is as it was before."""
        alarms.report(points, self.head, now_ms)
        if alarms.is_changed:
            self._keep_alarms(alarms)

    def _look_at_alarms(self, now_ms: int) -> int | None:
        """Open and close the alarms that are due with time. Returns when to look next."""
        alarms = self._alarms = self._alarm_rules()
        if alarms is None:
            return None
        doc = self.doc
        next_ms = alarms.look(active_ms(self.head, doc, now_ms), disconnected_ms(doc), now_ms)
        if alarms.is_changed:
            self._keep_alarms(alarms)
        return next_ms

    def _end_alarms(self) -> None:
        """The device is deleted: nothing holds any more."""
        key = keys.alarms_key(self.ref.id)
        self._alarms = None
        if self.system.journal.get(keys.TIMELINE, key) is not None:
            self.delete(keys.TIMELINE, key)
            self._mark_untold()
        self._mark_caused()

    def _mark_caused(self) -> None:
        """The device has changed: the rules about its events that hold may not be about it any more."""
        if (
            self.system.journal.get(keys.META, keys.caused_alarms_key(self.ref.parent, self.ref.id))
            is not None
        ):
            self._mark_untold()

    def _keep_alarms(self, alarms: DeviceAlarms) -> None:
        key = keys.alarms_key(self.ref.id)
        if alarms.standings:
            self.put(keys.TIMELINE, key, encode_standings(alarms.standings))
        else:
            self.delete(keys.TIMELINE, key)
        if alarms.has_turned:
            self._mark_untold()
        if alarms.is_waiting:
            self._tell_inactivity()
        alarms.is_changed = alarms.has_turned = alarms.is_waiting = False

    def _mark_untold(self) -> None:
        """The event log is to look how the alarms stand; the marker is in the batch of what has turned them."""
        application, id = self.ref.parent, self.ref.id
        self.put(keys.META, keys.untold_alarms_key(application, id), _MARKED)
        self.after_commit(partial(self.system.component(AlarmOutbox).add, application, id))
