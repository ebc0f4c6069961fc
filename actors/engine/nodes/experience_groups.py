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
`idTemplate`, or with `(root)`, whose children are the groups without a parent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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
from trunkline.actors.engine.tools import (
    Config,
    Unusable,
    needed_path,
    needed_text_reader,
    path_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Prepare, Visit, refused
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.kind import GROUP

_METHODS: Final = ("id", "name", "findByAllTags", "findByAnyTags", "query")
_SORT_FIELDS: Final = ("name", "id", "creationDate", "lastUpdated")
_TEXTS: Final = ("name", "description", "parentId")
"""The fields of a group that have a template of their own."""
_KNOWN: Final = {
    *(f"{name}Template" for name in _TEXTS),
    *("deviceQueryJsonTemplate", "groupTags", "groupTagTemplates"),
    *("membersToAdd", "membersToRemove", "membersReplacement"),
    *("dataMethod", "groupIdTemplate", "groupJsonTemplate", "groupPayloadPath", "resultPath"),
}
_ROOT: Final = "(root)"


def _one(config: Config) -> Callable[[Visit], Any]:
    id = needed_text_reader(config, "idTemplate")

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
        return by_tags(config, "tags", join=join, field="groupTags")
    if method == "query":
        return text_query(config, "queryTemplate")
    name = needed_text_reader(config, "idTemplate")

    async def query(visit: Visit) -> dict[str, Any]:
        return {"name": name(visit)}

    return query


def _update(config: Config) -> NodeStep:
    result, given = path_of(config, "resultPath"), _given(config)
    id = id_reader(config, "groupIdTemplate")

    async def update(visit: Visit) -> Any:
        return await change(visit, GROUPS, id(visit), given(visit))

    return lambda visit: with_error(visit, result, update(visit))


def _delete(config: Config) -> NodeStep:
    result, id = path_of(config, "resultPath"), needed_text_reader(config, "groupIdTemplate")

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


def _given(config: Config) -> GivenReader:
    return given_reader(config, "group", _single)


def _single(config: Config) -> GivenReader:
    """Reads the fields from single templates."""
    texts = {name: text_reader(config, f"{name}Template") for name in _TEXTS}
    tags = tags_reader(config, "groupTags" if config.get("groupTags") else "groupTagTemplates")
    devices = _devices(config)
    add = texts_reader(config, "membersToAdd")
    drop, all_members = texts_reader(config, "membersToRemove"), texts_reader(config, "membersReplacement")
    if all_members is not None and (add is not None or drop is not None):
        raise Unusable(
            "config.membersReplacement: names all members; give it or membersToAdd and membersToRemove."
        )

    for name, value in config.items():
        if value and name not in _KNOWN:
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
    if not text_of(config, "deviceQueryJsonTemplate"):
        return None
    query = query_reader(config, "deviceQueryJsonTemplate")

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
    result, start = needed_path(config, "resultPath"), text_reader(config, "idTemplate")

    async def step(visit: Visit) -> int:
        application, text = visit.world.application, start(visit).strip().lower()
        groups = await visit.world.query(
            lambda snapshot: [
                (id.hex(), doc["name"], doc.get("parentId"))
                for id, doc in records.scan(snapshot, GROUP, application)
            ]
        )
        visit.put(result, _tree(groups, text or _ROOT))
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


TYPES: Final[dict[str, Prepare]] = {
    "GetExperienceGroupNode": finding(GROUPS, "groups", _METHODS, _SORT_FIELDS, _one, _query),
    "CreateExperienceGroupNode": creating(GROUPS, _given),
    "UpdateExperienceGroupNode": _update,
    "DeleteExperienceGroupNode": _delete,
    "ExperienceGroupSummaryNode": _summary,
}
