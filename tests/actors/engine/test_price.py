"""What runs compute is charged, and what is too long for the event loop is computed elsewhere, once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import Json, failure, flow, node, run_dry, run_node
from tests.actors.engine.run_house import button, create_flow
from tests.actors.house import running_house
from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.price import WHOLE_STEPS
from trunkline.actors.core.records import read_time
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.engine import branch_memory
from trunkline.actors.engine.branch_memory import BranchMemory, WaitingOfRun
from trunkline.actors.engine.errors import NodeError, RunFailed
from trunkline.actors.engine.executor import execute
from trunkline.actors.engine.program import compile_program, node_problems
from trunkline.actors.engine.snapshots import BYTES_MAX, SNAPSHOTS_MAX
from trunkline.actors.engine.visit import Bounds, Program, Run
from trunkline.actors.readers import LATER, read_at_once
from trunkline.actors.workflows.flows.messages import FlowShape, GetFlow
from trunkline.limits.table import Limits

LARGE = Bounds(steps=1_000, loop_items=262_144, payload_bytes=5 * 1024 * 1024)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is computed in threads."""
    done: list[str] = []
    inner = price.Budget.compute_in_thread

    def compute(budget: price.Budget, work: Any, look: Any) -> None:
        done.append("computed")
        inner(budget, work, look)

    monkeypatch.setattr(price.Budget, "compute_in_thread", compute)
    return done


async def run_once(program: Program, payload: Json) -> None:
    """Run a program that calls no script."""
    run = Run(LARGE, 0, 1, partial(ScriptPool(Limits()).call, owner=b""), {}, [program])
    await run.share.enter()
    await execute(program, 0, payload, run)


async def test_templates_of_one_node_have_one_budget(threads: list[str]) -> None:
    """The first attack: eight templates, each with sixty searches of a long array."""
    search = "{{indexByKey data.a 'nope' 'a.b.c.d.e.f'}}"
    config = {"sourceData": "", "method": "concat", "methodArgs": [search * 60] * 8, "resultPath": "data.r"}
    shown = await run_dry(flow(node("n", "StringNode", config)), LARGE, data={"a": [{"a": 1}] * 250_000})
    assert shown["error"]["name"] == "EvaluationError"
    assert f"more than {WHOLE_STEPS} steps" in shown["error"]["message"]
    assert threads == ["computed"] * 2, "the node is compiled, and then it computes"


async def test_templates_are_compiled_in_the_price_of_the_first_visit(threads: list[str]) -> None:
    """A workflow of many templates took seconds of the event loop before its first run."""
    config = {"sourceData": "{{data.a}}" * 1_000, "method": "toUpper", "resultPath": "data.r"}
    program = compile_program(flow(node("n", "StringNode", config)))
    payloads: list[Json] = [{"data": {"a": "x"}}, {"data": {"a": "y"}}]
    for payload in payloads:
        await run_once(program, payload)
    assert [each["data"]["r"] for each in payloads] == ["X" * 1_000, "Y" * 1_000]
    assert threads == ["computed"], "the node was compiled twice, or in the event loop"


async def test_a_long_condition_is_compiled_in_a_thread(threads: list[str]) -> None:
    shown = await run_dry(flow(node("n", "ConditionalNode", {"expression": "1" + "+1" * 2_000})), LARGE)
    assert shown["steps"][-1]["nodeId"] == "n"
    assert threads == ["computed"]


async def test_a_node_whose_templates_take_too_long_to_compile_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price, "WHOLE_STEPS", 2_000)
    config = {"sourceData": "{{data.a}}" * 1_000, "method": "toUpper", "resultPath": "data.r"}
    program = compile_program(flow(node("n", "StringNode", config)))
    with pytest.raises(RunFailed) as failed:
        await run_once(program, {"data": {"a": "x"}})
    assert "its templates and expressions cannot be compiled" in str(failed.value.error)
    (problem,) = node_problems(flow(node("n", "StringNode", config)), lambda: None)
    assert "its templates and expressions cannot be compiled" in problem.message


