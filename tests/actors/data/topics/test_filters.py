"""Filters of topics: what they select, and which of them are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.topics.filters import (
    check_form,
    covers,
    matches,
    may_publish,
    may_subscribe,
    overlap,
)


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


@pytest.mark.parametrize(
    ("allowed", "wanted", "is_covered", "overlaps"),
    [
        ("a/b", "a/b", True, True),
        ("a/b", "a/c", False, False),
        ("a/+", "a/b", True, True),
        ("a/b", "a/+", False, True),
        ("a/#", "a", True, True),
        ("a", "a/#", False, True),
        ("a/#", "a/+/c/#", True, True),
        ("a/+", "a/#", False, True),
        ("+/b", "a/+", False, True),
        ("#", "+/x", True, True),
        ("+/x", "#", False, True),
        ("a/b", "a/b/c", False, False),
        ("a/b/c", "a/b", False, False),
        ("a/b/#", "a/c/#", False, False),
    ],
)
def test_filters_are_compared(allowed: str, wanted: str, *, is_covered: bool, overlaps: bool) -> None:
    assert covers(allowed, wanted) is is_covered
    assert overlap(allowed, wanted) is overlap(wanted, allowed) is overlaps
    assert may_subscribe("whitelist", ["other", allowed], wanted) is is_covered
    assert may_subscribe("blacklist", ["other", allowed], wanted) is not overlaps


@pytest.mark.parametrize(
    ("filter_type", "listed", "allowed"),
    [
        ("all", [], True),
        ("all", ["a/b"], True),
        ("none", ["a/b"], False),
        ("whitelist", [], False),
        ("whitelist", ["x", "a/+"], True),
        ("blacklist", [], True),
        ("blacklist", ["x", "a/+"], False),
    ],
)
def test_the_topics_of_a_key_allow_what_they_say(
    filter_type: str, listed: list[str], *, allowed: bool
) -> None:
    assert may_publish(filter_type, listed, "a/b") is allowed
    assert may_subscribe(filter_type, listed, "a/b") is allowed
