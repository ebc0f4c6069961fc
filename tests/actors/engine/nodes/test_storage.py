"""StoreValueNode and GetValueNode: what is stored, read, counted and refused."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.actors.engine.flow_cases import failure, node
from tests.actors.engine.kept_between_runs import outcome
from tests.actors.engine.run_house import (
    Json,
    button,
    create_flow,
    create_node,
    kept_runs,
    press,
    runs_end,
    trigger,
)
from tests.actors.house import House
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.engine.programs import Programs
from trunkline.actors.workflows.flows.bodies import ButtonPress
from trunkline.actors.workflows.flows.messages import GetStorage, GetStorageSize, PressButton
from trunkline.actors.workflows.triggers.button import button_ref
from trunkline.limits.table import Limits


async def entries(house: House, flow: Ref) -> Json:
    stored: Json = await house.read(GetStorage(application=house.application, flow=flow.id))
    return stored


STORED: list[tuple[Json, Any]] = [
    ({"value": "{{data.n}}"}, "5"),
    ({"value": "n {{data.n}}", "valueType": "template"}, "n 5"),
    ({"value": '{"n": {{data.n}}}', "valueType": "json"}, {"n": 5}),
    ({"value": "{{data.n}}", "valueType": "number"}, 5),
    ({"value": 7, "valueType": "number"}, 7),
    ({"value": "data.deep", "valueType": "path"}, {"a": [1, None]}),
    ({"valuePath": "data.deep", "value": "", "valueType": "path"}, {"a": [1, None]}),
    ({"value": "2", "valueType": "incr"}, 2),
    ({"value": "{{data.n}}", "valueType": "decr"}, -5),
    ({"value": "", "valueType": "incr"}, 1),
]


@pytest.mark.parametrize(("config", "expected"), STORED)
async def test_a_value_is_stored_as_its_type_says(house: House, config: Json, expected: Any) -> None:
    flow = await create_node(
        house, "StoreValueNode", {"keyName": "k {{data.n}}", "resultPath": "data.now", **config}
    )
    output, data = await outcome(house, flow, {"n": 5, "deep": {"a": [1, None]}})
    assert (output, data["now"]) == (0, expected)
    assert await entries(house, flow) == {"k 5": expected}


async def test_an_entry_is_counted_up_and_down_and_removed(house: House) -> None:
    config = {"keyName": "k", "valueType": "incr", "value": "{{data.by}}", "resultPath": "data.now"}
    flow = await create_node(house, "StoreValueNode", config)
    assert await outcome(house, flow, {"by": 0.1}) == (0, {"by": 0.1, "now": 0.1})
    assert await outcome(house, flow, {"by": 0.9}) == (0, {"by": 0.9, "now": 1})
    assert (await outcome(house, flow, {"by": "much"}))[0] == "ValidationError"
    nodes = [
        node("a", "StoreValueNode", {"keyName": "k", "valueType": "json", "value": "[1]"}, ["b"]),
        node("b", "StoreValueNode", {"keyName": "k", "valueType": "decr"}),
    ]
    other = await create_flow(house, [button(["a"])], nodes)
    await press(house, other)
    await runs_end(house)
    (run,) = kept_runs(house, other)
    at, name, message = run.error or []
    assert (at, name) == (1, "Validation")
    assert message.startswith("key: the storage entry 'k' is not a number")
    removing = [node("a", "StoreValueNode", {"keyName": "{{data.key}}", "valueType": "clear"})]
    third = await create_flow(
        house,
        [button(["s"])],
        [node("s", "StoreValueNode", {"keyName": "k", "value": "x"}, ["a"]), *removing],
    )
    await press(house, third, {"key": "other"})
    await runs_end(house)
    assert await entries(house, third) == {"k": "x"}
    await press(house, third, {"key": "k"})
    await runs_end(house)
    assert await entries(house, third) == {}


async def test_runs_at_the_same_time_count_each(house: House) -> None:
    nodes = [node("n", "StoreValueNode", {"keyName": "k", "valueType": "incr", "value": "1"})]
    names = [f"b{number}" for number in range(8)]
    buttons = [trigger("virtualButton", ["n"], name, meta={"id": name}) for name in names]
    flow = await create_flow(house, buttons, nodes)
    async with trio.open_nursery() as nursery:
        for name in names * 3:
            message = PressButton(flow=flow.id, body=ButtonPress(key=name))
            nursery.start_soon(house.system.ask, button_ref(house.application, flow.id, name), message)
    await runs_end(house)
    assert await entries(house, flow) == {"k": 24}


READ: list[tuple[Json, Any]] = [
    ({"keyName": "number"}, 4.5),
    ({"keyName": "{{data.key}}"}, {"a": [None]}),
    ({"keyName": "none", "defaultValue": ""}, "missing"),
    ({"keyName": "none", "defaultValue": "{{data.key}}!"}, "object!"),
    ({"keyName": "none", "defaultValue": "[0]", "defaultValueType": "json"}, [0]),
    ({"keyName": "none", "defaultValue": 0, "defaultValueType": "number"}, 0),
    ({"keyName": "none", "defaultValue": "data.key", "defaultValueType": "path"}, "object"),
    ({"keyName": "none", "defaultValue": "data.none", "defaultValueType": "path"}, "missing"),
    ({"keyName": "", "getAll": True}, {"number": 4.5, "object": {"a": [None]}}),
]


@pytest.mark.parametrize(("config", "expected"), READ)
async def test_a_value_is_read_with_its_type(house: House, config: Json, expected: Any) -> None:
    nodes = [
        node("a", "StoreValueNode", {"keyName": "number", "valueType": "number", "value": "4.5"}, ["b"]),
        node(
            "b", "StoreValueNode", {"keyName": "object", "valueType": "json", "value": '{"a": [null]}'}, ["c"]
        ),
        node("c", "GetValueNode", {"valuePath": "data.old", **config}, ["d"]),
        node("d", "DebugNode", {"property": "data"}),
    ]
    flow = await create_flow(house, [button(["a"])], nodes)
    await press(house, flow, {"key": "object", "old": 1})
    await runs_end(house)
    (run,) = kept_runs(house, flow)
    assert run.debug[0][3].get("old", "missing") == expected


async def test_a_stored_value_does_not_compile_the_workflow_again(house: House) -> None:
    flow = await create_node(house, "StoreValueNode", {"keyName": "k", "value": "{{data.n}}"})
    programs = house.system.component(Programs)
    before = programs.get(house.application, flow.id, None)
    await outcome(house, flow, {"n": 1})
    assert programs.get(house.application, flow.id, None) is before


@pytest.mark.parametrize(
    ("type", "config", "data", "name", "sentence"),
    [
        (
            "StoreValueNode",
            {"keyName": "", "value": "1"},
            {},
            "ValidationError",
            "config.keyName: is not set",
        ),
        (
            "StoreValueNode",
            {"keyName": "{{data.no}}", "value": "1"},
            {},
            "ValidationError",
            "config.keyName: gives a key of 0 characters; a key has 1 to 255.",
        ),
        *(
            (
                "StoreValueNode",
                {"keyName": "{{data.long}}", "value": "1", "valueType": type},
                {"long": "x" * 256},
                "ValidationError",
                "config.keyName: gives a key of 256 characters; a key has 1 to 255.",
            )
            for type in ("template", "incr", "clear")
        ),
        ("StoreValueNode", {"keyName": "k", "valueType": "word"}, {}, "ValidationError", "config.valueType:"),
        (
            "StoreValueNode",
            {"keyName": "k", "valueType": "json", "value": "{"},
            {},
            "InvalidJsonTemplate",
            "",
        ),
        (
            "StoreValueNode",
            {"keyName": "k", "valueType": "path", "value": "data.large"},
            {"large": "x" * Limits().flow_storage_value_bytes_max},
            "Validation",
            "value: has 16386 bytes as JSON",
        ),
        ("GetValueNode", {"keyName": "k"}, {}, "ValidationError", "config.valuePath: is not set"),
        ("GetValueNode", {"valuePath": "data.v"}, {}, "ValidationError", "config.keyName: is not set"),
    ],
)
async def test_what_cannot_be_stored_is_refused(
    house: House, type: str, config: Json, data: Json, name: str, sentence: str
) -> None:
    flow = await create_node(house, type, config)
    found, message = await outcome(house, flow, data)
    assert found == name
    assert message.startswith(sentence)
    size = await house.read(GetStorageSize(application=house.application, flow=flow.id))
    assert size == {"memoryUsed": 0, "keysCount": 0}


async def test_nothing_is_stored_in_a_dry_run() -> None:
    found, _ = await failure("StoreValueNode", {"keyName": "k", "value": "1"})
    assert found == "NotInDryRun"
