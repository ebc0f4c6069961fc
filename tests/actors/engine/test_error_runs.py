"""Triggers of errors: which workflows are told of a failed run. Exports have the scope in `config`, not in the key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import BY, button, create_flow, kept_runs, press, runs_end, trigger
from tests.actors.house import House, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.workflows.flows.bodies import FlowVersionPost
from trunkline.actors.workflows.flows.messages import CreateFlowVersion, VersionCreation

Json = dict[str, Any]
SCOPES = ("local", "cloud", "experience", "global")
FAILS = [node("t", "ThrowErrorNode", {"messageTemplate": "no {{data.a}}"}), node("d", "DebugNode")]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with running_house(tmp_path / "d") as found:
        yield found


def errors(scope: str | None, key: str = "FLOW-flowError") -> Json:
    """The trigger as exports have it: the key was made by another server."""
    return trigger("flowError", ["d"], key, config={} if scope is None else {"scope": scope})


async def watchers(house: House, scopes: tuple[str, ...] = SCOPES, **fields: Any) -> dict[str, Ref]:
    """A workflow for each scope that waits for the errors of others."""
    return {
        scope: await create_flow(house, [errors(scope)], [node("d", "DebugNode")], **fields)
        for scope in scopes
    }


async def version(house: House, flow: Ref, name: str, triggers: list[Json], nodes: list[Json]) -> None:
    body = msgspec.convert({"version": name, "triggers": triggers, "nodes": nodes}, FlowVersionPost)
    await house.system.ask(flow, CreateFlowVersion(body=body, query=VersionCreation(), by=BY))


def told(house: House, flow: Ref) -> list[str]:
    """The messages of the errors that a workflow was told of."""
    runs = [run for run in kept_runs(house, flow) if run.trigger_type == "flowError"]
    return [run.debug[0][3]["data"]["errorInfo"]["error"]["message"] for run in runs]


async def test_an_error_is_told_to_all_that_wait_the_narrowest_first(house: House) -> None:
    wide, pages = await watchers(house), await watchers(house, ("experience",), flowClass="experience")
    failing = await create_flow(house, [button(["t"]), errors("local")], FAILS)
    await press(house, failing, {"a": "fuel"})
    await runs_end(house)
    first, handled = kept_runs(house, failing)
    assert (first.outcome, first.error) == ("failed", [0, "Error", "no fuel"])
    assert handled.debug[0][3]["data"]["erroredPayload"]["data"] == {"a": "fuel"}
    assert {scope: told(house, flow) for scope, flow in wide.items()} == {
        "local": [],
        "cloud": ["no fuel"],
        "experience": [],
        "global": ["no fuel"],
    }
    assert told(house, pages["experience"]) == []
    ends = [kept_runs(house, flow)[-1].ended_ms for flow in (failing, wide["cloud"], wide["global"])]
    assert ends == sorted(ends)


async def test_an_error_of_an_experience_is_told_within_its_version_and_to_the_cloud(house: House) -> None:
    wide, pages = await watchers(house), await watchers(house, ("experience",), flowClass="experience")
    neighbour = pages["experience"]
    failing = await create_flow(house, [button(["t"]), errors("local")], FAILS, flowClass="experience")
    await version(house, failing, "v1", [button(["t"])], FAILS)
    await press(house, failing, {"a": "page"})
    await press(house, failing, {"a": "v1"}, flow_version="v1")
    await runs_end(house)
    assert {scope: told(house, flow) for scope, flow in wide.items()} == {
        "local": [],
        "cloud": [],
        "experience": ["no page", "no v1"],
        "global": ["no page", "no v1"],
    }
    assert (told(house, failing), told(house, neighbour)) == (["no page"], ["no page"])
    await version(house, neighbour, "v1", [errors("experience")], [node("d", "DebugNode")])
    await press(house, failing, {"a": "both"}, flow_version="v1")
    await runs_end(house)
    assert told(house, neighbour) == ["no page", "no both"]


async def test_the_default_version_hears_of_errors_of_all_versions(house: House) -> None:
    flow = await create_flow(house, [button(["t"]), errors("local")], FAILS)
    await version(house, flow, "v1", [button(["t"])], FAILS)
    await press(house, flow, {"a": "v1"}, flow_version="v1")
    await runs_end(house)
    assert told(house, flow) == ["no v1"]


@pytest.mark.parametrize(
    ("scope", "key", "elsewhere"),
    [(None, "FLOW-flowError", False), (None, "", False), (None, "global", True), ("global", "local", True)],
)
async def test_the_scope_is_local_unless_something_says_otherwise(
    house: House, scope: str | None, key: str, elsewhere: bool
) -> None:
    """A trigger without a scope may have it as its key: workflows of earlier versions of this server do."""
    other = await create_flow(house, [errors(scope, key)], [node("d", "DebugNode")])
    own = await create_flow(house, [button(["t"]), errors(scope, key)], FAILS)
    await press(house, own)
    await runs_end(house)
    assert (told(house, own), told(house, other)) == (["no "], ["no "] if elsewhere else [])


async def test_an_error_of_a_run_for_errors_is_told_to_nobody(house: House) -> None:
    handler = await create_flow(
        house, [trigger("flowError", ["t"], "any", config={"scope": "global"})], FAILS
    )
    failing = await create_flow(house, [button(["t"])], FAILS)
    await press(house, failing)
    await runs_end(house)
    assert [run.outcome for run in kept_runs(house, handler)] == ["failed"]
