"""What work for a tenant costs while it runs: a budget of steps, which everything that grows with a payload spends.

A step is about a microsecond: an item that a loop looks at, or `CHARACTERS_A_STEP` characters that go through C. The
budget of the work at hand is found by its context (`charged`), so that a conversion deep within an operator charges as
well as the helper of a template. What is computed without a budget has one of its own, and is never too long at once.

In the event loop a computation may take `INLINE_STEPS`. One that takes more ends with `TakesLong`, which says what was
to be computed; whoever gave the budget computes it in a thread and repeats its work, to which `computed` then gives
the value that is known. So what is given to `computed` must be pure, and what has effects comes behind it. In a thread
it is looked every `LOOK_STEPS` whether anybody still waits, and the whole is bounded by `WHOLE_STEPS`.

Owns the counting. Does not own threads (`engine/heavy_work.py`), and does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import partial
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError

INLINE_STEPS: Final = 1_000
"""Steps in the event loop: about a millisecond."""
LOOK_STEPS: Final = 2_000
"""Steps in a thread until it is looked whether the work still goes on."""
WHOLE_STEPS: Final = 2_000_000
"""Steps of all that one visit of a node, one page or one value of a report computes: some seconds in a thread."""
CHARACTERS_A_STEP: Final = 256
"""Characters for a step where a function of C goes through a text."""


class TakesLong(Exception):
    """The work does not fit into the turn of the event loop. `work` computes what was to be computed."""

    work: Callable[[], Any] | None = None


class Budget:
    """The steps that are left to one piece of work, and what it has computed already."""

    __slots__ = ("_at", "_computes", "_known", "_look", "_whole", "left", "owner")

    def __init__(self, owner: bytes = b"") -> None:
        self.owner = owner
        """Who is charged, for the share of threads."""
        self.left = 0
        """Steps until somebody has to look."""
        self._whole = 0
        self._look: Callable[[], None] | None = None
        self._known: list[tuple[Any, Exception | None]] = []
        self._at = 0
        self._computes = False
        self.begin()

    def begin(self) -> None:
        """Begin with another piece of work in the event loop."""
        self.left = INLINE_STEPS
        self._whole = WHOLE_STEPS - INLINE_STEPS
        if self._known:
            self._known = []
        self._at = 0

    def again(self) -> None:
        """Begin the same piece of work again, in another turn of the event loop."""
        self._grant(INLINE_STEPS)
        self._at = 0

    def keep(self) -> None:
        """A part of the work is done and will not be repeated."""
        self._known.clear()
        self._at = 0

    def spend(self, steps: int) -> None:
        """Charge some steps. Raises `TakesLong` in the event loop, and `EvaluationError` over the whole."""
        self.left -= steps
        if self.left < 0:
            self.used_up()

    def computed(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """What the work gives or raises, computed once however often it is begun again."""
        if self._computes or self._look is not None:
            return work(*arguments)
        at = self._at
        self._at = at + 1
        if at < len(self._known):
            value, error = self._known[at]
            if error is not None:
                raise error
            return value
        self._computes = True
        try:
            value = work(*arguments)
        except TakesLong as long:
            long.work = partial(work, *arguments)
            raise
        finally:
            self._computes = False
        self._known.append((value, None))
        return value

    def compute_in_thread(self, work: Callable[[], Any], look: Callable[[], None]) -> None:
        """Compute what did not fit into the event loop, for the next beginning. Errors are kept for it, too."""
        try:
            self._known.append((self.in_thread(work, look), None))
        except Exception as error:  # noqa: BLE001 - it is raised where the work is begun again
            self._known.append((None, error))

    def in_thread(self, work: Callable[[], Any], look: Callable[[], None]) -> Any:
        """What the work gives, in a thread. `look` is called at times, and raises if nobody waits any more."""
        self._look = look
        self._grant(LOOK_STEPS)
        try:
            return work()
        finally:
            self._look = None

    def used_up(self) -> None:
        """Look what becomes of work that has spent what it was given."""
        if self._whole + self.left < 0:
            raise EvaluationError(f"This takes more than {WHOLE_STEPS} steps of work.")
        if self._look is not None:
            self._look()
            self._grant(LOOK_STEPS)
        elif self._computes:
            self.left = 0  # what does not fit is not done, and charged where it is
            raise TakesLong

    def _grant(self, steps: int) -> None:
        """Make a part of the whole available, in place of what is available now."""
        self._whole += self.left
        granted = min(steps, max(0, self._whole))
        self._whole -= granted
        self.left = granted


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)

current: Final = _BUDGET.get
"""The budget of the work at hand; None if it has none."""


def spend(steps: int) -> None:
    """Charge the work at hand."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            budget.used_up()


def computed(work: Callable[..., Any], *arguments: Any) -> Any:
    """What pure work gives, in the price of the work at hand (`Budget.computed`)."""
    budget = _BUDGET.get()
    if budget is not None:
        return budget.computed(work, arguments)
    return whole(partial(work, *arguments), lambda: None)


def long_work(work: Callable[..., Any], *arguments: Any) -> Any:
    """The same for work that is known to be too long for the event loop."""
    return computed(_long, work, arguments)


def _long(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    spend(INLINE_STEPS + 1)
    return work(*arguments)


def enter(budget: Budget | None) -> Token[Budget | None]:
    """Charge the work of the task to this budget from now on, until `leave` with what this returns."""
    return _BUDGET.set(budget)


leave: Final = _BUDGET.reset


@contextmanager
def charged(budget: Budget | None) -> Iterator[None]:
    """Within, the work is charged to this budget. In a task and in the threads that it starts."""
    token = _BUDGET.set(budget)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def inline(work: Callable[..., Any], *arguments: Any) -> Any:
    """What some work gives that has nobody who would do it in a thread. Raises `TakesLong` if it is too long."""
    budget = Budget()
    token = _BUDGET.set(budget)
    try:
        return budget.computed(work, arguments)
    finally:
        _BUDGET.reset(token)


def whole(work: Callable[..., Any], look: Callable[[], None]) -> Any:
    """What some work gives in a thread, from its beginning and with the whole budget."""
    budget = Budget()
    with charged(budget):
        return budget.in_thread(work, look)
