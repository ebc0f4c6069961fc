"""The log of reports: what all devices reported, in the order of the commits, as far back as it is kept.

It reads what the arrivals keep anyway: the chunks, the segments of the windows that are not flushed, and those of the
window that was flushed last. Owns the positions in it. They ascend in the order of the commits, a report has the same
position in the commit as later in the log, and no other report ever gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from trunkline.store import keys
from trunkline.store.arrival_chunks import ENTRY_BYTES, Chunk, entries, unpacked
from trunkline.store.errors import StoreDamaged
from trunkline.store.report_items import HEAD, decoded_items
from trunkline.store.state_columns import rows_of

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_SHIFT: Final = 32


def commit_of(position: int) -> int:
    """The number of the commit of a position."""
    return position >> _SHIFT


def end_of(seq: int) -> int:
    """The position after all reports of a commit, and before those of the next one."""
    return (seq + 1) << _SHIFT


def reports(
    chunk: Chunk, is_wanted: Callable[[bytes], bool]
) -> Iterator[tuple[bytes, int, int, dict[int, Any]]]:
    """Yield the reports of the wanted devices in a commit: device, position, time and point.

    Backlogs are left out, and so is what removes or replaces points.
    """
    at = chunk.seq << _SHIFT
    in_backlog: set[bytes] = set()
    for device, body, _ in entries(chunk.value):
        if is_wanted(device):
            # A state takes more than one byte, so the positions of two entries never meet.
            for position, (time_ms, value) in enumerate(rows_of(decoded_items(body)), at + 1):
                if time_ms == HEAD:
                    in_backlog.discard(device)
                elif type(value) is dict:
                    if not value:
                        in_backlog.add(device)
                    elif device not in in_backlog:
                        yield device, position, time_ms, value
        at += ENTRY_BYTES + len(body)


def chunks_from(snapshot: Snapshot, seq: int) -> Iterator[Chunk]:
    """Yield the chunks of the commit `seq` and of all later ones, as far as they are kept. Raises StoreDamaged."""
    for db in (keys.SEGMENTS, keys.ARRIVALS):
        for key, value in snapshot.range(db, keys.arrival_key(seq), keys.LATEST_COUNTS):
            if db == keys.ARRIVALS:
                yield Chunk(int.from_bytes(key, "big"), value)
                continue
            try:
                yield from (chunk for chunk in unpacked(value) if chunk.seq >= seq)
            except ValueError as error:
                raise StoreDamaged(f"{db} {key.hex()}: {error}.") from error
