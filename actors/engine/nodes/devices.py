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
from trunkline.actors.engine.tools import (
    Config,
    choice_of,
    list_of,
    needed_path,
    number_reader,
    path_of,
    shortened,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Prepare, Visit, refused
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

_Fields = dict[str, Any]
_METHODS: Final = ("individualFields", "jsonTemplate", "payloadPath")
_TEXTS: Final = ("name", "description", "deviceClass", "gatewayId", "parentId")
"""The fields with templates of their own, such as `nameTemplate`."""


def _create(config: Config) -> NodeStep:
    read, show, result = _fields(config), _shown(config), path_of(config, "resultPath")
    recipe = id_reader(config, "recipeIdTemplate") if text_of(config, "recipeIdTemplate") else None
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
    id = _id_of_device(config)
    read, show, result = _fields(config), _shown(config), path_of(config, "resultPath")
    change = _change(config) if _is_individual(config) else None

    async def update(visit: Visit) -> Any:
        device = id(visit)
        body = body_of(DevicePatch, read(visit), _field(config))
        message = PatchDevice(body=body) if change is None else await change(visit, device, body)
        await visit.ask(_ref(visit, device), message)
        return await show(visit, device)

    return lambda visit: with_error(visit, result, update(visit))


def _id_of_device(config: Config) -> Callable[[Visit], bytes]:
    return id_reader(config, "idTemplate" if text_of(config, "idTemplate") else "deviceIdTemplate")


def _ref(visit: Visit, id: bytes) -> Ref:
    return Ref("device", visit.world.application, id)


# What the device gets.


def _is_individual(config: Config) -> bool:
    return choice_of(config, "dataMethod", _METHODS) == "individualFields"


def _field(config: Config) -> str:
    """The field that a sentence about the device names."""
    fields = ("dataMethod", "deviceJsonTemplate", "devicePayloadPath")
    return fields[_METHODS.index(choice_of(config, "dataMethod", _METHODS))]


def _fields(config: Config) -> Callable[[Visit], _Fields]:
    """Reads the fields; from templates without tags and attributes."""
    method = choice_of(config, "dataMethod", _METHODS)
    if method == "individualFields":
        return _texts(config)
    if method == "jsonTemplate":
        value = json_reader(config, "deviceJsonTemplate")
    else:
        path = needed_path(config, "devicePayloadPath")
        value = lambda visit: path.get(visit.payload)  # noqa: E731

    def read(visit: Visit) -> _Fields:
        fields = value(visit)
        if not isinstance(fields, dict):
            raise refused(f"config.{_field(config)}: gives {shortened(fields)}, not an object with a device.")
        return dict(fields)

    return read


def _texts(config: Config) -> Callable[[Visit], _Fields]:
    texts = {name: text_reader(config, f"{name}Template") for name in _TEXTS}
    interval = number_reader(config, "systemIntervalTemplate")
    keeps = text_reader(config, "keepDuplicatesTemplate")

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


def _entries(config: Config, name: str, parts: dict[str, str]) -> _Entries:
    """Reads the objects of a field; `parts` has the names of their templates by those of what they give."""
    entries = [
        {part: text_reader(each, template) for part, template in parts.items() if text_of(each, template)}
        for each in list_of(config, name)
    ]

    def read(visit: Visit) -> list[dict[str, str]]:
        return [{part: read(visit) for part, read in each.items()} for each in entries if each]

    return read


def _tags(config: Config) -> _Entries:
    return _entries(config, "deviceTags", {"key": "keyTemplate", "value": "valueTemplate"})


def _attributes(config: Config) -> _Entries:
    parts = {
        "name": "nameTemplate",
        "dataType": "dataTypeTemplate",
        "contentType": "contentTypeTemplate",
        "description": "descriptionTemplate",
    }
    return _entries(config, "deviceAttributes", parts)


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
        tags_as_object=config.get("tagsAsObject") is True,
        attributes_as_object=config.get("attributesAsObject") is True,
    )
    is_wanted = path_of(config, "resultPath") is not None

    async def show(visit: Visit, id: bytes) -> Any:
        return plain(await visit.read(_read_of(visit, id, shape))) if is_wanted else None

    return show


def _read_of(visit: Visit, id: bytes, shape: DeviceShape) -> GetDevice:
    return GetDevice(application=visit.world.application, device=id, query=shape)


# Deletion.


def _delete(config: Config) -> NodeStep:
    result = path_of(config, "resultPath")
    if choice_of(config, "dataMethod", ("id", "query")) == "query":
        query = query_reader(config, "deviceQueryJsonTemplate", empty_is_all=False)
        return lambda visit: with_error(visit, result, _delete_matching(visit, query(visit)))
    id = _id_of_device(config)

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


TYPES: Final[dict[str, Prepare]] = {
    "CreateDeviceNode": _create,
    "UpdateDeviceNode": _update,
    "DeviceDeleteWorkflowNode": _delete,
}
