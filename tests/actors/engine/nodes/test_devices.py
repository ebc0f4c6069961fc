"""Nodes create, change and delete devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.run_house import node_runs
from tests.actors.house import House, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.records.messages import CreateRecord, Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.messages import DevicePage, DeviceShape
from trunkline.actors.fleet.devices.record.read_messages import GetDevice, ListDevices
from trunkline.actors.fleet.recipes.resource import RECIPES, RecipePost
from trunkline.actors.platform.jobs.messages import GetJobLog
from trunkline.limits.table import Limits

Json = dict[str, Any]
CREATE, UPDATE, DELETE = "CreateDeviceNode", "UpdateDeviceNode", "DeviceDeleteWorkflowNode"


async def result(house: House, type: str, config: Json, data: Json | None = None) -> Any:
    ran = await node_runs(house, type, {"resultPath": "data.result", **config}, data)
    assert ran.get("output") == 0, ran
    return ran["data"]["result"]


async def names(house: House) -> list[str]:
    page = DevicePage()
    found = await house.read(ListDevices(application=house.application, query=page, reach=None))
    return [each["name"] for each in found["items"]]


async def shown(house: House, device: bytes) -> Json:
    message = GetDevice(application=house.application, device=device, query=DeviceShape())
    found: Json = await house.read(message)
    return found


FIELDS = {
    "nameTemplate": "{{data.name}}",
    "descriptionTemplate": "of {{data.name}}",
    "deviceClassTemplate": "",
    "deviceTags": [
        {"keyTemplate": "kind", "valueTemplate": "{{data.kind}}"},
        {"keyTemplate": "", "valueTemplate": ""},
    ],
    "deviceAttributes": [{"nameTemplate": "t{{data.kind}}", "dataTypeTemplate": "number"}],
}


@pytest.mark.parametrize(
    ("config", "data"),
    [
        (FIELDS, {"name": "pump", "kind": "x"}),
        (
            {
                "dataMethod": "jsonTemplate",
                "deviceJsonTemplate": '{"name": "{{data.name}}", "description": "of pump", '
                '"tags": [{"key": "kind", "value": "x"}], "attributes": [{"name": "tx", "dataType": "number"}]}',
            },
            {"name": "pump"},
        ),
        (
            {"dataMethod": "payloadPath", "devicePayloadPath": "data.device"},
            {
                "device": {
                    "name": "pump",
                    "description": "of pump",
                    "tags": [{"key": "kind", "value": "x"}],
                    "attributes": [{"name": "tx", "dataType": "number"}],
                }
            },
        ),
    ],
)
async def test_a_device_is_created_from_what_the_node_gives(tmp_path: Path, config: Json, data: Json) -> None:
    async with running_house(tmp_path / "d") as house:
        made = await result(house, CREATE, {**config, "tagsAsObject": True, "attributesAsObject": True}, data)
        assert (made["name"], made["description"], made["deviceClass"]) == ("pump", "of pump", "standalone")
        assert (made["tags"], made["attributes"]) == ({"kind": ["x"]}, {"tx": {"dataType": "number"}})
        kept = await shown(house, bytes.fromhex(made["id"]))
        assert kept["tags"] == [{"key": "kind", "value": "x"}]


async def test_what_the_node_gives_replaces_what_the_recipe_gives(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        recipe = RecipePost(
            name="recipe", device_name="from the recipe", device_class="gateway", device_description="told"
        )
        by = Creator(ROOT.hex(), "user", "Ada")
        message = CreateRecord(resource=RECIPES.name, body=recipe, by=by)
        made = await house.system.ask(Ref("application", ROOT, house.application), message)
        config = {"recipeIdTemplate": "{{data.recipe}}", "nameTemplate": "{{data.name}}"}
        data = {"recipe": made.value.id.hex(), "name": ""}
        device = await result(house, CREATE, config, data)
        assert (device["name"], device["deviceClass"], device["description"]) == (
            "from the recipe",
            "gateway",
            "told",
        )
        assert device["tags"] == [{"key": "DeviceRecipe", "value": "recipe"}]
        device = await result(house, CREATE, config, {**data, "name": "own"})
        assert (device["name"], device["deviceClass"]) == ("own", "gateway")
        missing = await result(house, CREATE, {**config, "recipeIdTemplate": "0" * 24})
        assert missing["error"]["type"] == "NotFound"


@pytest.mark.parametrize("method", ["individualFields", "jsonTemplate"])
async def test_tags_and_attributes_of_the_recipe_stay_under_those_of_the_node(
    tmp_path: Path, method: str
) -> None:
    async with running_house(tmp_path / "d") as house:
        recipe = msgspec.convert(
            {
                "name": "pumps",
                "tags": [{"key": "kind", "value": "pump"}, {"key": "site", "value": "0"}],
                "attributes": [{"name": "a", "dataType": "number"}, {"name": "b", "dataType": "string"}],
            },
            RecipePost,
        )
        by = Creator(ROOT.hex(), "user", "Ada")
        message = CreateRecord(resource=RECIPES.name, body=recipe, by=by)
        made = await house.system.ask(Ref("application", ROOT, house.application), message)
        ways: dict[str, Json] = {
            "individualFields": {
                "nameTemplate": "own",
                "deviceTags": [{"keyTemplate": "site", "valueTemplate": "7"}],
                "deviceAttributes": [{"nameTemplate": "b", "dataTypeTemplate": "boolean"}],
            },
            "jsonTemplate": {
                "deviceJsonTemplate": '{"name": "own", "tags": [{"key": "site", "value": "7"}], '
                '"attributes": [{"name": "b", "dataType": "boolean"}]}'
            },
        }
        given = ways[method]
        config = {"dataMethod": method, "recipeIdTemplate": made.value.id.hex(), "tagsAsObject": True}
        device = await result(house, CREATE, {**config, **given, "attributesAsObject": True})
        assert device["tags"] == {"kind": ["pump"], "site": ["7"], "DeviceRecipe": ["pumps"]}
        assert device["attributes"] == {"a": {"dataType": "number"}, "b": {"dataType": "boolean"}}


async def test_what_is_refused_is_at_the_result_path_and_fails_the_run_without_one(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        error = (await result(house, CREATE, {"nameTemplate": "{{data.no}}"}))["error"]
        assert error["type"] == "Validation"
        assert "config.dataMethod: name: is missing; this body needs it" in error["message"]
        ran = await node_runs(house, CREATE, {"nameTemplate": "{{data.no}}"})
        assert ran["error"][0] == "ValidationError"
        bad_json = {"dataMethod": "jsonTemplate", "deviceJsonTemplate": "{", "resultPath": "data.result"}
        assert (await node_runs(house, CREATE, bad_json))["error"][0] == "InvalidJsonTemplate"
        no_device = {"idTemplate": "0" * 24, "nameTemplate": "x"}
        assert (await result(house, UPDATE, no_device))["error"]["type"] == "NotFound"
        assert (await node_runs(house, UPDATE, no_device))["error"][0] == "NotFound"
        assert await names(house) == []


async def test_an_update_by_fields_changes_only_what_it_names(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        tags = [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}, {"key": "b", "value": "3"}]
        device = await house.device({"a": "number", "b": "string"}, tags=[*tags, {"key": "c", "value": "4"}])
        await house.report(device, {"data": {"a": 1}})
        config = {
            "idTemplate": "{{data.id}}",
            "nameTemplate": "",
            "descriptionTemplate": "new",
            "deviceTags": [
                {"keyTemplate": "a", "valueTemplate": "{{data.v}}"},
                {"keyTemplate": "b", "valueTemplate": ""},
                {"keyTemplate": "d", "valueTemplate": "5"},
            ],
            "deviceAttributes": [
                {"nameTemplate": "a", "dataTypeTemplate": "number"},
                {"nameTemplate": "b"},
                {"nameTemplate": "c", "dataTypeTemplate": "boolean"},
            ],
        }
        updated = await result(house, UPDATE, config, {"id": device.hex(), "v": "9"})
        assert (updated["name"], updated["description"]) == ("pump", "new")
        assert updated["tags"] == [
            {"key": "c", "value": "4"},
            {"key": "a", "value": "9"},
            {"key": "d", "value": "5"},
        ]
        assert [each["name"] for each in updated["attributes"]] == ["a", "c"]
        assert (await house.composite(device))["a"][1] == 1
        config["deviceAttributes"] = [{"nameTemplate": "a", "dataTypeTemplate": "string"}]
        error = (await result(house, UPDATE, config, {"id": device.hex(), "v": "7"}))["error"]
        assert error["message"] == "config.deviceAttributes: a is declared as number and stays so."
        assert (await shown(house, device))["tags"] == updated["tags"]


async def test_an_update_by_json_replaces_each_field_that_it_has(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device(tags=[{"key": "a", "value": "1"}])
        config = {
            "idTemplate": device.hex(),
            "dataMethod": "jsonTemplate",
            "deviceJsonTemplate": '{"tags": {{jsonEncode data.tags}}}',
        }
        updated = await result(house, UPDATE, config, {"tags": [{"key": "b", "value": "2"}]})
        assert (updated["name"], updated["tags"]) == ("pump", [{"key": "b", "value": "2"}])


async def test_devices_are_deleted_by_id_and_by_query(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        first, *_ = [await house.device(name=name) for name in ("a", "b 1", "b 2", "c")]
        assert await result(house, DELETE, {"deviceIdTemplate": first.hex()}) is True
        by_query = {"dataMethod": "query", "deviceQueryJsonTemplate": '{"name": {"$startsWith": "b"}}'}
        assert await result(house, DELETE, by_query) == {"removed": 2, "failed": 0}
        assert await names(house) == ["c"]
        assert await result(house, DELETE, by_query) == {"removed": 0, "failed": 0}
        assert (await result(house, DELETE, {"deviceIdTemplate": first.hex()}))["error"]["type"] == "NotFound"
        empty = {"dataMethod": "query", "deviceQueryJsonTemplate": '{"$or": []}'}
        assert (await result(house, DELETE, empty))["error"]["type"] == "Validation"
        assert await names(house) == ["c"]


async def test_many_devices_are_deleted_by_a_job(tmp_path: Path) -> None:
    limits = replace(Limits.off(), changed_devices_max=2)
    async with running_house(tmp_path / "d", limits=limits) as house:
        for name in ("a", "b", "c"):
            await house.device(name=name)
        queued = await result(house, DELETE, {"dataMethod": "query", "deviceQueryJsonTemplate": "{}"})
        assert (queued["jobQueued"], queued["success"]) == (True, True)
        asked = GetJobLog(application=house.application, job=bytes.fromhex(queued["jobId"]))
        with trio.fail_after(PATIENCE_S):
            while "runCompletedAt" not in (log := await house.read(asked)):
                await trio.lowlevel.checkpoint()
        assert log["output"] == {"removed": 3, "failed": 0}
        assert await names(house) == []
