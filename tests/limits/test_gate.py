"""A gate lets exactly n in for each key, forgets nobody and remembers no key longer than it is held."""

from __future__ import annotations

from collections import Counter

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.limits.errors import GateClosed
from trunkline.limits.gate import Gate


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=50))
def test_at_most_n_hold_a_key(holders_max: int, moves: list[tuple[str, bool]]) -> None:
    gate, inside = Gate(holders_max), Counter[str]()
    for key, entering in moves:
        if entering:
            entered = gate.enter(key)
            assert entered == (inside[key] < holders_max)
            inside[key] += entered
        elif inside[key]:
            gate.leave(key)
            inside[key] -= 1
        else:
            with pytest.raises(RuntimeError, match="nobody holds"):
                gate.leave(key)
        assert all(gate.held(each) == inside[each] for each in "abc")
    assert len(gate._held) == sum(1 for count in inside.values() if count)


def test_hold_gives_the_place_back_also_after_an_error() -> None:
    gate = Gate(1)

    def fail_inside() -> None:
        with gate.hold("export"):
            assert gate.held("export") == 1
            raise KeyError("export")

    with pytest.raises(KeyError):
        fail_inside()
    assert gate.held("export") == 0


def test_hold_refuses_at_once_and_leaves_the_holder_in() -> None:
    gate = Gate(1)
    with gate.hold("export"):
        with pytest.raises(GateClosed) as caught, gate.hold("export"):
            pytest.fail("two hold a gate for one")
        assert (caught.value.key, caught.value.holders_max) == ("export", 1)
        assert gate.held("export") == 1
        with gate.hold("another"):
            assert gate.held("another") == 1


async def test_a_cancelled_holder_gives_its_place_back() -> None:
    gate = Gate(1)
    with trio.CancelScope() as scope, gate.hold("export"):
        scope.cancel()
        await trio.sleep_forever()
    assert scope.cancelled_caught
    assert gate.held("export") == 0


def test_a_gate_that_nobody_could_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Gate(0)
