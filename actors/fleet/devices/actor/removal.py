"""Removal of a device's states, commands and connection log: the part of the device actor that does it.

A removal takes several turns. A turn that removes the newest value of an attribute takes it out of the head, so the
composite state never shows a value that is gone. What is the newest value then is found by a long read
(`fleet/devices/bulk/removal_jobs.py`) and put into the head by a last turn. Reports that come in between are not lost,
because that turn replaces no newer value. Payload counts stay: they count what came, not what is kept.

What is removed because of its age leaves the composite state as it is (`fleet/devices/state/retention.py`).
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.fleet.devices.actor.record import DeviceRecord
from trunkline.actors.fleet.devices.bulk.removal_messages import RemoveData, RestoreNewest
from trunkline.actors.fleet.devices.state.retention import ExpireData
from trunkline.store import keys
from trunkline.store.codec import encode_numbered
from trunkline.store.report_items import removed, replaced
from trunkline.store.sorted_runs import point_at


class DeviceRemoval(DeviceRecord):
    """The part of the device actor that removes what the device reported."""

    __slots__ = ()

    def on_remove_data(self, message: RemoveData) -> list[int]:
        """Remove points and log entries; the answer are the attributes that lost their newest value."""
        numbers = None
        if message.attributes is not None:
            found = (self.attributes.number(name) for name in message.attributes)
            numbers = {number for number in found if number is not None}
        newest_at: dict[int, list[int]] = {}
        for number, newest in self.head.values.items():
            newest_at.setdefault(newest[0], []).append(number)
        lost: list[int] = []
        if numbers is None:
            for time_ms in message.points:
                self.writes().report_removal(self.ref.id, removed(time_ms))
        else:
            self._thin_out(message.points, numbers)
        for time_ms in message.points:
            gone = newest_at.get(time_ms, ())
            lost += [number for number in gone if numbers is None or number in numbers]
        for number in lost:
            del self.head.values[number]
        for key in message.commands:
            self.delete(keys.COMMANDS, key)
        for key in message.logs:
            self.delete(keys.LOGS, key)
        return lost

    def _thin_out(self, times: list[int], numbers: set[int]) -> None:
        """Remove the values of some attributes from points; all of a point if no other value is left."""
        if not times:
            return
        wanted, id = set(times), self.ref.id
        for part in self.system.journal.points(id, min(times), max(times)):
            for time_ms, point in part.rows():
                if time_ms not in wanted:
                    continue
                left = {number: value for number, value in point.items() if number not in numbers}
                if any(number >= 0 for number in left):
                    self.writes().report_removal(id, replaced(time_ms, encode_numbered(left)))
                else:
                    self.writes().report_removal(id, removed(time_ms))

    def on_expire_data(self, message: ExpireData) -> list[int]:
        """Remove what is too old; the composite state stays. The answer are the numbers of removed entries."""
        id = self.ref.id
        for key in message.blocks:
            self.delete(keys.RUNS, key)
        for key in message.commands:
            self.delete(keys.COMMANDS, key)
        for key in message.logs:
            self.delete(keys.LOGS, key)
        for hour in message.hours:
            self.delete(keys.TIMELINE, keys.counts_key(id, hour))
        return [message.points, len(message.commands), len(message.logs), len(message.hours)]

    def on_restore_newest(self, message: RestoreNewest) -> bool:
        """Take older values into the head; False if one of them was removed since they were read."""
        journal, id, head = self.system.journal, self.ref.id, self.head
        values: list[tuple[int, int, Any]] = []
        for number, time_ms in message.values:
            point = point_at(journal.points(id, time_ms, time_ms))
            if number not in point:
                return False
            if number in self.attributes.names:
                values.append((number, time_ms, point[number]))
        for number, time_ms, value in values:
            head.report(time_ms, {number: value})
        # Points that came since the read are few.
        later = [part.last_ms for part in journal.points(id, message.newest_ms + 1, keys.TIME_MS_MAX)]
        head.newest_ms = later[-1] if later else message.newest_ms
        self.writes()  # so that the head is stored
        return True
