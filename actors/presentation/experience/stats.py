"""How often endpoints were called: reads of the counts that `counts.py` stores, by minute."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime, Name, QueryTime
from trunkline.actors.core.values.timestamps import HOUR_MS, MINUTE_MS, iso, parse_width, resolve_range
from trunkline.actors.presentation.experience.counts import parts_of_name
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot


class StatsChoice(Query, frozen=True):
    """Which requests are counted, in which time, and by what they are grouped."""

    stat_grouping: Literal["statusCode", "endpointId", "version", "domain"] = "statusCode"
    duration: int | float = 86_400_000
    end: QueryTime = 0
    resolution: int | float = 3_600_000
    version_filter: Name | None = None
    domain_filter: Name | None = None
    status_code_filter: Annotated[int, Meta(ge=100, le=599)] | None = None
    endpoint_id_filter: Id | None = None


class StatPoint(View, frozen=True):
    """The number of requests from a time on, for one `resolution`."""

    time: IsoTime
    count: int


class GetEndpointStats(Message, frozen=True):
    """Count the requests to the endpoints of an application."""

    application: bytes
    query: StatsChoice
    now_ms: int


_GROUPS: Final = ("statusCode", "domain", "version", "endpointId")


def get_stats(reading: Reading, message: GetEndpointStats) -> dict[str, list[StatPoint]]:
    """Counts by group, for each time with a request. A `resolution` below a minute counts as one minute.

    Raises `Invalid` for a range that cannot be.
    """
    query = message.query
    span = resolve_range(message.now_ms, end=query.end, duration=query.duration)
    width = parse_width(query.resolution)
    reading.check_time(is_long=True)
    wanted = (
        None if query.status_code_filter is None else str(query.status_code_filter),
        query.domain_filter,
        query.version_filter,
        None if query.endpoint_id_filter is None else query.endpoint_id_filter.lower(),
    )
    by = _GROUPS.index(query.stat_grouping)
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for minute, group, count in _counted(reading.snapshot, message.application, span.start_ms, span.end_ms):
        if all(each in (None, value) for each, value in zip(wanted, group, strict=True)):
            found[group[by]][minute * MINUTE_MS // width * width] += count
    return {
        name: [StatPoint(time=iso(time_ms), count=count) for time_ms, count in sorted(counts.items())]
        for name, counts in sorted(found.items())
    }


def counts_of_endpoints(snapshot: Snapshot, application: bytes, start_ms: int, end_ms: int) -> Counter[str]:
    """The requests to each endpoint, by its id."""
    found: Counter[str] = Counter()
    for _, group, count in _counted(snapshot, application, start_ms, end_ms):
        found[group[-1]] += count
    return found


def _counted(
    snapshot: Snapshot, application: bytes, start_ms: int, end_ms: int
) -> Iterator[tuple[int, tuple[str, str, str, str], int]]:
    """The minute, what `_GROUPS` names, and the number of requests, of all minutes from `start_ms` to `end_ms`."""
    first, last = (min(time_ms // HOUR_MS, keys.HOUR_MAX - 1) for time_ms in (start_ms, end_ms))
    low = keys.endpoint_counts_key(application, first)
    high = keys.endpoint_counts_key(application, last + 1)
    minutes = range(start_ms // MINUTE_MS, end_ms // MINUTE_MS + 1)
    for key, raw in snapshot.range(keys.COUNTS, low, high):
        endpoint = key[-keys.ID_BYTES :].hex()
        for name, count in decode(raw).items():
            minute, status, domain, version = parts_of_name(name)
            if minute in minutes:
                yield minute, (status, domain, version, endpoint), count
