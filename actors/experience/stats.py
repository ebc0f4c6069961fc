"""How often endpoints were called. Nothing is served yet, so there are no counts; the parameters are checked."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from trunkline.actors.records.reading import Reading
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.structs import Message, Query, View
from trunkline.actors.values.terms import Id, IsoTime, Name, QueryTime
from trunkline.actors.values.timestamps import parse_duration, resolve_range


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

    query: StatsChoice
    now_ms: int


def get_stats(_reading: Reading, message: GetEndpointStats) -> dict[str, list[StatPoint]]:
    """Counts by group. Raises `Invalid` for a range that cannot be."""
    query = message.query
    resolve_range(message.now_ms, end=query.end, duration=query.duration)
    if parse_duration(query.resolution, field="resolution") == 0:
        raise Invalid(
            "resolution: 0 is no width of a bucket; give milliseconds, such as 3600000 for an hour."
        )
    return {}
