"""Percentiles are at most 0.8 % above the exact ones, for any values, in memory that does not grow."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.bench.latency import LATENCY_MAX_S, LatencyRecorder


@given(
    values_us=st.lists(st.integers(0, 10**9), min_size=1, max_size=200),
    percent=st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]),
)
def test_percentiles_match_the_exact_ones(values_us: list[int], percent: float) -> None:
    recorder = LatencyRecorder()
    for value in values_us:
        recorder.record((value + 0.5) / 1e6)
    exact = sorted(values_us)[max(1, math.ceil(len(values_us) * percent / 100)) - 1]
    found = recorder.percentile(percent) * 1e6
    assert exact - 1e-3 <= found <= exact * (1 + 1 / 128) + 1e-3
    assert recorder.count == len(values_us)
    assert recorder.max_s == max(values_us) / 1e6
    assert recorder.mean_s == pytest.approx(sum(values_us) / len(values_us) / 1e6)


def test_the_ends_of_the_range_are_kept() -> None:
    recorder = LatencyRecorder()
    recorder.record(-1.0)
    recorder.record(LATENCY_MAX_S * 10)
    assert recorder.percentile(50) == 0
    assert recorder.max_s == pytest.approx(LATENCY_MAX_S)
    assert recorder.percentile(100) == recorder.max_s


def test_an_empty_recorder_answers_zero() -> None:
    recorder = LatencyRecorder()
    assert (recorder.percentile(99), recorder.mean_s, recorder.max_s) == (0.0, 0.0, 0.0)


def test_a_percentile_beyond_a_hundred_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 100"):
        LatencyRecorder().percentile(101)
