"""GetExperienceUserNode, CreateExperienceUserNode, UpdateExperienceUserNode, DeleteExperienceUserNode: users of an
experience are found, created, changed and deleted.

One user is named by its id or its e-mail address, `emailOrIdTemplate`. GetExperienceUserNode finds that user, or with
`findMethod` `userTags` those with all tags of `userTags` (or of `tags`, as some documents of the format name them), or
with `query` those of `queryTemplate`: the first one, null if there is none, an array with `findMultiple`, with
`findMetadata` the answer of the list of users.

The fields of a user come from single templates (`individualFields`), from `userJsonTemplate` (`jsonTemplate`) or from
`userPayloadPath` (`payloadPath`). What is blank among the single ones stays as it is; `groupIdTemplates` replaces the
groups, also if it is empty; a tag with a blank value is removed. The result is the user or the error; of a deletion
whether there was such a user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.engine.bodies import with_error
from trunkline.actors.engine.device_choice import QueryReader, by_tags
from trunkline.actors.engine.experience import (
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
from trunkline.actors.engine.tools import Config, needed_text_reader, path_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Prepare, Visit
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS

_SORT_FIELDS: Final = (
    "email",
    "id",
    "firstName",
    "lastName",
    "creationDate",
    "lastLogin",
    "lastUpdated",
)
_TEXTS: Final = ("email", "password", "firstName", "lastName")
"""The fields of a user that have a template of their own."""


def _one(config: Config) -> Callable[[Visit], Any]:
    who = needed_text_reader(config, "emailOrIdTemplate")

    async def find(visit: Visit) -> Any:
        user = user_of(visit, who(visit))
        return None if user is None else await shown(visit, EXPERIENCE_USERS, user.id)

    return find


def _query(config: Config, method: str) -> QueryReader:
    if method == "userTags":
        name = "userTags" if config.get("userTags") or not config.get("tags") else "tags"
        return by_tags(config, name, join="$and", field="userTags")
    return text_query(config, "queryTemplate")


def _update(config: Config) -> NodeStep:
    result, given = path_of(config, "resultPath"), _given(config)
    who = needed_text_reader(config, "emailOrIdTemplate")
    ends_tokens = config.get("invalidateExistingTokens") is True

    async def update(visit: Visit) -> Any:
        fields, text = given(visit), who(visit).strip()
        user = user_of(visit, text)
        if user is None:
            raise NotFound(f"There is no experience user {text[:100]!r} here.")
        if ends_tokens:
            # A token of this millisecond has ended as well.
            fields.fields["tokenCutoff"] = iso(visit.world.system.clock.wall_ms() + 1)
        return await change(visit, EXPERIENCE_USERS, user.id, fields)

    return lambda visit: with_error(visit, result, update(visit))


def _delete(config: Config) -> NodeStep:
    result, who = path_of(config, "resultPath"), needed_text_reader(config, "emailOrIdTemplate")

    async def delete(visit: Visit) -> bool:
        user = user_of(visit, who(visit))
        if user is None:
            return False
        await remove(visit, EXPERIENCE_USERS, user.id)
        return True

    return lambda visit: with_error(visit, result, delete(visit))


def _given(config: Config) -> GivenReader:
    return given_reader(config, "user", _single)


def _single(config: Config) -> GivenReader:
    """Reads the fields from single templates."""
    texts = {name: text_reader(config, f"{name}Template") for name in _TEXTS}
    groups, tags = texts_reader(config, "groupIdTemplates"), tags_reader(config, "userTags")

    def read(visit: Visit) -> Given:
        fields: dict[str, Any] = {name: text for name, template in texts.items() if (text := template(visit))}
        if groups is not None:
            fields["experienceGroupIds"] = groups(visit)
        return Given(fields, {"userTags": tags(visit)} if tags is not None else {}, "dataMethod")

    return read


TYPES: Final[dict[str, Prepare]] = {
    "GetExperienceUserNode": finding(
        EXPERIENCE_USERS, "users", ("emailOrId", "userTags", "query"), _SORT_FIELDS, _one, _query
    ),
    "CreateExperienceUserNode": creating(EXPERIENCE_USERS, _given),
    "UpdateExperienceUserNode": _update,
    "DeleteExperienceUserNode": _delete,
}
