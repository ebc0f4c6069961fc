"""LatchNode and BranchOnChangeNode: which output is taken, and what is kept between runs."""

from __future__ import annotations

from typing import Any

import pytest

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
)
from tests.actors.house import House
from trunkline.actors.core.values.errors import PayloadTooLarge
from trunkline.actors.workflows.flows.bodies import StorageEntry
from trunkline.actors.workflows.flows.messages import GetStorage, GetStorageSize
from trunkline.actors.workflows.flows.storage_messages import (
    ClearStorage,
    ReplaceNodeState,
    SetLatch,
    SetStorageEntry,
)

LATCH = {
    "latchExpression": "{{data.t}} > 90",
    "resetExpression": "{{data.t}} < 70",
    "latchIdTemplate": "{{data.device}}",
    "latchResultPath": "data.sets",
    "resetResultPath": "data.resets",
    "wasLatchedPath": "data.was",
    "isLatchedPath": "data.is",
    "branchPath": "data.branch",
}


async def test_a_latch_is_set_once_until_it_is_reset(house: House) -> None:
    flow = await create_node(house, "LatchNode", LATCH)
    steps = [(80, 0, False), (95, 1, True), (99, 0, True), (80, 0, True), (60, 0, False), (95, 1, True)]
    was = False
    for temperature, output, now in steps:
        found, data = await outcome(house, flow, {"t": temperature, "device": "a"})
        assert found == output
        assert data == {
            "t": temperature,
            "device": "a",
            "sets": temperature > 90,
            "resets": temperature < 70,
            "was": was,
            "is": now,
            "branch": output == 1,
        }
        was = now
    assert (await outcome(house, flow, {"t": 95, "device": "b"}))[0] == 1


async def test_a_latch_without_expressions_is_never_set(house: House) -> None:
    flow = await create_node(house, "LatchNode", {})
    assert await outcome(house, flow, {"t": 99}) == (0, {"t": 99})


async def test_latches_are_not_shown_as_entries_and_clearing_the_storage_resets_them(house: House) -> None:
    flow = await create_node(house, "LatchNode", {"latchExpression": "true"})
    assert [(await outcome(house, flow))[0] for _ in range(2)] == [1, 0]
    application = house.application
    assert await house.read(GetStorage(application=application, flow=flow.id)) == {}
    size = await house.read(GetStorageSize(application=application, flow=flow.id))
    assert size == {"memoryUsed": 0, "keysCount": 0}
    await house.system.ask(flow, SetStorageEntry(body=StorageEntry(key="k", value=1)))
    await house.system.ask(flow, ClearStorage())
    assert [(await outcome(house, flow))[0] for _ in range(2)] == [1, 0]


async def test_a_custom_node_has_latches_of_its_own(house: House) -> None:
    config = {"latchExpression": "true"}
    inner = await create_flow(
        house,
        [{"type": "customNodeStart", "key": "customNodeStart", "outputIds": [["n"]]}],
        [node("n", "LatchNode", config, ["c"], ["c"]), node("c", "CustomNodeCapNode", {})],
        flowClass="customNode",
    )
    outer = await create_flow(
        house,
        [button(["n"])],
        [
            node("n", "LatchNode", config, ["e"], ["x"]),
            node("x", "CustomNodeExecuteNode", {"customNodeId": inner.id.hex()}, ["e"]),
            node("e", "DebugNode"),
        ],
    )
    await press(house, outer)
    await runs_end(house)
    (run,) = kept_runs(house, outer)
    assert run.path[1::3] == [1, 0, 1, -1, 0]


ANY = [
    (["on", "on", "off", "off"], [0, 0, 1, 0]),
    ([1, 1.0, True, "1"], [0, 0, 1, 1]),
    ([{"a": 1, "b": [2]}, {"b": [2], "a": 1.0}, {"a": 1, "b": [2, None]}], [0, 0, 1]),
    ([None, 0, None], [0, 1, 1]),
]


@pytest.mark.parametrize(("values", "outputs"), ANY)
async def test_any_change_takes_output_1(house: House, values: list[Any], outputs: list[int]) -> None:
    flow = await create_node(house, "BranchOnChangeNode", {"valuePath": "data.v"})
    assert [(await outcome(house, flow, {"v": value}))[0] for value in values] == outputs


NUMBERS = [
    ("value", 5, [10, 14, 19, 14, 15], [0, 0, 1, 1, 0]),
    ("valueInc", 5, [10, 15, 10], [0, 1, 0]),
    ("valueDec", "{{data.by}}", [10, 5, 10], [0, 1, 0]),
    ("percent", 50, [10, 15, 20, 10], [0, 1, 0, 1]),
    ("percentInc", 50, [-10, -5, -10], [0, 1, 0]),
    ("percentDec", 100, [10, 0, -1, 1], [0, 1, 1, 0]),
    ("value", 0, [10, 10, 10.5], [0, 0, 1]),
    ("value", 5, [10, "none", "", None, "15", 15], [0, 0, 0, 0, 1, 0]),
]


@pytest.mark.parametrize(("kind", "least", "values", "outputs"), NUMBERS)
async def test_a_change_of_a_number_counts_from_a_threshold(
    house: House, kind: str, least: Any, values: list[Any], outputs: list[int]
) -> None:
    config = {"valuePath": "data.v", "changeType": kind, "changeThreshold": least}
    flow = await create_node(house, "BranchOnChangeNode", config)
    assert [(await outcome(house, flow, {"v": value, "by": 5}))[0] for value in values] == outputs


async def test_the_last_value_is_kept_for_each_id(house: House) -> None:
    config: Json = {"valuePath": "data.v", "prevValuePath": "data.old", "onChangeIdTemplate": "{{data.id}}"}
    flow = await create_node(house, "BranchOnChangeNode", config)
    before_ms = house.clock.wall_ms()
    assert (await outcome(house, flow, {"v": 1, "id": "a"}))[1]["old"] is None
    assert (await outcome(house, flow, {"v": 2, "id": "b"}))[1]["old"] is None
    house.clock.pass_s(60)
    output, data = await outcome(house, flow, {"v": 2, "id": "a"})
    assert (output, data["old"]) == (1, {"value": 1, "time": before_ms})


async def test_what_nodes_keep_is_bounded(house: House) -> None:
    flow = await create_node(house, "BranchOnChangeNode", {"valuePath": "data.v"})
    name, message = await outcome(house, flow, {"v": "x" * house.system.limits.flow_storage_value_bytes_max})
    assert (name, message[:25]) == ("Validation", "The node would keep a val")
    most = house.system.limits.flow_states_bytes_max
    kept, state = 0, "x" * 16_000
    with pytest.raises(PayloadTooLarge, match="Clear the storage"):  # noqa: PT012
        for number in range(most // 16_000 + 1):
            await house.system.ask(flow, ReplaceNodeState(node=str(number), state=state))
            kept += 1
    assert kept == most // 16_103
    await house.system.ask(flow, ReplaceNodeState(node="0", state=None))
    await house.system.ask(flow, SetLatch(node="new", sets=True, resets=False))


async def test_a_threshold_is_needed() -> None:
    found = await failure("BranchOnChangeNode", {"valuePath": "data.v", "changeType": "value"})
    assert found[1].startswith("config.changeThreshold: is not set")
