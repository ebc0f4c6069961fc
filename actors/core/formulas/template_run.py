"""One evaluation of a template: its bounds, what it has written, and what names mean at a place.

Its work is charged to the budget of the work at hand (`price.py`), without one to a budget of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.long_texts import joined
from trunkline.actors.core.formulas.price import Budget, current
from trunkline.actors.core.formulas.values import UNDEFINED, strict_equal


class Run:
    """One evaluation: what was written and what is left of its bounds."""

    __slots__ = (
        "arguments",
        "budget",
        "characters_left",
        "host",
        "now_ms",
        "partials",
        "partials_deep",
        "pieces",
        "root",
        "within",
    )

    def __init__(self, root: Any, text_length_max: int, now_ms: int | None) -> None:
        self.root = root
        self.pieces: list[str] = []
        self.characters_left = text_length_max
        self.budget = current() or Budget()
        self.now_ms = now_ms
        # Whether this evaluates a text that a helper took from a payload.
        self.within = False
        self.host: Any = None
        """What the helpers of a dialect work with."""
        self.arguments: Any = UNDEFINED
        """The value of `@args`."""
        self.partials: dict[str, Any] = {}
        """What partials are known at this place, by name."""
        self.partials_deep = 0

    def write(self, text: str) -> None:
        self.characters_left -= len(text)
        if self.characters_left < 0:
            raise too_long()
        self.pieces.append(text)

    def captured(self, write: Callable[[], None]) -> str:
        """What `write` writes, as a text that is not part of the result yet. It counts for itself."""
        outer, self.pieces = self.pieces, []
        try:
            write()
            return joined(self.pieces)
        finally:
            self.pieces = outer

    def spend(self, steps: int) -> None:
        budget = self.budget
        budget.left -= steps
        if budget.left < 0:
            budget.used_up()

    def clock(self) -> int:
        """The time of this run in milliseconds: the same at each call."""
        if self.now_ms is None:
            self.now_ms = time.time_ns() // 1_000_000
        return self.now_ms


class Frame:
    """The `@` variables of a pass of a loop."""

    __slots__ = ("above", "first", "index", "key", "last")

    def __init__(self, above: Frame | None) -> None:
        self.above = above
        self.key: Any = UNDEFINED
        self.index: Any = UNDEFINED
        self.first: Any = UNDEFINED
        self.last: Any = UNDEFINED


class Scope:
    """What names mean at a place: `this`, the scopes for `../`, the loop's variables, block parameters."""

    __slots__ = ("above", "frame", "parameters", "run", "this")

    def __init__(self, run: Run, this: Any, above: Scope | None) -> None:
        self.run = run
        self.this = this
        self.above = above
        self.frame: Frame | None = above.frame if above is not None else None
        # The innermost block with parameters first: (its values, those of the blocks around it).
        self.parameters: tuple[Any, ...] = above.parameters if above is not None else ()

    def enter(self, this: Any) -> Scope:
        """The scope of a block whose `this` is another value. As in Handlebars, an equal value is no level of `../`."""
        scope = Scope(self.run, this, self)
        if strict_equal(this, self.this) or (is_nothing(this) and is_nothing(self.this)):
            scope.above = self.above
        return scope


Write = Callable[[Scope], None]
Evaluate = Callable[[Scope], Any]


def too_long() -> EvaluationError:
    return EvaluationError("The text of the template is longer than its limit.")


def is_nothing(value: Any) -> bool:
    return value is None or value is UNDEFINED


def variable_of(name: str, get: Callable[[Any], Any], depth: int) -> Evaluate:
    """A variable with `@`: of the root, or of the loop `depth` loops further out."""
    if name == "root":
        return lambda scope: get(scope.run.root)
    if name == "args":
        return lambda scope: get(scope.run.arguments)
    if name not in ("key", "index", "first", "last"):
        return lambda _: UNDEFINED

    def variable(scope: Scope) -> Any:
        frame = scope.frame
        for _ in range(depth):
            frame = frame.above if frame is not None else None
        return UNDEFINED if frame is None else get(getattr(frame, name))

    return variable
