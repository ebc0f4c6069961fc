"""A node reports states of a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import button, create_flow, node_runs, run_again, run_one, told
from tests.actors.house import START_MS, House, at, running_house
from trunkline.actors.engine.visit import NOTES_MAX

Json = dict[str, Any]


def config(device: bytes, **more: Any) -> Json:
    return {"deviceId": device.hex(), "resultPath": "data.result", **more}


def by_json(template: str) -> Json:
    return {"attrDataMethod": "jsonTemplate", "attrJsonTemplate": template}


FROM_PATH = {"attrDataMethod": "payloadPath", "attrPayloadPath": "data.given"}


async def reported(house: House, device: bytes, config: Json, data: Json) -> list[Json]:
    """The states of the device after the node has run."""
    ran = await node_runs(house, "DeviceChangeStateNode", config, data)
    assert ran["data"]["result"] == {"success": True}
    return await house.states(device)


async def test_fields_are_reported_with_the_time_of_the_payload_and_blank_ones_are_not(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        infos = [
            {"key": "a", "valueTemplate": "{{data.v}}"},
            {"key": "{{data.name}}", "valueTemplate": "it is {{data.v}}"},
            {"key": "b", "valueTemplate": "{{data.nothing}}"},
        ]
        given = {"deviceId": "{{data.id}}", "attrInfos": infos}
        data = {"v": 2.5, "id": device.hex(), "name": "label"}
        states = await reported(house, device, config(device, **given), data)
        assert states == [{"time": at(0), "data": {"a": 2.5, "label": "it is 2.5"}}]


@pytest.mark.parametrize(
    ("given", "data", "states"),
    [
        (by_json('{"a": {{data.v}}}'), {"v": 1}, [{"time": at(0), "data": {"a": 1}}]),
        (FROM_PATH, {"given": {"a": 1}}, [{"time": at(0), "data": {"a": 1}}]),
        (
            FROM_PATH,
            {"given": [{"time": at(-5), "data": {"a": 1}, "meta": 7}, {"data": {"b": 2}}]},
            [{"time": at(-5), "data": {"a": 1}, "meta": 7}, {"time": at(0), "data": {"b": 2}}],
        ),
        (
            {**FROM_PATH, "timeSourceType": "payloadPath", "timeSourcePath": "data.at"},
            {"given": {"a": 1}, "at": START_MS - 7},
            [{"time": at(-7), "data": {"a": 1}}],
        ),
        (
            {
                **FROM_PATH,
                "metaTemplate": '{"by": "{{data.who}}"}',
                "metaTemplateType": "jsonTemplate",
                "flowVersionTemplate": "v1",
            },
            {"given": {"a": 1}, "who": "me"},
            [{"time": at(0), "data": {"a": 1}, "meta": {"by": "me"}, "flowVersion": "v1"}],
        ),
    ],
)
async def test_states_have_the_forms_of_the_api_and_of_values_alone(
    tmp_path: Path, given: Json, data: Json, states: list[Json]
) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        assert await reported(house, device, config(device, **given), data) == states


async def test_the_device_may_stand_at_a_path_and_the_time_be_now(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        given = {
            "deviceId": "data.id",
            "deviceIdTemplateType": "jsonPath",
            "timeSourceType": "now",
            **FROM_PATH,
        }
        data = {"id": device.hex(), "given": {"a": 1}}
        assert await reported(house, device, config(device, **given), data) == [
            {"time": at(0), "data": {"a": 1}}
        ]


@pytest.mark.parametrize(
    ("given", "data", "states", "notes"),
    [
        (
            FROM_PATH,
            {"given": {"a": 1, "z": 2, "b": None}},
            [{"time": at(0), "data": {"a": 1}}],
            {"z: the device declares no such attribute": 1, "b: is null": 1},
        ),
        (
            FROM_PATH,
            {"given": [{"time": at(-5), "data": {"z": 1}}, {"data": {"b": 2, "z": 3}}, {"data": {}}]},
            [{"time": at(0), "data": {"b": 2}}],
            {"z: the device declares no such attribute": 1},
        ),
        (FROM_PATH, {"given": {"z": 1}}, [], {"z: the device declares no such attribute": 1}),
        (FROM_PATH, {"given": {}}, [], {"config.attrPayloadPath: gives no values": 1}),
        (
            {"attrInfos": [{"key": "a", "valueTemplate": "{{data.typo}}"}]},
            {},
            [],
            {"config.attrInfos: the value of a is blank": 1, "config.attrInfos: gives no values": 1},
        ),
    ],
)
async def test_what_the_device_has_no_attribute_for_is_ignored_and_noted(
    tmp_path: Path, given: Json, data: Json, states: list[Json], notes: dict[str, int]
) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        run = await run_one(house, "DeviceChangeStateNode", config(device, **given), data)
        assert told(run)["data"]["result"] == {"success": True}
        assert await house.states(device) == states
        noted = {message: count for at, message, count in run.notes if run.nodes[at][0] == "n"}
        assert len(noted) == len(notes)
        for begin, count in notes.items():
            assert [each for message, each in noted.items() if message.startswith(begin)] == [count]


async def test_a_run_notes_the_same_thing_once_and_counts_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        given = {f"z{number}": 1 for number in range(NOTES_MAX + 50)}
        nodes = [
            node(
                "l",
                "LoopNode",
                {"loopSourcePath": "data.items", "currentItemPath": "working.item"},
                ["s"],
            ),
            node(
                "s",
                "DeviceChangeStateNode",
                config(device, attrDataMethod="payloadPath", attrPayloadPath="working.item.value"),
            ),
        ]
        nodes[0]["outputIds"] = [[], ["s"]]
        flow = await create_flow(house, [button(["l"])], nodes)
        run = await run_again(house, flow, {"items": [{"a": 1, "z": 2}, {"a": 2, "z": 3}]})
        assert [each[2] for each in run.notes] == [2]
        names = [{name: 1} for name in given]
        run = await run_again(house, flow, {"items": names})
        assert (run.outcome, len(run.notes)) == ("completed", NOTES_MAX)


@pytest.mark.parametrize(
    ("given", "data", "type", "part"),
    [
        ({}, {"given": {"a": "x"}}, "Validation", "data.a: "),
        ({}, {"given": 5}, "Validation", "config.attrDataMethod: gives 5, not an object"),
        ({}, {"given": {f"k{at}": 1 for at in range(4_097)}}, "Validation", "gives a state of 4097 values"),
        (
            {"deviceId": "nobody"},
            {"given": {"a": 1}},
            "Validation",
            "config.deviceId: gives 'nobody', not an id",
        ),
        ({"deviceId": "0" * 24}, {"given": {"a": 1}}, "NotFound", "There is no device 000"),
    ],
)
async def test_what_is_refused_is_at_the_result_path_and_fails_the_run_without_one(
    tmp_path: Path, given: Json, data: Json, type: str, part: str
) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        whole = config(device, **FROM_PATH) | given
        ran = await node_runs(house, "DeviceChangeStateNode", whole, data)
        assert ran["data"]["result"]["error"]["type"] == type
        assert part in ran["data"]["result"]["error"]["message"]
        name, message = (await node_runs(house, "DeviceChangeStateNode", whole | {"resultPath": ""}, data))[
            "error"
        ]
        assert name in (type, "ValidationError")
        assert part in message
        assert await house.states(device) == []
