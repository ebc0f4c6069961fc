"""ExperienceUserAuthNode and ExperienceUserTokenNode: users of an experience are recognized, and get tokens.

What ExperienceUserAuthNode checks follows from the fields that are set: `emailTemplate` and `passwordTemplate`, or
`tokenTemplate`, or both. With both a token that is not valid counts as none, and then address and password decide;
beside a valid token the address and the password must fit as far as they are given. Output 1 follows a success,
output 0 a failure, which leaves the payload as it is. A success with the password counts as a login. A valid token is
the token of the result, unless `invalidateExistingTokens` has ended it: then there is a new one.

Guessing is throttled as for logins to the API, by user and by the address of who waits for the reply of the run: over
the limit no password is compared, the run ends with an error, and who waits gets 429.

ExperienceUserTokenNode makes a token without a check, null for a user that does not exist. It counts as a login if
`treatAsLogin` is set. The life of a token, `ttlTemplate`, is in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import TooManyRequests, Unauthorized
from trunkline.actors.engine.experience import (
    TOKEN_DATA,
    TOKEN_TTL,
    MakeToken,
    experience_of,
    shown,
    token_reader,
    user_of,
)
from trunkline.actors.engine.node_rights import may_read, may_write
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import NEEDED_RESULT, Config, FlagSetting, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import (
    Unusable,
    is_on,
    needed_path,
    needed_text_reader,
    path_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.people.accounts.application_log_ins import ApplicationLogIns
from trunkline.actors.people.accounts.passwords import simulate_verification, verify_password
from trunkline.actors.presentation.experience.log_in import NoteLogIn
from trunkline.actors.presentation.experience.tokens import ExperienceTokens
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS, user_with_email
from trunkline.actors.workflows.triggers.replies import Replies

_EMAIL: Final = TemplateSetting("emailTemplate")
_PASSWORD: Final = TemplateSetting("passwordTemplate")
_TOKEN: Final = TemplateSetting("tokenTemplate")
_INVALIDATE_EXISTING_TOKENS: Final = FlagSetting("invalidateExistingTokens")
_USER_RESULT_PATH: Final = PathSetting("userResultPath")
_TOKEN_RESULT_PATH: Final = PathSetting("tokenResultPath")
_EMAIL_OR_ID: Final = TemplateSetting("emailOrIdTemplate", is_needed=True)
_TREAT_AS_LOGIN: Final = FlagSetting("treatAsLogin")


def _authenticate(config: Config) -> NodeStep:
    has_token, has_email, has_password = (bool(text_of(config, each)) for each in (_TOKEN, _EMAIL, _PASSWORD))
    if not has_token and not (has_email and has_password):
        raise Unusable(
            "config.emailTemplate, config.passwordTemplate: are not both set; give both of them, or "
            "config.tokenTemplate."
        )
    email, password = text_reader(config, _EMAIL), text_reader(config, _PASSWORD)
    given, new = text_reader(config, _TOKEN), token_reader(config)
    user_path, token_path = path_of(config, _USER_RESULT_PATH), path_of(config, _TOKEN_RESULT_PATH)
    ends_tokens = is_on(config, _INVALIDATE_EXISTING_TOKENS)

    async def recognized(visit: Visit, token: str) -> tuple[Found | None, bool]:
        """The user, and whether the token was enough to know who it is."""
        journal, application = visit.world.system.journal, visit.world.application
        address, secret = email(visit).strip(), password(visit)
        user = None
        if token:
            tokens, now_ms = (
                visit.world.system.component(ExperienceTokens),
                visit.world.system.clock.wall_ms(),
            )
            with suppress(Unauthorized):
                user = tokens.check_token(journal, application, token, now_ms).user
        has_valid_token = user is not None
        if user is not None:
            is_compared = has_email and (address or not has_password)
            if is_compared and address.casefold() != user.doc["email"].casefold():
                return None, False
        elif has_email and has_password:
            user = user_with_email(journal, application, address)
            if user is None:
                await _compare(visit, address, None, secret)
        is_checked = user is not None and (bool(secret) or not has_valid_token)
        if user is not None and is_checked and not await _compare(visit, user.id.hex(), user, secret):
            return None, False
        return user, has_valid_token

    async def authenticate(visit: Visit) -> int:
        token = given(visit).strip().removeprefix("Bearer ").strip()
        user, has_valid_token = await recognized(visit, token)
        if user is None:
            return 0
        if ends_tokens or not has_valid_token:
            token = await _new_token(visit, user, new, is_log_in=not has_valid_token, ends_tokens=ends_tokens)
        visit.put(token_path, token)
        if user_path is not None:
            visit.put(user_path, await shown(visit, EXPERIENCE_USERS, user.id))
        return 1

    return authenticate


async def _compare(visit: Visit, account: str, user: Found | None, secret: str) -> bool:
    """Whether the password is that of a user. Raises `TooManyRequests`, which the caller who waits gets as well."""
    world = visit.world
    system, application = world.system, world.application
    waiting = system.component(Replies).find(application, world.trigger)
    address = None if waiting is None else waiting.address
    try:
        async with system.component(ApplicationLogIns).attempt(application, account, address):
            if user is None:
                await simulate_verification()
            if user is None or not await verify_password(user.doc["passwordHash"], secret):
                raise Unauthorized("email and password do not fit together.")
    except Unauthorized:
        return False
    except TooManyRequests as refusal:
        if waiting is not None:
            waiting.refuse(refusal)
        raise
    return True


def _make_token(config: Config) -> NodeStep:
    who, path = needed_text_reader(config, _EMAIL_OR_ID), needed_path(config, NEEDED_RESULT)
    is_log_in, ends_tokens = (is_on(config, each) for each in (_TREAT_AS_LOGIN, _INVALIDATE_EXISTING_TOKENS))
    new = token_reader(config)

    async def make_token(visit: Visit) -> int:
        user, token = user_of(visit, who(visit)), None
        if user is not None:
            token = await _new_token(visit, user, new, is_log_in=is_log_in, ends_tokens=ends_tokens)
        visit.put(path, token)
        return 0

    return make_token


async def _new_token(
    visit: Visit, user: Found, new: Callable[[Visit], MakeToken], *, is_log_in: bool, ends_tokens: bool
) -> str:
    make, world = new(visit), visit.world
    made_ms = world.system.clock.wall_ms()
    if is_log_in or ends_tokens:
        message = NoteLogIn(user=user.id, by=world.creator, is_log_in=is_log_in, ends_tokens=ends_tokens)
        made_ms = await visit.ask(experience_of(visit), message)
    return make(user.id, made_ms)


TYPES: Final[dict[str, NodeType]] = {
    "ExperienceUserAuthNode": NodeType(
        _authenticate,
        Form(
            "experience",
            (
                _EMAIL,
                _PASSWORD,
                _TOKEN,
                _INVALIDATE_EXISTING_TOKENS,
                TOKEN_TTL,
                TOKEN_DATA,
                _USER_RESULT_PATH,
                _TOKEN_RESULT_PATH,
            ),
        ),
        (may_read("experienceUser.get"),),
    ),
    "ExperienceUserTokenNode": NodeType(
        _make_token,
        Form(
            "experience",
            (
                _EMAIL_OR_ID,
                _TREAT_AS_LOGIN,
                _INVALIDATE_EXISTING_TOKENS,
                TOKEN_TTL,
                TOKEN_DATA,
                NEEDED_RESULT,
            ),
        ),
        (may_write("experienceUser.patch"),),
    ),
}
