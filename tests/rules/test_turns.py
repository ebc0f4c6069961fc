"""The longest turns of a run of tests are told by operation, without what the collector took."""

from __future__ import annotations

import json

from tests.turns import Group, grouped
from trunkline.actors.core.runtime.loop_watch import LongTurn


def line(cpu_ms: float, kind: str, name: str, test: str) -> str:
    return json.dumps([*LongTurn(0, 100.0, cpu_ms, 1.0, kind, name, "", None, None, None, ""), test])


def test_turns_are_told_by_operation_the_worst_first() -> None:
    lines = [
        line(8, "call", "flows.post", "one"),
        line(12, "run", "a flow", "two"),
        line(30, "call", "flows.post", "three"),
        line(11, "run", "another flow", "four"),
    ]
    assert grouped(lines) == [
        Group("call", "flows.post", 2, 29, 100, "three"),
        Group("run", "", 2, 11, 100, "two"),
    ]
