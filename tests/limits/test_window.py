"""The window allows exactly the promised number of calls, in any interval (promise 4)."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trunkline.limits.table import Rate
from trunkline.limits.window import SlidingWindow, Verdict

# The same examples on every run, and no deadline: a slow machine breaks no promise.
repeatable = settings(derandomize=True, deadline=None, max_examples=300)


class Oracle:
    """The definition in its simplest form: store every allowed call, count those still in the window."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.passed: list[float] = []
        self.latest = -math.inf

    def counted(self, now: float) -> list[float]:
        self.latest = max(self.latest, now)
        return [then for then in self.passed if not self.latest - then >= self.rate.window_s]

    def allow(self, now: float) -> tuple[bool, int]:
        counted = self.counted(now)
        if len(counted) >= self.rate.calls:
            return False, 0
        self.passed.append(self.latest)
        return True, self.rate.calls - len(counted) - 1


rates = st.builds(
    Rate,
    calls=st.integers(1, 8),
    window_s=st.one_of(
        st.sampled_from([0.1, 0.3, 1.0, 15.0, 1e-9, 86_400.0]),
        st.floats(1e-3, 1000.0, allow_subnormal=False),
    ),
)
starts = st.one_of(st.sampled_from([0.0, -15.0, 0.1, 1e9, 1.7e12, 2.0**53, 1e17]), st.floats(-1e6, 1e6))
# Steps in fractions of the window, so that calls often fall on an edge, a float beside it, or backwards.
steps = st.lists(
    st.one_of(
        st.sampled_from([0.0, 1.0, 0.5, 0.25, 1 / 3, 0.1, 2.0, -0.5, -2.0]),
        st.floats(-0.2, 1.2),
    ),
    max_size=60,
)


@repeatable
@given(rates, starts, steps)
@example(Rate(3, 0.3), 0.1, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
def test_every_verdict_is_that_of_the_definition(rate: Rate, start: float, moves: list[float]) -> None:
    window, oracle, now = SlidingWindow(rate), Oracle(rate), start
    for move in moves:
        now += move * rate.window_s
        counted = oracle.counted(now)
        peeked = window.peek(now)
        assert (peeked.allowed, peeked.remaining) == (len(counted) < rate.calls, rate.calls - len(counted))
        assert window.empty(now) == (not counted)
        verdict = window.allow(now)
        assert (verdict.allowed, verdict.remaining) == oracle.allow(now)
        assert (verdict.limit, verdict.window_s) == (rate.calls, rate.window_s)


@repeatable
@given(rates, starts, steps)
def test_without_peeking_in_between_the_verdicts_are_the_same(
    rate: Rate, start: float, moves: list[float]
) -> None:
    window, oracle, now = SlidingWindow(rate), Oracle(rate), start
    for move in moves:
        now += move * rate.window_s
        verdict = window.allow(now)
        assert (verdict.allowed, verdict.remaining) == oracle.allow(now)


@repeatable
@given(
    st.floats(-1e6, 1e6),
    st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=31, max_size=31).map(sorted),
)
def test_of_31_calls_in_a_window_30_pass_and_the_31st_when_the_first_leaves(
    start: float, offsets: list[float]
) -> None:
    window = SlidingWindow(Rate(30, 15.0))
    moments = [start + 14.9 * offset for offset in offsets]
    assert [window.allow(now).allowed for now in moments] == [True] * 30 + [False]

    leaves = moments[0] + 15.0
    while leaves - moments[0] < 15.0:
        leaves = math.nextafter(leaves, math.inf)
    while math.nextafter(leaves, -math.inf) - moments[0] >= 15.0:
        leaves = math.nextafter(leaves, -math.inf)
    assert not window.allow(math.nextafter(leaves, -math.inf)).allowed
    assert window.allow(leaves).allowed
    # One left, one came: the next passes only when the second of the first thirty leaves.
    assert window.allow(leaves).allowed == (leaves - moments[1] >= 15.0)


@repeatable
@given(rates, starts, steps)
def test_a_call_after_the_reset_time_is_allowed(rate: Rate, start: float, moves: list[float]) -> None:
    window, now = SlidingWindow(rate), start
    for move in moves:
        now += abs(move) * rate.window_s
        verdict = window.allow(now)
        assert verdict.reset_s > 0
        if not verdict.allowed:
            assert window.peek(now + verdict.reset_s).allowed
            now += verdict.reset_s


