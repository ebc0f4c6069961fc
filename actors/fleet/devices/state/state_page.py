"""Pages of history as JSON, made from columns.

A page has up to a thousand states, so its text is made without a step of Python for each value: a column of numbers is
encoded as one list and cut at its commas, and the states are formatted by one call for all. Points with `meta`, and
points that lack some of the attributes, go through a dict for each state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from trunkline.actors.core.values.plain_json import json_bytes
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.limits.table import DAY_MS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trunkline.actors.core.values.answer_size import AnswerSize
    from trunkline.store.columns import Column, Points

_DIGIT: Final = ord("0")
# Where the digits of the time of day are in 2026-01-01T00:00:00.000Z, and what they count in ms.
_PLACES: Final = (
    (11, 36_000_000, 10), (12, 3_600_000, 10), (14, 600_000, 6), (15, 60_000, 10), (17, 10_000, 6),
    (18, 1000, 10), (20, 100, 10), (21, 10, 10), (22, 1, 10),
)  # fmt: skip
_COLUMNS_ROWS: Final = 32
"""With fewer rows, arrays take longer than they save."""
_encode = msgspec.json.encode


def states_json(
    parts: Iterable[Points],
    attributes: Attributes,
    *,
    limit: int,
    reverse: bool,
    size: AnswerSize,
    on_part: Callable[[int], None],
) -> list[bytes]:
    """Return the JSON of the first `limit` states that have a value of a declared attribute.

    `parts` are those of `Snapshot.points`. `on_part` is called with the bytes of each part of the page. Raises
    `PayloadTooLarge` if the page is too large.
    """
    found: list[bytes] = []
    for part in parts:
        # Not more rows than are wanted: of a block, the newest state is one of a thousand.
        start, stop = 0, len(part)
        while start < stop:
            wanted = limit - len(found)
            if reverse:
                piece = part.part(max(start, stop - wanted), stop)
                stop -= len(piece)
            else:
                piece = part.part(start, min(stop, start + wanted))
                start += len(piece)
            states = _states(piece, attributes)
            if reverse:
                states.reverse()
            length = sum(map(len, states))
            size.add(length)
            on_part(length)
            found += states
            if len(found) >= limit:
                return found
    return found


def _states(part: Points, attributes: Attributes) -> list[bytes]:
    """The states of a part that have a value, oldest first."""
    names = attributes.names
    if len(part) >= _COLUMNS_ROWS:
        columns = part.columns
        declared = [(names[number], column) for number, column in columns.items() if number in names]
        is_plain = all(number >= 0 for number in columns) and all(
            column.present is None for _, column in declared
        )
        if is_plain:
            return _plain_states(part.times, declared) if declared else []
    entries = (attributes.entry(time_ms, point) for time_ms, point in part.rows())
    return [json_bytes(entry) for entry in entries if entry["data"]]


def _plain_states(times: NDArray[np.int64], columns: list[tuple[str, Column]]) -> list[bytes]:
    """The states of points that have all these attributes and nothing else."""
    members = b",".join(_encode(name).replace(b"%", b"%%") + b":%b" for name, _ in columns)
    state = b'{"time":"%b","data":{' + members + b"}}"
    rows = zip(iso_texts(times), *(_json_texts(column) for _, column in columns), strict=True)
    return list(map(state.__mod__, rows))


def _json_texts(column: Column) -> list[bytes]:
    """The JSON of each value."""
    values: list[Any] = column.tolist()
    if isinstance(column.values, list):
        return list(map(_encode, values))
    return _encode(values)[1:-1].split(b",")


def iso_texts(times: NDArray[np.int64]) -> list[bytes]:
    """Ascending times in milliseconds as `iso` formats them, for times that a report may have."""
    days, of_day = np.divmod(times, DAY_MS)
    texts = np.empty((len(times), 24), np.uint8)
    if days[0] == days[-1]:  # times ascend
        texts[:, :10] = np.frombuffer(str(days[:1].astype("datetime64[D]")[0]).encode(), np.uint8)
    else:
        first, places = np.unique(days, return_inverse=True)
        dates = np.datetime_as_string(first.astype("datetime64[D]")).astype("S10")
        texts[:, :10] = dates.view(np.uint8).reshape(-1, 10)[places]
    of_day = of_day.astype(np.int32)  # half the time for the divisions
    texts[:, 10:] = np.frombuffer(b"T00:00:00.000Z", np.uint8)
    for place, unit_ms, base in _PLACES:
        texts[:, place] = of_day // unit_ms % base + _DIGIT
    found: list[bytes] = texts.view("S24").ravel().tolist()
    return found
