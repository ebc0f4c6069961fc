"""Reads of a plain resource: what the hooks of a resource add to a record, to a list, and to its conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from trunkline.actors.core.query.fields import TEXT, Field, Fields
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.messages import GetRecord, ListRecords
from trunkline.actors.core.records.page import Match, Page
from trunkline.actors.core.records.read_context import ReadContext
from trunkline.actors.core.records.reading import Reading, TakesLong
from trunkline.actors.core.records.resource import Resource, get_record, list_records
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import RecordView
from trunkline.limits.table import Limits
from trunkline.store.env import Store

HAND = b"h" * 12
CARD = Kind(name="card", noun="card", counted_as=None, audited_as=None)
NAMES = ("king", "queen", "jack", "ace")


class CardPost(Body, frozen=True):
    name: str


class CardPage(Page, frozen=True):
    filter_field: Literal["name"] | None = None
    query: Any = None
    court: bool = False


class CardView(RecordView, frozen=True, kw_only=True):
    card_id: str
    name: str


def _join(context: ReadContext, id: bytes, doc: Doc, _query: object) -> Doc:
    neighbour = context.find(CARD, bytes([*id[:-1], id[-1] + 1]))
    return {"next": None if neighbour is None else neighbour.doc["name"], "readAt": context.now_ms}


def _narrow(_context: ReadContext, query: CardPage) -> list[Match]:
    return [lambda doc: doc["name"] != "ace"] if query.court else []


def _sort(_context: ReadContext, query: CardPage) -> Callable[[Found], Any] | None:
    return (lambda found: len(found.doc["name"])) if query.sort_field == "length" else None


CARDS = Resource(
    name="card",
    kind=CARD,
    post=CardPost,
    patch=CardPost,
    page=CardPage,
    view=CardView,
    fields=Fields("card", {"name": TEXT, "length": Field("value", "number")}),
    join=_join,
    narrow=_narrow,
    sort=_sort,
    around=lambda context, _query: {"hand": context.parent.hex()},
    derived={"length": lambda _context, doc: len(doc["name"])},
)


class Clerk(Actor):
    """Owns every card."""

    kind = "clerk"
    noun = "clerk"

    def load(self) -> bool:
        return True


class Reads:
    """A store with four cards in one hand, and reads of them."""

    def __init__(self, store: Store, resource: Resource = CARDS) -> None:
        self.store, self.resources = store, {resource.name: resource}
        clerk = Clerk(None, Ref("clerk", ROOT, ROOT))  # type: ignore[arg-type]
        for number, name in enumerate(NAMES):
            doc = {"name": name, "creationDate": 0, "lastUpdated": 0}
            records.write(clerk, CARD, HAND, bytes([*bytes(11), number]), None, doc)
        assert clerk.batch is not None
        store.journal.submit(clerk.batch)
        store.journal.flush()

    def get(self, number: int, now_ms: int = 0) -> Doc:
        ids = {"application": HAND, "card": bytes([*bytes(11), number])}
        with self.store.snapshot() as snapshot:
            reading = Reading(snapshot, Limits(), in_loop=True)
            return get_record(self.resources, reading, GetRecord(resource="card", ids=ids, now_ms=now_ms))

    def page(self, *, in_loop: bool = False, **query: Any) -> Doc:
        message = ListRecords(resource="card", ids={"application": HAND}, query=CardPage(**query))
        with self.store.snapshot() as snapshot:
            return list_records(self.resources, Reading(snapshot, Limits(), in_loop=in_loop), message)

    def names(self, **query: Any) -> list[str]:
        return [each["name"] for each in self.page(**query)["items"]]


@pytest.fixture
def reads(tmp_path: Path) -> Any:
    with Store.open(tmp_path, map_size_bytes=2**22) as store:
        yield Reads(store)


def test_what_comes_from_elsewhere_is_shown_of_each_record(reads: Reads) -> None:
    first = reads.get(0, now_ms=7)
    assert (first["name"], first["next"], first["readAt"]) == ("king", "queen", 7)
    assert [each["next"] for each in reads.page(sort_field="id")["items"]] == ["queen", "jack", "ace", None]
    with pytest.raises(NotFound):
        reads.get(9)


def test_a_list_has_fields_beside_its_page(reads: Reads) -> None:
    shown = reads.page()
    assert (shown["hand"], shown["applicationId"], shown["totalCount"]) == (HAND.hex(), HAND.hex(), 4)


def test_a_list_is_narrowed_by_more_than_its_filter(reads: Reads) -> None:
    assert reads.names() == ["ace", "jack", "king", "queen"]
    assert reads.names(court=True) == ["jack", "king", "queen"]
    assert reads.names(court=True, filter_field="name", filter="*k*") == ["jack", "king"]


def test_a_query_may_name_a_field_that_is_not_stored(reads: Reads) -> None:
    assert reads.names(query={"length": 4}) == ["jack", "king"]
    assert reads.names(query={"length": 4}, court=True, filter_field="name", filter="j*") == ["jack"]


def test_a_query_takes_the_place_of_the_filter_where_the_resource_says_so(tmp_path: Path) -> None:
    with Store.open(tmp_path, map_size_bytes=2**22) as store:
        reads = Reads(store, replace(CARDS, query_replaces_filter=True))
        assert reads.names(query={"length": 4}, filter_field="name", filter="j*") == ["jack", "king"]


def test_a_list_is_sorted_by_a_value_that_is_not_stored(reads: Reads) -> None:
    by_length: dict[str, Any] = {"sort_field": "length"}
    assert reads.names(**by_length) == ["ace", "king", "jack", "queen"]  # equal ones by id
    assert reads.names(**by_length, sort_direction="desc", per_page=2) == ["queen", "jack"]
    assert reads.names(**by_length, page=1, per_page=3, court=True) == []
    assert reads.page(**by_length, per_page=1)["totalCount"] == 4
    with pytest.raises(TakesLong):  # all records are read, so never in the event loop
        reads.page(**by_length, in_loop=True)
