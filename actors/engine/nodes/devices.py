"""CreateDeviceNode, UpdateDeviceNode and DeviceDeleteWorkflowNode: create, change and delete devices.

What a device gets comes from the JSON of `deviceJsonTemplate` (`dataMethod` `jsonTemplate`), from an object at
`devicePayloadPath` (`payloadPath`), or from templates (`individualFields`), of which blank ones set nothing. A new
device may begin with the recipe `recipeIdTemplate`, whose fields are replaced by those that the node gives, of its
tags and attributes those of the same key or name; it has the tag `DeviceRecipe` with the name of the recipe.

With `individualFields` an update changes only the tags and the attributes that it names: a tag replaces all of its
key, and an entry without `valueTemplate` removes them; an attribute that is not declared is added, and an entry without
`dataTypeTemplate` removes it. The type of a declared attribute does not change.

`resultPath` gets the device, or the error; without it an error fails the run. A deletion is of one device
(`deviceIdTemplate`; the result is true) or of all that match `deviceQueryJsonTemplate` (by `dataMethod` `query`): of
few at once (`removed` and `failed`), of many by a job (`jobQueued` and `jobId`). They can be restored, as always.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.engine.bodies import body_of, id_reader, json_reader, plain, query_reader, with_error
from trunkline.actors.engine.large_changes import change_or_queue
from trunkline.actors.engine.many import ask_many
from trunkline.actors.engine.node_rights import may_read, may_write
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    DATA_METHOD,
    KEY,
    RESULT,
    VALUE,
    ChoiceSetting,
    Config,
    FlagSetting,
    LongTemplateSetting,
    NumberSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    choice_of,
    is_on,
    list_of,
    needed_path,
    number_reader,
    path_of,
    shortened,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.fleet.devices.bulk.bulk_jobs import DELETE_DEVICES, shown_tally, tallied
from trunkline.actors.fleet.devices.bulk.bulk_messages import (
    ChangeDevice,
    ChooseDevices,
    DeviceChange,
    DeviceChoice,
    Operation,
)
from trunkline.actors.fleet.devices.record.messages import (
    CreateDevice,
    DeleteDevice,
    DevicePatch,
    DevicePost,
    DeviceShape,
    PatchDevice,
)
from trunkline.actors.fleet.devices.record.read_messages import GetDevice
from trunkline.actors.fleet.recipes.messages import OpenRecipe
from trunkline.actors.fleet.recipes.rows import device_fields

_RECIPE_ID: Final = TemplateSetting("recipeIdTemplate")
_NAME: Final = TemplateSetting("nameTemplate")
_DESCRIPTION: Final = TemplateSetting("descriptionTemplate")
_DEVICE_CLASS: Final = TemplateSetting("deviceClassTemplate")
_GATEWAY_ID: Final = TemplateSetting("gatewayIdTemplate")
_PARENT_ID: Final = TemplateSetting("parentIdTemplate")
_DEVICE_TAGS: Final = RowsSetting("deviceTags", KEY, VALUE)
_DATA_TYPE: Final = TemplateSetting("dataTypeTemplate")
_CONTENT_TYPE: Final = TemplateSetting("contentTypeTemplate")
_DEVICE_ATTRIBUTES: Final = RowsSetting("deviceAttributes", _NAME, _DATA_TYPE, _CONTENT_TYPE, _DESCRIPTION)
_SYSTEM_INTERVAL: Final = NumberSetting("systemIntervalTemplate")
_KEEP_DUPLICATES: Final = TemplateSetting("keepDuplicatesTemplate")
_DEVICE_JSON: Final = LongTemplateSetting("deviceJsonTemplate")
_DEVICE_PAYLOAD_PATH: Final = PathSetting("devicePayloadPath")
_TAGS_AS_OBJECT: Final = FlagSetting("tagsAsObject")
_ATTRIBUTES_AS_OBJECT: Final = FlagSetting("attributesAsObject")
_DEVICE_ID: Final = TemplateSetting("deviceIdTemplate", is_needed=True)
_ID: Final = TemplateSetting("idTemplate", is_shown=False)
_CHOSEN_BY: Final = ChoiceSetting("dataMethod", "id", "query")
_CHOSEN_ID: Final = TemplateSetting("deviceIdTemplate")
_DEVICE_QUERY_JSON: Final = LongTemplateSetting("deviceQueryJsonTemplate")

_DEVICE: Final = (
    DATA_METHOD,
    _NAME,
    _DESCRIPTION,
    _DEVICE_CLASS,
    _GATEWAY_ID,
    _PARENT_ID,
    _DEVICE_TAGS,
    _DEVICE_ATTRIBUTES,
    _SYSTEM_INTERVAL,
    _KEEP_DUPLICATES,
    _DEVICE_JSON,
    _DEVICE_PAYLOAD_PATH,
    _TAGS_AS_OBJECT,
    _ATTRIBUTES_AS_OBJECT,
    RESULT,
)
"""What a device is given, and how it is shown."""

_Fields = dict[str, Any]
_TEXTS: Final = {
    "name": _NAME,
    "description": _DESCRIPTION,
    "deviceClass": _DEVICE_CLASS,
    "gatewayId": _GATEWAY_ID,
    "parentId": _PARENT_ID,
}
"""The fields with templates of their own."""


def _create(config: Config) -> NodeStep:
    read, show, result = _fields(config), _shown(config), path_of(config, RESULT)
    recipe = id_reader(config, _RECIPE_ID) if text_of(config, _RECIPE_ID) else None
    lists = (_tags(config), _attributes(config))

    async def create(visit: Visit) -> Any:
        fields = read(visit)
        if _is_individual(config):
            tags, attributes = (each(visit) for each in lists)
            fields |= {"tags": tags} if tags else {}
            fields |= {"attributes": attributes} if attributes else {}
        if recipe is not None:
            opened = OpenRecipe(application=visit.world.application, device_recipe=recipe(visit))
            fields = _over_recipe(device_fields(await visit.read(opened)), fields)
        body = body_of(DevicePost, fields, _field(config))
        message = CreateDevice(body=body, origin=visit.world.origin)
        made = await visit.ask(_ref(visit, visit.new_id()), message)
        return await show(visit, made["id"])

    return lambda visit: with_error(visit, result, create(visit))


def _over_recipe(recipe: _Fields, given: _Fields) -> _Fields:
    """The fields of a recipe under those that are given: of tags and attributes, under those of the same name."""
    fields = {**recipe, **given}
    for list_name, name in (("tags", "key"), ("attributes", "name")):
        own, base = given.get(list_name), recipe.get(list_name)
        if base and isinstance(own, list) and all(isinstance(each, dict) for each in own):
            names = [each.get(name) for each in own]
            fields[list_name] = [*(each for each in base if each[name] not in names), *own]
    return fields


def _update(config: Config) -> NodeStep:
    id = _id_of_device(config, _DEVICE_ID)
    read, show, result = _fields(config), _shown(config), path_of(config, RESULT)
    change = _change(config) if _is_individual(config) else None

    async def update(visit: Visit) -> Any:
        device = id(visit)
        body = body_of(DevicePatch, read(visit), _field(config))
        message = PatchDevice(body=body) if change is None else await change(visit, device, body)
        await visit.ask(_ref(visit, device), message)
        return await show(visit, device)

    return lambda visit: with_error(visit, result, update(visit))


def _id_of_device(config: Config, setting: TemplateSetting) -> Callable[[Visit], bytes]:
    return id_reader(config, _ID if text_of(config, _ID) else setting)


def _ref(visit: Visit, id: bytes) -> Ref:
    return Ref("device", visit.world.application, id)


# What the device gets.


def _is_individual(config: Config) -> bool:
    return choice_of(config, DATA_METHOD) == "individualFields"


def _field(config: Config) -> str:
    """The field that a sentence about the device names."""
    fields = ("dataMethod", "deviceJsonTemplate", "devicePayloadPath")
    return fields[DATA_METHOD.options.index(choice_of(config, DATA_METHOD))]


def _fields(config: Config) -> Callable[[Visit], _Fields]:
    """Reads the fields; from templates without tags and attributes."""
    method = choice_of(config, DATA_METHOD)
    if method == "individualFields":
        return _texts(config)
    if method == "jsonTemplate":
        value = json_reader(config, _DEVICE_JSON)
    else:
        path = needed_path(config, _DEVICE_PAYLOAD_PATH)
        value = lambda visit: path.get(visit.payload)  # noqa: E731

    def read(visit: Visit) -> _Fields:
        fields = value(visit)
        if not isinstance(fields, dict):
            raise refused(f"config.{_field(config)}: gives {shortened(fields)}, not an object with a device.")
        return dict(fields)

    return read


def _texts(config: Config) -> Callable[[Visit], _Fields]:
    texts = {name: text_reader(config, setting) for name, setting in _TEXTS.items()}
    interval = number_reader(config, _SYSTEM_INTERVAL)
    keeps = text_reader(config, _KEEP_DUPLICATES)

    def read(visit: Visit) -> _Fields:
        fields: _Fields = {name: text for name, read in texts.items() if (text := read(visit))}
        if interval is not None:
            fields["systemInterval"] = round(interval(visit))
        if text := keeps(visit).strip():
            fields["keepDuplicates"] = text == "true"
        return fields

    return read


_Entries = Callable[[Visit], list[dict[str, str]]]
"""Reads a list of objects of texts: those whose templates are set."""


def _entries(config: Config, setting: RowsSetting, parts: dict[str, TemplateSetting]) -> _Entries:
    """Reads the objects of a field; `parts` has their templates by the names of what they give."""
    entries = [
        {part: text_reader(each, template) for part, template in parts.items() if text_of(each, template)}
        for each in list_of(config, setting)
    ]

    def read(visit: Visit) -> list[dict[str, str]]:
        return [{part: read(visit) for part, read in each.items()} for each in entries if each]

    return read


def _tags(config: Config) -> _Entries:
    return _entries(config, _DEVICE_TAGS, {"key": KEY, "value": VALUE})


def _attributes(config: Config) -> _Entries:
    parts = {
        "name": _NAME,
        "dataType": _DATA_TYPE,
        "contentType": _CONTENT_TYPE,
        "description": _DESCRIPTION,
    }
    return _entries(config, _DEVICE_ATTRIBUTES, parts)


def _change(config: Config) -> Callable[[Visit, bytes, DevicePatch], Awaitable[ChangeDevice]]:
    """Makes a change of some tags and attributes, and of the other fields."""
    tags, attributes = _tags(config), _attributes(config)

    async def change(visit: Visit, device: bytes, fields: DevicePatch) -> ChangeDevice:
        operations = [
            {"operation": "set", "target": "tag", "value": tag}
            if "value" in tag
            else {"operation": "remove", "target": "tag", "tagKey": tag.get("key")}
            for tag in tags(visit)
        ]
        if wanted := attributes(visit):
            shown = await visit.read(_read_of(visit, device, DeviceShape()))
            declared = {each["name"]: each["dataType"] for each in shown["attributes"]}
            operations += _declarations(wanted, declared)
        body = body_of(list[Operation], operations, "deviceTags, deviceAttributes")
        return ChangeDevice(change=DeviceChange(fields, body))

    return change


def _declarations(wanted: list[dict[str, str]], declared: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What is to be done to the attributes of a device so that they are as wanted."""
    for each in wanted:
        name, type = each.get("name", ""), each.get("dataType")
        if type is None:
            yield {"operation": "remove", "target": "attribute", "attributeName": name}
        elif name not in declared:
            yield {"operation": "add", "target": "attribute", "value": each}
        elif declared[name] != type:
            raise refused(f"config.deviceAttributes: {name} is declared as {declared[name]} and stays so.")


