"""The changes of the connections of devices as CSV, for exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.values.csv_text import CsvLines
from trunkline.actors.core.values.timestamps import iso
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_FIELDS: Final = ("connected", "disconnectReason", "messagesFromClient", "messagesToClient", "ipAddress")


def connection_lines(
    snapshot: Snapshot, lines: CsvLines, devices: Iterable[bytes], start_ms: int, end_ms: int
) -> Iterator[bytes]:
    """Yield the line with the columns, then a line for each change in the range (both ends included), oldest first."""
    yield lines.line(["deviceId", "time", "date", *_FIELDS])
    for device in devices:
        if start_ms > end_ms:
            continue
        low, high = keys.log_key(device, start_ms, 0), keys.log_key(device, end_ms + 1, 0)
        for key, raw in snapshot.range(keys.LOGS, low, high):
            time_ms, entry = keys.entry_time_seq(key)[0], decode(raw)
            yield lines.line([device.hex(), time_ms, iso(time_ms), *(entry.get(name) for name in _FIELDS)])
