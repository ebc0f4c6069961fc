"""Removal of a device's states, commands and connection log: the part of the device actor that does it.

A removal takes several turns. A turn that removes the newest value of an attribute takes it out of the head, so the
composite state never shows a value that is gone. What is the newest value then is found by a long read
(`devices/removal_jobs.py`) and put into the head by a last turn. Reports that come in between are not lost, because
that turn replaces no newer value. Payload counts stay: they count what came, not what is kept.

What is removed because of its age leaves the composite state as it is (`devices/retention.py`).
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.devices.record import DeviceRecord
from trunkline.actors.devices.removal_messages import RemoveData, RestoreNewest
from trunkline.actors.devices.retention import ExpireData, needed_points
from trunkline.store import keys
from trunkline.store.codec import decode, encode_numbered


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
        for time_ms in message.points:
            if numbers is None:
                self.delete(keys.TIMELINE, keys.point_key(self.ref.id, time_ms))
            else:
                self._thin_out(time_ms, numbers)
            gone = newest_at.get(time_ms, ())
            lost += [number for number in gone if numbers is None or number in numbers]
        for number in lost:
            del self.head.values[number]
        for key in message.commands:
            self.delete(keys.COMMANDS, key)
        for key in message.logs:
            self.delete(keys.LOGS, key)
        return lost

    def _thin_out(self, time_ms: int, numbers: set[int]) -> None:
        """Remove the values of some attributes from a point; all of it if no other value is left."""
        key = keys.point_key(self.ref.id, time_ms)
        raw = self.system.journal.get(keys.TIMELINE, key)
        point: dict[int, Any] = {} if raw is None else decode(raw)
        left = {number: value for number, value in point.items() if number not in numbers}
        if any(number >= 0 for number in left):
            self.put(keys.TIMELINE, key, encode_numbered(left))
        else:
            self.delete(keys.TIMELINE, key)

    def on_expire_data(self, message: ExpireData) -> list[int]:
        """Remove what is too old; the composite state stays. The answer are the numbers of removed entries."""
        id, needed = self.ref.id, needed_points(self.head)
        points = [time_ms for time_ms in message.points if time_ms not in needed]
        for time_ms in points:
            self.delete(keys.TIMELINE, keys.point_key(id, time_ms))
        for key in message.commands:
            self.delete(keys.COMMANDS, key)
        for key in message.logs:
            self.delete(keys.LOGS, key)
        for hour in message.hours:
            self.delete(keys.TIMELINE, keys.counts_key(id, hour))
        return [len(points), len(message.commands), len(message.logs), len(message.hours)]

    def on_restore_newest(self, message: RestoreNewest) -> bool:
        """Take older values into the head; False if one of them was removed since they were read."""
        journal, id, head = self.system.journal, self.ref.id, self.head
        values: list[tuple[int, int, Any]] = []
        for number, time_ms in message.values:
            raw = journal.get(keys.TIMELINE, keys.point_key(id, time_ms))
            point = {} if raw is None else decode(raw)
            if number not in point:
                return False
            if number in self.attributes.names:
                values.append((number, time_ms, point[number]))
        for number, time_ms, value in values:
            head.report(time_ms, {number: value})
        # Points that came since the read are few.
        first, end = keys.point_key(id, message.newest_ms + 1), keys.point_key(id, keys.TIME_MS_MAX)
        later = journal.range(keys.TIMELINE, first, end)
        head.newest_ms = keys.point_time_ms(later[-1][0]) if later else message.newest_ms
        self.put(keys.TIMELINE, keys.head_key(id), head.encoded())
        return True
