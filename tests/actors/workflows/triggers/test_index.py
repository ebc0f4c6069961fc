"""The index of triggers: what callers who name a version can make it read."""

from __future__ import annotations

from pathlib import Path

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import create_flow, trigger
from tests.actors.house import running_house
from trunkline.actors.workflows.triggers.index import FlowIndex


async def test_a_definition_is_read_when_its_trigger_is_looked_up(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        index = at.system.component(FlowIndex)
        wanted, other = trigger("webhook", ["d"], "AB" * 12), trigger("endpoint", ["d"], "AB" * 12)
        flow = await create_flow(at, [other, wanted, wanted], [node("d", "DebugNode")])
        await create_flow(at, [other], [node("d", "DebugNode")])
        await create_flow(at, [wanted], [node("d", "DebugNode")], enabled=False)
        found = index.of(at.application)
        assert found.has_type("webhook")
        assert not found.has_type("deviceId")
        assert [(each.flow, each.position) for each in found.get("webhook", "ab" * 12)] == [
            (flow.id, 1),
            (flow.id, 2),
        ]
        assert found.get("webhook", "ab" * 12) is found.get("webhook", "ab" * 12)
        assert found.get("webhook", "cd" * 12) == found.of_type("deviceId") == ()
        assert len(found.of_type("endpoint")) == 2
        assert found.of_type("webhook") == found.get("webhook", "ab" * 12)
        assert index.of(at.application) is found


async def test_names_of_no_version_are_not_read_nor_kept(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        index = at.system.component(FlowIndex)
        nothing = index.of(at.application, "unknown")
        assert not nothing
        for name in ("v1", "é" * 300, "0" * 24, ""):
            assert index.of(at.application, name) is nothing, name
        for used in ("develop", "default", None):
            assert index.of(at.application, used) is not nothing
            assert index.of(at.application, used) is index.of(at.application, used)
