"""A node sends commands to the devices that it names in one of its ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import BY, button, create_flow, node_runs
from tests.actors.house import House, at, running_house
from trunkline.actors.engine import dry_run
from trunkline.limits.table import Limits

Json = dict[str, Any]
TYPE = "DeviceSendCommandNode"


async def test_a_command_may_expire(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        ids = await plant(house)
        config = {"nameTemplate": "go", "deviceIdsPath": "data.one", "ttlSecondsTemplate": "{{data.ttl}}"}
        one = ids["lamp 1"]
        for ttl, refusal in (
            (90, None),
            (0.5, "ttlSecondsTemplate: gives 0.5"),
            (0, "config.nameTemplate, ttlSecondsTemplate: ttlSeconds: is 0; give an integer from 1 to "),
        ):
            run = await node_runs(house, TYPE, config, {"one": one.hex(), "ttl": ttl})
            assert (refusal is None) == ("error" not in run)
            assert refusal is None or refusal in run["error"][1]
        assert [command["expiresAt"] for command in await house.commands(one)] == [at(90_000)]


async def names_with_commands(house: House, ids: dict[str, bytes]) -> list[str]:
    return [name for name, id in ids.items() if await house.commands(id)]


async def plant(house: House) -> dict[str, bytes]:
    return {
        name: await house.device(name=name, tags=[{"key": "kind", "value": name[:4]}])
        for name in ("pump 1", "pump 2", "lamp 1")
    }


@pytest.mark.parametrize(
    ("config", "reached"),
    [
        ({"deviceIdsPath": "data.one"}, ["lamp 1"]),
        ({"deviceIdsPath": "data.two"}, ["pump 1", "lamp 1"]),
        ({"deviceIdsPath": "data.none"}, []),
        ({"sendToDeviceIds": ["{{data.one}}"]}, ["lamp 1"]),
        ({"sendToDeviceTags": [{"key": "kind", "value": "{{data.kind}}"}]}, ["pump 1", "pump 2"]),
        ({"sendToDeviceTags": [{"key": "{{data.no}}", "value": ""}]}, []),
        (
            {"sendToDeviceIds": ["{{data.one}}"], "sendToDeviceTags": [{"key": "kind", "value": "pump"}]},
            ["pump 1", "pump 2", "lamp 1"],
        ),
        ({"deviceQueryJsonTemplate": '{"name": {"$endsWith": "{{data.end}}"}}'}, ["pump 1", "lamp 1"]),
        ({"deviceQueryJsonTemplate": "{}"}, ["pump 1", "pump 2", "lamp 1"]),
    ],
)
async def test_commands_reach_the_devices_of_the_choice(
    tmp_path: Path, config: Json, reached: list[str]
) -> None:
    async with running_house(tmp_path / "d") as house:
        ids = await plant(house)
        lamp = ids["lamp 1"].hex()
        data = {"one": lamp, "two": [lamp, ids["pump 1"].hex(), lamp], "none": [], "kind": "pump", "end": "1"}
        assert (await node_runs(house, TYPE, {"nameTemplate": "go", **config}, data))["output"] == 0
        assert await names_with_commands(house, ids) == reached


@pytest.mark.parametrize(
    ("config", "more"),
    [
        ({}, {}),
        ({"payloadTemplate": '{"v": {{data.v}}}'}, {"payload": {"v": 7}}),
        ({"payloadTemplate": "{{data.v}}", "payloadTemplateType": "string"}, {"payload": "7"}),
        ({"payloadTemplate": "data.list", "payloadTemplateType": "path"}, {"payload": [1, None]}),
        ({"payloadTemplate": "data.no", "payloadTemplateType": "path"}, {}),
    ],
)
async def test_a_command_has_a_name_and_a_payload(tmp_path: Path, config: Json, more: Json) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        whole = {"nameTemplate": "go {{data.v}}", "deviceIdsPath": "data.id", **config}
        await node_runs(house, TYPE, whole, {"id": device.hex(), "v": 7, "list": [1, None]})
        assert await house.commands(device) == [{"name": "go 7", "time": at(0), **more}]


async def test_a_device_that_refuses_fails_the_run_and_not_the_others(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        config = {"nameTemplate": "go", "deviceIdsPath": "data.ids"}
        ran = await node_runs(house, TYPE, config, {"ids": ["0" * 24, device.hex()]})
        assert ran["error"] == ("NotFound", f"There is no device {'0' * 24} here.")
        assert len(await house.commands(device)) == 1
        for path, part in (("data.no", "gives nothing, not an id"), ("data.ids", "gives 5, not an id")):
            ran = await node_runs(house, TYPE, {**config, "deviceIdsPath": path}, {"ids": 5})
            assert part in ran["error"][1]
        empty = {"nameTemplate": "go", "deviceQueryJsonTemplate": '{"$or": []}'}
        assert (await node_runs(house, TYPE, empty))["error"][0] == "Validation"
        ran = await node_runs(house, TYPE, {"nameTemplate": "go"})
        assert ran["error"][1].endswith("name the devices by one of them.")


async def test_commands_of_workflows_are_throttled_as_those_of_callers(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d", limits=Limits()) as house:
        device = await house.device()
        for _ in range(30):
            await house.command(device, "go")
        config = {"nameTemplate": "go", "sendToDeviceIds": [device.hex()]}
        assert (await node_runs(house, TYPE, config))["error"][0] == "TooManyRequests"


async def test_a_dry_run_sends_nothing(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        config = {"nameTemplate": "go", "sendToDeviceIds": [device.hex()]}
        flow = await create_flow(house, [button(["n"])], [node("n", TYPE, config)])
        message = dry_run.TestFlow(flow=flow.id, body=dry_run.DraftTest(), by=BY)
        shown = await house.system.ask(dry_run.tester_ref(house.application, flow.id), message)
        assert shown.value["error"]["name"] == "NotInDryRun"
        assert await house.commands(device) == []
