"""Whatever a workflow is given, no node holds the event loop for long: the short form.

The long form is `python -m tests.e2e.worst_flows`.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.actors.core.formulas.worst_values import GENEROUS
from tests.e2e.conftest import running_server
from tests.e2e.loop_meter import LoopMeter
from tests.e2e.worst_flows import LIMIT_MS, SETTINGS, Bench, resting_collector
from tests.e2e.worst_nodes import cases
from trunkline.actors.engine.node_settings import FORMS, Category, Form, Setting

pytestmark = pytest.mark.slow


FEW = ("plain", "all, paths", "all, all", "long texts")
"""What is fed of each type: each setting alone, and each option, are left to the long form."""


@pytest.mark.parametrize("category", get_args(Category))
async def test_the_worst_inputs_of_each_node_do_not_hold_the_loop(category: Category, tmp_path: Path) -> None:
    few = [each for each in cases() if FORMS[each.type].category == category and each.label in FEW]
    meter = LoopMeter()
    long, unreached = [], []
    with resting_collector():
        async with running_server(tmp_path / "data", **SETTINGS) as server:
            with meter.running():
                async for result in Bench(server, meter).results(few, ("objects",)):
                    if result.is_unreached:
                        unreached.append(result.case.type)
                    if result.held.ms > GENEROUS * LIMIT_MS:
                        long.append((result.held.ms, result.case.type, result.case.label, result.value))
    assert long == [], "milliseconds of the loop, type, what is at its worst, value"
    assert unreached == [], "these fail with what is usual: say in EXAMPLES of worst_nodes.py what they need"


def test_a_new_kind_of_settings_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting("colour", "rainbow", is_needed=True)  # type: ignore[arg-type]
    monkeypatch.setitem(FORMS, "NewNode", Form("logic", (setting,)))
    with pytest.raises(AssertionError, match="there is a new kind of settings, rainbow"):
        list(cases("NewNode"))
