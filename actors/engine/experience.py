"""What the nodes of the users and groups of an experience share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from trunkline.actors.core.formulas.values import to_number
from trunkline.actors.core.records.messages import CreateRecord, DeleteRecord, GetRecord, ListRecords
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.engine.bodies import body_of, json_reader, plain
from trunkline.actors.engine.settings import (
    DATA_METHOD,
    NEEDED_KEY,
    VALUE,
    Config,
    LongTemplateSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    item_readers,
    list_of,
    needed_path,
    needed_text_reader,
    shortened,
    template_of,
    text_reader,
)
from trunkline.actors.engine.visit import Visit, refused
from trunkline.actors.presentation.experience.amend import AmendRecord
from trunkline.actors.presentation.experience.tokens import ExperienceTokens
from trunkline.actors.presentation.experience.users import find_user

MEMBERS: Final = "experienceUserIds"
"""The field of a group that is a list of ids."""
NAME_CHARS_MAX: Final = 1_024
"""Characters of an id or an e-mail address that a template gives."""
TTL_MS_MAX: Final = 100 * 365 * 86_400_000
DATA_CHARS_MAX: Final = 4_096
"""A token, which is longer than its data, stays below `TOKEN_CHARS_MAX`."""


class Given(NamedTuple):
    """What a node gives a record: fields as the API has them, and entries as `AmendRecord` has them."""

    fields: dict[str, Any]
    entries: dict[str, dict[str, Any]]
    source: str
    """The field of the configuration that it comes from."""


GivenReader = Callable[[Visit], Given]
MakeToken = Callable[[bytes, int], str]
"""Makes a token of a user at a time in milliseconds."""


def experience_of(visit: Visit) -> Ref:
    """The actor that writes the users and groups."""
    return Ref("experience", visit.world.application, visit.world.application)


def user_of(visit: Visit, email_or_id: str) -> Found | None:
    """The user with this e-mail address or id."""
    if len(email_or_id) > NAME_CHARS_MAX:
        return None
    return find_user(visit.world.system.journal, visit.world.application, email_or_id.strip())


# Reads and changes.


async def shown(visit: Visit, resource: Resource, id: bytes) -> dict[str, Any]:
    """A record as the payload has it: as the API shows it, without what is only for its callers."""
    ids = {"application": visit.world.application, resource.kind.name: id}
    return plain(await visit.read(GetRecord(resource=resource.name, ids=ids)))


async def listed(visit: Visit, resource: Resource, page: Page) -> dict[str, Any]:
    """The answer of a list of records, in the same form."""
    world = visit.world
    message = ListRecords(
        resource=resource.name,
        ids={"application": world.application},
        query=page,
        now_ms=world.system.clock.wall_ms(),
    )
    found = plain(await visit.read(message))
    return {**found, "items": [plain(each) for each in found["items"]]}


async def create(visit: Visit, resource: Resource, given: Given) -> dict[str, Any]:
    """Create a record; return it as it is shown."""
    fields = dict(given.fields)
    for name, entries in given.entries.items():
        set_ones = {key: value for key, value in entries.items() if value is not None}
        fields[name] = list(set_ones) if name == MEMBERS else set_ones
    body = await _prepared(resource, body_of(resource.post, fields, given.source))
    message = CreateRecord(resource=resource.name, body=body, by=visit.world.creator)
    made = await visit.ask(experience_of(visit), message)
    return await shown(visit, resource, made["id"])


async def change(visit: Visit, resource: Resource, id: bytes, given: Given) -> dict[str, Any]:
    """Change a record; return it as it is shown."""
    body = await _prepared(resource, body_of(resource.patch, given.fields, given.source))
    message = AmendRecord(
        resource=resource.name, record=id, body=body, by=visit.world.creator, entries=given.entries
    )
    await visit.ask(experience_of(visit), message)
    return await shown(visit, resource, id)


async def remove(visit: Visit, resource: Resource, id: bytes) -> None:
    """Delete a record."""
    await visit.ask(experience_of(visit), DeleteRecord(resource=resource.name, record=id))


async def _prepared(resource: Resource, body: Any) -> Any:
    return body if resource.prepare is None else await resource.prepare(body)


# Fields of the configuration.


def given_reader(
    config: Config,
    noun: str,
    json: LongTemplateSetting,
    payload_path: PathSetting,
    single: Callable[[Config], GivenReader],
) -> GivenReader:
    """Reads what a record is given, as `dataMethod` says: from single templates, from one of JSON, or from a path."""
    method = choice_of(config, DATA_METHOD)
    if method == "individualFields":
        return single(config)
    if method == "jsonTemplate":
        source = json.name
        value = json_reader(config, json)
    else:
        source = payload_path.name
        path = needed_path(config, payload_path)

        def value(visit: Visit) -> Any:
            return path.get(visit.payload)

    def read(visit: Visit) -> Given:
        fields = value(visit)
        if not isinstance(fields, dict):
            raise refused(
                f"config.{source}: gives {shortened(fields)}, not an object with the fields of a {noun}."
            )
        return Given(dict(fields), {}, source)

    return read


def texts_reader(config: Config, setting: TextsSetting) -> Callable[[Visit], list[str]] | None:
    """Reads a list of templates of ids or e-mail addresses, without those that are blank; None if it is not set."""
    texts = config[setting]
    if texts is None or texts == "":
        return None
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise Unusable(f"config.{setting}: give a list of templates.")
    readers = item_readers(config, setting)

    def read(visit: Visit) -> list[str]:
        given = [reader(visit) for reader in readers]
        longest = max(map(len, given), default=0)
        if longest > NAME_CHARS_MAX:
            raise refused(
                f"config.{setting}: gives a text of {longest} characters, which is not a valid id or e-mail address."
            )
        return [stripped for text in given if (stripped := text.strip())]

    return read


def tags_reader(config: Config, setting: RowsSetting) -> Callable[[Visit], dict[str, str | None]] | None:
    """Reads tags, None for a tag without a value; None if no tags are set."""
    tags = [
        (needed_text_reader(each, NEEDED_KEY), text_reader(each, VALUE)) for each in list_of(config, setting)
    ]
    return (lambda visit: {key(visit).strip(): value(visit) or None for key, value in tags}) if tags else None


TOKEN_TTL: Final = TemplateSetting("ttlTemplate")
TOKEN_DATA: Final = LongTemplateSetting("extraDataJsonTemplate")


def token_reader(config: Config) -> Callable[[Visit], MakeToken]:
    """Reads what tokens are to have: the life of `ttlTemplate` (milliseconds; without end if it is not set), and the
    JSON of `extraDataJsonTemplate`."""
    ttl = text_reader(config, TOKEN_TTL)
    is_set = template_of(config, TOKEN_DATA) is not None
    data = json_reader(config, TOKEN_DATA) if is_set else lambda _visit: None

    def read(visit: Visit) -> MakeToken:
        text, more = ttl(visit).strip(), data(visit)
        ttl_ms = to_number(text) if text else None
        if ttl_ms is not None and not 0 < ttl_ms <= TTL_MS_MAX:
            raise refused(
                f"config.ttlTemplate: gives {shortened(text)}; give milliseconds up to {TTL_MS_MAX}, or nothing "
                "for a token without end."
            )
        size = len(json.dumps(more))
        if size > DATA_CHARS_MAX:
            raise refused(
                f"config.extraDataJsonTemplate: gives {size} characters; a token carries {DATA_CHARS_MAX}."
            )
        world = visit.world
        tokens, ttl_s = world.system.component(ExperienceTokens), None if ttl_ms is None else ttl_ms / 1000
        return lambda user, made_ms: tokens.make_token(
            world.application, user, now_ms=made_ms, ttl_s=ttl_s, data=more
        )

    return read
