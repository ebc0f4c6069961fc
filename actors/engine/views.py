"""What a dry run is shown as."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from trunkline.actors.core.values.structs import View


class _AtNode(View, frozen=True, kw_only=True):
    """The node that something is about."""

    node_id: str
    node_type: str
    node_label: str


class TestStep(_AtNode, frozen=True, kw_only=True):
    """One visit of a node: the output that it chose, its time in microseconds, and the payload after it."""

    output: int
    took_us: int
    payload: Any | UnsetType = UNSET


class TestDebug(_AtNode, frozen=True, kw_only=True):
    """A message of a debug node."""

    level: str
    message: str
    value: Any


class TestNote(_AtNode, frozen=True, kw_only=True):
    """Something that a node ignored, and how often."""

    message: str
    count: int


class TestProblem(_AtNode, frozen=True, kw_only=True):
    """Why a node cannot run, or what it ignores, whether it was reached or not."""

    message: str


class TestError(_AtNode, frozen=True, kw_only=True):
    """Why the run has failed."""

    name: str
    message: str


class TestResult(View, frozen=True, kw_only=True):
    """A dry run: its steps in their order, what debug nodes told, and the error that ended it, if there was one."""

    steps: list[TestStep]
    debug: list[TestDebug]
    notes: list[TestNote]
    problems: list[TestProblem]
    left_out: str | UnsetType = UNSET
    error: TestError | UnsetType = UNSET
