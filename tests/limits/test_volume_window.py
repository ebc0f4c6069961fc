"""The window over a volume allows exactly the promised number of items, in any interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.limits.errors import SettingsError
from trunkline.limits.table import Limits, Rate
from trunkline.limits.volume_window import VolumeWindow

repeatable = settings(derandomize=True, deadline=None, max_examples=300)
rates = st.builds(Rate, calls=st.integers(4, 20), window_s=st.sampled_from([0.1, 0.3, 1.0, 15.0]))
starts = st.sampled_from([0.0, -15.0, 0.1, 1e9, 1.7e12])
steps = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 0.1, 2.0, -0.5]),
            st.floats(-0.2, 1.2, allow_subnormal=False),
        ),
        st.integers(1, 4),
    ),
    max_size=60,
)


@repeatable
@given(rates, starts, steps)
def test_every_verdict_is_that_of_the_definition(
    rate: Rate, start: float, moves: list[tuple[float, int]]
) -> None:
    window, now, latest = VolumeWindow(rate), start, -math.inf
    passed: list[tuple[float, int]] = []
    for move, items in moves:
        now += move * rate.window_s
        latest = max(latest, now)
        counted = sum(count for time_s, count in passed if latest - time_s < rate.window_s)
        assert (window.peek(now).allowed, window.empty(now)) == (counted < rate.calls, not counted)
        verdict = window.allow(now, items)
        assert verdict.allowed == (counted + items <= rate.calls)
        assert (verdict.limit, verdict.window_s) == (rate.calls, rate.window_s)
        assert verdict.remaining == rate.calls - counted - items * verdict.allowed
        assert verdict.reset_s > 0
        if not verdict.allowed:
            now = latest = latest + verdict.reset_s
            assert window.allow(now, items).allowed, "that is after how long it is allowed"
        passed.append((latest, items))


def test_a_budget_below_one_call_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"backlog_states.calls is below backlog_batch_states_max \(1000\)"
    ):
        Limits().override({"backlog_states": {"calls": 999, "window_s": 1}})
