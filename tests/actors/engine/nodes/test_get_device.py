"""A node finds devices by all of its ways, and shows them as it is asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.run_house import node_runs
from tests.actors.house import House, at, running_house
from trunkline.actors.core.records.messages import CreateRecord, Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.presentation.experience.groups import GROUPS, GroupPost
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS, ExperienceUserPost

Json = dict[str, Any]
BY = Creator("0" * 24, "user", "Ada")


async def found(house: House, config: Json, data: Json | None = None) -> Any:
    """What the node puts at its result path."""
    ran = await node_runs(house, "GetDeviceNode", {"resultPath": "data.found", **config}, data)
    assert ran.get("output") == 0, ran
    return ran["data"]["found"]


def names(devices: list[Json]) -> list[str]:
    return [each["name"] for each in devices]


async def plant(house: House) -> dict[str, str]:
    """A system with two pumps below it, and a lamp, by their names; ids in hex."""
    system = (await house.device(name="plant", deviceClass="system")).hex()
    ids = {"plant": system}
    for name, floor, parent in (("pump b", "1", system), ("pump a", "2", system), ("lamp", "1", None)):
        kind = name.split()[0]
        tags = [{"key": "kind", "value": kind}, {"key": "floor", "value": floor}]
        ids[name] = (await house.device(name=name, tags=tags, parentId=parent)).hex()
    return ids


def tags(*pairs: tuple[str, str]) -> list[Json]:
    return [{"keyTemplate": key, "valueTemplate": value} for key, value in pairs]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"findMethod": "id", "idTemplate": "{{data.lamp}}"}, ["lamp"]),
        ({"findMethod": "name", "idTemplate": "pump a"}, ["pump a"]),
        ({"findMethod": "findByAllTags", "tags": tags(("kind", "pump"), ("floor", "1"))}, ["pump b"]),
        ({"findMethod": "findByAllTags", "tags": tags(("kind", ""))}, ["lamp", "pump a", "pump b"]),
        ({"findMethod": "findByAllTags", "tags": tags(("{{data.no}}", "{{data.no}}"))}, []),
        ({"findMethod": "findByAnyTags", "tags": tags(("kind", "lamp"), ("", "2"))}, ["lamp", "pump a"]),
        ({"findMethod": "findByParentId", "parentIdTemplate": "{{data.plant}}"}, ["pump a", "pump b"]),
        ({"findMethod": "findByParentId", "idTemplate": "{{data.plant}}"}, ["pump a", "pump b"]),
        ({"findMethod": "findByParentId"}, ["lamp", "plant"]),
        (
            {"findMethod": "query", "queryTemplate": '{"name": {"$startsWith": "p"}}'},
            ["plant", "pump a", "pump b"],
        ),
        ({"findMethod": "query", "queryTemplate": '{"$or": []}'}, ["lamp", "plant", "pump a", "pump b"]),
    ],
)
async def test_devices_are_found(tmp_path: Path, config: Json, expected: list[str]) -> None:
    async with running_house(tmp_path / "d") as house:
        ids = await plant(house)
        one = await found(house, config, {**ids})
        assert (one and one["name"]) == (expected[0] if expected else None)
        if config["findMethod"] != "id":
            assert names(await found(house, {**config, "findMultiple": True}, {**ids})) == expected


async def test_devices_of_a_group_and_of_its_users_are_found(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        ids = await plant(house)
        ref = Ref("experience", house.application, house.application)
        group = GroupPost(name="east", device_ids=[ids["lamp"]])
        made = await house.system.ask(ref, CreateRecord(resource=GROUPS.name, body=group, by=BY))
        east = made.value.id.hex()
        user = ExperienceUserPost(email="Ada@Example.com", password="hash", experience_group_ids=[east])
        made = await house.system.ask(ref, CreateRecord(resource=EXPERIENCE_USERS.name, body=user, by=BY))
        ada = made.value.id.hex()
        ways = [
            ("experienceGroupId", east),
            ("experienceUserIdOrEmail", ada),
            ("experienceUserIdOrEmail", "ada@example.com"),
        ]
        for method, id in ways:
            config = {"findMethod": method, "idTemplate": "{{data.id}}", "findMultiple": True}
            assert names(await found(house, config, {"id": id})) == ["lamp"]
        config = {
            "findMethod": "experienceUserIdOrEmail",
            "idTemplate": "x@example.com",
            "findMultiple": True,
        }
        assert await found(house, config) == []


async def test_pages_are_sorted_and_told(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        await plant(house)
        config = {
            "findMethod": "query",
            "queryTemplate": "{}",
            "findMultiple": True,
            "findMetadata": True,
            "resultsPerPage": 3,
            "resultsPage": "{{data.page}}",
            "sortDirection": "desc",
        }
        page = await found(house, config, {"page": 1})
        assert (page["count"], page["totalCount"], page["page"], page["perPage"]) == (1, 4, 1, 3)
        assert (page["sortField"], page["sortDirection"]) == ("name", "desc")
        assert names(page["items"]) == ["lamp"]
        counted = await found(house, {**config, "resultsPerPage": "0"})
        assert (counted["totalCount"], counted["count"], counted["items"]) == (4, 0, [])
        ran = await node_runs(house, "GetDeviceNode", {**config, "resultsPerPage": 1001})
        assert ran["error"] == (
            "ValidationError",
            "config.resultsPerPage: gives 1001; a page has up to 1000 devices.",
        )


async def test_devices_are_shown_as_asked(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device(tags=[{"key": "x", "value": "1"}, {"key": "x", "value": "2"}])
        await house.report(device, {"data": {"a": 1, "label": "on"}})
        config = {"idTemplate": device.hex()}
        plain = await found(house, config)
        assert (plain["deviceId"], plain["connectionInfo"]) == (device.hex(), {"connected": None})
        assert "compositeState" not in plain
        more = {
            "includeConnectionStatus": False,
            "includeState": True,
            "attributes": ["a", "b"],
            "tagsAsObject": True,
            "attributesAsObject": True,
        }
        by_name = {"findMethod": "name", "idTemplate": "pump", "findMultiple": True}
        (listed,) = await found(house, {**by_name, **more})
        for shown in (await found(house, {**config, **more}), listed):
            assert "connectionInfo" not in shown
            assert shown["compositeState"] == {"a": {"value": 1, "time": at(0)}}
            assert shown["tags"] == {"x": ["1", "2"]}
            assert shown["attributes"]["label"] == {"dataType": "string"}
        (all_values,) = await found(house, {**by_name, "includeState": True})
        assert set(all_values["compositeState"]) == {"a", "label"}


async def test_no_device_is_null(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        for id in ("0" * 24, "x", "{{data.no}}"):
            assert await found(house, {"idTemplate": id}) is None
        ran = await node_runs(house, "GetDeviceNode", {"findMethod": "findByAnyTags", "tags": []})
        assert ran["error"] == ("ValidationError", "config.tags: is empty; give at least one tag.")
