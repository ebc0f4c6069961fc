"""A data table beside its model of plain dicts: what is done to the one is done to the other.

Both must refuse the same and hold the same. Owns no test.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.actors.house import House
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.tables import messages
from trunkline.actors.data.tables import messages as tables
from trunkline.actors.data.tables.check import row_problems

Json = dict[str, Any]
COLUMNS: list[Json] = [
    {"name": "u", "dataType": "string", "constraint": "unique"},
    {"name": "n", "dataType": "number", "constraint": "unique"},
    {"name": "f", "dataType": "boolean", "constraint": "unique"},
    {"name": "r", "dataType": "string", "constraint": "required", "defaultValue": "d"},
    {"name": "o", "dataType": "number", "constraint": "optional", "defaultValue": 7},
]


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
        elif kind == "delete those of o" and "o" in model.columns:
            # Whoever chose all rows read them long ago; only those that match by now are meant.
            doomed = [id for id, row in model.rows.items() if same(row.get("o"), given[0])]
            message = tables.DeleteRows(rows=[bytes.fromhex(id) for id in ids], body={"o": given[0]})
            assert await self.ask(message) == len(doomed)
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
        assert made.count == len(many)
        for id, row in zip(made.row_ids, many, strict=True):
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
        message = messages.ListRows(
            application=self.ref.parent,
            data_table=self.ref.id,
            query=msgspec.convert(chosen, tables.RowsPage),
            body=query,
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
