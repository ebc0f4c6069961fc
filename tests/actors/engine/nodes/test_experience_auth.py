"""Nodes recognize users of an experience, and make tokens for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.experience_people import EMAIL, PASSWORD, read, user
from tests.actors.engine.run_house import node_runs
from tests.actors.house import START_MS, House, running_house
from trunkline.actors.core.values.errors import Unauthorized
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.presentation.experience.tokens import ExperienceTokens, LoggedIn
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS

AUTH, TOKEN = "ExperienceUserAuthNode", "ExperienceUserTokenNode"

Json = dict[str, Any]

BY_PASSWORD = {
    "emailTemplate": "{{data.email}}",
    "passwordTemplate": "{{data.password}}",
    "tokenResultPath": "data.got",
    "userResultPath": "data.user",
}
BY_ALL = {**BY_PASSWORD, "tokenTemplate": "{{data.token}}"}
GOOD = {"email": EMAIL, "password": PASSWORD}


def check(house: House, token: str) -> LoggedIn:
    tokens, now_ms = house.system.component(ExperienceTokens), house.clock.wall_ms()
    return tokens.check_token(house.system.journal, house.application, token, now_ms)


async def test_a_user_logs_in_with_address_and_password(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house, firstName="One")
        house.clock.pass_s(5)
        more = {"ttlTemplate": "{{data.life}}", "extraDataJsonTemplate": '{"at": {{jsonEncode data.life}}}'}
        data = {**GOOD, "email": " ONE@Example.com", "life": 60_000}
        ran = await node_runs(house, AUTH, {**BY_PASSWORD, **more}, data)
        assert ran["output"] == 1
        shown = ran["data"]["user"]
        assert (shown["id"], shown["firstName"], shown["lastLogin"]) == (id, "One", iso(START_MS + 5_000))
        assert not {"_etag", "_type", "passwordHash", "password"} & shown.keys()
        assert (await read(house, EXPERIENCE_USERS, id))["lastLogin"] == iso(START_MS + 5_000)
        found = check(house, ran["data"]["got"])
        assert found.user.id.hex() == id
        assert found.auth_info["extraData"] == {"at": 60_000}
        house.clock.pass_s(60)
        with pytest.raises(Unauthorized, match="expired"):
            check(house, ran["data"]["got"])


@pytest.mark.parametrize(
    "data", [{**GOOD, "password": "wrong horse"}, {**GOOD, "email": "no@example.com"}, {}, {"email": EMAIL}]
)
async def test_a_failure_changes_nothing(tmp_path: Path, data: Json) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house)
        ran = await node_runs(house, AUTH, BY_PASSWORD | {"invalidateExistingTokens": True}, data)
        assert ran == {"output": 0, "data": data}
        shown = await read(house, EXPERIENCE_USERS, id)
        assert "lastLogin" not in shown
        assert "tokenCutoff" not in shown


async def test_a_new_token_can_end_the_earlier_ones(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        await user(house)
        first = (await node_runs(house, AUTH, BY_PASSWORD, GOOD))["data"]["got"]
        second = (await node_runs(house, AUTH, BY_PASSWORD | {"invalidateExistingTokens": True}, GOOD))[
            "data"
        ]
        with pytest.raises(Unauthorized, match="ended before its time"):
            check(house, first)
        assert check(house, second["got"]).auth_info["expiresAt"] is None


async def test_a_valid_token_is_kept_and_address_and_password_must_fit_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house)
        await user(house, "two@example.com")
        token = (await node_runs(house, TOKEN, {"emailOrIdTemplate": EMAIL, "resultPath": "data.got"}, {}))[
            "data"
        ]["got"]

        async def outcome(config: Json, data: Json) -> tuple[int, str | None]:
            ran = await node_runs(house, AUTH, config, data)
            return ran["output"], ran["data"].get("got")

        only = {"tokenTemplate": "{{data.token}}", "tokenResultPath": "data.got"}
        assert await outcome(only, {"token": f"Bearer {token}"}) == (1, token)
        assert await outcome(only, {"token": token + "x"}) == (0, None)
        with_email = {**only, "emailTemplate": "{{data.email}}"}
        assert await outcome(with_email, {"token": token, "email": EMAIL}) == (1, token)
        for email in ("two@example.com", ""):
            assert await outcome(with_email, {"token": token, "email": email}) == (0, None)
        assert await outcome(BY_ALL, {"token": token}) == (1, token)
        assert await outcome(BY_ALL, {**GOOD, "token": token}) == (1, token)
        assert await outcome(BY_ALL, {**GOOD, "token": token, "password": "wrong horse"}) == (0, None)
        assert await outcome(BY_ALL, {**GOOD, "token": token, "email": "two@example.com"}) == (0, None)
        assert await outcome(BY_ALL, {"token": "none"}) == (0, None)
        assert "lastLogin" not in await read(house, EXPERIENCE_USERS, id)
        output, other = await outcome(BY_ALL, {**GOOD, "token": "none"})
        assert (output, check(house, other or "").user.id.hex()) == (1, id)
        output, other = await outcome(only | {"invalidateExistingTokens": True}, {"token": token})
        assert output == 1
        assert other != token
        assert await outcome(only, {"token": token}) == (0, None)


async def test_a_token_is_made_without_a_password(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house)
        config = {"emailOrIdTemplate": "{{data.who}}", "resultPath": "data.got"}

        async def token(who: str, **more: Any) -> str | None:
            got: str | None = (await node_runs(house, TOKEN, {**config, **more}, {"who": who}))["data"]["got"]
            return got

        assert await token("no@example.com") is None
        assert await token("0" * 24) is None
        first = await token(id) or ""
        assert check(house, first).user.id.hex() == id
        assert "lastLogin" not in await read(house, EXPERIENCE_USERS, id)
        await token(EMAIL, treatAsLogin=True)
        assert (await read(house, EXPERIENCE_USERS, id))["lastLogin"] == iso(START_MS)
        check(house, first)
        last = await token(EMAIL, invalidateExistingTokens=True) or ""
        check(house, last)
        with pytest.raises(Unauthorized):
            check(house, first)


@pytest.mark.parametrize(
    ("type", "config", "said"),
    [
        (AUTH, {"emailTemplate": "x"}, "config.emailTemplate, config.passwordTemplate: are not both set"),
        (TOKEN, {"resultPath": "data.got"}, "config.emailOrIdTemplate: is not set"),
        (TOKEN, {"emailOrIdTemplate": "x"}, "config.resultPath: is not set"),
        (AUTH, {**BY_PASSWORD, "ttlTemplate": "0"}, "config.ttlTemplate: gives '0'; give milliseconds up to"),
        (AUTH, {**BY_PASSWORD, "ttlTemplate": "soon"}, "config.ttlTemplate: gives 'soon'"),
        (
            AUTH,
            {**BY_PASSWORD, "extraDataJsonTemplate": '"' + "x" * 4_095 + '"'},
            "config.extraDataJsonTemplate: gives 4097 characters; a token carries 4096.",
        ),
    ],
)
async def test_what_cannot_be_done_ends_the_run(tmp_path: Path, type: str, config: Json, said: str) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house)
        name, message = (await node_runs(house, type, config, GOOD))["error"]
        assert (name, message[: len(said)]) == ("ValidationError", said)
        assert "lastLogin" not in await read(house, EXPERIENCE_USERS, id)
