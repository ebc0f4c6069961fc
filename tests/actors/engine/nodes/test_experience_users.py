"""Nodes find, create, change and delete users of an experience."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.experience_people import EMAIL, PASSWORD, group, read, user
from tests.actors.engine.run_house import node_runs
from tests.actors.house import House, running_house
from trunkline.actors.core.records import records
from trunkline.actors.core.values.errors import NotFound, Unauthorized
from trunkline.actors.people.accounts.passwords import verify_password
from trunkline.actors.presentation.experience.kind import USER
from trunkline.actors.presentation.experience.tokens import ExperienceTokens
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS, find_user

Json = dict[str, Any]

GET, CREATE, UPDATE, DELETE = (f"{verb}ExperienceUserNode" for verb in ("Get", "Create", "Update", "Delete"))
TO = {"resultPath": "data.got"}


async def got(house: House, type: str, config: Json, data: Any = None) -> Any:
    """The result of a node."""
    return (await node_runs(house, type, {**TO, **config}, data))["data"]["got"]


async def fits(house: House, id: str, password: str) -> bool:
    stored = records.find(house.system.journal, USER, house.application, bytes.fromhex(id))
    assert stored is not None
    return await verify_password(stored.doc["passwordHash"], password)


async def test_a_user_is_found_by_id_and_by_address(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house, firstName="One", userTags={"role": "admin"})
        by = {"emailOrIdTemplate": "{{data.who}}"}
        for who in (id, id.upper(), EMAIL, "ONE@example.com "):
            found = await got(house, GET, by, {"who": who})
            assert (found["id"], found["firstName"], found["userTags"]) == (id, "One", {"role": "admin"})
            assert not {"_etag", "passwordHash"} & found.keys()
        for who in ("0" * 24, "no@example.com", ""):
            assert await got(house, GET, by, {"who": who}) is None


async def test_users_are_found_by_tags_and_by_queries(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        for name, tags in (("a", {"k": "1"}), ("b", {"k": "2", "l": "1"}), ("c", {"k": "1", "l": "1"})):
            await user(house, f"{name}@example.com", userTags=tags, firstName=name)
        tag = [{"keyTemplate": "k", "valueTemplate": "{{data.v}}"}]
        by_tags: Json = {"findMethod": "userTags", "userTags": tag}

        async def names(config: Json) -> list[str]:
            found = await got(house, GET, {"findMultiple": True, **config}, {"v": 1})
            return [each["firstName"] for each in found]

        assert await names(by_tags) == ["a", "c"]
        assert await names({"findMethod": "userTags", "tags": tag, "userTags": []}) == ["a", "c"]
        assert await names({**by_tags, "sortDirection": "desc"}) == ["c", "a"]
        assert await names({**by_tags, "userTags": [*tag, {"keyTemplate": "l"}]}) == ["c"]
        assert await names({**by_tags, "userTags": [{"keyTemplate": "{{data.no}}"}]}) == []
        by_query = {"findMethod": "query", "queryTemplate": '{"$or": [], "firstName": {"$ne": "b"}}'}
        assert await names(by_query) == ["a", "c"]
        assert await names({**by_query, "resultsPerPage": "1", "resultsPage": "{{data.v}}"}) == ["c"]
        listed = await got(house, GET, {**by_tags, "findMultiple": True, "findMetadata": True}, {"v": 1})
        assert (listed["count"], listed["totalCount"], listed["perPage"]) == (2, 2, 100)
        assert "_etag" not in listed["items"][0]
        assert (await got(house, GET, by_query))["firstName"] == "a"
        assert await got(house, GET, by_tags, {"v": 9}) is None


@pytest.mark.parametrize(
    "config",
    [
        {
            "emailTemplate": "{{data.user.email}}",
            "passwordTemplate": PASSWORD,
            "firstNameTemplate": "",
            "userTags": [
                {"keyTemplate": "k", "valueTemplate": "v"},
                {"keyTemplate": "no", "valueTemplate": ""},
            ],
            "groupIdTemplates": ["{{data.group}}", ""],
        },
        {"dataMethod": "payloadPath", "userPayloadPath": "data.user"},
        {"dataMethod": "jsonTemplate", "userJsonTemplate": "{{jsonEncode data.user}}"},
    ],
)
async def test_a_user_is_created(tmp_path: Path, config: Json) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await group(house, "friends")
        fields = {
            "email": EMAIL,
            "password": PASSWORD,
            "userTags": {"k": "v"},
            "experienceGroupIds": [id],
        }
        made = await got(house, CREATE, config, {"user": fields, "group": id})
        assert (made["email"], made["userTags"]) == (EMAIL, {"k": "v"})
        assert [each["name"] for each in made["experienceGroups"]] == ["friends"]
        assert not {"_etag", "password", "passwordHash"} & made.keys()
        assert await fits(house, made["id"], PASSWORD)
        again = await got(house, CREATE, config, {"user": fields, "group": id})
        assert again["error"]["type"] == "Validation"
        assert "belongs to another user" in again["error"]["message"]


async def test_a_user_is_changed_and_what_is_blank_stays(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one, two = await group(house, "one"), await group(house, "two")
        id = await user(house, firstName="A", userTags={"k": "1", "l": "1"}, experienceGroupIds=[one])
        by = {"emailOrIdTemplate": EMAIL}
        tags = [
            {"keyTemplate": "k", "valueTemplate": "2"},
            {"keyTemplate": "l", "valueTemplate": "{{data.nothing}}"},
            {"keyTemplate": "m", "valueTemplate": "3"},
        ]
        changed = await got(
            house,
            UPDATE,
            {**by, "lastNameTemplate": "{{data.name}}", "userTags": tags, "groupIdTemplates": ""},
            {"name": "B"},
        )
        assert (changed["firstName"], changed["lastName"]) == ("A", "B")
        assert changed["userTags"] == {"k": "2", "m": "3"}
        assert [each["id"] for each in changed["experienceGroups"]] == [one]
        assert await fits(house, id, PASSWORD)
        changed = await got(
            house, UPDATE, {**by, "groupIdTemplates": [two], "passwordTemplate": "wrong horse"}
        )
        assert [each["id"] for each in changed["experienceGroups"]] == [two]
        assert await fits(house, id, "wrong horse")
        changed = await got(house, UPDATE, {**by, "groupIdTemplates": [], "emailTemplate": "new@example.com"})
        assert (changed["experienceGroups"], changed["email"]) == ([], "new@example.com")
        patch = {"dataMethod": "payloadPath", "userPayloadPath": "data", "emailOrIdTemplate": id}
        assert (await got(house, UPDATE, patch, {"userTags": {"x": "y"}}))["userTags"] == {"x": "y"}
        await node_runs(house, UPDATE, {"emailOrIdTemplate": id, "firstNameTemplate": "Z"})
        assert (await read(house, EXPERIENCE_USERS, id))["firstName"] == "Z"


async def test_a_change_can_end_the_tokens(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = bytes.fromhex(await user(house))
        tokens, now_ms = house.system.component(ExperienceTokens), house.clock.wall_ms()
        token = tokens.make_token(house.application, id, now_ms=now_ms)
        await got(house, UPDATE, {"emailOrIdTemplate": EMAIL, "firstNameTemplate": "A"})
        tokens.check_token(house.system.journal, house.application, token, now_ms)
        await got(house, UPDATE, {"emailOrIdTemplate": EMAIL, "invalidateExistingTokens": True})
        with pytest.raises(Unauthorized):
            tokens.check_token(house.system.journal, house.application, token, now_ms)


async def test_a_user_is_deleted_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house)
        by = {"emailOrIdTemplate": "{{data.who}}"}
        assert await got(house, DELETE, by, {"who": EMAIL}) is True
        with pytest.raises(NotFound):
            await read(house, EXPERIENCE_USERS, id)
        for who in (EMAIL, id):
            assert await got(house, DELETE, by, {"who": who}) is False


@pytest.mark.parametrize(
    ("type", "config", "kind", "said"),
    [
        (
            CREATE,
            {"emailTemplate": EMAIL},
            "Validation",
            "config.dataMethod: password: is missing; this body needs it, a string of 8 to ",
        ),
        (
            CREATE,
            {"emailTemplate": "x", "passwordTemplate": PASSWORD},
            "Validation",
            "config.dataMethod: email: does not fit; give an e-mail address",
        ),
        (
            CREATE,
            {"dataMethod": "payloadPath", "userPayloadPath": "data.no"},
            "Validation",
            "config.userPayloadPath: gives nothing, not an object",
        ),
        (
            UPDATE,
            {"emailOrIdTemplate": EMAIL, "passwordTemplate": "short"},
            "Validation",
            "config.dataMethod: password: has 5 characters; give a string of 8 to ",
        ),
        (UPDATE, {"emailOrIdTemplate": "no"}, "NotFound", "There is no experience user 'no' here."),
        (
            UPDATE,
            {"emailOrIdTemplate": EMAIL, "groupIdTemplates": ["0" * 24]},
            "Validation",
            "experienceGroupIds: there is no experience group 000",
        ),
        (
            UPDATE,
            {"emailOrIdTemplate": EMAIL, "userTags": [{"keyTemplate": "a b", "valueTemplate": "x"}]},
            "Validation",
            "userTags: the key 'a b' does not fit; give ",
        ),
        (
            UPDATE,
            {"emailOrIdTemplate": EMAIL, "dataMethod": "payloadPath", "userPayloadPath": "data.no"},
            "Validation",
            "config.userPayloadPath: gives nothing, not an object",
        ),
    ],
)
async def test_what_is_refused_is_the_result(
    tmp_path: Path, type: str, config: Json, kind: str, said: str
) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house)
        before = await read(house, EXPERIENCE_USERS, id)
        error = (await got(house, type, config))["error"]
        assert (error["type"], error["message"][: len(said)]) == (kind, said)
        name, _ = (await node_runs(house, type, config))["error"]
        assert name in (kind, "ValidationError")
        assert await read(house, EXPERIENCE_USERS, id) == before
        assert find_user(house.system.journal, house.application, "x") is None
