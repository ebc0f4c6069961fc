"""The head of a device: many reports at once mean what each of them means in turn."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.fleet.devices.state.head import TEXT_CHARS_MAX, Head

values = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5))
long_texts = st.just("x" * (TEXT_CHARS_MAX + 1))
points = st.dictionaries(st.integers(-2, 3), values | long_texts, max_size=4)
reports = st.lists(st.tuples(st.integers(0, 20), points), max_size=8)


def contents(head: Head) -> dict[str, Any]:
    return {slot: getattr(head, slot) for slot in Head.__slots__}


@given(before=reports, together=reports, forward=st.booleans())
def test_reports_together_are_reports_one_after_the_other(
    before: list[tuple[int, dict[int, Any]]], together: list[tuple[int, dict[int, Any]]], forward: bool
) -> None:
    if forward:
        together.sort(key=lambda report: report[0])
    one, other = Head(), Head()
    for head in (one, other):
        for time_ms, point in before:
            head.report(time_ms, point)
    one.report_all(together)
    for time_ms, point in together:
        other.report(time_ms, point)
    assert contents(one) == contents(other)


@given(
    reported=reports,
    counts=st.dictionaries(st.sampled_from(["deviceState", "deviceCommand"]), st.integers(1, 2**40)),
    numbers=st.lists(st.integers(0, 2**50), min_size=3, max_size=3),
)
def test_a_head_comes_back_as_it_was_stored(
    reported: list[tuple[int, dict[int, Any]]], counts: dict[str, int], numbers: list[int]
) -> None:
    head = Head()
    head.seq, head.command_ms, head.hour = numbers
    head.counts = counts
    for time_ms, point in reported:
        head.report(time_ms, point)
    assert contents(Head.decoded(head.encoded())) == contents(head)


def test_a_device_that_was_never_heard_of_has_a_fresh_head() -> None:
    assert contents(Head.decoded(None)) == contents(Head())
