"""Sorted runs: the points of devices as compressed blocks, sorted by device and time.

Owns the list of runs, and reading the blocks of a device from several runs and the arrivals as one series. Does not own
the form of a block (`column_codec.py`) nor who writes the runs (`flusher.py`, `compaction.py`).

A run is what devices reported in some commits, and a newer run overrides an older one: for the same device and time,
attribute by attribute. The blocks of a device in one run do not overlap in time. So a series is read from all runs at a
time, from each a block at a time; where the times of runs do not overlap, which is the usual case, whole blocks are
passed on as they are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from trunkline.store import codec, keys
from trunkline.store.column_codec import decode, encode, header, last_row
from trunkline.store.columns import REMOVES, Points, Row, merged
from trunkline.store.errors import StoreDamaged

BLOCK_ROWS: Final = 1024
"""The points of a full block."""
BLOCK_BYTES_MAX: Final = 64 * 1024
"""A larger block is split, unless it is one point."""


_BY_LAST_TIME: Final = attrgetter("last_ms")


class Reader(Protocol):
    """A snapshot of the store (`snapshot.py`)."""

    def get(self, db: str, key: bytes) -> bytes | None:
        """Return the value at `key`, None if there is none."""
        ...

    def range(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value for lo <= key < hi."""
        ...


class SortedRun(NamedTuple):
    """A run: its number, its points (a guess), and the range of their times in ms."""

    number: int
    rows: int
    first_ms: int
    last_ms: int


@lru_cache(64)
def _decoded(raw: bytes | None) -> tuple[SortedRun, ...]:
    return () if raw is None else tuple(SortedRun(*each) for each in codec.decode(raw))


def runs_of(snapshot: Reader) -> tuple[SortedRun, ...]:
    """All runs, the oldest first."""
    return _decoded(snapshot.get(keys.META, keys.RUNS_KEY))


def encoded_runs(runs: Sequence[SortedRun]) -> bytes:
    """The list of all runs as it is stored."""
    return codec.encode([list(run) for run in runs])


class Block(NamedTuple):
    """A stored block."""

    key: bytes
    raw: bytes
    rows: int
    first_ms: int
    last_ms: int

    @classmethod
    def of(cls, key: bytes, raw: bytes) -> Block:
        """Read only the head of the block. Raises StoreDamaged."""
        try:
            head = header(raw)
        except ValueError as error:
            raise _damaged(key, error) from error
        return cls(bytes(key), raw, head.rows, head.first_ms, head.last_ms)

    def last_row(self) -> Row | None:
        """The last row, None if it must be decoded with all others. Raises StoreDamaged."""
        try:
            return last_row(self.raw)
        except ValueError as error:
            raise _damaged(self.key, error) from error

    def points(self, numbers: Container[int] | None = None) -> Points:
        """The points, with the columns of these attributes only. Raises StoreDamaged."""
        try:
            return decode(self.raw, numbers)
        except ValueError as error:
            raise _damaged(self.key, error) from error


class Arrived:
    """Points that have arrived, in the place of a block."""

    __slots__ = ("first_ms", "last_ms", "rows")

    key = b""

    def __init__(self, rows: Points) -> None:
        self.rows = rows
        self.first_ms = rows.first_ms
        self.last_ms = rows.last_ms

    def points(self, _numbers: Container[int] | None = None) -> Points:
        """All of them, with all attributes."""
        return self.rows


def _damaged(key: bytes, error: ValueError) -> StoreDamaged:
    return StoreDamaged(f"{keys.RUNS} {key.hex()}: the block is damaged: {error}.")


def blocks_of(snapshot: Reader, run: int, device: bytes, low_ms: int, high_ms: int) -> Iterator[Block]:
    """Yield the blocks of a device in a run that may have points in this range, by time."""
    first = keys.block_key(run, device, low_ms)
    before = snapshot.range(keys.RUNS, keys.block_key(run, device, 0), first + b"\x00", reverse=True)
    for key, raw in before:
        block = Block.of(key, raw)
        if block.last_ms >= low_ms:
            first = block.key
        break
    for key, raw in snapshot.range(keys.RUNS, first, keys.block_key(run, device, high_ms) + b"\x00"):
        yield Block.of(key, raw)


def blocks_back(snapshot: Reader, run: int, device: bytes, low_ms: int, high_ms: int) -> Iterator[Block]:
    """The same, the newest first."""
    first, end = keys.block_key(run, device, 0), keys.block_key(run, device, high_ms) + b"\x00"
    for key, raw in snapshot.range(keys.RUNS, first, end, reverse=True):
        block = Block.of(key, raw)
        if block.last_ms < low_ms:
            return
        yield block


def newest_point(snapshot: Reader, device: bytes, low_ms: int, high_ms: int) -> Points | None:
    """The newest point of a device in a range of the runs, if one block says it alone; None if more must be read."""
    newest: Block | None = None
    for run in sorted(runs_of(snapshot), key=_BY_LAST_TIME, reverse=True):
        if run.last_ms < (low_ms if newest is None else newest.last_ms):
            break
        if run.first_ms > high_ms:
            continue
        for block in blocks_back(snapshot, run.number, device, low_ms, high_ms):
            if block.last_ms > high_ms or (newest is not None and block.last_ms == newest.last_ms):
                return None
            if newest is None or block.last_ms > newest.last_ms:
                newest = block
            break
    row = None if newest is None else newest.last_row()
    return None if row is None or row[2] == REMOVES else Points.of_maps([row[0]], [row[1]])


