"""Routes of endpoints: what a route matches, which one is the most specific, and which two clash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.presentation.experience.routes import RouteTree, patterns

WORDS = ("a", "b")
segments = st.sampled_from([*WORDS, "{}"])
lasts = st.sampled_from(["", "{}", "{?}", "{*}"])


@st.composite
def routes(draw: st.DrawFn) -> str:
    """A route of few words, so that many routes match the same paths."""
    parts = [*draw(st.lists(segments, max_size=3)), draw(lasts)]
    named = (part.replace("{", f"{{p{number}") for number, part in enumerate(parts) if part)
    return "/" + "/".join(named)


paths = st.lists(st.sampled_from([*WORDS, "c"]), max_size=5).map(lambda parts: "/" + "/".join(parts))


def ranks(route: str, path: str) -> list[tuple[int, ...]]:
    """How specific a route is for a path, for each way in which it matches; smaller is more specific.

    Written from the rules, without the tree: literal 0, parameter 1, rest of the path 2, compared from the left.
    """
    parts = [part for part in route.split("/") if part]
    given = [part for part in path.split("/") if part]
    optional = bool(parts) and parts[-1].endswith("?}")
    found = []
    for each in [parts, parts[:-1]] if optional else [parts]:
        rest = bool(each) and each[-1].endswith("*}")
        fixed = each[:-1] if rest else each
        if len(given) < len(fixed) or (len(given) > len(fixed) and not rest):
            continue
        pairs = list(zip(fixed, given, strict=False))
        if all(part.startswith("{") or part == text for part, text in pairs):
            found.append(tuple(int(part.startswith("{")) for part, _ in pairs) + ((2,) if rest else ()))
    return found


@given(st.lists(routes(), max_size=12), st.lists(paths, min_size=1, max_size=8))
def test_the_most_specific_route_serves_and_no_other_is_as_specific(
    found: list[str], asked: list[str]
) -> None:
    tree, kept = RouteTree(), dict[bytes, str]()
    for number, route in enumerate(found):
        if tree.clashing("get", route) is None:
            id = number.to_bytes(12, "big")
            tree.add(id, "get", route)
            kept[id] = route
    for path in asked:
        best = sorted((rank, id) for id, route in kept.items() for rank in ranks(route, path))
        assert len({rank for rank, _ in best}) == len(best), "two routes of the same rank were kept"
        served = tree.find("get", path)
        assert (served.endpoint if served else None) == (best[0][1] if best else None)


@given(routes(), routes(), st.lists(paths, min_size=4, max_size=12))
def test_two_routes_that_do_not_clash_are_never_equally_specific(
    one: str, other: str, asked: list[str]
) -> None:
    tree = RouteTree([(bytes(12), "get", one)])
    if tree.clashing("get", other) is None:
        for path in asked:
            assert not set(ranks(one, path)) & set(ranks(other, path))


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("/a", "/a/", True),
        ("/a/{p}", "/a/{q}", True),
        ("/a/{p?}", "/a", True),
        ("/a/{p?}", "/a/{q}", True),
        ("/a/{p*}", "/a/{q*}", True),
        ("/a/{p*}", "/a", False),
        ("/a/{p*}", "/a/{q?}", False),
        ("/a/{p}", "/a/b", False),
        ("/{p}/b", "/a/{q}", False),
        ("/A", "/a", False),
    ],
)
def test_which_routes_clash(one: str, other: str, *, clash: bool) -> None:
    for first, second in ((one, other), (other, one)):
        assert (RouteTree([(bytes(12), "get", first)]).clashing("get", second) == bytes(12)) == clash


@pytest.mark.parametrize(
    ("route", "path", "values"),
    [
        ("/", "/", {}),
        ("/", "", {}),
        ("/devices/{id}", "/devices/7", {"id": "7"}),
        ("/devices/{id}", "/devices/7/", {"id": "7"}),
        ("/devices/{id}", "/devices/", None),
        ("/devices/{id?}", "/devices", {}),
        ("/devices/{id?}", "/devices/a%20b", {"id": "a b"}),
        ("/files/{path*}", "/files", {"path": ""}),
        ("/files/{path*}", "/files/a/b/c.txt", {"path": "a/b/c.txt"}),
        ("/caf%C3%A9/{n}", "/café/1", {"n": "1"}),
        ("/Devices", "/devices", None),
        ("/a/", "/a", {}),
    ],
)
def test_what_a_route_matches(route: str, path: str, values: dict[str, str] | None) -> None:
    served = RouteTree([(bytes(12), "get", route)]).find("get", path)
    assert (None if served is None else served.path) == values


def test_a_method_has_routes_of_its_own_and_head_is_served_by_get() -> None:
    tree = RouteTree([(bytes(12), "get", "/a")])
    assert tree.clashing("post", "/a") is None
    assert tree.find("post", "/a") is None
    assert tree.find("head", "/a") == tree.find("get", "/a") is not None
    assert tree.clashing("get", "/a/", but=bytes(12)) is None


def test_a_long_path_costs_no_more_than_the_routes() -> None:
    tree = RouteTree([(bytes(12), "get", "/{a}/{b}/x"), (bytes([1] * 12), "get", "/{rest*}")])
    served = tree.find("get", "/y" * 10_000)
    assert served is not None
    assert served.endpoint == bytes([1] * 12)


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("devices", "does not begin with a slash"),
        ("/a//b", "empty segment"),
        ("/{id}/{id}", "twice"),
        ("/{id?}/b", "only the last segment"),
        ("/{all*}/b", "only the last segment"),
        ("/{file}.txt", "a parameter is a whole segment"),
        ("/{}", "a parameter is a whole segment"),
        ("/a b", "is not a valid segment"),
        ("/a?b=1", "is not a valid segment"),
    ],
)
def test_a_route_that_cannot_be_is_refused(route: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        patterns(route)
    assert refused.value.message.startswith("route: ")
    assert said in refused.value.message