# Results.


def _shown(config: Config) -> Callable[[Visit, bytes], Awaitable[Any]]:
    """Reads a device for the result."""
    shape = DeviceShape(
        tags_as_object=is_on(config, _TAGS_AS_OBJECT),
        attributes_as_object=is_on(config, _ATTRIBUTES_AS_OBJECT),
    )
    is_wanted = path_of(config, RESULT) is not None

    async def show(visit: Visit, id: bytes) -> Any:
        return plain(await visit.read(_read_of(visit, id, shape))) if is_wanted else None

    return show


def _read_of(visit: Visit, id: bytes, shape: DeviceShape) -> GetDevice:
    return GetDevice(application=visit.world.application, device=id, query=shape)


# Deletion.


def _delete(config: Config) -> NodeStep:
    result = path_of(config, RESULT)
    if choice_of(config, _CHOSEN_BY) == "query":
        query = query_reader(config, _DEVICE_QUERY_JSON, empty_is_all=False)
        return lambda visit: with_error(visit, result, _delete_matching(visit, query(visit)))
    id = _id_of_device(config, _CHOSEN_ID)

    async def delete(visit: Visit) -> bool:
        await visit.ask(_ref(visit, id(visit)), DeleteDevice())
        return True

    return lambda visit: with_error(visit, result, delete(visit))


