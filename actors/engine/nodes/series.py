"""GaugeNode and TimeSeriesNode: read values of attributes of devices, over a time or the newest ones.

The devices are those of `deviceIdsPath` (an id or an array of ids), or of `deviceIds` and `deviceTags` together; or by
`findMethod` those of a query (`query`, `queryTemplate`), of a user (`expUser`, `expUserTemplate`) or a group
(`expGroupId`, `expGroupIdTemplate`) of the experience, or of a parent (`parentId`, `parentIdTemplate`). Ids of no
device are left out. `attribute` is a name or a list of names. `duration` and `resolution` are milliseconds, `end` is a
time, without it now. `aggregation` is one of the API; `TIMEATVALUE` looks for the `value` of `aggregationOptions`, rows
of `keyTemplate` (as exports have it) or `key` (as the public documentation does) and `valueTemplate`.

The devices are taken together, as if one had reported all, or each by itself with `perDeviceResults`. A gauge gives
`{"time", "value"}`: with a duration the aggregation of the range, without one that of the newest values of the
devices; nothing gives `{}`. A series gives an array of them, in the order `orderTemplate`. Of several attributes the
result is an object by attribute, of each device one by device id. A series with the aggregation `NONE` is the answer of
the API's time series query, with at most `limitTemplate` points of each device, and `limitExceeded` where there are
more.

With `errorBehavior` `payloadPath` an error is put at `errorPath`, otherwise it fails the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.timestamps import iso, resolve_range
from trunkline.actors.engine.bodies import body_of, query_reader
from trunkline.actors.engine.device_choice import (
    QueryReader,
    by_group,
    by_parent,
    by_user,
    ids_and_tags,
    ids_at_path,
)
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_rights import may_read
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    ERROR_BEHAVIOR,
    ERROR_PATH,
    KEY,
    RESULT,
    TAG,
    VALUE,
    ChoiceSetting,
    Config,
    FlagSetting,
    LongTemplateSetting,
    NumberSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import (
    Reader,
    Unusable,
    choice_of,
    error_path,
    is_on,
    item_readers,
    list_of,
    number_reader,
    path_of,
    template_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.fleet.devices.queries.combined_series import Asked, combine, newest, together
from trunkline.actors.fleet.devices.queries.measurement_messages import QueryTimeSeries, TimeSeriesQuery
from trunkline.actors.fleet.devices.queries.measurements import query_time_series
from trunkline.actors.fleet.devices.queries.selection import chosen
from trunkline.actors.fleet.devices.queries.series_terms import Aggregation, parse_aggregation
from trunkline.actors.fleet.devices.record.reads import Opened
from trunkline.store.snapshot import Snapshot

_FIND_METHOD: Final = ChoiceSetting(
    "findMethod", "tagsIds", "tags", "deviceIds", "payloadPath", "query", "expUser", "expGroupId", "parentId"
)
_DEVICE_IDS: Final = TextsSetting("deviceIds")
_DEVICE_TAGS: Final = RowsSetting("deviceTags", *TAG)
_DEVICE_IDS_PATH: Final = PathSetting("deviceIdsPath")
_QUERY: Final = LongTemplateSetting("queryTemplate")
_EXP_USER: Final = TemplateSetting("expUserTemplate")
_EXP_GROUP_ID: Final = TemplateSetting("expGroupIdTemplate")
_PARENT_ID: Final = TemplateSetting("parentIdTemplate")
_ATTRIBUTE: Final = TextsSetting("attribute", is_needed=True)
_DURATION: Final = NumberSetting("duration")
_RANGE: Final = NumberSetting("duration", is_needed=True)
_END: Final = TemplateSetting("end")
_AGGREGATION: Final = TemplateSetting("aggregation")
_OPTION_KEY: Final = TemplateSetting("key", is_shown=False)
_AGGREGATION_OPTIONS: Final = RowsSetting("aggregationOptions", KEY, VALUE, _OPTION_KEY)
_PER_DEVICE_RESULTS: Final = FlagSetting("perDeviceResults")
_RESOLUTION: Final = NumberSetting("resolution")
_LIMIT: Final = NumberSetting("limitTemplate")
_ORDER: Final = TemplateSetting("orderTemplate")

_CHOSEN: Final = (
    _FIND_METHOD,
    _DEVICE_IDS,
    _DEVICE_TAGS,
    _DEVICE_IDS_PATH,
    _QUERY,
    _EXP_USER,
    _EXP_GROUP_ID,
    _PARENT_ID,
    _ATTRIBUTE,
)
"""What is read."""
_READ: Final = (
    _END,
    _AGGREGATION,
    _AGGREGATION_OPTIONS,
    _PER_DEVICE_RESULTS,
    RESULT,
    ERROR_BEHAVIOR,
    ERROR_PATH,
)
"""How it is read, and where it is put."""

_Choose = Callable[[Visit], Awaitable[dict[str, Any]]]
"""Reads which devices are chosen: `deviceIds`, `deviceTags` or `deviceQuery`."""
_Ask = Callable[[Visit, int], Asked]
"""Reads what is asked for, at a time in ms."""
_Read = Callable[[Reading, list[Opened], Asked], dict[str, Any]]
"""Reads the results by attribute."""


def _gauge(config: Config) -> NodeStep:
    duration = number_reader(config, _DURATION)
    ask, has_range = _asked(config, "LAST", duration), duration is not None

    def ask_gauge(visit: Visit, now_ms: int) -> Asked:
        asked = ask(visit, now_ms)._replace(resolution_ms=0)
        if asked.aggregation.type == "NONE":
            return asked._replace(aggregation=Aggregation("LAST"))
        if asked.aggregation.type == "TIMEATVALUE" and not has_range:
            raise refused("config.duration: is not set; TIMEATVALUE needs a range.")
        return asked

    return _node(config, ask_gauge, _of_range if has_range else _of_newest, {})


def _of_range(reading: Reading, devices: list[Opened], asked: Asked) -> dict[str, Any]:
    time = iso(asked.span.end_ms)
    return {
        name: {"time": time, "value": value}
        for name, buckets in combine(reading, devices, asked).items()
        for value in buckets.values()
    }


def _of_newest(reading: Reading, devices: list[Opened], asked: Asked) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, values in newest(reading, devices, asked).items():
        value = together(values, asked.aggregation)
        if value is not None:
            shown[name] = {"time": iso(max(time_ms for time_ms, _ in values)), "value": value}
    return shown


def _time_series(config: Config) -> NodeStep:
    duration = number_reader(config, _RANGE)
    if duration is None:
        raise Unusable("config.duration: is not set; give the milliseconds of the range.")
    resolution, limit = number_reader(config, _RESOLUTION), number_reader(config, _LIMIT)
    ask = _asked(config, "NONE", duration, resolution)
    order = text_reader(config, _ORDER)

    def ask_series(visit: Visit, now_ms: int) -> Asked:
        most = None if limit is None or not (given := limit(visit)) else round(given)
        return ask(visit, now_ms)._replace(order=order(visit) or "asc", limit=most)

    return _node(config, ask_series, _series, [])


def _series(reading: Reading, devices: list[Opened], asked: Asked) -> dict[str, Any]:
    found = {
        name: [{"time": iso(time_ms), "value": value} for time_ms, value in buckets.items()]
        for name, buckets in combine(reading, devices, asked).items()
    }
    return found if asked.order == "asc" else {name: points[::-1] for name, points in found.items()}


def _raw(reading: Reading, application: bytes, devices: list[Opened], asked: Asked) -> dict[str, Any]:
    """The answer of the API's query, with one point more of each device, to see whether there are more."""
    fields = {
        "start": asked.span.start_ms or 1,
        "end": asked.span.end_ms,
        "attributes": asked.attributes,
        "deviceIds": [device.id.hex() for device in devices],
        "order": asked.order,
        **({} if asked.limit is None else {"limit": asked.limit + 1}),
    }
    body = body_of(TimeSeriesQuery, fields, "attribute, orderTemplate, limitTemplate")
    message = QueryTimeSeries(application=application, body=body, now_ms=asked.now_ms, reach=None)
    answer = query_time_series(reading, message) | {"limit": asked.limit}
    for device in answer["devices"].values():
        if asked.limit is not None and len(device["points"]) > asked.limit:
            device["points"] = device["points"][: asked.limit]
            device["limitExceeded"] = True
    return answer


