"""The contract of the data of a dashboard: what its blocks show, for a client that draws them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.structs import Body, Message, View
from trunkline.actors.core.values.terms import Id, IsoTime, QueryTime, Scalar
from trunkline.actors.core.values.timestamps import TIMESTAMP_MS_MAX
from trunkline.actors.presentation.dashboards.blocks import Block
from trunkline.actors.presentation.dashboards.holder import Holder
from trunkline.actors.presentation.dashboards.messages import ContextValues
from trunkline.actors.presentation.dashboards.rights import Refusals

BLOCKS_NAMED_MAX = 200
_Positive = Annotated[int, Meta(ge=1, le=TIMESTAMP_MS_MAX)]


class _Asked(Body, frozen=True):
    """The values of the parameters, and the range; by default those that the dashboard says.

    `duration` and `resolution` in ms replace those of the dashboard; `end` is the moment that the blocks show.
    """

    ctx: ContextValues | UnsetType = UNSET
    duration: _Positive | UnsetType = UNSET
    resolution: _Positive | UnsetType = UNSET
    end: QueryTime | UnsetType = UNSET


class BlockQuery(_Asked, frozen=True):
    """The blocks, the values of the parameters, and the range; by default all blocks, as the dashboard says.

    `duration` and `resolution` in ms replace those of the dashboard; `end` is the moment that the blocks show.
    """

    block_ids: (
        Annotated[list[Annotated[str, Meta(max_length=48)]], Meta(min_length=1, max_length=BLOCKS_NAMED_MAX)]
        | UnsetType
    ) = UNSET


class BlockPreview(_Asked, frozen=True, kw_only=True):
    """Blocks that are not stored, the values of the parameters of the dashboard, and the range.

    `duration` and `resolution` in ms replace those of the dashboard; `end` is the moment that the blocks show.
    """

    blocks: Annotated[list[Block], Meta(min_length=1, max_length=BLOCKS_NAMED_MAX)]


class TimeCell(View, frozen=True, tag_field="kind", tag="time"):
    """A time in a table or as a value."""

    time: IsoTime


class ShareCell(View, frozen=True, tag_field="kind", tag="share"):
    """A share of a whole, from 0 to 1."""

    share: float


CellView = Scalar | TimeCell | ShareCell | None


class TablePart(View, frozen=True, tag_field="kind", tag="table"):
    """The first rows of a table. `ids` are those of the records that the rows are about, where there are such."""

    columns: list[str]
    rows: list[list[CellView]]
    total: int
    of: Literal["dashboard", "device", "event", "flow"] | None = None
    ids: list[Id] | None = None


class TextPart(View, frozen=True, tag_field="kind", tag="text"):
    """A text."""

    text: str


class ValuePart(View, frozen=True, tag_field="kind", tag="value"):
    """One value, with the time from which it is, and its unit where the block says one."""

    label: str
    value: CellView
    at: IsoTime | None
    unit: str | None = None


class StatusPart(View, frozen=True, tag_field="kind", tag="status"):
    """What the conditions of the block say of its values."""

    text: str
    color: str


class AddressPart(View, frozen=True, tag_field="kind", tag="address"):
    """A picture or a page at an address, or a picture within the address (`data:`)."""

    label: Literal["Picture", "Page"]
    url: str


class LineView(View, frozen=True):
    """A series of a chart."""

    label: str
    points: list[tuple[float, float]]
    color: str
    style: str
    weight: float
    axis: str


class ChartPart(View, frozen=True, tag_field="kind", tag="chart"):
    """What a client draws. The points of a timeline are times, each with the number of the category from then on."""

    type: Literal["graph", "timeline", "bar", "pie", "gauge", "map", "plane"]
    lines: list[LineView]
    categories: list[str]
    low: float | None
    high: float | None
    marks: list[LineView]
    span: tuple[int, int] | None


class PlaceLevelView(View, frozen=True):
    """What a level of a place means."""

    label: str
    color: str


class PlacesPart(View, frozen=True, kw_only=True, tag_field="kind", tag="places"):
    """The newest places of devices, in columns that belong together. A level is the number of a category."""

    names: list[str]
    ids: list[Id] | None = None
    times: list[int]
    points: list[tuple[float, float]]
    levels: list[int]
    values: list[CellView]
    categories: list[PlaceLevelView]


class BlockData(View, frozen=True, kw_only=True):
    """What a block shows, or the problem because of which it shows nothing."""

    position: int
    id: str | None = None
    block_type: str
    title: str
    description: str
    parts: list[TablePart | TextPart | ValuePart | StatusPart | AddressPart | ChartPart | PlacesPart]
    problem: str | None = None


class DashboardData(View, frozen=True, kw_only=True):
    """What the blocks of a dashboard show at a moment, in the order in which the dashboard has them."""

    dashboard_id: Id
    last_updated: IsoTime
    time: IsoTime
    blocks: list[BlockData]


class ReadBlocks(Message, frozen=True):
    """Read what the blocks at `positions` of a dashboard show at `time_ms`. The answer is encoded: position to JSON.

    `refusals` are what of the applications of the blocks may not be shown. `range` replaces the duration and the
    resolution of the dashboard. `with_ids`: rows have the ids of their records.
    """

    holder: Holder
    doc: Doc
    positions: tuple[int, ...]
    ctx: dict[str, Any]
    refusals: Refusals
    range: Doc
    time_ms: int
    with_ids: bool
