"""What the nodes of the users and groups of an experience share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from trunkline.actors.engine.bodies import json_reader
from trunkline.actors.engine.tools import Config, shortened, template_of, text_reader
from trunkline.actors.engine.visit import Visit, refused
from trunkline.actors.experience.resource import ExperienceResource, ShowExperienceRecord
from trunkline.actors.experience.tokens import ExperienceTokens
from trunkline.actors.experience.users import find_user
from trunkline.actors.formulas.values import to_number
from trunkline.actors.records.revision import Found
from trunkline.actors.runtime.ref import Ref

TTL_MS_MAX: Final = 100 * 365 * 86_400_000
DATA_CHARS_MAX: Final = 4_096
"""A token, which is longer than its data, stays below `TOKEN_CHARS_MAX`."""

MakeToken = Callable[[bytes, int], str]
"""Makes a token of a user at a time in milliseconds."""


def experience_of(visit: Visit) -> Ref:
    """The actor that writes the users and groups."""
    return Ref("experience", visit.world.application, visit.world.application)


def user_of(visit: Visit, email_or_id: str) -> Found | None:
    """The user with this e-mail address or id."""
    return find_user(visit.world.system.journal, visit.world.application, email_or_id.strip())


async def shown(visit: Visit, resource: ExperienceResource, id: bytes) -> dict[str, Any]:
    """A record as the payload has it: as the API shows it, without what is only for its callers."""
    ids = {"application": visit.world.application, resource.kind.name: id}
    return plain(await visit.read(ShowExperienceRecord(resource=resource.name, ids=ids)))


def plain(record: Any) -> dict[str, Any]:
    """A record that the API shows, as the payload has it."""
    return {name: each for name, each in msgspec.to_builtins(record).items() if not name.startswith("_")}


def token_reader(config: Config) -> Callable[[Visit], MakeToken]:
    """Reads what tokens are to have: the life of `ttlTemplate` (milliseconds; without end if it is not set), and the
    JSON of `extraDataJsonTemplate`."""
    ttl = text_reader(config, "ttlTemplate")
    is_set = template_of(config, "extraDataJsonTemplate") is not None
    data = json_reader(config, "extraDataJsonTemplate") if is_set else lambda _visit: None

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
