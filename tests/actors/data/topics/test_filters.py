"""Filters of topics: what they select, and which of them are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.topics.filters import check_form, matches


@pytest.mark.parametrize(
    ("filter", "selected", "others"),
    [
        ("a", ["a"], ["b", "a/b", "/a", "a/", "A"]),
        ("a/+", ["a/b", "a/"], ["a", "a/b/c", "b/a"]),
        ("+", ["a", ""], ["a/b", "/a", "$a"]),
        ("+/+", ["a/b", "/a", "a/"], ["a", "a/b/c", "$a/b"]),
        ("#", ["a", "a/b/c", "/"], ["$SYS", "$SYS/a"]),
        ("a/#", ["a", "a/b", "a/b/c"], ["b", "ab"]),
        ("+/b/#", ["a/b", "a/b/c/d"], ["a", "a/c/b", "$a/b"]),
        ("$SYS/#", ["$SYS", "$SYS/a"], ["a", "SYS/a"]),
        ("a/+/c", ["a/b/c", "a//c"], ["a/c", "a/b/c/d"]),
    ],
)
def test_what_a_filter_selects(filter: str, selected: list[str], others: list[str]) -> None:
    check_form(filter, "topic")
    assert [topic for topic in selected + others if matches(filter, topic)] == selected


@pytest.mark.parametrize("filter", ["a#", "a/#/b", "a+/b", "++", "##", "#/", "a/b#"])
def test_a_wildcard_stands_for_whole_levels(filter: str) -> None:
    with pytest.raises(Invalid, match="topic: "):
        check_form(filter, "topic")


LEVELS = st.lists(st.sampled_from(["a", "b", "", "+"]), min_size=1, max_size=4)


@given(LEVELS, st.booleans(), st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=4))
def test_a_filter_selects_what_its_levels_say_one_by_one(
    wanted: list[str], rest: bool, levels: list[str]
) -> None:
    def selects(wanted: list[str], levels: list[str]) -> bool:
        if not wanted:
            return rest or not levels
        return bool(levels) and wanted[0] in ("+", levels[0]) and selects(wanted[1:], levels[1:])

    filter = "/".join([*wanted, "#"] if rest else wanted)
    assert matches(filter, "/".join(levels)) == selects(wanted, levels)
