"""The blocks of a dashboard: a type for each, with the configuration that it takes.

A text marked as a template may contain `{{ctx.NAME}}` for a parameter of the dashboard. Templates and expressions are
stored as they are; `report_blocks.py` says which of them are evaluated. The module is long because the API has 26
types of blocks.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import FORM, Body
from trunkline.actors.core.values.terms import Description, Id
from trunkline.actors.core.values.timestamps import TIMESTAMP_MS_MAX
from trunkline.actors.fleet.devices.queries.measurement_messages import AggregationChoice, PlainAggregation

_Text48 = Annotated[str, Meta(max_length=48)]
_Text64 = Annotated[str, Meta(max_length=64)]
_Text255 = Annotated[str, Meta(max_length=255)]
_Text1024 = Annotated[str, Meta(max_length=1024)]
_Text2048 = Annotated[str, Meta(max_length=2048)]
_Number = int | float
_NumberOrText = int | float | Annotated[str, Meta(max_length=128)]
_Duration = Annotated[int, Meta(ge=0, le=TIMESTAMP_MS_MAX)] | Literal["{{dashboard.duration}}"]
_Resolution = Annotated[int, Meta(ge=0, le=TIMESTAMP_MS_MAX)] | Annotated[str, Meta(max_length=255)] | None
_Weight = Annotated[int, Meta(ge=0, le=5)]
_Names = Annotated[list[_Text255], Meta(max_length=100)]
_Position = Annotated[str, Meta(min_length=3, max_length=255)]
_Direction = Literal["asc", "desc", "ASC", "DESC", ""]
_Template = r"[^{}]*\{\{.+\}\}.*"
_DirectionOrTemplate = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=rf"^(asc|desc|ASC|DESC||{_Template})(?!\n)$",
        extra={FORM: "asc, desc, or a template such as {{ctx.direction}}"},
    ),
]
_KeyOrTemplate = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=rf"^([0-9a-zA-Z_-]+|{_Template})(?!\n)$",
        extra={FORM: "the key of a tag, or a template such as {{ctx.key}}"},
    ),
]


# What several types of blocks share.


_KeyOrCustom = Annotated[
    str,
    Meta(
        pattern=r"^([0-9a-zA-Z_-]{1,255}|\$custom)(?!\n)$",
        extra={FORM: "1 to 255 letters, digits, _ and -, or $custom"},
    ),
]


class TagChoice(Body, frozen=True):
    """Matches a device that has a tag with this key, this value, or both; or the tag of a parameter."""

    key: _Text255 | UnsetType = UNSET
    value: _Text255 | UnsetType = UNSET
    from_ctx: _Text255 | UnsetType = UNSET


_Tags = Annotated[list[TagChoice], Meta(max_length=100)]


class _Devices(Body, frozen=True):
    """A choice of devices: by id (or template), by tag, or by an advanced query as JSON text."""

    device_ids: _Names | UnsetType = UNSET
    device_tags: _Tags | UnsetType = UNSET
    query: Description | UnsetType = UNSET


class Segment(_Devices, frozen=True):
    """One series of values: an attribute of the chosen devices, aggregated."""

    attribute: _Text255 | UnsetType = UNSET
    aggregation: PlainAggregation | AggregationChoice | UnsetType = UNSET
    color: _Text64 | UnsetType = UNSET
    label: _Text255 | UnsetType = UNSET
    expression: _Text255 | UnsetType = UNSET
    y_axis_label: _Text255 | UnsetType = UNSET
    line_weight: _Weight | UnsetType = UNSET
    detect_data_gaps: bool | UnsetType = UNSET
    graph_type: _Text255 | UnsetType = UNSET


class GraphSegment(_Devices, frozen=True):
    """One series of a graph."""

    attribute: _Text255 | UnsetType = UNSET
    aggregation: PlainAggregation | AggregationChoice | UnsetType = UNSET
    color: _Text64 | UnsetType = UNSET
    cumulative: bool | UnsetType = UNSET
    detect_data_gaps: bool | UnsetType = UNSET
    expression: _Text255 | UnsetType = UNSET
    graph_type: Literal["area", "bar", "line"] | UnsetType = UNSET
    label: _Text255 | UnsetType = UNSET
    y_axis_format: _Text255 | UnsetType = UNSET
    y_axis_label: _Text255 | UnsetType = UNSET
    y_axis_max: _NumberOrText | UnsetType = UNSET
    y_axis_min: _NumberOrText | UnsetType = UNSET
    y_axis_id: _Text48 | UnsetType = UNSET
    line_type: Literal["monotone", "step", "stepAfter", "linear", "stepBefore"] | UnsetType = UNSET
    line_weight: _Weight | UnsetType = UNSET
    dot_weight: _Weight | UnsetType = UNSET


class Condition(Body, frozen=True):
    """How a block looks while an expression is true."""

    color: _Text64 | UnsetType = UNSET
    id: _Text48 | UnsetType = UNSET
    label: Description | UnsetType = UNSET
    condition: _Text2048 | UnsetType = UNSET
    image_url: Description | UnsetType = UNSET
    shape: Literal["circle", "square", "triangle-down", "triangle-up", "octagon"] | UnsetType = UNSET


class Threshold(Body, frozen=True):
    """How numbers look from `value` up to the next threshold: a colour, and a word for who does not see it.

    One without a value is for what lies below all others.
    """

    value: _Number | UnsetType = UNSET
    color: _Text64 | UnsetType = UNSET
    label: _Text64 | UnsetType = UNSET


_Unit = Annotated[str, Meta(max_length=16)]
_Thresholds = Annotated[list[Threshold], Meta(max_length=10)]


class _Numbers(Body, frozen=True):
    """How the numbers of a block are written and judged: their unit, the digits after the point, their thresholds."""

    unit: _Unit | UnsetType = UNSET
    precision: _NumberOrText | UnsetType = UNSET
    thresholds: _Thresholds | UnsetType = UNSET


_Segments = Annotated[list[Segment], Meta(max_length=255)]
_Conditions = Annotated[list[Condition], Meta(max_length=100)]


class Grid(Body, frozen=True):
    """The place of a control within its block."""

    h: _Number | UnsetType = UNSET
    w: _Number | UnsetType = UNSET
    x: _Number | UnsetType = UNSET
    y: _Number | UnsetType = UNSET


# The queries of custom charts and image overlays.


class _SeriesQuery(_Devices, frozen=True):
    id: _Text48 | UnsetType = UNSET
    attribute: _Text255 | UnsetType = UNSET
    aggregation: PlainAggregation | AggregationChoice | UnsetType = UNSET
    duration: _Duration | UnsetType = UNSET


class ChartSeries(_SeriesQuery, frozen=True, tag_field="queryType", tag="time-series"):
    """The values of an attribute over time."""

    resolution: _Resolution | UnsetType = UNSET


class ChartValue(_SeriesQuery, frozen=True, tag_field="queryType", tag="gauge"):
    """One value of an attribute."""


class OverlayQuery(_SeriesQuery, frozen=True):
    """One value of an attribute."""

    query_type: Literal["gauge"] | UnsetType = UNSET


class ChartRows(Body, frozen=True, tag_field="queryType", tag="data-table"):
    """Rows of a data table."""

    id: _Text48 | UnsetType = UNSET
    data_table_id: Id | UnsetType = UNSET
    query: Description | UnsetType = UNSET
    query_mode: Literal["$or", "$and", "advanced"] | UnsetType = UNSET
    sort_column: _Text255 | UnsetType = UNSET
    sort_direction: _Text255 | UnsetType = UNSET
    limit: _Text255 | UnsetType = UNSET
    offset: _Text255 | UnsetType = UNSET


class _PageQuery(Body, frozen=True):
    id: _Text48 | UnsetType = UNSET
    sort_field: _Text255 | UnsetType = UNSET
    sort_direction: _Text255 | UnsetType = UNSET
    page: _Text255 | UnsetType = UNSET
    per_page: _Text255 | UnsetType = UNSET
    query: Description | UnsetType = UNSET


class ChartDevices(_PageQuery, frozen=True, tag_field="queryType", tag="device-info"):
    """Devices with their composite states."""

    attributes: _Names | UnsetType | None = UNSET
    exclude_connection_info: bool | UnsetType = UNSET
    composite_state_type: _Text255 | UnsetType = UNSET


class ChartEvents(_PageQuery, frozen=True, tag_field="queryType", tag="events"):
    """Events."""

    include_extended_event_info: bool | UnsetType = UNSET


# Configurations.


class FilterConfig(Body, frozen=True):
    """A list whose names match a text."""

    filter: _Text255 | UnsetType = UNSET


class BarConfig(_Numbers, frozen=True):
    """Bars, one for each segment."""

    real_time: bool | UnsetType = UNSET
    duration: _Duration | UnsetType = UNSET
    x_axis_format: _Text255 | UnsetType = UNSET
    x_axis_label: _Text255 | UnsetType = UNSET
    x_axis_max: _NumberOrText | UnsetType = UNSET
    x_axis_min: _NumberOrText | UnsetType = UNSET
    segments: _Segments | UnsetType = UNSET


class HtmlConfiguration(Body, frozen=True):
    """A page of HTML that a client shows."""

    head_content: Description | UnsetType = UNSET
    body_content: Description | UnsetType = UNSET


class CustomConfig(Body, frozen=True):
    """A chart (Vega) or a page that a client draws from the results of queries."""

    configuration: HtmlConfiguration | Description | UnsetType = UNSET
    segments: (
        Annotated[
            list[ChartSeries | ChartValue | ChartRows | ChartDevices | ChartEvents], Meta(max_length=100)
        ]
        | UnsetType
    ) = UNSET
    vega_version: (
        Literal["vegaLite2", "vegaLite3", "vegaLite4", "vegaLite5", "vegaLite6", "vega4", "vega5", "vega6"]
        | UnsetType
    ) = UNSET
    tooltip_event_subscribe: bool | UnsetType = UNSET


class _Column(Body, frozen=True):
    id: _Text48 | UnsetType = UNSET
    header_template: _Text1024 | UnsetType = UNSET
    row_template: Description | UnsetType = UNSET


class RowColumn(_Column, frozen=True):
    """A column of a list of rows: one of the data table, or a template."""

    type: _KeyOrCustom | UnsetType = UNSET


class RowsConfig(Body, frozen=True):
    """The rows of a data table."""

    data_table_id: Id | UnsetType = UNSET
    default_sort_column: _Text255 | UnsetType = UNSET
    default_sort_direction: _DirectionOrTemplate | UnsetType = UNSET
    default_limit: _Text255 | UnsetType = UNSET
    default_offset: _Text255 | UnsetType = UNSET
    query: Description | UnsetType = UNSET
    query_mode: Literal["$or", "$and", "advanced"] | UnsetType = UNSET
    columns: Annotated[list[RowColumn], Meta(max_length=100)] | UnsetType = UNSET


class CountSegment(Body, frozen=True):
    """The number of devices that match an advanced query."""

    id: _Text48
    query: Description


class CountDefault(Body, frozen=True):
    """How a count looks while no condition is true."""

    color: _Text64
    label: Description | UnsetType = UNSET
    value: Description | UnsetType = UNSET


class CountConfig(Body, frozen=True):
    """Numbers of devices."""

    segments: Annotated[list[CountSegment], Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    conditions: _Conditions | UnsetType = UNSET
    default_condition: CountDefault | UnsetType = UNSET


class DeviceListFilter(Body, frozen=True):
    """A choice of listed devices by ids, by tags and by a text."""

    ids: _Names | UnsetType = UNSET
    tags: _Tags | UnsetType = UNSET
    search_param: _Text255 | UnsetType = UNSET


class DeviceListColumn(_Column, frozen=True):
    """A column of a list of devices."""

    type: (
        Literal["id", "connectionStatus", "attribute", "tag", "name", "custom", "created", "updated"]
        | UnsetType
    ) = UNSET
    source: _Text255 | UnsetType = UNSET


class DeviceListConfig(Body, frozen=True):
    """A list of devices."""

    additional_attributes: _Names | UnsetType | None = UNSET
    exclude_connection_info: bool | UnsetType = UNSET
    device_link_new_window: bool | UnsetType = UNSET
    device_link_type: Literal["custom", "default"] | UnsetType = UNSET
    device_link_url: _Text2048 | UnsetType = UNSET
    match: Literal["unfiltered", "all", "any"] | UnsetType = UNSET
    show_public_filter: bool | UnsetType = UNSET
    sort_field: Literal["id", "creationDate", "lastUpdated", "name"] | UnsetType = UNSET
    sort_direction: _Direction | UnsetType = UNSET
    filter: _Text255 | DeviceListFilter | UnsetType = UNSET
    query: Description | UnsetType = UNSET
    columns: Annotated[list[DeviceListColumn], Meta(max_length=100)] | UnsetType = UNSET


class DeviceLogConfig(_Devices, frozen=True):
    """The connection logs of devices."""

    include_device_info: bool | UnsetType = UNSET
    max_results_per_device: _Text255 | UnsetType = UNSET


class StateColumn(_Column, frozen=True):
    """A column of a table of states."""

    type: Literal["deviceTags", "deviceId", "deviceName", "timestamp", "attribute"] | UnsetType = UNSET
    attribute: _Text255 | UnsetType = UNSET


class StateTableConfig(_Devices, frozen=True):
    """A table of the states of devices."""

    attributes: _Names | UnsetType | None = UNSET
    duration: _Duration | UnsetType = UNSET
    sort_direction: Annotated[int, Meta(ge=-1, le=1)] | UnsetType = UNSET
    sort_index: Annotated[int, Meta(ge=0, le=100)] | UnsetType = UNSET
    columns: Annotated[list[StateColumn], Meta(max_length=100)] | UnsetType = UNSET


class EventColumn(_Column, frozen=True):
    """A column of a list of events."""

    selected_tag: _Text255 | UnsetType = UNSET
    type: (
        Literal[
            "level", "subject", "subjectWithMessage", "creationDate", "creationDateWithSource", "lastUpdatedDate",
            "lastUpdatedDateWithSource", "id", "state", "tag", "deviceName", "sourceId", "custom",
        ]
        | UnsetType
    ) = UNSET  # fmt: skip


class EventListConfig(Body, frozen=True):
    """A list of events."""

    allow_updates: bool | UnsetType = UNSET
    query: Description | UnsetType = UNSET
    sort_direction: _Direction | UnsetType = UNSET
    sort_field: _Text255 | UnsetType = UNSET
    filter: _Text255 | UnsetType = UNSET
    event_state: _Text255 | dict[str, Any] | UnsetType | None = UNSET
    column_errors: dict[str, Any] | UnsetType = UNSET
    columns: Annotated[list[EventColumn], Meta(max_length=100)] | UnsetType = UNSET


class GaugeConfig(_Numbers, frozen=True):
    """One value: a number, a dial, a tank and so on."""

    real_time: bool | UnsetType = UNSET
    display_as_percentage: bool | UnsetType = UNSET
    duration: _Duration | UnsetType = UNSET
    gauge_max: _NumberOrText | UnsetType = UNSET
    gauge_min: _NumberOrText | UnsetType = UNSET
    gauge_type: Literal["battery", "dial", "number", "tank", "thermometer", "needle"] | UnsetType = UNSET
    precision_type: Literal["floating", "significant"] | UnsetType = UNSET
    segment: Segment | UnsetType = UNSET
    conditions: _Conditions | UnsetType = UNSET


class YAxis(Body, frozen=True):
    """A vertical axis of a graph."""

    id: _Text48
    label: _Text255 | UnsetType = UNSET
    position: Literal["left", "right", "hidden"] | UnsetType = UNSET
    min: _NumberOrText | UnsetType = UNSET
    max: _NumberOrText | UnsetType = UNSET
    format: _Text255 | UnsetType = UNSET
    scale: Literal["linear", "log", "sqrt"] | UnsetType = UNSET
    stacked: bool | UnsetType = UNSET


class Decorator(Body, frozen=True):
    """A horizontal line, or an area between two values, of a graph."""

    type: Literal["line", "area"]
    y_axis_id: _Text48
    y1: _NumberOrText
    y2: _NumberOrText | UnsetType = UNSET
    label: _Text255 | UnsetType = UNSET
    color: _Text64 | UnsetType = UNSET
    line_style: Literal["solid", "dotted", "dashed"] | UnsetType = UNSET
    line_weight: _Weight | UnsetType = UNSET


class GraphConfig(_Numbers, frozen=True):
    """Values over time; a `sparkline` shows the newest value above a small line, a `timeline` when which value was."""

    real_time: bool | UnsetType = UNSET
    hide_legend: bool | UnsetType = UNSET
    disallow_user_selected_duration: bool | UnsetType = UNSET
    duration: _Duration | UnsetType = UNSET
    resolution: _Resolution | UnsetType = UNSET
    recharts: bool | UnsetType = UNSET
    display_type: Literal["stick", "line", "sparkline", "timeline"] | UnsetType = UNSET
    segments: Annotated[list[GraphSegment], Meta(max_length=100)] | UnsetType = UNSET
    y_axes: Annotated[list[YAxis], Meta(max_length=10)] | UnsetType = UNSET
    decorators: Annotated[list[Decorator], Meta(max_length=10)] | UnsetType = UNSET


class _Places(_Devices, frozen=True):
    additional_attributes: _Names | UnsetType | None = UNSET
    center_on_data_points: bool | UnsetType = UNSET
    default_center: _Text255 | UnsetType = UNSET
    default_zoom: _NumberOrText | UnsetType = UNSET
    duration: _Duration | UnsetType = UNSET


class HeatmapConfig(_Places, frozen=True):
    """Where values are on a map, by colour."""

    attribute: _Text255 | UnsetType = UNSET
    default_bearing: _Number | UnsetType = UNSET
    default_pitch: _Number | UnsetType = UNSET
    location_tag_key: _KeyOrTemplate | UnsetType = UNSET
    map_style: Literal["normal", "satellite"] | UnsetType = UNSET


class _Pins(_Places, frozen=True):
    composite_result: bool | UnsetType = UNSET
    start_color: _Text64 | UnsetType = UNSET
    end_color: _Text64 | UnsetType = UNSET
    icon_template: Annotated[str, Meta(max_length=73727)] | UnsetType = UNSET
    include_arrows: bool | UnsetType = UNSET
    include_lines: bool | UnsetType = UNSET
    pin_mode: Literal["simple", "advanced"] | UnsetType = UNSET
    popup_template: Description | UnsetType = UNSET
    resized_pins: bool | UnsetType = UNSET
    resolution: _Resolution | UnsetType = UNSET


class MapConfig(_Pins, frozen=True):
    """Where devices are, or were. The thresholds are those of the values of `valueAttribute`."""

    attribute: _Text255 | UnsetType = UNSET
    value_attribute: _Text255 | UnsetType = UNSET
    unit: _Unit | UnsetType = UNSET
    precision: _NumberOrText | UnsetType = UNSET
    thresholds: _Thresholds | UnsetType = UNSET
    default_bearing: _Number | UnsetType = UNSET
    default_pitch: _Number | UnsetType = UNSET
    location_tag_key: _KeyOrTemplate | UnsetType = UNSET
    map_style: Literal["normal", "satellite"] | UnsetType = UNSET
    cluster_points: bool | UnsetType = UNSET


class PositionConfig(_Pins, frozen=True):
    """Where devices are on a picture."""

    coordinate_a: _Position | UnsetType = UNSET
    coordinate_b: _Position | UnsetType = UNSET
    disable_zoom: bool | UnsetType = UNSET
    image_url: Description | UnsetType = UNSET
    pixel_a: _Position | UnsetType = UNSET
    pixel_b: _Position | UnsetType = UNSET
    x_attribute: _Text255 | UnsetType = UNSET
    y_attribute: _Text255 | UnsetType = UNSET


class FrameConfig(Body, frozen=True):
    """A page of another site."""

    url: _Text2048 | UnsetType = UNSET


class ImageConfig(Body, frozen=True):
    """A picture: from an address, or from an attribute of a device."""

    bg_color: _Text64 | UnsetType = UNSET
    image_link_new_window: bool | UnsetType = UNSET
    image_link_url: _Text2048 | UnsetType = UNSET
    image_url: Description | UnsetType = UNSET
    image_source: Literal["static", "attribute"] | UnsetType = UNSET
    device_id: _Text255 | UnsetType = UNSET
    attribute: _Text255 | UnsetType = UNSET


class _Overlay(Body, frozen=True):
    size: Literal["small", "medium", "large"]
    position: _Position
    default_condition: Condition
    popup_template: Description | UnsetType = UNSET
    conditions: _Conditions | UnsetType = UNSET


class IndicatorOverlay(_Overlay, frozen=True, tag_field="type", tag="indicator"):
    """A coloured shape on a picture."""


class LabelOverlay(_Overlay, frozen=True, tag_field="type", tag="label"):
    """A text on a picture."""


class ImageOverlay(_Overlay, frozen=True, tag_field="type", tag="image"):
    """A picture on a picture."""


class ValueOverlay(_Overlay, frozen=True, tag_field="type", tag="value"):
    """A value on a picture."""

    value_template: _Text255 | UnsetType = UNSET


class BarOverlay(_Overlay, frozen=True, tag_field="type", tag="bar"):
    """A bar on a picture."""

    min: _NumberOrText | UnsetType = UNSET
    max: _NumberOrText | UnsetType = UNSET
    background_color: _Text64 | UnsetType = UNSET
    value_template: _Text255 | UnsetType = UNSET
    length: Annotated[int, Meta(ge=1, le=10)] | UnsetType = UNSET
    orientation: Literal["horizontal", "vertical"] | UnsetType = UNSET


class OverlayConfig(Body, frozen=True):
    """Values on a picture."""

    image_url: Description | UnsetType = UNSET
    background_color: _Text64 | UnsetType = UNSET
    default_zoom: _Number | UnsetType = UNSET
    disable_zoom: bool | UnsetType = UNSET
    segments: Annotated[list[OverlayQuery], Meta(max_length=300)] | UnsetType = UNSET
    overlays: (
        Annotated[
            list[IndicatorOverlay | LabelOverlay | ImageOverlay | ValueOverlay | BarOverlay],
            Meta(max_length=100),
        ]
        | UnsetType
    ) = UNSET


class IndicatorConfig(Body, frozen=True):
    """A label and a colour that depend on values."""

    real_time: bool | UnsetType = UNSET
    duration: _Duration | UnsetType = UNSET
    segments: _Segments | UnsetType = UNSET
    conditions: _Conditions | UnsetType = UNSET
    default_condition: Condition | UnsetType = UNSET


class ControlQuery(_Devices, frozen=True):
    """The value that a control shows first."""

    attribute: _Text255 | UnsetType = UNSET
    aggregation: PlainAggregation | AggregationChoice | UnsetType = UNSET


class _Control(Body, frozen=True):
    id: _Text48 | UnsetType = UNSET
    template_id: _Text64 | UnsetType = UNSET
    grid: Grid | UnsetType = UNSET


class _Input(_Control, frozen=True):
    label: Annotated[str, Meta(max_length=512)] | UnsetType = UNSET
    default_query: ControlQuery | UnsetType = UNSET


class RangeControl(_Input, frozen=True, tag_field="type", tag="range"):
    """A number between two bounds."""

    color: _Text64 | UnsetType = UNSET
    max: _NumberOrText | UnsetType = UNSET
    min: _NumberOrText | UnsetType = UNSET
    step: _NumberOrText | UnsetType = UNSET
    default_value: _NumberOrText | UnsetType = UNSET


class ToggleControl(_Input, frozen=True, tag_field="type", tag="toggle"):
    """On or off."""

    color: _Text64 | UnsetType = UNSET
    default_value: bool | UnsetType = UNSET
    include_label: bool | UnsetType = UNSET


class TextControl(_Input, frozen=True, tag_field="type", tag="text"):
    """A text."""

    default_value: _Text2048 | UnsetType = UNSET


class SelectOption(Body, frozen=True):
    """A value that can be chosen, and the text that is shown for it."""

    value: _Text255 | UnsetType = UNSET
    label: _Text255 | UnsetType = UNSET


class SelectControl(_Input, frozen=True, tag_field="type", tag="select"):
    """One of several values."""

    default_value: _Text255 | UnsetType = UNSET
    options: Annotated[list[SelectOption], Meta(max_length=500)] | UnsetType = UNSET


class HelpControl(_Control, frozen=True, tag_field="type", tag="help"):
    """A text for people."""

    help: Description | UnsetType = UNSET


class ButtonControl(_Control, frozen=True, tag_field="type", tag="button"):
    """A button that sends a command, or starts a workflow."""

    device_ids: _Names | UnsetType = UNSET
    device_tags: _Tags | UnsetType = UNSET
    query: Description | UnsetType = UNSET
    action: Literal["workflow", "command"] | UnsetType = UNSET
    label: Annotated[str, Meta(max_length=512)] | UnsetType = UNSET
    color: _Text64 | UnsetType = UNSET
    payload: Description | UnsetType = UNSET
    button_id: _Text255 | UnsetType = UNSET
    workflow_id: _Text255 | UnsetType | None = UNSET
    command_name: _Text255 | UnsetType = UNSET


class InputConfig(Body, frozen=True):
    """Controls by which a viewer acts."""

    default_mode: Literal["unlocked", "locked"] | UnsetType = UNSET
    controls: (
        Annotated[
            list[RangeControl | ToggleControl | TextControl | SelectControl | HelpControl | ButtonControl],
            Meta(max_length=100),
        ]
        | UnsetType
    ) = UNSET


class OpenEventsConfig(Body, frozen=True):
    """How many events are open."""

    allow_updates: bool | UnsetType = UNSET
    query: Description | UnsetType = UNSET
    filter: _Text255 | UnsetType = UNSET


class PieConfig(Body, frozen=True):
    """Shares of a whole, one for each segment."""

    real_time: bool | UnsetType = UNSET
    duration: _Duration | UnsetType = UNSET
    percent_format: _Text255 | UnsetType = UNSET
    value_format: _Text255 | UnsetType = UNSET
    segments: _Segments | UnsetType = UNSET


class HeaderConfig(Body, frozen=True):
    """A heading and a text."""

    title: _Text255 | UnsetType = UNSET
    content: Description | UnsetType = UNSET


class WorkflowListConfig(FilterConfig, frozen=True):
    """A list of workflows."""

    include_cloud: bool | UnsetType = UNSET
    include_edge: bool | UnsetType = UNSET
    include_embedded: bool | UnsetType = UNSET
    include_experience: bool | UnsetType = UNSET
    experience_version: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET


# Blocks.


class _Block(Body, frozen=True):
    start_x: _Number
    start_y: _Number
    width: _Number
    height: _Number
    id: _Text48 | UnsetType = UNSET
    title: _Text255 | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    application_id: Id | UnsetType = UNSET


class ApplicationListBlock(_Block, frozen=True, tag_field="blockType", tag="application-list"):
    """The application of the block."""

    config: FilterConfig | UnsetType = UNSET


class BarBlock(_Block, frozen=True, tag_field="blockType", tag="bar"):
    """A bar chart."""

    config: BarConfig | UnsetType = UNSET


class CustomChartBlock(_Block, frozen=True, tag_field="blockType", tag="custom-chart"):
    """A chart in the language of Vega."""

    config: CustomConfig | UnsetType = UNSET


class CustomHtmlBlock(_Block, frozen=True, tag_field="blockType", tag="custom-html"):
    """A page of HTML."""

    config: CustomConfig | UnsetType = UNSET


class DashboardListBlock(_Block, frozen=True, tag_field="blockType", tag="dashboard-list"):
    """The dashboards of the application of the block."""

    config: FilterConfig | UnsetType = UNSET


class DataTableBlock(_Block, frozen=True, tag_field="blockType", tag="data-table"):
    """The rows of a data table."""

    config: RowsConfig | UnsetType = UNSET


class DeviceCountBlock(_Block, frozen=True, tag_field="blockType", tag="device-count"):
    """Numbers of devices."""

    config: CountConfig | UnsetType = UNSET


class DeviceListBlock(_Block, frozen=True, tag_field="blockType", tag="device-list"):
    """Devices."""

    config: DeviceListConfig | UnsetType = UNSET


class DeviceLogBlock(_Block, frozen=True, tag_field="blockType", tag="device-log"):
    """The connection logs of devices."""

    config: DeviceLogConfig | UnsetType = UNSET


class DeviceStateTableBlock(_Block, frozen=True, tag_field="blockType", tag="device-state-table"):
    """The states of devices."""

    config: StateTableConfig | UnsetType = UNSET


class EventListBlock(_Block, frozen=True, tag_field="blockType", tag="event-list"):
    """Events."""

    config: EventListConfig | UnsetType = UNSET


class GaugeBlock(_Block, frozen=True, tag_field="blockType", tag="gauge"):
    """One value."""

    config: GaugeConfig | UnsetType = UNSET


class GraphBlock(_Block, frozen=True, tag_field="blockType", tag="graph"):
    """Values over time."""

    config: GraphConfig | UnsetType = UNSET


class HeatmapBlock(_Block, frozen=True, tag_field="blockType", tag="heatmap"):
    """Values on a map."""

    config: HeatmapConfig | UnsetType = UNSET


class IframeBlock(_Block, frozen=True, tag_field="blockType", tag="iframe"):
    """A page of another site."""

    config: FrameConfig | UnsetType = UNSET


class ImageBlock(_Block, frozen=True, tag_field="blockType", tag="image"):
    """A picture."""

    config: ImageConfig | UnsetType = UNSET


class ImageOverlayBlock(_Block, frozen=True, kw_only=True, tag_field="blockType", tag="image-overlay"):
    """Values on a picture."""

    config: OverlayConfig


class IndicatorBlock(_Block, frozen=True, tag_field="blockType", tag="indicator"):
    """A label that depends on values."""

    config: IndicatorConfig | UnsetType = UNSET


class InputBlock(_Block, frozen=True, tag_field="blockType", tag="input"):
    """Controls."""

    config: InputConfig | UnsetType = UNSET


class MapBlock(_Block, frozen=True, tag_field="blockType", tag="map"):
    """Places of devices."""

    config: MapConfig | UnsetType = UNSET


class OpenEventIndicatorBlock(_Block, frozen=True, tag_field="blockType", tag="open-event-indicator"):
    """The number of open events."""

    config: OpenEventsConfig | UnsetType = UNSET


class PieBlock(_Block, frozen=True, tag_field="blockType", tag="pie"):
    """A pie chart."""

    config: PieConfig | UnsetType = UNSET


class PositionChartBlock(_Block, frozen=True, tag_field="blockType", tag="position-chart"):
    """Places of devices on a picture."""

    config: PositionConfig | UnsetType = UNSET


class SectionHeaderBlock(_Block, frozen=True, tag_field="blockType", tag="section-header"):
    """A heading."""

    config: HeaderConfig | UnsetType = UNSET


class WorkflowListBlock(_Block, frozen=True, tag_field="blockType", tag="workflow-list"):
    """Workflows."""

    config: WorkflowListConfig | UnsetType = UNSET


Block = (
    ApplicationListBlock
    | BarBlock
    | CustomChartBlock
    | CustomHtmlBlock
    | DashboardListBlock
    | DataTableBlock
    | DeviceCountBlock
    | DeviceListBlock
    | DeviceLogBlock
    | DeviceStateTableBlock
    | EventListBlock
    | GaugeBlock
    | GraphBlock
    | HeatmapBlock
    | IframeBlock
    | ImageBlock
    | ImageOverlayBlock
    | IndicatorBlock
    | InputBlock
    | MapBlock
    | OpenEventIndicatorBlock
    | PieBlock
    | PositionChartBlock
    | SectionHeaderBlock
    | WorkflowListBlock
)
