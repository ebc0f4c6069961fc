"""GetDeviceNode: finds a device, or a page of devices, and puts it at `resultPath`.

`findMethod` is `id`, `name` (both by `idTemplate`), `findByAllTags`, `findByAnyTags` (by `tags`), `findByParentId` (by
`parentIdTemplate` or `idTemplate`; if neither is set, devices without a parent), `experienceGroupId`,
`experienceUserIdOrEmail` (both by `idTemplate`) or `query` (by `queryTemplate`).

The result is the first device, null if there is none. With `findMultiple` it is an array, and with `findMetadata` the
answer of the list of devices. A device by its id is always one. `includeState` adds the newest values as
`compositeState`, of `attributes` if they are named.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.engine.bodies import plain, query_reader
from trunkline.actors.engine.device_choice import QueryReader, by_group, by_parent, by_tags, by_user
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_rights import may_read
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.pages import page_reader, page_settings
from trunkline.actors.engine.settings import (
    KEY,
    RESULT,
    VALUE,
    ChoiceSetting,
    Config,
    FlagSetting,
    LongTemplateSetting,
    RowsSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    is_on,
    needed_text_reader,
    path_of,
)
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.fleet.devices.record.messages import CompositeRange, DevicePage, DeviceShape
from trunkline.actors.fleet.devices.record.read_messages import GetCompositeState, GetDevice, ListDevices
from trunkline.actors.fleet.devices.state.history import get_composite_state
from trunkline.store.snapshot import Snapshot

TYPE: Final = "GetDeviceNode"

_FIND_METHOD: Final = ChoiceSetting(
    "findMethod",
    "id",
    "name",
    "findByAllTags",
    "findByAnyTags",
    "findByParentId",
    "experienceGroupId",
    "experienceUserIdOrEmail",
    "query",
)
_ID: Final = TemplateSetting("idTemplate")
_PARENT_ID: Final = TemplateSetting("parentIdTemplate")
_TAGS: Final = RowsSetting("tags", KEY, VALUE)
_QUERY: Final = LongTemplateSetting("queryTemplate")
_SORT_FIELD: Final = ChoiceSetting("sortField", "name", "id", "creationDate", "lastUpdated")
_INCLUDE_STATE: Final = FlagSetting("includeState")
_ATTRIBUTES: Final = TextsSetting("attributes")
_INCLUDE_CONNECTION_STATUS: Final = FlagSetting("includeConnectionStatus", is_on=True)
_TAGS_AS_OBJECT: Final = FlagSetting("tagsAsObject")
_ATTRIBUTES_AS_OBJECT: Final = FlagSetting("attributesAsObject")
FORM: Final = Form(
    "data",
    (
        _FIND_METHOD,
        _ID,
        _PARENT_ID,
        _TAGS,
        _QUERY,
        *page_settings(_SORT_FIELD),
        _INCLUDE_STATE,
        _ATTRIBUTES,
        _INCLUDE_CONNECTION_STATUS,
        _TAGS_AS_OBJECT,
        _ATTRIBUTES_AS_OBJECT,
        RESULT,
    ),
)
NEEDS: Final = (may_read("devices.get"), may_read("device.getCompositeState", _INCLUDE_STATE))


def prepare(config: Config) -> NodeStep:
    result = path_of(config, RESULT)
    find = _one(config) if choice_of(config, _FIND_METHOD) == "id" else _page(config)

    async def step(visit: Visit) -> int:
        visit.put(result, await find(visit))
        check_payload(visit)
        return 0

    return step


def _one(config: Config) -> Any:
    id, shape, states = (
        needed_text_reader(config, _ID),
        DeviceShape(**_shape(config)),
        _states(config),
    )

    async def find(visit: Visit) -> Any:
        text = id(visit).strip()
        if not is_id(text):
            return None
        message = GetDevice(application=visit.world.application, device=bytes.fromhex(text), query=shape)
        try:
            device = plain(await visit.read(message))
        except NotFound:
            return None
        await states(visit, [device])
        return device

    return find


def _page(config: Config) -> Any:
    query, shape, states = _query(config), _shape(config), _states(config)
    page = page_reader(config, "devices", _SORT_FIELD)

    async def find(visit: Visit) -> Any:
        wanted = page(visit)
        asked = DevicePage(query=await query(visit), **wanted.page, **shape)
        message = ListDevices(application=visit.world.application, query=asked, reach=None)
        listed = plain(await visit.read(message))
        listed["items"] = [plain(each) for each in listed["items"]]
        await states(visit, listed["items"])
        return wanted.pick(listed)

    return find


def _query(config: Config) -> QueryReader:
    match choice_of(config, _FIND_METHOD):
        case "findByAllTags":
            return by_tags(config, _TAGS, join="$and")
        case "findByAnyTags":
            return by_tags(config, _TAGS, join="$or")
        case "findByParentId":
            return by_parent(config, _PARENT_ID, _ID)
        case "experienceGroupId":
            return by_group(config, _ID)
        case "experienceUserIdOrEmail":
            return by_user(config, _ID)
        case "query":
            read = query_reader(config, _QUERY)
        case _:
            name = needed_text_reader(config, _ID)

            def read(visit: Visit) -> dict[str, Any]:
                return {"name": name(visit)}

    async def query(visit: Visit) -> dict[str, Any]:
        return read(visit)

    return query


def _shape(config: Config) -> dict[str, Any]:
    return {
        "exclude_connection_info": not is_on(config, _INCLUDE_CONNECTION_STATUS),
        "tags_as_object": is_on(config, _TAGS_AS_OBJECT),
        "attributes_as_object": is_on(config, _ATTRIBUTES_AS_OBJECT),
    }


def _states(config: Config) -> Any:
    """Adds the composite states to devices, if they are wanted."""
    is_wanted = is_on(config, _INCLUDE_STATE)
    names = config[_ATTRIBUTES] or None
    if isinstance(names, list):
        names = ",".join(map(str, names))
    if names is not None and not isinstance(names, str):
        raise Unusable("config.attributes: give a list of names of attributes.")
    asked = CompositeRange(attributes=names)

    async def add(visit: Visit, devices: list[dict[str, Any]]) -> None:
        if not is_wanted or not devices:
            return
        world = visit.world
        limits, now_ms = world.system.limits, world.system.clock.wall_ms()

        def read(snapshot: Snapshot) -> list[dict[str, Any]]:
            reading = Reading(snapshot, limits, in_loop=False, system=world.system)
            return [_composite(reading, each["id"]) for each in devices]

        def _composite(reading: Reading, id: str) -> dict[str, Any]:
            message = GetCompositeState(
                application=world.application, device=bytes.fromhex(id), query=asked, now_ms=now_ms
            )
            try:
                return get_composite_state(reading, message)
            except NotFound:  # deleted since
                return {}

        for device, state in zip(devices, await world.query(read), strict=True):
            device["compositeState"] = state

    return add
