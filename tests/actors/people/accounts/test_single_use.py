"""A value is used once, however many others are used, and in whichever order of their numbers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.people.accounts.single_use import use


@given(numbers=st.lists(st.integers(0, 30), max_size=40), kept_max=st.integers(1, 6))
def test_no_value_is_used_twice_and_little_is_kept(numbers: list[int], kept_max: int) -> None:
    doc: dict[str, Any] = {}
    used: list[int] = []
    for number in numbers:
        if use(doc, "codes", number, str(number), kept_max):
            assert number not in used
            used.append(number)
        else:
            newer = [each for each in used if each >= number]
            assert number in used or len(newer) >= kept_max, (
                "only what is older than all that is kept is refused"
            )
        assert len(doc["codes"]["used"]) <= kept_max


def test_a_refused_value_changes_nothing() -> None:
    doc: dict[str, Any] = {}
    assert use(doc, "codes", 1, "a", 2)
    before = repr(doc)
    assert not use(doc, "codes", 5, "a", 2)
    assert repr(doc) == before
