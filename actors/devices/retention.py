"""Retention of what a device reported: which points and log entries are too old, and which of them stay all the same.

Reads show nothing that is older than its limit, whether it was removed or not. What is found here is removed by the
device itself, in a turn (`devices/removal.py`); `actors/retention.py` decides when.

Two kinds of points stay, whatever their age: the newest one of the device, which `device.getState` shows, and those
that hold a long text of the composite state, which the head only refers to. All that concerns points is in
`expired_points` and `needed_points`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from trunkline.actors.devices.head import Head
from trunkline.actors.values.structs import Message
from trunkline.actors.values.timestamps import HOUR_MS
from trunkline.limits.table import DAY_MS, Limits
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")

NEVER_MS = keys.TIME_MS_MAX
"""The wait for an entry that does not exist."""


class ExpireData(Message, frozen=True):
    """Remove what is too old: points by their times in ms, log entries by their keys, payload counts by their hours.

    The composite state stays as it is. The answer are the numbers of removed entries, in this order.
    """

    points: list[int]
    commands: list[bytes]
    logs: list[bytes]
    hours: list[int]

    @property
    def entries(self) -> int:
        """The number of entries to remove."""
        return len(self.points) + len(self.commands) + len(self.logs) + len(self.hours)


class Oldest(NamedTuple):
    """The times in ms from which states, commands, connection logs and payload counts are kept; 0: all are."""

    points: int
    commands: int
    logs: int
    counts: int

    def before(self, time_ms: int | None) -> Oldest:
        """The same, but what was reported from `time_ms` on is kept; None: nothing more is kept."""
        if time_ms is None:
            return self
        return self._replace(
            points=min(self.points, time_ms),
            commands=min(self.commands, time_ms),
            logs=min(self.logs, time_ms),
        )

    @classmethod
    def of(cls, limits: Limits, now_ms: int) -> Oldest:
        """The times that the limits ask for."""
        return cls(
            kept_since_ms(limits.state_keep_days, now_ms),
            kept_since_ms(limits.command_keep_days, now_ms),
            kept_since_ms(limits.log_keep_days, now_ms),
            kept_since_ms(limits.payload_count_keep_days, now_ms),
        )


class Search(NamedTuple):
    """What was found at a device: the message that removes it, None if there is nothing to remove.

    `is_complete`: the device has no more of it now. `wait_ms` is the time until its next entry is too old.
    """

    message: ExpireData | None
    is_complete: bool
    wait_ms: int


def kept_since_ms(keep_days: int, now_ms: int) -> int:
    """The time in ms from which entries are kept; 0 if all are."""
    return max(0, now_ms - keep_days * DAY_MS) if keep_days else 0


def expired_data(snapshot: Snapshot, device: bytes, oldest: Oldest, most: int) -> Search:
    """Search what a device has that is older than `oldest`: at most `most` entries."""
    points, points_wait_ms = expired_points(snapshot, device, oldest.points, most)
    left = most - len(points)
    commands, commands_wait_ms = _expired_log(snapshot, keys.COMMANDS, device, oldest.commands, left)
    left -= len(commands)
    logs, logs_wait_ms = _expired_log(snapshot, keys.LOGS, device, oldest.logs, left)
    left -= len(logs)
    hours, hours_wait_ms = _expired_hours(snapshot, device, oldest.counts, left)
    message = ExpireData(points, commands, logs, hours)
    wait_ms = min(points_wait_ms, commands_wait_ms, logs_wait_ms, hours_wait_ms)
    return Search(message if message.entries else None, wait_ms > 0, wait_ms)


def needed_points(head: Head) -> set[int]:
    """The times of the points that stay whatever their age."""
    return {newest[0] for newest in head.values.values() if len(newest) == 1} | {head.newest_ms}


def expired_points(snapshot: Snapshot, device: bytes, oldest_ms: int, most: int) -> tuple[list[int], int]:
    """The times of the points to remove, and the time in ms until the next one is too old."""
    if not oldest_ms:
        return [], NEVER_MS
    first, end = keys.point_key(device, 0), keys.point_key(device, keys.TIME_MS_MAX)
    times = map(keys.point_time_ms, snapshot.keys(keys.TIMELINE, first, end))
    two = [time_ms for _, time_ms in zip(range(2), times, strict=False)]
    if len(two) < 2 or two[0] >= oldest_ms:
        # The head is not read: this is how most devices are found.
        return [], two[0] - oldest_ms + 1 if two and two[0] >= oldest_ms else NEVER_MS
    needed = needed_points(Head.read(snapshot, device))
    removable = ((time_ms, time_ms) for time_ms in chain(two, times) if time_ms not in needed)
    return _older(removable, oldest_ms, most)


def _expired_log(
    snapshot: Snapshot, db: str, device: bytes, oldest_ms: int, most: int
) -> tuple[list[bytes], int]:
    """The keys of the log entries to remove, and the time in ms until the next one is too old."""
    if not oldest_ms:
        return [], NEVER_MS
    entries = snapshot.keys(db, device, keys.prefix_end(device))
    return _older(((keys.entry_time_seq(key)[0], bytes(key)) for key in entries), oldest_ms, most)


def _expired_hours(snapshot: Snapshot, device: bytes, oldest_ms: int, most: int) -> tuple[list[int], int]:
    """The hours whose payload counts are to be removed, and the time in ms until the next one is too old."""
    if not oldest_ms:
        return [], NEVER_MS
    first, end = keys.counts_key(device, 0), keys.counts_key(device, keys.HOUR_MAX)
    hours = (int.from_bytes(key[-4:], "big") for key in snapshot.keys(keys.TIMELINE, first, end))
    return older_hours(hours, oldest_ms, most)


def older_hours(hours: Iterator[int], oldest_ms: int, most: int) -> tuple[list[int], int]:
    """Those of the hours that ended before `oldest_ms`, and the time in ms until the next one is too old."""
    return _older((((hour + 1) * HOUR_MS, hour) for hour in hours), oldest_ms, most)


def _older(entries: Iterator[tuple[int, T]], oldest_ms: int, most: int) -> tuple[list[T], int]:
    """Those of the entries, which come in the order of their times, that are older, and the wait for the next one."""
    found: list[T] = []
    for time_ms, entry in entries:
        if time_ms >= oldest_ms:
            return found, time_ms - oldest_ms + 1
        if len(found) >= most:
            return found, 0
        found.append(entry)
    return found, NEVER_MS
