"""The laws of a data table, against a model of plain dicts.

Whatever is written in whatever order (rows, arrays, patches, deletions, columns that come and go, several calls
in one commit, an actor that is forgotten between them): the model and the table refuse the same and hold the
same, no value of a unique column stands twice, and the index and the counts agree with the rows. Whatever is
asked: a page is what is cut out of the model, sorted and filtered the naive way.
"""

from __future__ import annotations

import tempfile
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.actors.house import running_house
from tests.actors.table_model import Json, Table, made
from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.query.fields import Field
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.data.tables import messages, row_reader
from trunkline.actors.data.tables import messages as tables
from trunkline.actors.data.tables import pages as row_pages
from trunkline.actors.data.tables import plan as row_plan
from trunkline.limits.table import Limits

LONG = "x" * 255

TEXTS = ["", "a", "A", "ab", "b", "é", "\U0001f600", "\x00", LONG, LONG + "a", LONG + "b"]
NUMBERS = [0, -0.0, 1, 1.0, 1.5, -3, 2**53, 2**53 + 1, 2**64 - 1, 1e300, -1e-300]
texts, numbers = st.sampled_from(TEXTS), st.sampled_from(NUMBERS)
values: dict[str, Any] = {
    "u": st.sampled_from([*TEXTS, None, None]),
    "n": st.sampled_from([*NUMBERS, None, None]),
    "f": st.sampled_from([None, None, None, False, True]),
    "r": st.sampled_from([*TEXTS, None]),
    "o": st.sampled_from([*NUMBERS, None]),
}
rows = st.fixed_dictionaries({}, optional=values)
places = st.integers(0, 7)
often = [
    st.tuples(st.just("insert"), rows),
    st.tuples(st.just("insert many"), st.lists(rows, max_size=4)),
    st.tuples(st.just("patch"), places, rows),
]
seldom = [
    st.tuples(st.just("delete"), places),
    st.tuples(st.just("delete many"), st.integers(0, 3)),
    st.tuples(st.just("delete those of o"), numbers),
    st.tuples(st.just("remove column"), st.sampled_from(["u", "o"])),
    st.tuples(st.just("add column"), st.sampled_from(["u", "o"])),
    st.tuples(st.just("truncate")),
    st.tuples(st.just("forget")),
    st.tuples(st.just("pass time")),
]
steps = st.lists(st.sampled_from([*often, *often, *often, *seldom]).flatmap(lambda each: each), max_size=20)

operands = texts | numbers | st.booleans() | st.none()
conditions = st.one_of(
    operands,
    st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$lt", "$gte", "$lte"]), operands, min_size=1),
    st.fixed_dictionaries(
        {}, optional={"$startsWith": texts.filter(bool), "$gt": texts, "$ci": st.booleans(), "$lte": texts}
    ).filter(lambda each: each.keys() - {"$ci"}),
    st.fixed_dictionaries({"$in": st.lists(texts | numbers | st.booleans(), max_size=4)}),
    st.fixed_dictionaries({"$nin": st.lists(texts | numbers, max_size=4)}),
)
queries = st.recursive(
    st.dictionaries(st.sampled_from(["u", "n", "f", "r", "o"]), conditions, max_size=2),
    lambda inner: st.dictionaries(
        st.sampled_from(["$and", "$or", "$nor"]), st.lists(inner, min_size=1, max_size=3), min_size=1
    ),
    max_leaves=4,
)


def operators(operands: st.SearchStrategy[Any], *more: str) -> st.SearchStrategy[Json]:
    """One operator, or two, of which an index may make a range."""
    names = st.sampled_from(["$gt", "$gte", "$lt", "$lte", *more])
    return st.dictionaries(names, operands, min_size=1, max_size=2)