def encoded_blocks(points: Points) -> Iterator[tuple[int, bytes]]:
    """Yield the time of the first point and the bytes of each of the blocks that points become."""
    if len(points) <= BLOCK_ROWS:
        if len(points):
            yield from _encoded(points)
        return
    parts = -(-len(points) // BLOCK_ROWS)
    starts = points.times[:: -(-len(points) // parts)].tolist()
    for first_ms, next_ms in zip(starts, [*starts[1:], keys.TIME_MS_MAX + 1], strict=True):
        yield from _encoded(points.between(first_ms, next_ms - 1))


def _encoded(points: Points) -> Iterator[tuple[int, bytes]]:
    raw = encode(points)
    if len(raw) <= BLOCK_BYTES_MAX or len(points) < 2:
        yield points.first_ms, raw
        return
    middle_ms = int(points.times[len(points) // 2])
    yield from _encoded(points.between(points.first_ms, middle_ms - 1))
    yield from _encoded(points.between(middle_ms, points.last_ms))


# Reading several runs as one series.


class Layer:
    """A source of rows in order of time: a run, opened when its range is reached, or the arrivals.

    `current` are rows that are decoded and not taken; without them `edge_ms` is the time that the next rows do not come
    before (in reverse: after), None at the end.
    """

    __slots__ = ("_blocks", "_numbers", "_open", "_reverse", "current", "edge_ms", "loaded")

    def __init__(
        self,
        blocks: Iterator[Block | Arrived],
        *,
        edge_ms: int,
        numbers: Container[int] | None = None,
        reverse: bool = False,
    ) -> None:
        self._blocks = blocks
        self._numbers = numbers
        self._reverse = reverse
        self._open: Block | Arrived | None = None
        self.current: Points | None = None
        self.edge_ms: int | None = edge_ms
        self.loaded: list[bytes] = []
        """The keys of all blocks that were decoded."""

    def advance(self) -> None:
        """Find the next block, or decode the one that was found."""
        if self._open is not None:
            block, self._open = self._open, None
            self.loaded.append(block.key)
            self.current = block.points(self._numbers)
        else:
            self._open = next(self._blocks, None)
            if self._open is None:
                self.edge_ms = None
            else:
                self.edge_ms = self._open.last_ms if self._reverse else self._open.first_ms

    def take(self, bound_ms: int) -> Points | None:
        """Take the rows up to `bound_ms` (in reverse: from there on), None if there are none."""
        rows = self.current
        assert rows is not None
        if (rows.first_ms >= bound_ms) if self._reverse else (rows.last_ms <= bound_ms):
            self.current = None
            if self.edge_ms is not None:  # the next block is not read before it is due
                self.edge_ms = rows.first_ms - 1 if self._reverse else rows.last_ms + 1
            return rows
        if (rows.last_ms < bound_ms) if self._reverse else (rows.first_ms > bound_ms):
            return None
        below_ms = bound_ms - 1 if self._reverse else bound_ms
        lower, upper = rows.between(0, below_ms), rows.between(below_ms + 1, keys.TIME_MS_MAX)
        self.current, taken = (lower, upper) if self._reverse else (upper, lower)
        return taken


def joined(layers: Sequence[Layer], *, reverse: bool = False) -> Iterator[Points]:
    """Yield the rows of layers, oldest layer first, as one series: disjoint in time, in order, with their marks."""
    while True:
        opened = [layer for layer in layers if layer.current is not None]
        if not opened:
            waiting = [(layer.edge_ms, layer) for layer in layers if layer.edge_ms is not None]
            if not waiting:
                return
            edge_ms = max(edge for edge, _ in waiting) if reverse else min(edge for edge, _ in waiting)
            for edge, layer in waiting:
                if edge == edge_ms:
                    layer.advance()
            continue
        edges = [
            layer.current.first_ms if reverse else layer.current.last_ms for layer in opened if layer.current
        ]
        bound_ms = max(edges) if reverse else min(edges)
        due = [
            layer
            for layer in layers
            if layer.current is None
            and layer.edge_ms is not None
            and (layer.edge_ms >= bound_ms if reverse else layer.edge_ms <= bound_ms)
        ]
        if due:
            for layer in due:
                layer.advance()
            continue
        rows: Points | None = None
        for layer in opened:
            taken = layer.take(bound_ms)
            if taken is not None:
                rows = taken if rows is None else merged(rows, taken)
        assert rows is not None
        yield rows


def read_series(
    snapshot: Reader,
    device: bytes,
    low_ms: int,
    high_ms: int,
    *,
    arrived: Iterator[Points],
    with_runs: bool,
    reverse: bool = False,
    numbers: Container[int] | None = None,
) -> Iterator[Points]:
    """Yield the points of a device in a range: the runs overridden by what has arrived; disjoint, in order.

    `arrived` is within the range.
    """
    layers: list[Layer] = []
    blocks = blocks_back if reverse else blocks_of
    for run in runs_of(snapshot) if with_runs else ():
        if run.first_ms <= high_ms and run.last_ms >= low_ms:
            edge_ms = min(run.last_ms, high_ms) if reverse else max(run.first_ms, low_ms)
            found = blocks(snapshot, run.number, device, low_ms, high_ms)
            layers.append(Layer(found, edge_ms=edge_ms, numbers=numbers, reverse=reverse))
    parts = arrived
    if layers:
        blocks_arrived = (Arrived(rows) for rows in arrived)
        layers.append(Layer(blocks_arrived, edge_ms=high_ms if reverse else low_ms, reverse=reverse))
        parts = (rows.between(low_ms, high_ms) for rows in joined(layers, reverse=reverse))
    for rows in parts:
        shown = rows.visible()
        if len(shown):
            yield shown


def point_at(parts: Iterable[Points]) -> Mapping[int, Any]:
    """The values of the only row of parts; empty if there is none."""
    for part in parts:
        for _, point in part.rows():
            return point
    return {}
