"""A bound on lines of a log: so many a minute, and how many were left out."""

from __future__ import annotations

from trunkline.limits.log_lines import LogLines


def test_lines_above_the_bound_are_counted_in_the_next_one() -> None:
    lines = LogLines(2)
    assert [lines.take(0), lines.take(1), lines.take(2), lines.take(3)] == [{}, {}, None, None]
    assert lines.take(60) == {"left_out": 2}
    assert lines.take(61) == {}