of_u = operators(texts.filter(bool), "$startsWith").flatmap(
    lambda found: st.sampled_from([found, {**found, "$ci": True}])
)
of_n = operators(numbers)
focused = st.one_of(
    st.fixed_dictionaries({"u": of_u}),
    st.fixed_dictionaries({"n": of_n}),
    st.fixed_dictionaries({"$and": st.tuples(st.fixed_dictionaries({"u": of_u}), queries).map(list)}),
    st.fixed_dictionaries({"u": st.fixed_dictionaries({"$in": st.lists(texts, min_size=2, max_size=4)})}),
)
FIRST: list[Json] = [
    {"u": text, "n": number} for text, number in zip(TEXTS, [0, 1, 1.5, -3, 2**53, 1e300], strict=False)
]
"""Rows that each table begins with, so that ranges and lists of values find several."""
orders = st.tuples(
    st.sampled_from([None, "id", "createdAt", "updatedAt", "u", "n", "f", "r", "o"]),
    st.sampled_from(["asc", "desc"]),
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(steps)
def test_the_table_holds_what_the_model_holds(plan: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with running_house(Path(directory) / "data") as house:
                table = await made(house)
                for step in plan:
                    await table.take(step)
                    await table.check()

    trio.run(run)


def by_order(name: str | None, direction: str, columns: Json) -> Any:
    """A comparison of rows of the model, `(id, row)`, in the order that the API promises."""

    def rank(item: tuple[str, Json]) -> tuple[int, Any]:
        value = item[1].get(name) if name in columns else None
        if value is None:
            return (0, 0)
        if isinstance(value, bool):
            return (1, value)
        # Beyond 255 bytes texts are in no order that is promised, but all in the same one.
        return (3, value.encode()[:255]) if isinstance(value, str) else (2, value)

    def compare(one: tuple[str, Json], other: tuple[str, Json]) -> int:
        left, right = rank(one), rank(other)
        if left != right:
            return -1 if left < right else 1
        return (one[0] > other[0]) - (one[0] < other[0])

    return cmp_to_key(compare if direction == "asc" else lambda one, other: -compare(one, other))


@pytest.mark.slow
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(rows, min_size=1, max_size=10),
    st.lists(
        st.tuples(st.none() | queries | focused | focused, orders, st.integers(0, 6), st.integers(0, 9)),
        min_size=8,
        max_size=8,
    ),
    st.booleans(),
)
def test_a_page_is_cut_out_of_what_matches(
    monkeypatch: pytest.MonkeyPatch,
    given_rows: list[Json],
    asked: list[tuple[Json | None, tuple[str | None, str], int, int]],
    late: bool,
) -> None:
    monkeypatch.setattr(row_plan, "SHARE_MAX", 1)  # any range of an index is short enough

    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with running_house(Path(directory) / "data") as house:
                table = await made(house)
                if late:  # the old rows are null in a unique column that came later
                    await table.take(("remove column", "u"))
                await table.insert_many([] if late else FIRST)
                for number, row in enumerate(given_rows):
                    if late and number == len(given_rows) // 2:
                        await table.take(("add column", "u"))
                    usable = {name: value for name, value in row.items() if name in table.model.columns}
                    await table.take(("insert", usable))
                    await table.take(("pass time",))
                for query, (name, direction), offset, limit in asked:
                    await compare(table, query, name, direction, offset, limit)

    trio.run(run)


async def compare(
    table: Table, query: Json | None, name: str | None, direction: str, offset: int, limit: int
) -> None:
    columns = table.model.columns
    known = set(columns)
    if (name in {"u", "o"} and name not in known) or (query is not None and not names(query) <= known):
        return
    matches = compile_query(query or {}, {column: Field("value") for column in columns}).matches
    found = [(id, table.of(id)) for id in table.model.rows if matches(table.of(id))]
    found.sort(key=by_order(name, direction, columns))
    wanted = [rank_of(item, name, columns) for item in found][offset : offset + limit]
    page = await table.page(query, sortColumn=name, sortDirection=direction, offset=offset, limit=limit)
    assert page["totalCount"] == len(found), query
    got = [(row["id"], row) for row in page["items"]]
    assert [rank_of(item, name, columns) for item in got] == wanted, (query, name, direction)
    if not any(is_long(row.get(name or "id")) for _, row in found):
        assert [id for id, _ in got] == [id for id, _ in found][offset : offset + limit]
    with table.house.system.store.snapshot() as snapshot:
        _, walked = row_pages.walk_rows(
            snapshot,
            table.ref.parent,
            table.ref.id,
            query,
            sort_column=name,
            sort_direction=direction,
            offset=offset,
            limit=limit,
        )
        assert [row["id"] for row in walked] == [row["id"] for row in page["items"]]
        selected = row_pages.select_rows(
            Reading(snapshot, Limits(), in_loop=False),
            messages.SelectRows(
                application=table.ref.parent,
                data_table=table.ref.id,
                query=tables.RowsLimit(limit=limit),
                body=query,
            ),
        )
        assert [id.hex() for id in selected] == sorted(id for id, _ in found)[:limit]


def names(query: Json) -> set[str]:
    found: set[str] = set()
    for key, value in query.items():
        found |= set().union(*map(names, value)) if key.startswith("$") else {key}
    return found


def is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > 255


def rank_of(item: tuple[str, Json], name: str | None, columns: Json) -> Any:
    value = item[1].get(name) if name in columns else item[0]
    return value[:255] if isinstance(value, str) else value


async def test_a_long_sort_goes_on_pass_after_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "PASS_ROWS", 7)
    async with running_house(tmp_path) as house:
        table = await made(house)
        await table.ask(tables.InsertRows(body=[{"o": number % 5} for number in range(40)]))
        with house.system.store.snapshot() as snapshot:
            for direction in ("asc", "desc"):
                _, walked = row_pages.walk_rows(
                    snapshot, table.ref.parent, table.ref.id, sort_column="o", sort_direction=direction
                )
                page = await table.page(None, sortColumn="o", sortDirection=direction)
                assert [row["id"] for row in walked] == [row["id"] for row in page["items"]]


async def test_a_sort_without_an_index_is_bounded(tmp_path: Path) -> None:
    limits = Limits.off().override({"sorted_rows_max": 20})
    async with running_house(tmp_path, limits=limits) as house:
        table = await made(house)
        await table.ask(tables.InsertRows(body=[{"u": str(number)} for number in range(30)]))
        message = messages.ListRows(
            application=table.ref.parent,
            data_table=table.ref.id,
            query=tables.RowsPage(sort_column="o", offset=15, limit=6),
            body=None,
        )
        with pytest.raises(DomainError, match="without an index holds at most 20 rows") as refusal:
            await house.read(message)
        assert refusal.value.type == "PayloadTooLarge"
        for sort, body in (("u", None), ("u", {"o": 7}), ("id", {"o": 7}), ("o", {"u": {"$in": ["3", "4"]}})):
            chosen = tables.RowsPage(sort_column=sort, offset=15, limit=6)
            page = await house.read(msgspec.structs.replace(message, query=chosen, body=body))
            assert page["totalCount"] == (2 if sort == "o" else 30)
