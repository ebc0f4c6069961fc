"""What `check` verifies of arrivals and runs: that each value can be decoded, and that blocks are where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from trunkline.store import codec, keys
from trunkline.store.arrival_chunks import entries, unpacked
from trunkline.store.column_codec import decode, encode, header, last_row
from trunkline.store.columns import Row
from trunkline.store.report_items import decoded, points_of
from trunkline.store.sorted_runs import runs_of

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


def value_problems(db: str, key: bytes, value: bytes) -> Iterator[str]:
    """The problems of an entry of ARRIVALS, SEGMENTS or RUNS."""
    try:
        if db == keys.RUNS:
            yield from _block_problems(key, value)
        elif db == keys.SEGMENTS:
            for _, chunk in unpacked(value):
                _decode_chunk(chunk)
        elif key.startswith(keys.LATEST_COUNTS):
            codec.decode(value)
        else:
            _decode_chunk(value)
    except ValueError as error:
        yield str(error)


def _decode_chunk(chunk: bytes) -> None:
    for _, body, _ in entries(chunk):
        points_of(decoded(body))


def _block_problems(key: bytes, value: bytes) -> Iterator[str]:
    """Decode a block, and compare its points with its head and its key, and with themselves encoded again."""
    head, points = header(value), decode(value)
    times = points.times
    if len(points) != head.rows or not len(points):
        yield f"the block has {len(points)} points, its head says {head.rows}"
        return
    if (int(times[0]), int(times[-1])) != (head.first_ms, head.last_ms):
        yield "the times of the block are not those that its head says"
    if head.first_ms != keys.block_first_ms(key):
        yield "the key of the block has another time than its first point"
    if np.any(np.diff(times) <= 0):
        yield "the times of the block do not ascend"
    last = last_row(value)
    if last is not None and not _same([last], list(points.part(len(points) - 1, len(points)).marked_rows())):
        yield "the last row of the block is not the one that it has apart"
    if not _same(list(decode(encode(points)).marked_rows()), list(points.marked_rows())):
        yield "the points of the block change when they are encoded again"


def _same(some: list[Row], others: list[Row]) -> bool:
    """Whether rows are the same. What is unequal to itself, as NaN is, has the same bytes."""
    return some == others or codec.encode(some) == codec.encode(others)


def run_problems(snapshot: Snapshot) -> Iterator[str]:
    """The problems of all runs: blocks of runs that are not listed, and blocks of a device that overlap in time."""
    runs = {run.number: run for run in runs_of(snapshot)}
    place: tuple[bytes, int] | None = None
    for key, raw in snapshot.range(keys.RUNS, b"", None):
        number, owner = int.from_bytes(key[:4], "big"), bytes(key[:16])
        run = runs.get(number)
        if run is None:
            yield f"{keys.RUNS} {key.hex()}: the block belongs to the run {number}, which is not listed."
            continue
        try:
            head = header(raw)
        except ValueError:
            continue  # reported with its own key
        if place is not None and place[0] == owner and head.first_ms <= place[1]:
            yield f"{keys.RUNS} {key.hex()}: the block overlaps the one before it in time."
        if head.first_ms < run.first_ms or head.last_ms > run.last_ms:
            yield f"{keys.RUNS} {key.hex()}: the block is outside of the times of its run."
        place = owner, head.last_ms
