"""Nodes find, create, change and delete groups of an experience, and show them as a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.experience_people import EMAIL, group, read, user
from tests.actors.engine.run_house import node_runs
from tests.actors.house import House, running_house
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.presentation.experience.groups import GROUPS

Json = dict[str, Any]

GET, CREATE, UPDATE, DELETE = (f"{verb}ExperienceGroupNode" for verb in ("Get", "Create", "Update", "Delete"))
SUMMARY = "ExperienceGroupSummaryNode"


async def got(house: House, type: str, config: Json, data: Any = None) -> Any:
    """The result of a node."""
    return (await node_runs(house, type, {"resultPath": "data.got", **config}, data))["data"]["got"]


async def test_groups_are_found(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one = await group(house, "one", groupTags={"k": "1"})
        await group(house, "two", groupTags={"k": "2", "l": "1"}, parentId=one)
        by_id = {"idTemplate": "{{data.id}}"}
        found = await got(house, GET, by_id, {"id": one})
        assert (found["name"], found["groupTags"]) == ("one", {"k": "1"})
        assert "_etag" not in found
        for id in ("0" * 24, "none", ""):
            assert await got(house, GET, by_id, {"id": id}) is None
        assert (await got(house, GET, {"findMethod": "name", "idTemplate": "two"}))["ancestorIds"] == [one]

        async def names(**config: Any) -> list[str]:
            return [each["name"] for each in await got(house, GET, {"findMultiple": True, **config})]

        tags = [{"keyTemplate": "k", "valueTemplate": "1"}, {"keyTemplate": "l"}]
        assert await names(findMethod="findByAnyTags", tags=tags) == ["one", "two"]
        assert await names(findMethod="findByAllTags", tags=tags) == []
        query = {"findMethod": "query", "queryTemplate": f'{{"ancestorId": "{one}"}}'}
        assert await names(**query) == ["two"]
        assert (await got(house, GET, query))["name"] == "two"
        listed = await got(house, GET, {**query, "findMultiple": True, "findMetadata": True})
        assert (listed["totalCount"], listed["items"][0]["name"]) == (1, "two")
        none = {"resultsPerPage": "0", "resultsPage": ""}
        listed = await got(house, GET, {**query, "findMultiple": True, "findMetadata": True, **none})
        assert (listed["totalCount"], listed["count"], listed["items"]) == (1, 0, [])


async def test_groups_are_created(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one, parent = await user(house), await group(house, "parent")
        single = {
            "nameTemplate": "{{data.name}}",
            "descriptionTemplate": "of {{data.name}}",
            "parentIdTemplate": parent,
            "groupTags": [{"keyTemplate": "k", "valueTemplate": "1"}],
            "membersToAdd": ["{{data.who}}"],
        }
        made = await got(house, CREATE, single, {"name": "first", "who": EMAIL})
        expected = {
            "name": "first",
            "description": "of first",
            "parentId": parent,
            "groupTags": {"k": "1"},
            "experienceUserIds": [one],
        }
        assert {name: made[name] for name in expected} == expected
        at = {"dataMethod": "payloadPath", "groupPayloadPath": "data"}
        query = '{"tags": {"a": "b"}}'
        made = await got(house, CREATE, at, {"name": "second", "deviceQueryJson": query})
        assert made["deviceQueryJson"] == query
        text = {"dataMethod": "jsonTemplate", "groupJsonTemplate": '{"name": "{{data.name}}"}'}
        assert (await got(house, CREATE, text, {"name": "third"}))["name"] == "third"


async def test_the_devices_of_a_group_are_those_of_a_query(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        none = {"nameTemplate": "g", "deviceQueryJsonTemplate": '{"$nor":[]}'}
        tags = [
            {"keyTemplate": "k", "valueTemplate": "1"},
            {"keyTemplate": "l", "valueTemplate": "{{data.no}}"},
        ]
        made = await got(house, CREATE, {**none, "groupTagTemplates": tags})
        assert (made.get("deviceQueryJson"), made["groupTags"]) == (None, {"k": "1"})
        by: Json = {"groupIdTemplate": made["id"], "nameTemplate": ""}
        of = '{"$and": [{"tags": {"$eq": {"$tagKey": "of", "$tagValue": "%s"}}}]}'
        changed = await got(
            house, UPDATE, {**by, "deviceQueryJsonTemplate": of % "{{data.id}}"}, {"id": "g1"}
        )
        assert (changed["name"], changed["deviceQueryJson"]) == ("g", of % "g1")
        changed = await got(house, UPDATE, {**by, "deviceQueryJsonTemplate": ""})
        assert changed["deviceQueryJson"] == of % "g1"
        changed = await got(house, UPDATE, {**by, **none})
        assert changed.get("deviceQueryJson") is None
        changed = await got(house, UPDATE, {**by, "deviceQueryJsonTemplate": '{"$or": []}'})
        assert changed["deviceQueryJson"] == "{}", "all devices"


async def test_members_and_tags_are_changed_one_by_one(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one, two, three = [await user(house, f"{name}@example.com") for name in ("one", "two", "three")]
        id = await group(house, "g", experienceUserIds=[one, two], groupTags={"k": "1", "l": "1"})
        by = {"groupIdTemplate": id}

        async def members(**config: Any) -> list[str]:
            members: list[str] = (await got(house, UPDATE, {**by, **config}))["experienceUserIds"]
            return members

        assert await members(membersToAdd=["three@example.com", one]) == [one, two, three]
        assert await members(membersToRemove=[one], membersToAdd=[two]) == [two, three]
        assert await members(nameTemplate="new", descriptionTemplate="") == [two, three]
        assert await members(membersReplacement=[EMAIL]) == [one]
        assert await members(membersReplacement=[]) == []
        changed = await got(house, UPDATE, {**by, "groupTags": [{"keyTemplate": "k", "valueTemplate": ""}]})
        assert (changed["name"], changed["groupTags"]) == ("new", {"l": "1"})


async def test_a_group_is_deleted_unless_others_are_below_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        above = await group(house, "above")
        below = await group(house, "below", parentId=above)
        by = {"groupIdTemplate": "{{data.id}}"}
        assert (
            "this group as their parent" in (await got(house, DELETE, by, {"id": above}))["error"]["message"]
        )
        assert await got(house, DELETE, by, {"id": below}) is True
        with pytest.raises(NotFound):
            await read(house, GROUPS, below)
        for id in (below, "none"):
            assert await got(house, DELETE, by, {"id": id}) is False


async def test_the_groups_are_a_tree(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        assert await got(house, SUMMARY, {}) == {"name": "(root)", "id": "(root)", "children": []}
        b = await group(house, "b")
        a = await group(house, "a")
        under = await group(house, "under", parentId=b)
        tree_of_b = {"name": "b", "id": b, "children": [{"name": "under", "id": under, "children": []}]}
        children = [{"name": "a", "id": a, "children": []}, tree_of_b]
        assert await got(house, SUMMARY, {}) == {"name": "(root)", "id": "(root)", "children": children}
        assert await got(house, SUMMARY, {"idTemplate": "{{data.id}}"}, {"id": b}) == tree_of_b
        for nothing in ("0" * 24, "{{data.no}}"):
            assert await got(house, SUMMARY, {"idTemplate": nothing}) is None


@pytest.mark.parametrize(
    ("type", "config", "said"),
    [
        (CREATE, {"nameTemplate": ""}, "config.dataMethod: name: is missing; this body needs it"),
        (
            CREATE,
            {"nameTemplate": "g", "membersToAdd": ["no"]},
            "config.membersToAdd: there is no experience user",
        ),
        (
            CREATE,
            {"nameTemplate": "g", "membersToAdd": ["n" * 2_000]},
            "config.membersToAdd: gives a text of 2000 characters",
        ),
        (UPDATE, {"groupIdTemplate": "x"}, "config.groupIdTemplate: gives 'x', not an id"),
        (
            UPDATE,
            {"groupIdTemplate": "0" * 24, "membersToAdd": ["no"]},
            "config.membersToAdd: there is no experience user 'no'",
        ),
        (UPDATE, {"groupIdTemplate": "0" * 24}, "There is no experience group 000"),
    ],
)
async def test_what_is_refused_is_the_result(tmp_path: Path, type: str, config: Json, said: str) -> None:
    async with running_house(tmp_path / "d") as house:
        assert (await got(house, type, config))["error"]["message"].startswith(said)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"devicesTemplate": "{}"}, "config.devicesTemplate: does nothing here"),
        ({"membersReplacement": [], "membersToAdd": []}, "config.membersReplacement: names all members"),
        ({"membersToAdd": "x"}, "config.membersToAdd: give a list of templates."),
    ],
)
async def test_a_configuration_that_means_nothing_ends_the_run(
    tmp_path: Path, config: Json, said: str
) -> None:
    async with running_house(tmp_path / "d") as house:
        name, message = (await node_runs(house, CREATE, {"nameTemplate": "g", **config}))["error"]
        assert (name, message[: len(said)]) == ("ValidationError", said)
