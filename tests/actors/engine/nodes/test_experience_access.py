"""Nodes ask whether a user is in a group, and whether a device belongs to a user or a group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.actors.engine.experience_people import EMAIL, group, user
from tests.actors.engine.run_house import button, create_flow, kept_runs, node_runs, press, runs_end
from tests.actors.house import running_house

GROUP, DEVICE = "VerifyExperienceGroupNode", "VerifyDeviceNode"


async def test_members_of_a_group_and_of_those_above_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await user(house)
        above = await group(house, "above")
        inner = await group(house, "inner", parentId=above, experienceUserIds=[id])
        below = await group(house, "below", parentId=inner)

        async def is_in(group: str, who: str = EMAIL) -> int:
            config = {"emailOrIdTemplate": "{{data.who}}", "groupIdTemplate": "{{data.group}}"}
            output: int = (await node_runs(house, GROUP, config, {"who": who, "group": group}))["output"]
            return output

        assert [await is_in(each) for each in (inner, below, above, "0" * 24, "none", "")] == [
            1,
            1,
            0,
            0,
            0,
            0,
        ]
        assert [await is_in(inner, who) for who in (id, "no@example.com", "")] == [1, 0, 0]


async def test_devices_of_users_and_groups(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id, other = await user(house), await user(house, "two@example.com")
        device, by_tag = await house.device(), await house.device(tags=[{"key": "k", "value": "v"}])
        above = await group(house, "above", experienceUserIds=[id])
        inner = await group(
            house,
            "inner",
            parentId=above,
            deviceIds=[device.hex()],
            deviceTags=[{"key": "k", "value": "v"}],
            experienceUserIds=[other],
        )
        empty = await group(house, "empty")

        async def is_of(device: str, of: str, type: str = "") -> int:
            config = {
                "deviceIdTemplate": "{{data.device}}",
                "idTypeTemplate": "{{data.type}}",
                "idTemplate": "{{data.of}}",
            }
            data = {"device": device, "of": of, "type": type}
            output: int = (await node_runs(house, DEVICE, config, data))["output"]
            return output

        for each in (device.hex(), by_tag.hex()):
            assert [await is_of(each, who) for who in (EMAIL, id, other, "no")] == [1, 1, 1, 0]
            groups = (above, inner, empty, id)
            assert [await is_of(each, group, "experienceGroup") for group in groups] == [1, 1, 0, 0]
        assert [await is_of(device, EMAIL) for device in ("0" * 24, "none")] == [0, 0]
        error = await node_runs(house, DEVICE, {"deviceIdTemplate": "x", "idTypeTemplate": "device"})
        assert "config.idTypeTemplate: gives 'device'" in error["error"][1]


async def test_the_user_is_the_one_of_the_request_if_none_is_set(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id, device = await user(house), await house.device()
        of = await group(house, "g", experienceUserIds=[id], deviceIds=[device.hex()])
        change = {"rules": [{"type": "set", "destination": "experience.user.id", "valueTemplate": id}]}
        nodes: list[dict[str, Any]] = [
            {"id": "set", "type": "MutateNode", "config": change, "outputIds": [["group"]]},
            {"id": "group", "type": GROUP, "config": {"groupIdTemplate": of}, "outputIds": [[], ["device"]]},
            {"id": "device", "type": DEVICE, "config": {"deviceIdTemplate": device.hex()}, "outputIds": []},
        ]
        flow = await create_flow(house, [button(["set"])], nodes)
        await press(house, flow)
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert run.path[1::3] == [0, 1, 1]
