"""Reading the whole state history of a device through the API, and converting times of the API.

Owns the paging of ``GET .../state``: ascending pages of up to 1,000 entries, each starting at the last time of
the page before. An entry with that time is dropped, so the result is the same whether the server treats
``start`` as inclusive or not. A history that does not advance raises an error instead of looping forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from trunkline.bench.errors import BenchError
from trunkline.bench.session import Session, device_path

ENTRIES_PER_CALL = 1000
"""Entries: the maximum that the API returns in one call."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class StateEntry(msgspec.Struct, frozen=True):
    """One entry of a device's history, as sent by the server."""

    time: str | float | dict[str, str]
    data: dict[str, str | bool | float]
    meta: Any = None


_DECODER = msgspec.json.Decoder(list[StateEntry])


class History:
    """The entries of one device from ``first_ms`` to ``last_ms``, both inclusive, oldest first.

    Use ``async for page in history``; a page is a list of ``(time_ms, data)``. Only one page at a time is in
    memory.
    """

    def __init__(
        self,
        session: Session,
        application_id: str,
        device_id: str,
        *,
        first_ms: int,
        last_ms: int,
        limit: int = ENTRIES_PER_CALL,
    ) -> None:
        if first_ms < 2:
            raise ValueError("The API takes a start below 1 as relative to now, so history begins at 2 ms.")
        self._session = session
        self._path = device_path(application_id, device_id, "/state")
        self._after_ms = first_ms - 1
        self._last_ms = last_ms
        self._limit = limit
        self._ended = False
        self.calls = 0

    def __aiter__(self) -> History:
        return self

    async def __anext__(self) -> list[tuple[int, dict[str, Any]]]:
        if self._ended:
            raise StopAsyncIteration
        query = {
            "start": self._after_ms,
            "end": self._last_ms + 1,
            "limit": self._limit,
            "sortDirection": "asc",
        }
        response = await self._session.fetch("GET", self._path, query=query)
        self.calls += 1
        try:
            entries = _DECODER.decode(response.body)
        except msgspec.DecodeError as problem:
            raise BenchError(
                f"The server's history of {self._path} is not a list of states: {problem}."
            ) from None
        page = list(self._fresh(entries))
        if len(entries) < self._limit:
            self._ended = True
        elif not page:
            raise BenchError(f"The server's history of {self._path} does not advance past {self._after_ms}.")
        if page:
            self._after_ms = page[-1][0]
            return page
        raise StopAsyncIteration

    def _fresh(self, entries: list[StateEntry]) -> Iterator[tuple[int, dict[str, Any]]]:
        last = self._after_ms
        for entry in entries:
            time_ms = to_ms(entry.time)
            if time_ms <= self._after_ms or time_ms > self._last_ms:
                continue
            if time_ms <= last:
                raise BenchError(
                    f"The server's history of {self._path} is not in ascending order at {entry.time}."
                )
            last = time_ms
            yield time_ms, entry.data


def to_ms(time: str | float | dict[str, str]) -> int:
    """Convert a time of the API (ISO text, epoch milliseconds, ``{"$date": iso}``) to epoch milliseconds, exactly."""
    if isinstance(time, dict):
        time = time.get("$date", "")
    if isinstance(time, int | float):
        return int(time)
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        raise BenchError(f"The server sent the time {time!r}, which is not ISO 8601.") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND


def to_iso(time_ms: int) -> str:
    """Convert epoch milliseconds to ISO 8601 in UTC with milliseconds."""
    return (_EPOCH + time_ms * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")
