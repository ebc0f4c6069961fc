"""Arrays of states as columns, so that nothing after them works state by state.

Owns which arrays say the same as columns: their states have no `meta`, the same `flowVersion`, a time each, mostly the
same attributes, and plain values. Every other array, and every one that may have to be refused, is for the path of
single states (`actor.py`), which names the state at fault. Does not own what the values mean (`column_coercion.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import UNSET

from trunkline.actors.core.values.terms import Timestamp
from trunkline.actors.core.values.timestamps import SECONDS_BELOW
from trunkline.actors.fleet.devices.record.messages import StateReport
from trunkline.actors.fleet.devices.state.link_messages import Columns, Values, typed_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS_FROM: Final = 10
"""So many states are stored as columns; fewer take less time as reports."""

PLACES_MAX: Final = 4
"""Columns may have so many times as many places as there are values."""


def columns_of(
    reports: Sequence[StateReport], now_ms: int, time_of: Callable[[Timestamp, int], int]
) -> Columns | None:
    """The states as columns; None if they are to be stored one by one.

    `time_of` gives the time in ms of one report, and may raise what it raises for that.
    """
    version = reports[0].flow_version
    if [report.meta for report in reports].count(UNSET) < len(reports) or [
        report.flow_version for report in reports
    ].count(version) < len(reports):
        return None
    times = _times([report.time for report in reports], now_ms, time_of)
    if times is None:
        return None
    columns = _by_name([report.data for report in reports])
    if columns is None:
        return None
    return Columns(names=tuple(columns), times=times, columns=tuple(columns.values()), flow_version=version)


def _times(
    given: list[Timestamp | None], now_ms: int, time_of: Callable[[Timestamp, int], int]
) -> NDArray[np.int64] | None:
    """The times in ms; None if one of them is not given."""
    if set(map(type, given)) == {int}:
        with contextlib.suppress(OverflowError):
            whole = np.array(given, np.int64)
            if whole.min() >= SECONDS_BELOW and whole.max() <= now_ms:
                return whole
    times: list[int] = []
    for moment in given:
        if moment is None:
            return None
        times.append(time_of(moment, now_ms))
    return np.array(times, np.int64)


def _by_name(datas: Sequence[Mapping[str, Any]]) -> dict[str, Values] | None:
    """The values of all states by name, None where a state has none.

    None if a state has a null or another value that is to be refused, or if most places would be empty.
    """
    count, first = len(datas), datas[0]
    given = sum(map(len, datas))
    columns: dict[str, Values] = {}
    if given and given == count * len(first):
        try:
            for name in first:
                values = typed_values(list(map(itemgetter(name), datas)))
                if values is None or (isinstance(values, list) and None in values):
                    return None
                columns[name] = values
        except KeyError:
            columns = {}
        else:
            return columns
    names = dict.fromkeys(chain.from_iterable(datas))
    if not given or len(names) * count > PLACES_MAX * given or any(None in data.values() for data in datas):
        return None
    for name in names:
        values = typed_values([data.get(name) for data in datas])
        if values is None:
            return None
        columns[name] = values
    return columns
