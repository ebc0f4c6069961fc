"""Which devices a node means: the queries over devices that its find methods stand for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from trunkline.actors.engine.bodies import id_of
from trunkline.actors.engine.experience import user_of
from trunkline.actors.engine.settings import (
    KEY,
    TAG,
    VALUE,
    Config,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    list_of,
    needed_item_reader,
    needed_path,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import Visit, refused

Query = dict[str, Any]
QueryReader = Callable[[Visit], Awaitable[Query]]

NO_DEVICE: Final[Query] = {"id": {"$in": []}}
"""Matches no device."""

_SIDES: Final = {"key": "$tagKey", "value": "$tagValue"}
"""The parts of a tag, as a query names them."""


def by_parent(config: Config, *settings: TemplateSetting) -> QueryReader:
    """The children of a device, whose id the first of these fields that is set gives; without one: those of none."""
    given = next((each for each in settings if text_of(config, each)), None)
    read = None if given is None else text_reader(config, given)

    async def query(visit: Visit) -> Query:
        text = "" if read is None else read(visit).strip()
        return {"parentId": None if given is None or text == "null" else id_of(text, given).hex()}

    return query


def by_group(config: Config, setting: TemplateSetting) -> QueryReader:
    """The devices of a group of the experience and of those below it."""
    read = text_reader(config, setting)

    async def query(visit: Visit) -> Query:
        return {"experienceGroupId": id_of(read(visit).strip(), setting).hex()}

    return query


def by_user(config: Config, setting: TemplateSetting) -> QueryReader:
    """The devices of the groups of a user of the experience, by its id or its e-mail address."""
    read = text_reader(config, setting)

    async def query(visit: Visit) -> Query:
        user = user_of(visit, read(visit))
        return NO_DEVICE if user is None else {"experienceUserId": user.id.hex()}

    return query


def by_tags(config: Config, setting: RowsSetting, *, join: str, field: str = "tags") -> QueryReader:
    """The devices with one of the tags (`$or`) or with all (`$and`), each by key, by value, or by both.

    `field` is the field with the tags, for other records than devices. A tag of which a template gives nothing is one
    that no device has.
    """
    tags = [_tag_reader(each, (KEY, VALUE)) for each in list_of(config, setting)]
    if not tags:
        raise Unusable(f"config.{setting}: is empty; give at least one tag.")

    async def query(visit: Visit) -> Query:
        return {join: [_with_tag(field, tag(visit)) for tag in tags]}

    return query


def _with_tag(field: str, tag: dict[str, str]) -> Query:
    return {field: {_SIDES[part]: text for part, text in tag.items()}} if tag else NO_DEVICE


def _tag_reader(
    row: Config, settings: tuple[TemplateSetting, TemplateSetting]
) -> Callable[[Visit], dict[str, str]]:
    """Reads a tag: its `key`, its `value` or both, those that are set. If one gives nothing: empty, and noted."""
    parts = [
        (part, row.place(setting), text_reader(row, setting))
        for part, setting in zip(_SIDES, settings, strict=True)
        if text_of(row, setting)
    ]

    def read(visit: Visit) -> dict[str, str]:
        tag: dict[str, str] = {}
        for part, place, text in parts:
            tag[part] = text(visit)
            if not tag[part]:
                visit.note(f"{place}: gives nothing, so nothing has this tag.")
                return {}
        return tag

    return read


# Devices by name.

Choice = dict[str, list[Any]]
"""`deviceIds` and `deviceTags`, as bodies of the API have them."""


def ids_at_path(config: Config, setting: PathSetting) -> Callable[[Visit], Choice]:
    """Reads the ids at the path of a field: one, or an array."""
    path = needed_path(config, setting)

    def read(visit: Visit) -> Choice:
        given = path.get(visit.payload)
        ids = given if isinstance(given, list) else [given]
        most = visit.world.system.limits.selected_devices_max
        if len(ids) > most:
            raise refused(f"config.{setting}: leads to {len(ids)} ids; give at most {most}.")
        return {"deviceIds": list(dict.fromkeys(id_of(id, setting).hex() for id in ids))}

    return read


def ids_and_tags(
    config: Config, ids_setting: TextsSetting, tags_setting: RowsSetting
) -> Callable[[Visit], Choice]:
    """Reads a list of ids and a list of tags, each with a key, a value or both. All are templates.

    A tag of which a template gives nothing chooses no device.
    """
    given = config[ids_setting] or []
    if not isinstance(given, list):
        raise Unusable(f"config.{ids_setting}: give a list of ids.")
    ids = [needed_item_reader(config.place(ids_setting, at), id) for at, id in enumerate(given)]
    tags = [_tag_reader(tag, TAG) for tag in list_of(config, tags_setting)]

    def read(visit: Visit) -> Choice:
        return {
            "deviceIds": [id_of(id(visit).strip(), ids_setting).hex() for id in ids],
            "deviceTags": [found for tag in tags if (found := tag(visit))],
        }

    return read
