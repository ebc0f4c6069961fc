"""The index of triggers: what callers who name a version can make it read."""

from __future__ import annotations

from pathlib import Path

from tests.actors.house import running_house
from trunkline.actors.triggers.index import FlowIndex


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