def _node(config: Config, ask: _Ask, read: _Read, nothing: Any) -> NodeStep:
    """Reads for each device, or for all together, and puts the result."""
    choose, result = _choice(config), path_of(config, RESULT)
    by_device, is_series = is_on(config, _PER_DEVICE_RESULTS), read is _series
    problem = error_path(config)

    def shaped(found: dict[str, Any], asked: Asked) -> Any:
        return found.get(asked.attributes[0], nothing) if len(asked.attributes) == 1 else found

    async def query(visit: Visit) -> Any:
        world, choice = visit.world, await choose(visit)
        asked = ask(visit, world.system.clock.wall_ms())
        limits, application = world.system.limits, world.application

        def in_snapshot(snapshot: Snapshot) -> Any:
            reading = Reading(snapshot, limits, in_loop=False, system=world.system)
            devices = chosen(reading, application, choice)
            if is_series and asked.aggregation.type == "NONE":
                return _raw(reading, application, devices, asked) if devices else {}
            if by_device:
                each = {device.id.hex(): read(reading, [device], asked) for device in devices}
                return {id: shaped(found, asked) for id, found in each.items() if found}
            return shaped(read(reading, devices, asked), asked)

        return await world.query(in_snapshot)

    async def step(visit: Visit) -> int:
        try:
            visit.put(result, await query(visit))
            check_payload(visit)
        except DomainError as refusal:
            if problem is None:
                raise
            visit.put(problem, {"name": refusal.type, "message": refusal.message})
        except NodeError as error:
            if problem is None or error.name != "ValidationError":
                raise
            visit.put(problem, {"name": error.name, "message": str(error)})
        return 0

    return step


