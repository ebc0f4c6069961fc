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
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.house import House, running_house
from trunkline.actors import row_pages, row_walks
from trunkline.actors.actor import Ref
from trunkline.actors.errors import DomainError, Invalid
from trunkline.actors.messages import reads, tables
from trunkline.actors.query import compile_query
from trunkline.actors.query_fields import Field
from trunkline.actors.row_check import row_problems

Json = dict[str, Any]
COLUMNS: list[Json] = [
    {"name": "u", "dataType": "string", "constraint": "unique"},
    {"name": "n", "dataType": "number", "constraint": "unique"},
    {"name": "f", "dataType": "boolean", "constraint": "unique"},
    {"name": "r", "dataType": "string", "constraint": "required", "defaultValue": "d"},
    {"name": "o", "dataType": "number", "constraint": "optional", "defaultValue": 7},
]
LONG = "x" * 255

texts = st.sampled_from(["", "a", "A", "ab", "b", "é", "\U0001f600", "\x00", LONG, LONG + "a", LONG + "b"])
numbers = st.sampled_from([0, -0.0, 1, 1.0, 1.5, -3, 2**53, 2**53 + 1, 2**64 - 1, 1e300, -1e-300])
values: dict[str, Any] = {
    "u": st.none() | texts,
    "n": st.none() | numbers,
    "f": st.none() | st.booleans(),
    "r": st.none() | texts,
    "o": st.none() | numbers,
}
rows = st.fixed_dictionaries({}, optional=values)
places = st.integers(0, 7)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), rows),
        st.tuples(st.just("insert many"), st.lists(rows, max_size=4)),
        st.tuples(st.just("patch"), places, rows),
        st.tuples(st.just("delete"), places),
        st.tuples(st.just("delete many"), st.integers(0, 3)),
        st.tuples(st.just("remove column"), st.sampled_from(["u", "o"])),
        st.tuples(st.just("add column"), st.sampled_from(["u", "o"])),
        st.tuples(st.just("truncate")),
        st.tuples(st.just("forget")),
        st.tuples(st.just("pass time")),
    ),
    max_size=14,
)

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
orders = st.tuples(
    st.sampled_from([None, "id", "createdAt", "updatedAt", "u", "n", "f", "r", "o"]),
    st.sampled_from(["asc", "desc"]),
)


class Model:
    """A table as plain dicts, in order of creation."""

    def __init__(self) -> None:
        self.columns = {column["name"]: column for column in COLUMNS}
        self.rows: dict[str, Json] = {}

    def refuses(self, row: Json, others: list[Json], *, new: bool) -> bool:
        for name, value in row.items():
            column = self.columns.get(name)
            if column is None or (value is None and column["constraint"] == "required"):
                return True
            unique = column["constraint"] == "unique" and value is not None
            if unique and any(same(other.get(name), value) for other in others):
                return True
        return new and False  # the required column has a default

    def filled(self, row: Json) -> Json:
        defaults = {name: column.get("defaultValue") for name, column in self.columns.items()}
        return {**defaults, **row}


def same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