@repeatable
@given(rates, starts, steps)
def test_no_interval_ever_holds_more_passed_calls_than_the_rate(
    rate: Rate, start: float, moves: list[float]
) -> None:
    window, now, passed = SlidingWindow(rate), start, []
    for move in moves:
        now += abs(move) * rate.window_s
        if window.allow(now).allowed:
            passed.append(now)
    for first, later in zip(passed, passed[rate.calls :], strict=False):
        assert later - first >= rate.window_s


def test_refused_calls_do_not_count() -> None:
    window = SlidingWindow(Rate(1, 10.0))
    assert window.allow(0.0).allowed
    assert not any(window.allow(t / 10).allowed for t in range(1, 100))
    assert window.allow(10.0).allowed


def test_verdicts_tell_what_is_left_and_when_it_refills() -> None:
    window = SlidingWindow(Rate(2, 15.0))
    assert window.peek(100.0) == Verdict(True, 2, 2, 15.0, 0.0)
    assert window.allow(100.0) == Verdict(True, 2, 1, 15.0, 15.0)
    assert window.allow(104.0) == Verdict(True, 2, 0, 15.0, 11.0)
    assert window.allow(105.0) == Verdict(False, 2, 0, 15.0, 10.0)
    assert window.peek(115.0) == Verdict(True, 2, 1, 15.0, 4.0)
    assert window.allow(115.0) == Verdict(True, 2, 0, 15.0, 4.0)


def test_a_clock_that_goes_backwards_neither_frees_nor_loses_calls() -> None:
    window = SlidingWindow(Rate(2, 10.0))
    assert window.allow(100.0).allowed
    assert window.allow(50.0).allowed  # counted at 100
    assert not window.allow(109.0).allowed
    assert not window.allow(0.0).allowed
    assert not window.empty(0.0)
    assert window.allow(110.0).allowed


def test_a_moment_that_is_no_number_is_read_as_the_latest_seen() -> None:
    window = SlidingWindow(Rate(1, 10.0))
    assert window.allow(5.0).allowed
    assert not window.allow(math.nan).allowed
    assert window.allow(15.0).allowed


def test_sums_that_round_do_not_open_the_window_early() -> None:
    # 0.1 + 0.2 is above 0.3, yet 0.30000000000000004 - 0.1 is 0.20000000000000004: compared as a difference.
    window = SlidingWindow(Rate(1, 0.2))
    assert window.allow(0.1).allowed
    assert not window.allow(0.29999999999999993).allowed
    assert window.allow(0.1 + 0.2).allowed


def test_the_difference_decides_where_the_sum_rounds_up() -> None:
    oldest, window_s, now = -0.7312715117751976, 0.8, 0.06872848822480247
    assert now - oldest >= window_s
    assert now < oldest + window_s
    window = SlidingWindow(Rate(1, window_s))
    assert window.allow(oldest).allowed
    assert window.allow(now).allowed


def test_the_reset_time_is_sufficient_if_adding_it_rounds_down() -> None:
    oldest, window_s, now = -0.4952837954403293, 1.8, -0.09928379544032928
    assert now + (oldest + window_s - now) < oldest + window_s
    window = SlidingWindow(Rate(1, window_s))
    assert window.allow(oldest).allowed
    refused = window.allow(now)
    assert not refused.allowed
    assert window.allow(now + refused.reset_s).allowed


def test_empty_means_that_forgetting_the_window_changes_nothing() -> None:
    window = SlidingWindow(Rate(30, 15.0))
    assert window.empty(0.0)
    window.allow(0.0)
    window.allow(1.0)
    assert not window.empty(15.0)
    assert not window.empty(math.nextafter(16.0, 0.0))
    assert window.empty(16.0)


def test_memory_is_bounded_by_the_rate_and_grows_only_with_use() -> None:
    window = SlidingWindow(Rate(30, 15.0))
    assert len(window._ring) == 0
    for second in range(0, 100_000, 20):  # never two calls in a window
        window.allow(float(second))
    assert len(window._ring) == 1
    for start in range(100_000, 110_000, 100):  # three calls, of which the first leaves before the third
        for offset in (0.0, 10.0, 16.0):
            assert window.allow(start + offset).allowed
    assert len(window._ring) == 3
    for tenth in range(20_000):
        window.allow(200_000.0 + tenth / 10)
    assert len(window._ring) == 30
    assert sys.getsizeof(window) + sys.getsizeof(window._ring) < 512


def test_a_verdict_cannot_be_changed() -> None:
    verdict = SlidingWindow(Rate(1, 1.0)).allow(0.0)
    with pytest.raises(AttributeError):
        verdict.allowed = False  # type: ignore[misc]
