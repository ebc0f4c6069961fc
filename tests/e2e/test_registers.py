"""The check of histories finds what no register could have done, and nothing else."""

from __future__ import annotations

import math
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.registers import Operation, violations


def is_linearizable(history: list[Operation]) -> bool:
    """Try all orders, with and without each write that has no answer."""
    unanswered = [each for each in history if each.ended_s == math.inf]
    for chosen in range(2 ** len(unanswered)):
        dropped = [each for n, each in enumerate(unanswered) if chosen >> n & 1]
        kept = [each for each in history if each not in dropped]
        if any(_is_legal(order) for order in permutations(kept)):
            return True
    return False


def _is_legal(order: tuple[Operation, ...]) -> bool:
    value = 0
    for at, each in enumerate(order):
        if any(later.ended_s < each.began_s for later in order[at + 1 :]):
            return False
        if each.writes:
            value = each.value
        elif each.value != value:
            return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to five calls, of which no two begin or end at the same time."""
    count = draw(st.integers(1, 5))
    moments = draw(st.permutations([float(n) for n in range(2 * count)]))
    writes = draw(st.integers(0, count))
    found = []
    for n in range(count):
        began_s, ended_s = sorted(moments[2 * n : 2 * n + 2])
        if n < writes:
            unanswered = draw(st.booleans())
            found.append(Operation(n + 1, began_s, math.inf if unanswered else ended_s, writes=True))
        else:
            found.append(Operation(draw(st.integers(0, writes)), began_s, ended_s, writes=False))
    return found


@given(histories())
def test_the_check_agrees_with_all_orders(history: list[Operation]) -> None:
    assert (not violations(history)) is is_linearizable(history)


def test_a_read_that_is_older_than_another_one_is_found() -> None:
    history = [
        Operation(1, 0, 1, writes=True),
        Operation(2, 2, math.inf, writes=True),
        Operation(2, 3, 4, writes=False),
        Operation(1, 5, 6, writes=False),
    ]
    assert violations(history)
    assert not violations(history[:3])
