"""The move of points from format 4 to format 5, in parts.

Format 4 kept each point as an entry of TIMELINE: its key was the device, 0x10 and the time, and it was beside the
hourly counts and the head of the device. Format 5 keeps points in runs. Of a large store this takes minutes, so it is
done in many transactions: the format is 5 from the first one on, and a marker in META says that points are left. After
a crash the next start goes on. A reader never sees it, because it is done before the store is served.

The second number of a head of format 4 was the time of the newest report that it contains. Up to three newer points may
follow; they become arrivals, so that they are applied to the head as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import lmdb
import structlog

from trunkline.store import codec, keys
from trunkline.store.arrivals import Arrivals
from trunkline.store.checksums import opened, sealed
from trunkline.store.columns import MERGES, Points
from trunkline.store.errors import StoreBroken, StoreDamaged, translate
from trunkline.store.keyring import Keyring
from trunkline.store.report_items import Reports, reported
from trunkline.store.runs import Run, encoded_blocks, encoded_runs

if TYPE_CHECKING:
    from lmdb import _Database as Handle

    from trunkline.store.memory_map import MemoryMap

MARKER: Final = b"pointsLeft"
"""The key in META of the state of the move: [the device to go on with, points, first and last time in ms]."""
PART_POINTS: Final = 50_000
"""The points that one transaction moves."""

_RUN: Final = 1
_POINT: Final = b"\x10"
_HEAD: Final = b"\xff"
_KEY_BYTES: Final = keys.ID_BYTES + 1 + 8

_log = structlog.get_logger("trunkline.store")


def mark_points(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
    """Format 5: points are in runs. They are moved later; this marks that they are to be moved."""
    handles = memory_map.handles
    _put(transaction, handles, keys.META, MARKER, codec.encode([b"", 0, keys.TIME_MS_MAX, 0]))
    _put(transaction, handles, keys.META, keys.RUNS_KEY, encoded_runs([Run(_RUN, 0, 0, keys.TIME_MS_MAX)]))


def move_points(memory_map: MemoryMap) -> None:
    """Move all points that are left. Nothing happens in a store that has none. No read may be open."""
    parts = 0
    while True:
        try:
            with memory_map.env.begin(write=True) as transaction:
                more = _move_part(transaction, memory_map)
        except lmdb.MapFullError:
            if not memory_map.resize(memory_map.larger_size()):
                raise StoreBroken("A read is open, so the migration cannot get more room.") from None
        except lmdb.Error as error:
            raise translate(error, "migration of points") from error
        else:
            if not more:
                return
            parts += 1
            if parts % 20 == 0:
                _log.info("migrating points", points=parts * PART_POINTS)


def _move_part(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap) -> bool:
    """Move the next points; False if none is left."""
    handles = memory_map.handles
    marker = memory_map.read(transaction, keys.META, MARKER)
    if marker is None:
        return False
    device, rows, first_ms, last_ms = codec.decode(marker)
    left, arrived = PART_POINTS, dict[bytes, Reports]()
    found: bytes | None = device
    with transaction.cursor(handles[keys.TIMELINE]) as cursor:
        while left > 0:
            found = _next_device(cursor, device)
            if found is None:
                break
            device = found
            points = _take_points(cursor, memory_map, device, left)
            left -= len(points) + 1
            ahead_ms = _newest_ms(transaction, memory_map, device)
            settled = [point for point in points if point[0] <= ahead_ms]
            for first, block in encoded_blocks(Points.of(settled)):
                _put(transaction, handles, keys.RUNS, keys.block_key(_RUN, device, first), block)
            if settled:
                rows += len(settled)
                first_ms, last_ms = min(first_ms, settled[0][0]), max(last_ms, settled[-1][0])
            for time_ms, point, _ in points:
                if time_ms > ahead_ms:
                    item = reported(time_ms, codec.encode(point))
                    arrived.setdefault(device, Reports()).items.append(item)
            if left > 0:  # all points of the device are moved
                device = keys.prefix_end(device + _HEAD) or b""
                found = device or None
                if found is None:
                    break
    if arrived:
        arrivals = Arrivals(1 << 62)
        with transaction.cursor(handles[keys.ARRIVALS]) as cursor:
            cursor.set_range(keys.ARRIVALS_END)  # the names of the databases are there
            arrivals.seq = int.from_bytes(cursor.key(), "big") if cursor.prev() else 0
        chunk = arrivals.stage(arrived)
        _put(transaction, handles, keys.ARRIVALS, keys.arrival_key(chunk.seq), chunk.value)
    if found is None:
        transaction.delete(MARKER, db=handles[keys.META])
        run = [Run(_RUN, rows, first_ms, last_ms)] if rows else []
        _put(transaction, handles, keys.META, keys.RUNS_KEY, encoded_runs(run))
        return False
    _put(transaction, handles, keys.META, MARKER, codec.encode([device, rows, first_ms, last_ms]))
    return True


def _next_device(cursor: lmdb.Cursor[bytes], device: bytes) -> bytes | None:
    """The device of the first entry of TIMELINE from `device` on."""
    found = cursor.set_range(device) if device else cursor.first()
    return cursor.key()[: keys.ID_BYTES] if found else None


def _take_points(
    cursor: lmdb.Cursor[bytes], memory_map: MemoryMap, device: bytes, most: int
) -> list[tuple[int, dict[int, object], int]]:
    """Remove and return the oldest points of a device: time in ms, values by attribute number, mark."""
    points: list[tuple[int, dict[int, object], int]] = []
    prefix = device + _POINT
    found = cursor.set_range(prefix)
    while found and len(points) < most:
        key, stored = cursor.item()
        if not key.startswith(prefix) or len(key) != _KEY_BYTES:
            break
        value = opened(key, stored)
        if value is None:
            raise memory_map.damaged(keys.TIMELINE, key)
        try:
            points.append((int.from_bytes(key[-8:], "big"), codec.decode(value), MERGES))
        except ValueError as error:
            raise StoreDamaged(f"{keys.TIMELINE} {key.hex()}: the value is {error}.") from error
        cursor.delete()
        found = bool(cursor.key())
    return points


def _newest_ms(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, device: bytes) -> int:
    """The time of the newest report that the head of a device contains."""
    raw = memory_map.read(transaction, keys.TIMELINE, keys.head_key(device))
    newest_ms: int = keys.TIME_MS_MAX if raw is None else codec.decode(raw)[1]
    return newest_ms


def _put(
    transaction: lmdb.Transaction[bytes], handles: Mapping[str, Handle], db: str, key: bytes, value: bytes
) -> None:
    transaction.put(key, sealed(key, value), db=handles[db])
