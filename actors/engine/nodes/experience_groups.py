"""GetExperienceGroupNode, CreateExperienceGroupNode, UpdateExperienceGroupNode, DeleteExperienceGroupNode,
ExperienceGroupSummaryNode: groups of an experience are found, created, changed, deleted and shown as a tree.

GetExperienceGroupNode finds groups by `id` or `name` (both by `idTemplate`), by `findByAllTags` or `findByAnyTags` (by
`tags`), or by `query` (by `queryTemplate`): the first one, null if there is none, an array with `findMultiple`, with
`findMetadata` the answer of the list of groups.

The fields of a group come from single templates (`individualFields`), from `groupJsonTemplate` (`jsonTemplate`) or from
`groupPayloadPath` (`payloadPath`). Among the single ones, `membersToAdd` and `membersToRemove` name users by id or
e-mail address, and `membersReplacement` those that take the place of all; a tag with a blank value is removed. The
group that is changed or deleted is `groupIdTemplate`. The result is the group or the error; of a deletion whether there
was such a group.

The tree of ExperienceGroupSummaryNode has `name`, `id` and `children` of each group. It begins with the group
`idTemplate`, or without that field with `(root)`, whose children are the groups without a parent. It is null if there
is no such group, as where `idTemplate` gives nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from trunkline.actors.core.query.text import NOTHING
from trunkline.actors.core.records import records
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.engine.bodies import id_reader, query_reader, with_error
from trunkline.actors.engine.device_choice import QueryReader, by_tags
from trunkline.actors.engine.experience import (
    MEMBERS,
    Given,
    GivenReader,
    change,
    given_reader,
    remove,
    shown,
    tags_reader,
    texts_reader,
    user_of,
)
from trunkline.actors.engine.experience_nodes import creating, finding, text_query
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_rights import may_read, may_write
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.pages import page_settings
from trunkline.actors.engine.settings import (
    DATA_METHOD,
    KEY,
    NEEDED_KEY,
    NEEDED_RESULT,
    RESULT,
    VALUE,
    ChoiceSetting,
    Config,
    LongTemplateSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    needed_path,
    needed_text_reader,
    path_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.kind import GROUP

_FIND_METHOD: Final = ChoiceSetting("findMethod", "id", "name", "findByAllTags", "findByAnyTags", "query")
_ID: Final = TemplateSetting("idTemplate")
_TAGS: Final = RowsSetting("tags", KEY, VALUE)
_SORT_FIELD: Final = ChoiceSetting("sortField", "name", "id", "creationDate", "lastUpdated")
_QUERY: Final = LongTemplateSetting("queryTemplate")
_NAME: Final = TemplateSetting("nameTemplate")
_DESCRIPTION: Final = TemplateSetting("descriptionTemplate")
_PARENT_ID: Final = TemplateSetting("parentIdTemplate")
_GROUP_TAGS: Final = RowsSetting("groupTags", NEEDED_KEY, VALUE)
_GROUP_TAG_TEMPLATES: Final = RowsSetting("groupTagTemplates", NEEDED_KEY, VALUE)
_MEMBERS_TO_ADD: Final = TextsSetting("membersToAdd")
_DEVICE_QUERY_JSON: Final = LongTemplateSetting("deviceQueryJsonTemplate")
_GROUP_JSON: Final = LongTemplateSetting("groupJsonTemplate")
_GROUP_PAYLOAD_PATH: Final = PathSetting("groupPayloadPath")
_GROUP_ID: Final = TemplateSetting("groupIdTemplate", is_needed=True)
_MEMBERS_TO_REMOVE: Final = TextsSetting("membersToRemove")
_MEMBERS_REPLACEMENT: Final = TextsSetting("membersReplacement")

_TEXTS: Final = {"name": _NAME, "description": _DESCRIPTION, "parentId": _PARENT_ID}
"""The fields of a group that have a template of their own."""
_FIELDS: Final = (
    DATA_METHOD,
    _NAME,
    _DESCRIPTION,
    _PARENT_ID,
    _GROUP_TAGS,
    _GROUP_TAG_TEMPLATES,
    _MEMBERS_TO_ADD,
    _MEMBERS_REPLACEMENT,
    _DEVICE_QUERY_JSON,
    _GROUP_JSON,
    _GROUP_PAYLOAD_PATH,
)
"""What a group is given."""
_KNOWN: Final = {each.name for each in (_GROUP_ID, *_FIELDS, _MEMBERS_TO_REMOVE, RESULT)}
_ROOT: Final = "(root)"


def _one(config: Config) -> Callable[[Visit], Any]:
    id = needed_text_reader(config, _ID)

    async def find(visit: Visit) -> Any:
        text = id(visit).strip()
        if not is_id(text):
            return None
        try:
            return await shown(visit, GROUPS, bytes.fromhex(text))
        except NotFound:
            return None

    return find


def _query(config: Config, method: str) -> QueryReader:
    if method in ("findByAllTags", "findByAnyTags"):
        join = "$and" if method == "findByAllTags" else "$or"
        return by_tags(config, _TAGS, join=join, field="groupTags")
    if method == "query":
        return text_query(config, _QUERY)
    name = needed_text_reader(config, _ID)

    async def query(visit: Visit) -> dict[str, Any]:
        return {"name": name(visit)}

    return query


def _update(config: Config) -> NodeStep:
    result, given = path_of(config, RESULT), _changed(config)
    id = id_reader(config, _GROUP_ID)

    async def update(visit: Visit) -> Any:
        return await change(visit, GROUPS, id(visit), given(visit))

    return lambda visit: with_error(visit, result, update(visit))


def _delete(config: Config) -> NodeStep:
    result, id = path_of(config, RESULT), needed_text_reader(config, _GROUP_ID)

    async def delete(visit: Visit) -> bool:
        text = id(visit).strip()
        if not is_id(text):
            return False
        try:
            await remove(visit, GROUPS, bytes.fromhex(text))
        except NotFound:
            return False
        return True

    return lambda visit: with_error(visit, result, delete(visit))


def _new(config: Config) -> GivenReader:
    return given_reader(
        config, "group", _GROUP_JSON, _GROUP_PAYLOAD_PATH, partial(_single, has_members=False)
    )


def _changed(config: Config) -> GivenReader:
    return given_reader(config, "group", _GROUP_JSON, _GROUP_PAYLOAD_PATH, partial(_single, has_members=True))


def _single(config: Config, has_members: bool) -> GivenReader:
    """Reads the fields from single templates. A group without members has none that could be removed."""
    texts = {name: text_reader(config, setting) for name, setting in _TEXTS.items()}
    tags = tags_reader(config, _GROUP_TAGS if config[_GROUP_TAGS] else _GROUP_TAG_TEMPLATES)
    devices = _devices(config)
    add = texts_reader(config, _MEMBERS_TO_ADD)
    drop = texts_reader(config, _MEMBERS_TO_REMOVE) if has_members else None
    all_members = texts_reader(config, _MEMBERS_REPLACEMENT)
    if all_members is not None and (add is not None or drop is not None):
        raise Unusable(
            "config.membersReplacement: names all members; give it or membersToAdd and membersToRemove."
        )

    for name in config.others(_KNOWN):
        raise Unusable(f"config.{name}: does nothing here; give groupJsonTemplate with all fields.")

    def read(visit: Visit) -> Given:
        fields: dict[str, Any] = {name: text for name, template in texts.items() if (text := template(visit))}
        if devices is not None:
            fields["deviceQueryJson"] = devices(visit)
        entries: dict[str, dict[str, Any]] = {}
        if all_members is not None:
            fields[MEMBERS] = _users(visit, "membersReplacement", all_members(visit))
        if add is not None:
            entries[MEMBERS] = dict.fromkeys(_users(visit, "membersToAdd", add(visit)), True)
        if drop is not None:
            gone = dict.fromkeys(_users(visit, "membersToRemove", drop(visit)))
            entries[MEMBERS] = entries.get(MEMBERS, {}) | gone
        if tags is not None:
            entries["groupTags"] = tags(visit)
        return Given(fields, entries, "dataMethod")

    return read


def _devices(config: Config) -> Callable[[Visit], str | None] | None:
    """Reads the query of the devices of a group; None for no devices, which exports write as an empty `$nor`."""
    if not text_of(config, _DEVICE_QUERY_JSON):
        return None
    query = query_reader(config, _DEVICE_QUERY_JSON)

    def read(visit: Visit) -> str | None:
        found = query(visit)
        return None if found == NOTHING else json.dumps(found)

    return read


def _users(visit: Visit, name: str, texts: list[str]) -> list[str]:
    """The ids of users that are named by id or e-mail address."""
    found = [user_of(visit, text) for text in texts]
    for text, user in zip(texts, found, strict=True):
        if user is None:
            raise refused(f"config.{name}: there is no experience user {text[:100]!r} in this application.")
    return [user.id.hex() for user in found if user is not None]


def _summary(config: Config) -> NodeStep:
    result, start = needed_path(config, NEEDED_RESULT), text_reader(config, _ID)
    none_given = "" if text_of(config, _ID).strip() else _ROOT

    async def step(visit: Visit) -> int:
        application, text = visit.world.application, start(visit).strip().lower()
        groups = await visit.world.query(
            lambda snapshot: [
                (id.hex(), doc["name"], doc.get("parentId"))
                for id, doc in records.scan(snapshot, GROUP, application)
            ]
        )
        visit.put(result, _tree(groups, text or none_given))
        check_payload(visit)
        return 0

    return step


def _tree(groups: list[tuple[str, str, str | None]], start: str) -> dict[str, Any] | None:
    """The tree of groups, each with id, name and parent, that begins at a group; None if there is no such group."""
    ordered = sorted(groups, key=lambda group: (group[1], group[0]))
    names = [(_ROOT, _ROOT), *((id, name) for id, name, _ in ordered)]
    trees: dict[str, dict[str, Any]] = {id: {"name": name, "id": id, "children": []} for id, name in names}
    for id, _, parent in ordered:
        # While an experience is being removed, a parent may be gone already.
        trees.get(parent or _ROOT, trees[_ROOT])["children"].append(trees[id])
    return trees.get(start)


TYPES: Final[dict[str, NodeType]] = {
    "GetExperienceGroupNode": NodeType(
        finding(GROUPS, "groups", _FIND_METHOD, _SORT_FIELD, _one, _query),
        Form("experience", (_FIND_METHOD, _ID, _TAGS, _QUERY, *page_settings(_SORT_FIELD), RESULT)),
        (may_read("experienceGroups.get"),),
    ),
    "CreateExperienceGroupNode": NodeType(
        creating(GROUPS, _new), Form("experience", (*_FIELDS, RESULT)), (may_write("experienceGroups.post"),)
    ),
    "UpdateExperienceGroupNode": NodeType(
        _update,
        Form("experience", (_GROUP_ID, *_FIELDS, _MEMBERS_TO_REMOVE, RESULT)),
        (may_write("experienceGroup.patch"),),
    ),
    "DeleteExperienceGroupNode": NodeType(
        _delete, Form("experience", (_GROUP_ID, RESULT)), (may_write("experienceGroup.delete"),)
    ),
    "ExperienceGroupSummaryNode": NodeType(
        _summary, Form("experience", (_ID, NEEDED_RESULT)), (may_read("experienceGroups.get"),)
    ),
}
