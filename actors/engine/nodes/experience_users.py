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
from trunkline.actors.engine.node_rights import may_read, may_write
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.pages import page_settings
from trunkline.actors.engine.settings import (
    DATA_METHOD,
    KEY,
    NEEDED_KEY,
    RESULT,
    VALUE,
    ChoiceSetting,
    Config,
    FlagSetting,
    LongTemplateSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import is_on, needed_text_reader, path_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS

_FIND_METHOD: Final = ChoiceSetting("findMethod", "emailOrId", "userTags", "query")
_FOUND: Final = TemplateSetting("emailOrIdTemplate")
_FOUND_TAGS: Final = RowsSetting("userTags", KEY, VALUE)
_QUERY: Final = LongTemplateSetting("queryTemplate")
_OTHER_TAGS: Final = RowsSetting("tags", KEY, VALUE, is_shown=False)
_EMAIL: Final = TemplateSetting("emailTemplate")
_PASSWORD: Final = TemplateSetting("passwordTemplate")
_FIRST_NAME: Final = TemplateSetting("firstNameTemplate")
_LAST_NAME: Final = TemplateSetting("lastNameTemplate")
_GROUP_IDS: Final = TextsSetting("groupIdTemplates")
_USER_TAGS: Final = RowsSetting("userTags", NEEDED_KEY, VALUE)
_USER_JSON: Final = LongTemplateSetting("userJsonTemplate")
_USER_PAYLOAD_PATH: Final = PathSetting("userPayloadPath")
_EMAIL_OR_ID: Final = TemplateSetting("emailOrIdTemplate", is_needed=True)
_INVALIDATE_EXISTING_TOKENS: Final = FlagSetting("invalidateExistingTokens")

_SORT_FIELD: Final = ChoiceSetting(
    "sortField", "email", "id", "firstName", "lastName", "creationDate", "lastLogin", "lastUpdated"
)
_FIELDS: Final = (
    DATA_METHOD,
    _EMAIL,
    _PASSWORD,
    _FIRST_NAME,
    _LAST_NAME,
    _GROUP_IDS,
    _USER_TAGS,
    _USER_JSON,
    _USER_PAYLOAD_PATH,
)
"""What a user is given."""
_TEXTS: Final = {"email": _EMAIL, "password": _PASSWORD, "firstName": _FIRST_NAME, "lastName": _LAST_NAME}
"""The fields of a user that have a template of their own."""


def _one(config: Config) -> Callable[[Visit], Any]:
    who = needed_text_reader(config, _FOUND)

    async def find(visit: Visit) -> Any:
        user = user_of(visit, who(visit))
        return None if user is None else await shown(visit, EXPERIENCE_USERS, user.id)

    return find


def _query(config: Config, method: str) -> QueryReader:
    if method == "userTags":
        tags = _FOUND_TAGS if config[_FOUND_TAGS] or not config[_OTHER_TAGS] else _OTHER_TAGS
        return by_tags(config, tags, join="$and", field="userTags")
    return text_query(config, _QUERY)


def _update(config: Config) -> NodeStep:
    result, given = path_of(config, RESULT), _given(config)
    who = needed_text_reader(config, _EMAIL_OR_ID)
    ends_tokens = is_on(config, _INVALIDATE_EXISTING_TOKENS)

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
    result, who = path_of(config, RESULT), needed_text_reader(config, _EMAIL_OR_ID)

    async def delete(visit: Visit) -> bool:
        user = user_of(visit, who(visit))
        if user is None:
            return False
        await remove(visit, EXPERIENCE_USERS, user.id)
        return True

    return lambda visit: with_error(visit, result, delete(visit))


def _given(config: Config) -> GivenReader:
    return given_reader(config, "user", _USER_JSON, _USER_PAYLOAD_PATH, _single)


def _single(config: Config) -> GivenReader:
    """Reads the fields from single templates."""
    texts = {name: text_reader(config, setting) for name, setting in _TEXTS.items()}
    groups, tags = texts_reader(config, _GROUP_IDS), tags_reader(config, _USER_TAGS)

    def read(visit: Visit) -> Given:
        fields: dict[str, Any] = {name: text for name, template in texts.items() if (text := template(visit))}
        if groups is not None:
            fields["experienceGroupIds"] = groups(visit)
        return Given(fields, {"userTags": tags(visit)} if tags is not None else {}, "dataMethod")

    return read


TYPES: Final[dict[str, NodeType]] = {
    "GetExperienceUserNode": NodeType(
        finding(EXPERIENCE_USERS, "users", _FIND_METHOD, _SORT_FIELD, _one, _query),
        Form(
            "experience",
            (
                _FIND_METHOD,
                _FOUND,
                _FOUND_TAGS,
                _QUERY,
                *page_settings(_SORT_FIELD),
                RESULT,
                _OTHER_TAGS,
            ),
        ),
        (may_read("experienceUsers.get"),),
    ),
    "CreateExperienceUserNode": NodeType(
        creating(EXPERIENCE_USERS, _given),
        Form("experience", (*_FIELDS, RESULT)),
        (may_write("experienceUsers.post"),),
    ),
    "UpdateExperienceUserNode": NodeType(
        _update,
        Form("experience", (_EMAIL_OR_ID, *_FIELDS, _INVALIDATE_EXISTING_TOKENS, RESULT)),
        (may_write("experienceUser.patch"),),
    ),
    "DeleteExperienceUserNode": NodeType(
        _delete, Form("experience", (_EMAIL_OR_ID, RESULT)), (may_write("experienceUser.delete"),)
    ),
}
