"""What the blocks of a dashboard read: devices, values and tracks, by the reads of the API, on one snapshot.

Owns the choice of devices of a block, and the range that it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.template import filled_text
from trunkline.actors.core.values.terms import TagFilter
from trunkline.actors.core.values.timestamps import iso, parse_iso
from trunkline.actors.fleet.devices.queries.measurement_messages import (
    AggregationChoice,
    Downsampling,
    LastValueQuery,
    PlainAggregation,
    QueryLastValues,
    QueryTimeSeries,
    TimeSeriesQuery,
)
from trunkline.actors.fleet.devices.queries.measurements import query_last_values, query_time_series
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.presentation.dashboards.context import Parameters
from trunkline.actors.presentation.dashboards.report import Moment, number_of
from trunkline.actors.presentation.dashboards.rights import Read, Refusals
from trunkline.limits.table import DAY_MS

_AGGREGATION: Any = PlainAggregation | AggregationChoice
POINTS_WANTED = 120
"""Buckets of a series whose resolution is not given."""


class Reached(NamedTuple):
    """One value of a device."""

    device: str
    value: Any
    at: Moment


class Named(NamedTuple):
    """A device."""

    id: str
    name: str


class Track(NamedTuple):
    """The values of a device over time, the oldest first: (time in ms, value)."""

    device: str
    points: list[tuple[int, Any]]


class Bounds(NamedTuple):
    """How much a block shows: rows of a table, lines of a chart, points of a line.

    `downsampled`: raw series are reduced while they are read, and tables of states have their newest rows only. A
    report reads all values instead, because it gives their minimum, mean and maximum. `places_max`: devices whose
    newest places a map gives in columns; 0: it gives a chart instead.
    """

    rows_max: int
    lines_max: int
    line_points_max: int
    downsampled: bool = False
    places_max: int = 0


class Scene:
    """What one block may read. `dashboard` are its duration and resolution, `now_ms` is the moment that it shows."""

    def __init__(
        self,
        reading: Reading,
        application: bytes | None,
        refusals: Refusals,
        parameters: Parameters,
        dashboard: Doc,
        now_ms: int,
        bounds: Bounds,
    ) -> None:
        self.reading = reading
        self.bounds = bounds
        self.parameters = parameters
        self.dashboard = dashboard
        self.now_ms = now_ms
        self._application = application
        self._refusals = refusals

    def application(self, operation: Read) -> bytes:
        """The application of the block, for what an operation reads.

        Raises `DomainError` if there is none, or the reader may not be shown in it what this operation reads.
        """
        if self._application is None:
            raise Invalid("The block names no application.")
        refusal = self._refusals.get((self._application, operation))
        if refusal is not None:
            raise refusal
        return self._application

    @property
    def values_of_templates(self) -> dict[str, Any]:
        """What the templates of the block name; `dashboard.time` is the moment that it shows."""
        return {"ctx": self.parameters.values, "dashboard": {**self.dashboard, "time": iso(self.now_ms)}}

    def row_values(self, row: Doc) -> dict[str, Any]:
        """What the templates of a row name."""
        return {**self.values_of_templates, **row}

    # Devices.

    def choice(self, application: bytes, node: Doc) -> dict[str, Any]:
        """The devices that a segment names, as the queries of the API take them; empty for all."""
        found: dict[str, Any] = {}
        if node.get("deviceIds"):
            found["device_ids"] = self._existing(application, node["deviceIds"])
        tags = self.tags(node.get("deviceTags", ()))
        if tags:
            found["device_tags"] = tags
        query = parse_query(node.get("query") or "", "query")
        if query:
            found["device_query"] = query
        return found

    def _existing(self, application: bytes, texts: list[str]) -> list[str]:
        ids = [
            text.lower()
            for text in dict.fromkeys(texts)
            if isinstance(text, str)
            and is_id(text)
            and records.find(self.reading.snapshot, DEVICE, application, bytes.fromhex(text)) is not None
        ]
        if not ids:
            raise Invalid("None of the devices of the block exists.")
        return ids

    def tags(self, nodes: Iterable[Doc]) -> list[TagFilter]:
        """The tags that a choice names, those of parameters among them. Raises `Invalid` for one that gives nothing."""
        return [tag for tag in map(self._tag, nodes) if tag is not None]

    def _tag(self, node: Doc) -> TagFilter | None:
        """A tag; None where it is left open: in the block, or as the default of the parameter."""
        name = node.get("fromCtx")
        given = self.parameters.values.get(name) if name else node
        parts = {}
        if isinstance(given, Mapping):
            parts = {part: given[part] for part in ("key", "value") if given.get(part)}
        if name and not parts and given != {}:
            raise Invalid(
                f"The dashboard has no parameter {name} of the type deviceTag, which chooses the devices."
            )
        if not name:
            values = self.values_of_templates
            parts = {part: filled_text(text, values) for part, text in parts.items()}
        return TagFilter(**parts) if parts else None

    # The range.

    def duration_ms(self, config: Doc) -> int:
        """The range of a block in ms; 0 for the newest value only."""
        value = number_of(config.get("duration"))
        return 0 if value is None else max(0, round(value))

    def graph_ms(self, config: Doc) -> int:
        """The range of a graph in ms: its own, that of the dashboard, or a day."""
        return self.duration_ms(config) or round(number_of(self.dashboard.get("duration")) or DAY_MS)

    def resolution_ms(self, config: Doc, duration_ms: int) -> int:
        """The width of a bucket in ms."""
        for given in (config.get("resolution"), self.dashboard.get("resolution")):
            value = number_of(given)
            if value:
                return max(1, round(value))
        return max(1000, duration_ms // POINTS_WANTED)

    # Values.

    def last_values(self, node: Doc, attribute: str) -> list[Reached]:
        """The newest value of an attribute of each device."""
        application = self.application("data.lastValueQuery")
        body = LastValueQuery(attribute=attribute, end=self.now_ms, **self.choice(application, node))
        message = QueryLastValues(application=application, body=body, now_ms=self.now_ms, reach=None)
        found = query_last_values(self.reading, message)
        return [
            Reached(
                self._device_name(application, id), point["data"][attribute], Moment(parse_iso(point["time"]))
            )
            for id, point in found.items()
        ]

    def tracks(
        self,
        node: Doc,
        attributes: list[str] | None,
        duration_ms: int,
        resolution_ms: int | None = None,
        *,
        newest_max: int = 0,
        downsample: int = 0,
    ) -> list[tuple[Named, list[tuple[int, Doc]]]]:
        """The points of each device in the range; aggregated if the node says how.

        If they are not aggregated, and the bounds say that blocks are downsampled: the newest `newest_max` of each
        device, or as many as `downsample` says (0: all).
        """
        application = self.application("data.timeSeriesQuery")
        aggregation = msgspec.convert(node.get("aggregation", "NONE"), _AGGREGATION)
        kind = aggregation if isinstance(aggregation, str) else aggregation.type
        if kind != "NONE" or not self.bounds.downsampled:
            newest_max = downsample = 0
        body = TimeSeriesQuery(
            end=self.now_ms,
            duration=duration_ms,
            aggregation=aggregation,
            attributes=UNSET if attributes is None else attributes,
            resolution=UNSET if kind == "NONE" or resolution_ms is None else resolution_ms,
            limit=newest_max or UNSET,
            order="desc" if newest_max else "asc",
            **self.choice(application, node),
        )
        message = QueryTimeSeries(
            application=application,
            body=body,
            now_ms=self.now_ms,
            reach=None,
            query=Downsampling(downsample=downsample),
        )
        found = []
        for id, each in query_time_series(self.reading, message)["devices"].items():
            points = reversed(each["points"]) if newest_max else each["points"]
            found.append(
                (Named(id, each["name"]), [(parse_iso(point["time"]), point["data"]) for point in points])
            )
        return found

    def series(self, node: Doc, config: Doc) -> Iterator[Track]:
        """The values of an attribute over the range of a graph, by device."""
        attribute = node.get("attribute")
        if not attribute:
            raise Invalid("The segment names no attribute.")
        duration_ms = self.graph_ms(config)
        resolution_ms = self.resolution_ms(config, duration_ms)
        # A sum needs all values.
        downsample = 0 if node.get("cumulative") else self.bounds.line_points_max
        for device, points in self.tracks(
            node, [attribute], duration_ms, resolution_ms, downsample=downsample
        ):
            yield Track(device.name, [(ms, data[attribute]) for ms, data in points if attribute in data])

    def values(self, node: Doc, config: Doc) -> list[Reached]:
        """The value that a gauge shows, by device: the newest, or that of all values in the range together."""
        attribute = node.get("attribute")
        if not attribute:
            raise Invalid("The segment names no attribute.")
        duration_ms = self.duration_ms(config)
        if not duration_ms or not node.get("aggregation") or node["aggregation"] == "NONE":
            return self.last_values(node, attribute)
        return [
            Reached(device.name, data[attribute], Moment(self.now_ms))
            for device, points in self.tracks(node, [attribute], duration_ms, 0)
            for _, data in points[-1:]
            if attribute in data
        ]

    def _device_name(self, application: bytes, id: str) -> str:
        found = records.find(self.reading.snapshot, DEVICE, application, bytes.fromhex(id))
        return id if found is None else str(found.doc["name"])