@pytest.mark.parametrize(("count", "is_long"), [(1, False), (2_000, True)])
async def test_the_problems_of_a_long_workflow_are_read_in_a_thread(
    tmp_path: Path, count: int, is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_long:
        monkeypatch.setattr(read_time, "INLINE_NS", 60_000_000_000)  # a busy machine makes no short read long
    config = {"sourceData": "{{data.a}}" * count, "method": "toUpper", "resultPath": "data.r"}
    nodes = [node("n", "StringNode", config)]
    async with running_house(tmp_path / "data") as house:
        ref = await create_flow(house, [button(["n"])], nodes)
        message = GetFlow(application=house.application, flow=ref.id, query=FlowShape())
        assert (read_at_once(house.system, message) is LATER) is is_long


async def test_arguments_of_characters_have_one_budget() -> None:
    config = {
        "sourceData": "",
        "method": "concat",
        "methodArgs": ["{{#if (length (titleCase data.t))}}x{{/if}}"] * 100,
        "resultPath": "data.r",
    }
    shown = await run_dry(flow(node("n", "StringNode", config)), LARGE, data={"t": "x" * 2_000_000})
    assert f"more than {WHOLE_STEPS} steps" in shown["error"]["message"]


async def test_what_is_too_long_for_the_loop_has_the_same_value(threads: list[str]) -> None:
    config = {
        "sourceData": "{{length data.a}}",
        "method": "concat",
        "methodArgs": ["{{indexByKey data.a 'last' 'k'}}", "{{length (join data.a)}}", "{{data.b}}"],
        "resultPath": "data.r",
    }
    items = [{"k": "other"}] * 3_000 + [{"k": "last"}]
    shown = await run_node("StringNode", config, {"a": items, "b": "end"})
    assert shown["data"]["r"] == f"3001{3000}{16 * 3001 - 1}end"
    assert len(threads) >= 2


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [1, 5])
async def test_statements_that_are_done_are_not_done_again(count: int) -> None:
    heavy = "{{data.n}} + {{indexByKey data.a 1 'k'}} + 2"
    config = {"statements": [{"expression": heavy, "resultPath": "data.n"}] * count}
    shown = await run_node("MathNode", config, {"n": 0, "a": [{"k": 0}] * 1_500})
    assert shown["data"]["n"] == count


async def test_rules_that_are_done_are_not_done_again(threads: list[str]) -> None:
    heavy = "{{data.n}}{{#each data.a}}{{/each}}+"
    rules: list[Json] = [
        {"type": "set", "destination": "data.n", "valueTemplate": heavy},
        {"type": "move", "source": "data.n", "destination": "data.m"},
        {"type": "copy", "source": "data.m", "destination": "data.n"},
        {"type": "set", "destination": "data.n", "valueTemplate": heavy},
    ]
    shown = await run_node("MutateNode", {"rules": rules}, {"n": "", "a": [0] * 1_500})
    assert (shown["data"]["n"], shown["data"]["m"]) == ("++", "+")
    assert len(threads) == 2


async def test_rules_of_an_array_that_are_done_are_not_done_again(threads: list[str]) -> None:
    heavy = "{{length data.out}}{{#each data.long}}{{/each}}"
    rules: list[Json] = [
        {"type": "push", "inputTemplate": heavy},
        {"type": "shift", "outputPath": "data.out"},
        {"type": "push", "inputTemplate": heavy},
    ]
    config = {"sourceArrayPath": "data.a", "rules": rules}
    shown = await run_node("ArrayNode", config, {"a": ["abc", "d"], "long": [0] * 1_500})
    assert shown["data"]["a"] == ["d", "0", "3"]
    assert shown["data"]["out"] == "abc"
    assert len(threads) == 2


async def test_operations_on_an_object_that_are_done_are_not_done_again(threads: list[str]) -> None:
    heavy = '{{#each data.long}}{{/each}}{"n": "{{length data.keys}}"}'
    operations: list[Json] = [
        {"type": "keys", "outputPath": "data.keys"},
        {"type": "mergeDeep", "inputTemplate": heavy},
        {"type": "keys", "outputPath": "data.keys"},
        {"type": "mergeDeep", "inputTemplate": heavy},
    ]
    config = {"sourcePath": "data.o", "destPath": "data.r", "operations": operations}
    shown = await run_node("ObjectNode", config, {"o": {"a": 1}, "long": [0] * 1_500})
    assert shown["data"]["r"] == {"a": 1, "n": "2"}
    assert len(threads) == 2


async def test_json_is_decoded_and_encoded_elsewhere(threads: list[str]) -> None:
    text = "[" + ",".join(f'{{"k{at}":{at}}}' for at in range(7_000)) + "]"
    nodes = flow(
        node("d", "JsonDecodeNode", {"source": "data.t", "destination": "data.v"}, ["e"]),
        node("e", "JsonEncodeNode", {"source": "data.v", "destination": "data.w"}, ["m"]),
        node("m", "MutateNode", {"rules": [{"type": "remove", "source": "data.v"}]}, ["s"]),
        node(
            "s", "StringNode", {"sourceData": "{{length (jsonDecode data.w)}}", "resultPath": "data.r"}, ["c"]
        ),
        node("c", "ConditionalNode", {"expression": "{{data.t}} == {{data.w}} && {{data.r}} == '7000'"}),
    )
    shown = await run_dry(nodes, LARGE, data={"t": text})
    assert "error" not in shown
    assert shown["steps"][-1]["output"] == 1
    assert len(threads) == 3


