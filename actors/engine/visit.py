"""What a node is given: its visit, and the run that the visit belongs to.

Owns the state of one run. Does not own the order of visits (`executor.py`) nor what a node does (`nodes/`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple, Protocol

from trunkline.actors.engine.errors import NodeError
from trunkline.actors.scripts.pool import ScriptResult

DEBUG_MESSAGES_MAX: Final = 1_000
"""Messages of debug nodes that a run keeps."""


class Bounds(NamedTuple):
    """How much one run may do."""

    steps: int
    """Visits of nodes."""
    loop_items: int
    payload_bytes: int


class Step(NamedTuple):
    """One visit that is over: the index of the node, the output it chose, and its time in microseconds."""

    node: int
    output: int
    took_us: int


class Debugged(NamedTuple):
    """What a debug node tells."""

    node: int
    level: str
    message: str
    value: Any


class CallScript(Protocol):
    """Runs a script with a value, in the name of an application."""

    async def __call__(self, script: str, value: Any, /) -> ScriptResult:
        """Raises `ScriptError`."""


@dataclass(slots=True)
class Run:
    """One run. Its clock and its random numbers are given, so that a second run of the same kind decides alike."""

    bounds: Bounds
    now_ms: int
    random: Random
    call_script: CallScript
    identity: dict[str, Any]
    """What nodes may know of the workflow: applicationId, flowId, and others as they stand in the payload."""
    path: list[Step] = field(default_factory=list)
    debugged: list[Debugged] = field(default_factory=list)
    snapshots: list[Any] | None = None
    """The payload after each step, in a dry run."""

    def tell(self, message: Debugged) -> None:
        """Keep the message of a debug node; those beyond the bound are dropped."""
        if len(self.debugged) < DEBUG_MESSAGES_MAX:
            self.debugged.append(message)


class Capped(NamedTuple):
    """How one pass of a loop ended: whether the loop ends as well, what is mapped, and the payload."""

    is_break: bool
    value: Any
    payload: Any


class Visit:
    """One visit of a node, on one path through the program. Steps change `payload` in place, or replace it."""

    __slots__ = ("capped", "node", "payload", "run", "walk")

    def __init__(self, run: Run, payload: Any, walk: Walk) -> None:
        self.run = run
        self.payload = payload
        self.walk = walk
        """Runs a part of the program within a node, such as the body of a loop."""
        self.node = -1
        self.capped: Capped | None = None

    def put(self, path: Any, value: Any) -> None:
        """Set a value in the payload; `path` None is a node without a result path."""
        if path is not None:
            self.payload = path.set(self.payload, value)


class Walk(Protocol):
    """Runs a part of a program to its end."""

    async def __call__(self, visit: Visit, output: int, payload: Any) -> Capped | None:
        """Run what follows an output of the visited node; return how the pass ended, None without a cap."""


NodeStep = Callable[[Visit], Any]
"""Does the work of a node: returns the index of the output to follow, or an awaitable of it."""

Prepare = Callable[[dict[str, Any]], NodeStep]
"""Makes the step of a node from its config."""

END: Final = -1
"""The path ends here."""


def refused(message: str) -> NodeError:
    """The error of a node whose configuration or payload does not fit."""
    return NodeError("ValidationError", message)