async def _delete_matching(visit: Visit, query: _Fields) -> Any:
    world, choice = visit.world, DeviceChoice(query=query)
    now_ms = world.system.clock.wall_ms()
    chosen = ChooseDevices(application=world.application, choice=choice, now_ms=now_ms)
    ids, job = await change_or_queue(
        visit, partial(visit.read, chosen), DELETE_DEVICES.operation, {"choice": choice}
    )
    if job is not None:
        return {"success": True, "jobQueued": True, "jobId": job.hex()}
    answers = await ask_many(visit, [_ref(visit, id) for id in ids], DeleteDevice())
    return shown_tally(tallied(world.system.limits, "removed", ids, answers))


TYPES: Final[dict[str, NodeType]] = {
    "CreateDeviceNode": NodeType(
        _create,
        Form("data", (_RECIPE_ID, *_DEVICE)),
        (may_write("devices.post"), may_read("deviceRecipe.get", _RECIPE_ID)),
    ),
    "UpdateDeviceNode": NodeType(
        _update, Form("data", (_DEVICE_ID, *_DEVICE, _ID)), (may_write("device.patch"),)
    ),
    "DeviceDeleteWorkflowNode": NodeType(
        _delete,
        Form("data", (_CHOSEN_BY, _CHOSEN_ID, _DEVICE_QUERY_JSON, RESULT, _ID)),
        (may_write("device.delete", unless=(_CHOSEN_BY,)), may_write("devices.delete", _CHOSEN_BY)),
    ),
}