# Configuration.


def _asked(config: Config, default: str, duration: Reader | None, resolution: Reader | None = None) -> _Ask:
    names = _attributes(config)
    end, aggregation = text_reader(config, _END), text_reader(config, _AGGREGATION)
    options = [
        (
            text_reader(each, KEY if each[KEY] else _OPTION_KEY),
            template_of(each, VALUE),
        )
        for each in list_of(config, _AGGREGATION_OPTIONS)
    ]

    def ask(visit: Visit, now_ms: int) -> Asked:
        name = (aggregation(visit) or default).upper()
        kind: Any = name
        if name == "TIMEATVALUE":
            given = {
                key(visit): template.value(visit.payload, visit.run.now_ms)
                for key, template in options
                if template is not None
            }
            kind = {"type": name, "options": given}
        span = resolve_range(
            now_ms,
            end=end(visit).strip(),
            start=1,
            duration=None if duration is None else duration(visit),
        )
        width = 0 if resolution is None else round(resolution(visit))
        if width < 0:
            raise refused(f"config.resolution: gives {width}; give milliseconds, 0 for the whole range.")
        return Asked([read(visit) for read in names], span, width, parse_aggregation(kind), now_ms)

    return ask


def _attributes(config: Config) -> list[Callable[[Visit], str]]:
    given = config[_ATTRIBUTE]
    names = given if isinstance(given, list) else [given]
    if not names or not all(names):
        raise Unusable("config.attribute: give the name of an attribute, or a list of names.")
    return item_readers(config, _ATTRIBUTE)


def _choice(config: Config) -> _Choose:
    match choice_of(config, _FIND_METHOD):
        case "query":
            read = query_reader(config, _QUERY)

            async def choose(visit: Visit) -> dict[str, Any]:
                return {"deviceQuery": read(visit)}

            return choose
        case "expUser":
            return _by(by_user(config, _EXP_USER))
        case "expGroupId":
            return _by(by_group(config, _EXP_GROUP_ID))
        case "parentId":
            return _by(by_parent(config, _PARENT_ID))
    if not any(config[each] for each in (_DEVICE_IDS_PATH, _DEVICE_IDS, _DEVICE_TAGS)):
        raise Unusable("config.deviceIds, deviceTags or deviceIdsPath: choose the devices by one of them.")
    named = (
        ids_at_path(config, _DEVICE_IDS_PATH)
        if text_of(config, _DEVICE_IDS_PATH)
        else ids_and_tags(config, _DEVICE_IDS, _DEVICE_TAGS)
    )

    async def choose_named(visit: Visit) -> dict[str, Any]:
        return named(visit)

    return choose_named


def _by(query: QueryReader) -> _Choose:
    async def choose(visit: Visit) -> dict[str, Any]:
        return {"deviceQuery": await query(visit)}

    return choose


TYPES: Final[dict[str, NodeType]] = {
    "GaugeNode": NodeType(
        _gauge, Form("data", (*_CHOSEN, _DURATION, *_READ)), (may_read("data.timeSeriesQuery"),)
    ),
    "TimeSeriesNode": NodeType(
        _time_series,
        Form("data", (*_CHOSEN, _RANGE, *_READ, _RESOLUTION, _LIMIT, _ORDER)),
        (may_read("data.timeSeriesQuery"),),
    ),
}
