"""Records: lists, indexes and counts never disagree, whatever was written; against a plain dict as model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.actors.core.query.compile import Field, compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.listing import (
    AccessPath,
    Listing,
    find_access_paths,
    index_range,
    is_long,
    read_page,
)
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found, check_match, revision_of
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import PreconditionFailed
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.backup import verify
from trunkline.store.codec import decode, encode
from trunkline.store.env import Store

CARD = Kind(name="card", noun="card", indexes=("name", "rank"), counted_as=None, audited_as=None)
SUITED = Kind(
    name="suited",
    noun="card",
    indexes=("name", "rank"),
    facet="suit",
    facet_indexes=("rank",),
    counted_as=None,
    audited_as=None,
)
UNCOUNTED = replace(SUITED, facet_counted=False)
SUITS = ("hearts", "spades")
FIELDS = ("id", "name", "rank", "colour")  # the last has no index
PARENTS = (b"a" * 12, b"b" * 12)


class Clerk(Actor):
    """Owns every card."""

    kind = "clerk"
    noun = "clerk"

    def load(self) -> bool:
        return True


class Cards:
    """Cards in a store, and the same in a dict."""

    def __init__(self, store: Store, kind: Kind = CARD) -> None:
        self.store = store
        self.kind = kind
        self.model: dict[tuple[bytes, bytes], dict[str, Any]] = {}

    def write(self, parent: bytes, id: bytes, doc: dict[str, Any]) -> None:
        self._stage(
            lambda clerk: records.write(clerk, self.kind, parent, id, self.model.get((parent, id)), doc)
        )
        self.model[parent, id] = doc

    def erase(self, parent: bytes, id: bytes) -> None:
        old = self.model.pop((parent, id), None)
        if old is not None:
            self._stage(lambda clerk: records.erase(clerk, self.kind, parent, id, old))

    def _stage(self, turn: Any) -> None:
        clerk = Clerk(None, Ref("clerk", ROOT, ROOT))  # type: ignore[arg-type]
        turn(clerk)
        assert clerk.batch is not None
        self.store.journal.submit(clerk.batch)

    def expected(
        self, parent: bytes, field: str, descending: bool, equal: tuple[str, Any] | None = None
    ) -> list[bytes]:
        def rank(id: bytes) -> tuple[bytes, bytes]:
            value = id if field == "id" else keys.sortable(self.model[parent, id].get(field))
            return value, id

        wanted = (
            id
            for (owner, id), doc in self.model.items()
            if owner == parent and (equal is None or doc.get(equal[0]) == equal[1])
        )
        return sorted(wanted, key=rank, reverse=descending)

    def listed(
        self, parent: bytes, field: str, descending: bool, per_page: int, match: Any = None, **more: Any
    ) -> list[bytes]:
        """All pages, one after the other."""
        equal = ("suit", more["facet"]) if "facet" in more else more.pop("equal", None)
        found: list[bytes] = []
        with self.store.snapshot() as snapshot:
            for page in range(len(self.model) + 2):
                listing = Listing(self.kind, parent, field, descending, page, per_page, match, **more)
                part, total = read_page(Reading(snapshot, Limits(), in_loop=False), listing)
                assert all(record.doc == decode(record.raw) for record in part)
                assert total == len(self.expected(parent, field, descending, equal))
                found += [record.id for record in part]
        return found


@pytest.fixture
def cards(tmp_path: Path) -> Any:
    with Store.open(tmp_path, map_size_bytes=2**22) as store:
        yield Cards(store)


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.text("ab", min_size=195, max_size=210),
)
documents = st.fixed_dictionaries({}, optional={"name": values, "rank": values, "colour": values})
ids = st.integers(1, 6).map(lambda number: number.to_bytes(12, "big"))
steps = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PARENTS), ids, documents),
    st.tuples(st.just("erase"), st.sampled_from(PARENTS), ids),
    st.tuples(st.just("commit")),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(steps, max_size=40), st.integers(1, 4))
def test_lists_indexes_and_counts_agree_with_a_dict(history: list[tuple[Any, ...]], per_page: int) -> None:
    with TemporaryDirectory() as path, Store.open(Path(path), map_size_bytes=2**22) as store:
        cards = Cards(store)
        for step in history:
            match step:
                case ("write", parent, id, doc):
                    cards.write(parent, id, doc)
                case ("erase", parent, id):
                    cards.erase(parent, id)
                case _:
                    store.journal.flush()
        store.journal.flush()
        report = verify(store, partial(records.index_keys, {CARD.name: CARD}))
        assert report.problems == []
        assert report.counts[keys.INDEXES] == 2 * len(cards.model)
        for parent in PARENTS:
            for field in FIELDS:
                for descending in (False, True):
                    expected = cards.expected(parent, field, descending)
                    assert cards.listed(parent, field, descending, per_page) == expected
                    assert cards.listed(parent, field, descending, per_page, match=lambda _: True) == expected


def test_a_list_by_an_index_and_by_a_scan_are_the_same_list(cards: Cards) -> None:
    names = ["b", "a", "B", None, "b", "", 3, True, "ä", "a" * 300, "a" * 300 + "b"]
    for number, name in enumerate(names):
        cards.write(PARENTS[0], number.to_bytes(12, "big"), {"name": name})
    cards.store.journal.flush()
    for descending in (False, True):
        by_index = cards.listed(PARENTS[0], "name", descending, 3)
        assert by_index == cards.listed(PARENTS[0], "name", descending, 3, match=lambda _: True)
        assert sorted(by_index) == [number.to_bytes(12, "big") for number in range(len(names))]


suited = st.fixed_dictionaries(
    {"suit": st.sampled_from(SUITS), "rank": st.integers(0, 3), "name": st.sampled_from("ab")}
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(PARENTS), ids, suited | st.none()), max_size=30),
    st.integers(1, 4),
    st.sampled_from([SUITED, UNCOUNTED]),
)
def test_the_facets_of_a_kind_are_listed_and_counted_as_a_dict_has_them(
    history: list[tuple[bytes, bytes, dict[str, Any] | None]], per_page: int, kind: Kind
) -> None:
    with TemporaryDirectory() as path, Store.open(Path(path), map_size_bytes=2**22) as store:
        cards = Cards(store, kind)
        for parent, id, doc in history:
            if doc is None:
                cards.erase(parent, id)
            else:
                cards.write(parent, id, doc)
        store.journal.flush()
        assert verify(store, partial(records.index_keys, {kind.name: kind})).problems == []
        for parent in PARENTS:
            for field in ("id", "name", "rank"):
                for suit in SUITS:
                    expected = cards.expected(parent, field, True, ("suit", suit))
                    assert cards.listed(parent, field, True, per_page, facet=suit) == expected
                    assert cards.listed(parent, field, True, per_page, lambda _: True, facet=suit) == expected
                for rank in range(4):
                    equal = ("rank", rank)
                    listed = cards.listed(
                        parent,
                        field,
                        False,
                        per_page,
                        lambda doc, rank=rank: doc["rank"] == rank,
                        access_paths=(way(parent, "name", None), way(parent, "rank", rank)),
                        equal=equal,
                    )
                    assert listed == cards.expected(parent, field, False, equal)


def way(parent: bytes, field: str, value: Any) -> AccessPath:
    """The way along an index to the cards with this value; to all of them for None."""
    low = b"" if value is None else keys.sortable(value)
    return (index_range(SUITED, parent, field, low),)


def test_a_part_and_a_way_hold_together(cards: Cards) -> None:
    cards.kind = SUITED
    for number in range(24):
        doc = {"suit": SUITS[number % 2], "rank": number % 12, "name": str(number)}
        cards.write(PARENTS[0], number.to_bytes(12, "big"), doc)
    cards.store.journal.flush()
    for rank, names in ((4, ["4", "16"]), (5, [])):
        near = (way(PARENTS[0], "rank", rank),)
        listing = Listing(SUITED, PARENTS[0], "id", False, 0, 9, lambda _: True, "hearts", near)
        with cards.store.snapshot() as snapshot:
            found, total = read_page(Reading(snapshot, Limits(), in_loop=False), listing)
            assert ([record.doc["name"] for record in found], total) == (names, len(names))
            assert [records.total(snapshot, SUITED, PARENTS[0], suit) for suit in SUITS] == [12, 12]


def test_a_match_sees_the_id_and_counts_what_it_takes(cards: Cards) -> None:
    for number in range(10):
        cards.write(PARENTS[0], number.to_bytes(12, "big"), {"rank": number})
    cards.store.journal.flush()
    wanted = {number.to_bytes(12, "big").hex() for number in (2, 5, 8)}
    listing = Listing(CARD, PARENTS[0], "rank", True, 0, 2, lambda doc: doc["id"] in wanted)
    with cards.store.snapshot() as snapshot:
        found, total = read_page(Reading(snapshot, Limits(), in_loop=False), listing)
        assert ([record.doc["rank"] for record in found], total) == ([8, 5], 3)
        assert all("id" not in record.doc for record in found)


def test_the_document_that_is_written_is_the_one_that_is_found(cards: Cards) -> None:
    id = b"i" * 12
    cards.write(PARENTS[0], id, {"name": "a", "nested": {"list": [1, None, "x"]}})
    cards.store.journal.flush()
    with cards.store.snapshot() as snapshot:
        found = records.find(snapshot, CARD, PARENTS[0], id)
        assert found is not None
        assert (found.id, found.doc) == (id, {"name": "a", "nested": {"list": [1, None, "x"]}})
        assert records.find(snapshot, CARD, PARENTS[1], id) is None
        assert records.find(snapshot, DEVICE, PARENTS[0], id) is None
        assert [records.total(snapshot, CARD, parent) for parent in PARENTS] == [1, 0]


# Revisions.


def test_equal_tags_mean_equal_bytes() -> None:
    raw = encode({"name": "a"})
    assert revision_of(raw) == revision_of(bytes(raw))
    assert revision_of(raw) != revision_of(encode({"name": "b"}))
    assert Found(ROOT, {}, raw).revision == revision_of(raw)


@pytest.mark.parametrize("given", [None, "*", " * ", '"{}"', "{}", 'W/"{}"', '"other", "{}"'])
def test_the_present_revision_matches(given: str | None) -> None:
    raw = encode({"name": "a"})
    check_match(given.format(revision_of(raw)) if given else None, raw)


@pytest.mark.parametrize("given", ["", '"0123456789abcdef"', '"other", "another"', "W/"])
def test_another_revision_does_not_match_and_the_present_one_is_named(given: str) -> None:
    raw = encode({"name": "a"})
    with pytest.raises(PreconditionFailed, match=revision_of(raw)):
        check_match(given, raw)


# Long or short.


@pytest.mark.parametrize(
    ("count", "page", "per_page", "match", "long"),
    [
        (10, 0, 1000, False, False),  # all there are is little
        (1000, 0, 100, False, False),
        (1000, 0, 1000, False, True),  # a thousand documents to decode
        (1000, 9, 100, False, False),
        (10_000, 60, 100, False, True),  # six thousand entries to pass over
        (1000, 1_000_000, 100, False, False),  # beyond the end
        (256, 0, 10, True, False),
        (257, 0, 10, True, True),  # a scan of them all
    ],
)
def test_what_would_hold_up_the_loop_is_long(
    cards: Cards, count: int, page: int, per_page: int, match: bool, long: bool
) -> None:
    clerk = Clerk(None, Ref("clerk", ROOT, ROOT))  # type: ignore[arg-type]
    clerk.add(keys.COUNTS, keys.total_key(CARD.name, PARENTS[0]), {"n": count})
    assert clerk.batch is not None
    cards.store.journal.submit(clerk.batch)
    cards.store.journal.flush()
    listing = Listing(CARD, PARENTS[0], "name", False, page, per_page, (lambda _: True) if match else None)
    with cards.store.snapshot() as snapshot:
        assert is_long(snapshot, listing) is long


def test_what_an_index_narrows_to_a_few_is_short(cards: Cards) -> None:
    for number in range(300):
        cards.write(PARENTS[0], number.to_bytes(12, "big"), {"name": f"card {number}", "colour": number})
    cards.store.journal.flush()

    def listing(query: dict[str, Any]) -> Listing:
        compiled = compile_query(query, {"id": Field("id"), "name": Field("value"), "colour": Field("value")})
        access_paths = tuple(find_access_paths(CARD, PARENTS[0], compiled.bounds))
        return Listing(CARD, PARENTS[0], "name", False, 0, 100, compiled.matches, access_paths=access_paths)

    with cards.store.snapshot() as snapshot:
        for query, count, long in (
            ({"name": "card 7"}, 1, False),
            ({"name": {"$startsWith": "card 1"}}, 111, False),
            ({"name": {"$startsWith": "card"}}, 300, True),
            ({"colour": 7}, 1, True),  # the field has no index
            ({"colour": {"$lt": 9}, "name": {"$in": ["card 7", "card 8", "card 9", "card"]}}, 2, False),
            ({"id": {"$in": [(7).to_bytes(12, "big").hex(), "f" * 24]}}, 1, False),
            ({"id": {"$gte": (290).to_bytes(12, "big").hex()}}, 10, False),
            ({"id": {"$lt": (290).to_bytes(12, "big").hex()}}, 290, True),
            ({"id": None}, 0, False),
        ):
            found, total = read_page(Reading(snapshot, Limits(), in_loop=False), listing(query))
            assert (total, len(found)) == (count, min(count, 100)), query
            assert is_long(snapshot, listing(query)) is long, query


# Kinds.


def test_a_deleted_device_keeps_its_place_in_every_list_of_devices() -> None:
    assert set(DEVICE.indexes) < set(DELETED_DEVICE.indexes)


@pytest.mark.parametrize(
    ("connection", "status"),
    [(None, None), ({"connected": 1}, "connected"), ({"connected": 0}, "disconnected")],
)
def test_devices_sort_by_the_status_that_is_shown(connection: Any, status: str | None) -> None:
    assert DEVICE.sort_key({"connection": connection}, "connectionStatus") == status
    assert DEVICE.sort_key({"name": "a"}, "name") == "a"


def test_what_a_turn_has_staged_is_read_as_if_it_were_stored(cards: Cards) -> None:
    """Records, index entries and counts, of what was there before and what was not."""
    parent, first, second = PARENTS[0], b"1" * 12, b"2" * 12
    cards.write(parent, first, {"name": "one", "rank": 1})
    clerk = Clerk(SimpleNamespace(journal=cards.store.journal), Ref("clerk", ROOT, ROOT))
    staged = Staged(clerk)
    assert records.counted(staged, CARD, parent, "n") == 1
    records.write(clerk, CARD, parent, second, None, {"name": "two", "rank": 2})
    records.write(clerk, CARD, parent, first, cards.model[parent, first], {"name": "uno", "rank": 1})
    prefix = keys.kind_prefix(CARD.name)
    end = keys.prefix_end(prefix)
    assert end is not None
    read = [staged.range(db, prefix, end) for db in (keys.RECORDS, keys.INDEXES)]
    found = records.find(staged, CARD, parent, second)
    assert found is not None
    assert found.doc["name"] == "two"
    assert records.counted(staged, CARD, parent, "n") == 2
    assert clerk.batch is not None
    cards.store.journal.submit(clerk.batch)
    journal = cards.store.journal
    assert [list(journal.range(db, prefix, end)) for db in (keys.RECORDS, keys.INDEXES)] == read
    assert records.counted(journal, CARD, parent, "n") == 2