async def test_branches_begin_with_the_payload_as_it_was() -> None:
    def counted(id: str, *then: str) -> Json:
        config = {"statements": [{"expression": "{{data.n}} + 1", "resultPath": "data.n"}]}
        return node(id, "MathNode", config, [*then])

    shown = await run_dry(
        flow(counted("a", "b", "c", "d"), counted("b", "e", "f"), *map(counted, "cdef")), data={"n": 0}
    )
    seen = [(step["nodeId"], step["payload"]["data"]["n"]) for step in shown["steps"]]
    assert seen == [("a", 1), ("b", 2), ("e", 3), ("f", 3), ("c", 2), ("d", 2)]


async def test_what_branches_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_memory, "RUN_BYTES_MAX", 100_000)
    ends = [node(f"e{at}", "DebugNode") for at in range(100)]
    wide = flow(node("n", "MathNode", {}, [each["id"] for each in ends]), *ends)
    assert "error" not in await run_dry(wide, data={"a": [[]] * 1_000})
    deep = flow(node("n", "MathNode", {}, ["n", "e0"]), ends[0])
    error = (await run_dry(deep, data={"a": [[]] * 1_000}))["error"]
    assert error["name"] == "TooManyBranches"
    assert error["nodeId"] == "n"


async def test_how_many_branches_wait_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_memory, "RUN_BRANCHES_MAX", 50)
    end = node("e", "DebugNode")
    assert "error" not in await run_dry(flow(node("n", "MathNode", {}, ["e"] * 50), end))
    # What has begun does not count: many branches one after the other are no fault.
    starts = [node(f"n{at}", "MathNode", {}, ["e", f"n{at + 1}"]) for at in range(60)]
    assert "error" not in await run_dry(flow(*starts, node("n60", "DebugNode"), end))
    error = (await run_dry(flow(node("n", "MathNode", {}, ["n", "e"]), end)))["error"]
    assert (error["name"], error["nodeId"]) == ("TooManyBranches", "n")
    assert "at most 50" in error["message"]


def test_what_branches_of_an_owner_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_memory, "OWNER_BYTES_MAX", 100)
    memory = BranchMemory()
    runs = [WaitingOfRun(memory, owner) for owner in (b"one", b"one", b"two")]
    runs[0].add({}, 2, 60)
    with pytest.raises(NodeError, match="runs of this owner"):
        runs[1].add({}, 2, 60)
    runs[2].add({}, 2, 60)
    runs[0].end()
    waiting = runs[1].add({}, 2, 60)
    assert [runs[1].begin(waiting), runs[1].begin(waiting)] == [True, False]
    runs[0].add({}, 2, 60)


async def test_an_answer_of_a_dry_run_is_bounded_in_bytes() -> None:
    nodes = [node(f"n{at}", "MathNode", {}, [f"n{at + 1}"]) for at in range(50)]
    shown = await run_dry(flow(*nodes), LARGE, data={"t": "x" * 100_000})
    shown_steps = [step for step in shown["steps"] if "payload" in step]
    assert len(shown["steps"]) == 50
    assert 0 < len(shown_steps) <= BYTES_MAX // 100_000
    assert shown_steps == shown["steps"][: len(shown_steps)]
    assert shown["leftOut"] == (
        f"The payload is not shown after {50 - len(shown_steps)} steps: an answer has the first {SNAPSHOTS_MAX}, "
        f"up to {BYTES_MAX} bytes in all."
    )


async def test_what_debug_nodes_tell_is_bounded_while_the_run_lasts() -> None:
    loop = node("l", "LoopNode", {"loopSourcePath": "data.times"}, [], ["d"])
    shown = await run_dry(flow(loop, node("d", "DebugNode")), data={"times": 50, "t": "x" * 10_000})
    assert len(shown["debug"]) == 6


async def test_errors_in_a_thread_are_those_of_the_node() -> None:
    config = {"source": "data.t"}
    name, message = await failure("JsonDecodeNode", config, {"t": "[" + "1," * 50_000 + "]"})
    assert name == "ValidationError"
    assert "is not valid JSON" in message
