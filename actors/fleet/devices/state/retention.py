"""Retention of what a device reported: which points and log entries are too old, and which of them stay all the same.

Reads show nothing that is older than its limit, whether it was removed or not. What is found here is removed by the
device itself, in a turn (`fleet/devices/actor/removal.py`); `actors/maintenance/retention.py` decides when.

Points are removed by whole blocks (`store/sorted_runs.py`), as soon as the newest point of a block is too old. Two
kinds of points stay with their blocks, whatever their age: the newest one of the device, which `device.getState` shows,
and those that hold a long text of the composite state, which the head only refers to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trunkline.actors.core.records.expiry import (
    NEVER_MS,
    Part,
    Search,
    Step,
    kept_since_ms,
    older,
    older_hours,
    search_each,
)
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.actors.platform.applications.archive_days import oldest_unarchived_ms
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.sorted_runs import blocks_of, runs_of

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


class ExpireData(Message, frozen=True):
    """Remove what is too old: blocks of points and log entries by their keys, payload counts by their hours.

    The composite state stays as it is. `points` is the number of points in the blocks. The answer are the numbers of
    removed points, commands, log entries and hours.
    """

    blocks: list[bytes]
    points: int
    commands: list[bytes]
    logs: list[bytes]
    hours: list[int]

    @property
    def entries(self) -> int:
        """The number of entries of the store to remove."""
        return len(self.blocks) + len(self.commands) + len(self.logs) + len(self.hours)


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


def expired_data(snapshot: Snapshot, device: bytes, oldest: Oldest, most: int) -> Search[ExpireData]:
    """Search what a device has that is older than `oldest`: at most `most` entries."""
    blocks, points, points_wait_ms = expired_blocks(snapshot, device, oldest.points, most)
    left = most - len(blocks)
    commands, commands_wait_ms = _expired_log(snapshot, keys.COMMANDS, device, oldest.commands, left)
    left -= len(commands)
    logs, logs_wait_ms = _expired_log(snapshot, keys.LOGS, device, oldest.logs, left)
    left -= len(logs)
    hours, hours_wait_ms = _expired_hours(snapshot, device, oldest.counts, left)
    message = ExpireData(blocks, points, commands, logs, hours)
    wait_ms = min(points_wait_ms, commands_wait_ms, logs_wait_ms, hours_wait_ms)
    return Search(message if message.entries else None, wait_ms > 0, wait_ms)


def needed_points(head: Head) -> set[int]:
    """The times of the points that stay whatever their age."""
    return {newest[0] for newest in head.values.values() if len(newest) == 1} | {head.newest_ms}


def expired_blocks(
    snapshot: Snapshot, device: bytes, oldest_ms: int, most: int
) -> tuple[list[bytes], int, int]:
    """The keys of the blocks to remove, how many points they have, and the time in ms until the next is too old."""
    found: list[bytes] = []
    points, wait_ms = 0, NEVER_MS
    if not oldest_ms:
        return found, points, wait_ms
    needed: set[int] | None = None
    for run in runs_of(snapshot):
        for block in blocks_of(snapshot, run.number, device, 0, keys.TIME_MS_MAX):
            if block.last_ms >= oldest_ms:
                wait_ms = min(wait_ms, block.last_ms - oldest_ms + 1)
                break
            if needed is None:
                needed = needed_points(Head.read(snapshot, device))
            if any(block.first_ms <= time_ms <= block.last_ms for time_ms in needed):
                continue
            if len(found) >= most:
                return found, points, 0
            found.append(block.key)
            points += block.rows
    return found, points, wait_ms


def _expired_log(
    snapshot: Snapshot, db: str, device: bytes, oldest_ms: int, most: int
) -> tuple[list[bytes], int]:
    """The keys of the log entries to remove, and the time in ms until the next one is too old."""
    if not oldest_ms:
        return [], NEVER_MS
    entries = snapshot.keys(db, device, keys.prefix_end(device))
    return older(((keys.entry_time_seq(key)[0], bytes(key)) for key in entries), oldest_ms, most)


def _expired_hours(snapshot: Snapshot, device: bytes, oldest_ms: int, most: int) -> tuple[list[int], int]:
    """The hours whose payload counts are to be removed, and the time in ms until the next one is too old."""
    if not oldest_ms:
        return [], NEVER_MS
    first, end = keys.counts_key(device, 0), keys.counts_key(device, keys.HOUR_MAX)
    hours = (int.from_bytes(key[-4:], "big") for key in snapshot.keys(keys.TIMELINE, first, end))
    return older_hours(hours, oldest_ms, most)


def search_devices(snapshot: Snapshot, step: Step) -> Part:
    """Search the devices of an application in the order of their ids, from the id `start` on."""
    application, limits = step.owner, step.limits
    unarchived_ms = oldest_unarchived_ms(snapshot, application, "devices")
    oldest = Oldest.of(limits, step.now_ms).before(unarchived_ms)
    if not any(oldest):
        return Part([], None, None, NEVER_MS)
    return search_each(
        snapshot, step, DEVICE, lambda device, most: expired_data(snapshot, device, oldest, most)
    )
