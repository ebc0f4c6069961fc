"""Rows of a data table: inserted, changed, queried and deleted, one and many.

Owns the ledger of the rows.
"""

from __future__ import annotations

from typing import Any, Final

from tests.soak.house import Part

ROWS_MAX: Final = 400
INSERTED_MAX: Final = 20
COLUMNS: Final = [
    {"name": "key", "dataType": "string", "constraint": "unique"},
    {"name": "n", "dataType": "number", "constraint": "required"},
]


class Rows(Part):
    """One table."""

    async def prepare(self) -> None:
        body = {"name": "rows", "columns": COLUMNS}
        made = await self.calls.call("data table created", "POST", f"{self.path}/data-tables", body)
        self._rows_path = f"{self.path}/data-tables/{made['id']}/rows"
        self._kept: dict[str, tuple[str, float]] = {}
        """The key and the number of each row, by its id, in the order of their insertion."""
        self._number = 0

    async def step(self) -> None:
        if len(self._kept) > ROWS_MAX:
            await self.look()
            await self._delete_older()
        step = self.random.choice((self._insert, self._insert, self._change, self._query, self._delete))
        await step()

    async def _insert(self) -> None:
        rows: list[dict[str, Any]] = []
        for _ in range(self.random.choice((1, 1, INSERTED_MAX))):
            self._number += 1
            rows.append({"key": f"k{self._number}", "n": self._number})
        if len(rows) == 1:
            made = await self.calls.call("row inserted", "POST", self._rows_path, rows[0])
            ids = [made["id"]]
        else:
            made = await self.calls.call("rows inserted", "POST", self._rows_path, rows)
            ids = made["rowIds"]
        for id, row in zip(ids, rows, strict=True):
            self._kept[id] = (row["key"], row["n"])

    async def _change(self) -> None:
        if self._kept:
            id = self.random.choice(list(self._kept))
            key, number = self._kept[id]
            await self.calls.call("row changed", "PATCH", f"{self._rows_path}/{id}", {"n": number + 0.5})
            self._kept[id] = (key, number + 0.5)

    async def _query(self) -> None:
        limit = self.random.randint(0, self._number)
        page = await self.calls.call(
            "rows queried", "POST", f"{self._rows_path}/query", {"n": {"$gt": limit}}, query={"limit": 1000}
        )
        found = {row["id"] for row in page["items"]}
        expected = {id for id, (_, number) in self._kept.items() if number > limit}
        assert found == expected, (len(found), len(expected))
        self.calls.read_back += len(found)

    async def _delete(self) -> None:
        if self._kept:
            id = self.random.choice(list(self._kept))
            await self.calls.call("row deleted", "DELETE", f"{self._rows_path}/{id}")
            del self._kept[id]

    async def _delete_older(self) -> None:
        """Delete the older half by one call."""
        middle = sorted(number for _, number in self._kept.values())[len(self._kept) // 2]
        await self.calls.call("rows deleted", "POST", f"{self._rows_path}/delete", {"n": {"$lt": middle}})
        self._kept = {id: row for id, row in self._kept.items() if row[1] >= middle}

    async def look(self) -> int:
        page = await self.calls.call("rows read", "GET", self._rows_path, query={"limit": 1000})
        found = {row["id"]: (row["key"], row["n"]) for row in page["items"]}
        assert found == self._kept, set(found.items()) ^ set(self._kept.items())
        return len(found)
