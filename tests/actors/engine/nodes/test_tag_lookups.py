"""A node that looks up by tag finds nothing where a template of the tag gives nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.experience_people import group, user
from tests.actors.engine.run_house import run_one, told
from tests.actors.house import House, running_house

Json = dict[str, Any]
SITE = [{"keyTemplate": "site", "valueTemplate": "{{data.site}}"}]
OF_ANY_SITE = [{"keyTemplate": "site"}]


async def people(house: House) -> None:
    for number in ("1", "2"):
        await user(house, f"u{number}@example.com", userTags={"site": number})
        await group(house, f"g{number}", groupTags={"site": number})
        device = await house.device(name=f"d{number}", tags=[{"key": "site", "value": number}])
        await house.report(device, {"data": {"a": 5}})


LOOKUPS: list[tuple[str, Json]] = [
    ("GetExperienceUserNode", {"findMethod": "userTags", "userTags": SITE}),
    ("GetExperienceUserNode", {"findMethod": "userTags", "tags": SITE}),
    ("GetExperienceGroupNode", {"findMethod": "findByAllTags", "tags": SITE}),
    ("GetExperienceGroupNode", {"findMethod": "findByAnyTags", "tags": SITE}),
    ("GetDeviceNode", {"findMethod": "findByAllTags", "tags": SITE}),
    ("GetDeviceNode", {"findMethod": "findByAnyTags", "tags": SITE}),
]


@pytest.mark.parametrize(("type", "config"), LOOKUPS)
@pytest.mark.parametrize("data", [{}, {"site": ""}, {"site": None}])
async def test_nothing_is_found_by_a_value_that_is_not_there(
    tmp_path: Path, type: str, config: Json, data: Json
) -> None:
    config = {**config, "findMultiple": True, "resultPath": "data.found"}
    field = "userTags" if "userTags" in config else "tags"
    async with running_house(tmp_path / "d") as house:
        await people(house)
        run = await run_one(house, type, config, data)
        assert told(run)["data"]["found"] == []
        note = f"config.{field}[0].valueTemplate: gives nothing, so nothing has this tag."
        assert [each[1:] for each in run.notes] == [[note, 1]]
        # A value that is given, and a tag of any value.
        run = await run_one(house, type, config, {"site": "1"})
        assert len(told(run)["data"]["found"]) == 1
        run = await run_one(house, type, {**config, field: OF_ANY_SITE}, data)
        assert (len(told(run)["data"]["found"]), run.notes) == (2, [])


async def test_one_of_several_tags_that_gives_nothing_is_that_of_nobody(tmp_path: Path) -> None:
    tags = [*SITE, {"keyTemplate": "site", "valueTemplate": "2"}]
    async with running_house(tmp_path / "d") as house:
        await people(house)
        for method, names in (("findByAnyTags", ["d2"]), ("findByAllTags", [])):
            config = {"findMethod": method, "tags": tags, "findMultiple": True, "resultPath": "data.found"}
            run = await run_one(house, "GetDeviceNode", config, {})
            assert [each["name"] for each in told(run)["data"]["found"]] == names


async def test_values_are_read_of_no_device(tmp_path: Path) -> None:
    tags = [{"key": "site", "value": "{{data.site}}"}]
    config = {"deviceTags": tags, "attribute": "a", "aggregation": "SUM", "resultPath": "data.sum"}
    async with running_house(tmp_path / "d") as house:
        await people(house)
        assert told(await run_one(house, "GaugeNode", config, {}))["data"]["sum"] == {}
        assert told(await run_one(house, "GaugeNode", config, {"site": "1"}))["data"]["sum"]["value"] == 5


async def test_a_command_goes_to_no_device(tmp_path: Path) -> None:
    config = {"nameTemplate": "open", "sendToDeviceTags": [{"key": "site", "value": "{{data.site}}"}]}
    async with running_house(tmp_path / "d") as house:
        ids = [await house.device(name=name, tags=[{"key": "site", "value": name}]) for name in ("1", "2")]
        run = await run_one(house, "DeviceSendCommandNode", config, {})
        assert run.outcome == "completed"
        note = "config.sendToDeviceTags[0].value: gives nothing, so nothing has this tag."
        assert [each[1:] for each in run.notes] == [[note, 1]]
        assert [await house.commands(id) for id in ids] == [[], []]
        await run_one(house, "DeviceSendCommandNode", config, {"site": "1"})
        assert [len(await house.commands(id)) for id in ids] == [1, 0]