class Table:
    """The table under test beside its model."""

    def __init__(self, house: House, ref: Ref) -> None:
        self.house = house
        self.ref = ref
        self.model = Model()

    async def ask(self, message: Any) -> Any:
        return (await self.house.system.ask(self.ref, message)).value

    async def take(self, step: tuple[Any, ...]) -> None:
        """Do it to both; both must refuse it, or neither."""
        kind, *given = step
        model = self.model
        ids = list(model.rows)
        if kind == "forget":
            self.house.forget()
        elif kind == "pass time":
            self.house.clock.pass_s(0.001)
        elif kind == "truncate":
            await self.ask(tables.TruncateRows())
            model.rows.clear()
        elif kind == "insert":
            await self.insert(given[0])
        elif kind == "insert many":
            await self.insert_many(given[0])
        elif kind == "patch" and ids:
            await self.patch(ids[given[0] % len(ids)], given[1])
        elif kind == "delete" and ids:
            id = ids[given[0] % len(ids)]
            await self.ask(tables.DeleteRow(row=bytes.fromhex(id)))
            del model.rows[id]
        elif kind == "delete many":
            doomed = ids[: given[0]]
            removed = await self.ask(
                tables.DeleteRows(rows=[bytes.fromhex(id) for id in [*doomed, "0" * 24]], body=None)
            )
            assert removed == len(doomed)
            for id in doomed:
                del model.rows[id]
        elif kind == "remove column" and given[0] in model.columns:
            await self.ask(tables.RemoveColumn(query=tables.ColumnChoice(column_name=given[0])))
            del model.columns[given[0]]
            for row in model.rows.values():
                row.pop(given[0], None)
        elif kind == "add column" and given[0] not in model.columns:
            column = next(each for each in COLUMNS if each["name"] == given[0])
            await self.ask(tables.AddColumn(body=msgspec.convert(column, tables.Column)))
            model.columns[given[0]] = column

    async def insert(self, row: Json) -> None:
        others = list(self.model.rows.values())
        if self.model.refuses(row, others, new=True):
            with pytest.raises(Invalid):
                await self.ask(tables.InsertRows(body=row))
            return
        shown = (await self.ask(tables.InsertRows(body=row))).value
        self.model.rows[shown["id"]] = self.model.filled(row)

    async def insert_many(self, many: list[Json]) -> None:
        others = list(self.model.rows.values())
        for place, row in enumerate(many):
            if self.model.refuses(row, others, new=True):
                with pytest.raises(Invalid, match=rf"^\[{place}\]\."):
                    await self.ask(tables.InsertRows(body=many))
                return
            others.append(self.model.filled(row))
        made = await self.ask(tables.InsertRows(body=many))
        assert made["count"] == len(many)
        for id, row in zip(made["rowIds"], many, strict=True):
            self.model.rows[id] = self.model.filled(row)

    async def patch(self, id: str, changes: Json) -> None:
        others = [row for other, row in self.model.rows.items() if other != id]
        message = tables.PatchRow(row=bytes.fromhex(id), body=changes)
        if self.model.refuses(changes, others, new=False):
            with pytest.raises(Invalid):
                await self.ask(message)
            return
        shown = (await self.ask(message)).value
        self.model.rows[id] |= changes
        assert {name: shown[name] for name in self.model.columns} == self.of(id)

    def of(self, id: str) -> Json:
        return {name: self.model.rows[id].get(name) for name in self.model.columns}

    async def page(self, query: Json | None, **choice: Any) -> Json:
        chosen = {"limit": 1000, **{name: value for name, value in choice.items() if value is not None}}
        message = reads.ListRows(
            application=self.ref.parent,
            table=self.ref.id,
            query=msgspec.convert(chosen, tables.RowsPage),
            body=query,
            rows_bytes_max=10**7,
            rows_limit_max=10**4,
            sorted_rows_max=10**5,
        )
        page: Json = await self.house.read(message)
        return {**page, "items": msgspec.json.decode(page["items"])}

    async def check(self) -> None:
        """The table holds what the model holds, and its index and counts agree."""
        page = await self.page(None)
        assert page["totalCount"] == len(self.model.rows)
        assert {row["id"]: {name: row[name] for name in self.model.columns} for row in page["items"]} == {
            id: self.of(id) for id in self.model.rows
        }
        with self.house.system.store.snapshot() as snapshot:
            assert list(row_problems(snapshot)) == []


async def made(house: House) -> Table:
    ref = Ref("dataTable", house.application, house.system.ids.new(house.clock.wall_ms()))
    post = msgspec.convert({"name": "laws", "columns": COLUMNS}, tables.TablePost)
    await house.system.ask(ref, tables.CreateDataTable(body=post))
    return Table(house, ref)


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
@settings(max_examples=60, deadline=None)
@given(
    st.lists(rows, min_size=1, max_size=24),
    st.lists(
        st.tuples(st.none() | queries, orders, st.integers(0, 6), st.integers(0, 9)), min_size=8, max_size=8
    ),
    st.booleans(),
)
def test_a_page_is_cut_out_of_what_matches(
    given_rows: list[Json], asked: list[tuple[Json | None, tuple[str | None, str], int, int]], late: bool
) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with running_house(Path(directory) / "data") as house:
                table = await made(house)
                if late:  # the old rows are null in a unique column that came later
                    await table.take(("remove column", "u"))
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
            snapshot,
            reads.SelectRows(
                application=table.ref.parent,
                table=table.ref.id,
                query=tables.RowsLimit(limit=limit),
                body=query,
                rows_limit_max=10**4,
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
    monkeypatch.setattr(row_walks, "PASS_ROWS", 7)
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
    async with running_house(tmp_path) as house:
        table = await made(house)
        await table.ask(tables.InsertRows(body=[{"u": str(number)} for number in range(30)]))
        message = reads.ListRows(
            application=table.ref.parent,
            table=table.ref.id,
            query=tables.RowsPage(sort_column="o", offset=15, limit=6),
            body=None,
            rows_bytes_max=10**6,
            rows_limit_max=100,
            sorted_rows_max=20,
        )
        with pytest.raises(DomainError, match="without an index holds at most 20 rows") as refusal:
            await house.read(message)
        assert refusal.value.type == "PayloadTooLarge"
        for sort, body in (("u", None), ("u", {"o": 7}), ("id", {"o": 7}), ("o", {"u": {"$in": ["3", "4"]}})):
            chosen = tables.RowsPage(sort_column=sort, offset=15, limit=6)
            page = await house.read(msgspec.structs.replace(message, query=chosen, body=body))
            assert page["totalCount"] == (2 if sort == "o" else 30)
