"""Whatever a workflow is given, no node holds the event loop for long: the short form.

The long form is `python -m tests.e2e.worst_flows`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

import pytest

from tests.actors.core.formulas.worst_values import GENEROUS
from tests.e2e.conftest import running_server
from tests.e2e.loop_meter import LoopMeter
from tests.e2e.silent_socket import silent_socket
from tests.e2e.worst_flows import LIMIT_MS, SETTINGS, Bench, resting_collector
from tests.e2e.worst_nodes import cases
from trunkline.actors.engine.node_type import Category, Form, NodeType
from trunkline.actors.engine.nodes import NODE_TYPES, loop
from trunkline.actors.engine.settings import TextSetting

pytestmark = pytest.mark.slow


FEW = ("plain", "all, paths", "all, all", "long texts")
"""What is fed of each type: each setting alone, and each option, are left to the long form."""


COPIED_BYTES: Final = 16 * 1024 * 1024
"""What the passes of a loop copy together, a sixteenth of the usual: each turn of a pass is as long as the first."""
TYPES: Final = 8
"""Of nodes in one test, so that none takes long on a busy machine, and several processes share them."""


def batches() -> list[tuple[str, ...]]:
    """The types of nodes in parts of the same category."""
    found: list[tuple[str, ...]] = []
    for category in get_args(Category):
        types = [each for each, type in NODE_TYPES.items() if type.form.category == category]
        found += [tuple(types[at : at + TYPES]) for at in range(0, len(types), TYPES)]
    return found


@pytest.mark.parametrize("types", batches(), ids=lambda types: f"{types[0]} to {types[-1]}")
async def test_the_worst_inputs_of_each_node_do_not_hold_the_loop(
    types: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [each for each in cases() if each.type in types and each.label in FEW]
    meter = LoopMeter()
    monkeypatch.setattr(loop, "COPIED_BYTES_MAX", COPIED_BYTES)
    long, unreached = [], []
    with resting_collector():
        async with running_server(tmp_path / "data", **SETTINGS) as server, silent_socket() as socket:
            with meter.running():
                async for result in Bench(server, meter, socket).results(few, ("objects",)):
                    if result.is_unreached:
                        unreached.append(result.case.type)
                    if result.held.ms > GENEROUS * LIMIT_MS:
                        long.append((result.held.ms, result.case.type, result.case.label, result.value))
    assert long == [], "milliseconds of the loop, type, what is at its worst, value"
    assert unreached == [], "these fail with what is usual: say in EXAMPLES of worst_nodes.py what they need"


def test_a_new_kind_of_settings_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = TextSetting("colour", is_needed=True)
    monkeypatch.setattr(setting, "kind", "rainbow")
    new = NodeType(lambda _config: lambda _visit: 0, Form("logic", (setting,)))
    monkeypatch.setitem(NODE_TYPES, "NewNode", new)
    with pytest.raises(AssertionError, match="there is a new kind of settings, rainbow"):
        list(cases("NewNode"))
