"""Two hundred writers on one unique column, the record of their writes, and its check against the table.

Each writer inserts, patches and deletes its own rows, with values from a pool that is far too small, so that most calls
compete for a value. Acknowledged writes are recorded; of the writes in progress when the server was killed, each writer
knows its one call, which may be stored completely or not at all.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import trio

from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.errors import WireError
from trunkline.bench.session import Session

Json = dict[str, Any]
WRITERS = 200
COLUMNS = [
    {"name": "value", "dataType": "string", "constraint": "unique"},
    {"name": "tag", "dataType": "string", "constraint": "required"},
    {"name": "n", "dataType": "number", "constraint": "unique"},
]
PAGE = 5000
NOTHING: tuple[str, Any] = ("nothing", None)


@dataclass
class Writer:
    """The acknowledged rows of one writer, by id, and its call in progress."""

    rows: dict[str, Json] = field(default_factory=dict)
    under_way: tuple[str, Any] = NOTHING


@dataclass
class Writers:
    """All writers of one table."""

    session: Session
    path: str
    seed: int
    writers: list[Writer]
    pool: int
    acknowledged: int = 0
    refused: int = 0
    reached: trio.Event = field(default_factory=trio.Event)
    target: int = 0

    async def run(self) -> None:
        """Write until the server is gone."""
        async with trio.open_nursery() as nursery:
            for number in range(len(self.writers)):
                nursery.start_soon(self._work, number)

    async def _work(self, number: int) -> None:
        writer, random = self.writers[number], Random(f"{self.seed}-{number}")
        async with Connection(
            self.session.origin, token=self.session.token, timeout_s=PATIENCE_S
        ) as connection:
            try:
                for turn in range(10**9):
                    await self._step(connection, writer, random, f"{self.seed}-{number}-{turn}")
                    writer.under_way = NOTHING
            except WireError:
                return

    async def _step(self, connection: Connection, writer: Writer, random: Random, tag: str) -> None:
        choice = random.random()
        own = list(writer.rows)
        if choice < 0.5 or not own:
            await self._insert(connection, writer, self._row(random, tag))
        elif choice < 0.7:
            await self._insert(connection, writer, [self._row(random, f"{tag}-{n}") for n in range(3)])
        elif choice < 0.85:
            id = random.choice(own)
            changes = {"value": self._row(random, tag)["value"]}
            writer.under_way = ("patch", (id, changes))
            shown = await self._send(connection, "PATCH", f"{self.path}/rows/{id}", changes)
            if shown is not None:
                writer.rows[id] = {**writer.rows[id], **changes}
        else:
            id = random.choice(own)
            writer.under_way = ("delete", id)
            await self._send(connection, "DELETE", f"{self.path}/rows/{id}", None)
            del writer.rows[id]

    def _row(self, random: Random, tag: str) -> Json:
        return {"value": f"v{random.randrange(self.pool)}", "tag": tag, "n": None}

    async def _insert(self, connection: Connection, writer: Writer, body: Any) -> None:
        writer.under_way = ("insert", body)
        shown = await self._send(connection, "POST", f"{self.path}/rows", body)
        if shown is None:
            return
        if isinstance(body, list):
            writer.rows |= dict(zip(shown["rowIds"], body, strict=True))
        else:
            writer.rows[shown["id"]] = body

    async def _send(self, connection: Connection, method: str, path: str, body: Any) -> Any:
        """The response; None if the value was taken. Any other error fails the test."""
        raw = None if body is None else json.dumps(body).encode()
        answer = await connection.request(method, path, raw)
        if answer.status == 400:
            assert b"and the column is unique" in answer.body, answer.body
            self.refused += 1
            return None
        assert answer.status in (200, 201), (method, path, answer.status, answer.body)
        self.acknowledged += 1
        if self.acknowledged == self.target:
            self.reached.set()
        return json.loads(answer.body)


async def prepare(url: str, token: str, seed: int, *, writers: int = WRITERS, pool: int = 300) -> Writers:
    """A new application with a table, and writers that have not begun."""
    session = Session(url, token=token, timeout_s=PATIENCE_S)
    application = await session.create_application(f"writers {seed}")
    made = await session.call(
        "POST", f"/applications/{application}/data-tables", {"name": "contested", "columns": COLUMNS}
    )
    path = f"/applications/{application}/data-tables/{made['id']}"
    return Writers(session, path, seed, [Writer() for _ in range(writers)], pool)


async def audit(url: str, token: str, books: Writers) -> int:
    """Read the whole table and compare; returns the number of rows."""
    session = Session(url, token=token, timeout_s=PATIENCE_S)
    stored: dict[str, Json] = {}
    while True:
        query = {"limit": PAGE, "offset": len(stored)}
        page = await session.call("GET", f"{books.path}/rows", query=query)
        stored |= {row["id"]: row for row in page["items"]}
        if page["count"] < PAGE:
            break
    assert page["totalCount"] == len(stored)
    twice = [value for value, count in Counter(row["value"] for row in stored.values()).items() if count > 1]
    assert not twice, f"{len(twice)} values stand twice: {twice[:5]}"
    by_tag = {row["tag"]: row for row in stored.values()}
    known: set[str] = set()
    for writer in books.writers:
        known |= _settle(writer, stored, by_tag)
    strange = stored.keys() - known
    assert not strange, f"{len(strange)} rows were never sent: {[stored[id] for id in list(strange)[:3]]}"
    # Each value is found by the index, in the row that has it.
    for row in list(stored.values())[:50]:
        page = await session.call("POST", f"{books.path}/rows/query", {"value": row["value"]})
        assert [each["id"] for each in page["items"]] == [row["id"]]
    session.close()
    return len(stored)


def _settle(writer: Writer, stored: dict[str, Json], by_tag: dict[str, Json]) -> set[str]:
    """Compare the record of one writer; returns the ids of the rows that it explains."""
    kind, what = writer.under_way
    explained = set(writer.rows)
    for id, row in writer.rows.items():
        if kind == "delete" and what == id and id not in stored:
            continue
        assert id in stored, f"the acknowledged row {id} {row} is lost"
        expected = [row]
        if kind == "patch" and what[0] == id:
            expected.append({**row, **what[1]})
        assert {name: stored[id][name] for name in row} in expected, (id, row, stored[id])
    if kind == "insert":
        rows = what if isinstance(what, list) else [what]
        found = [by_tag[row["tag"]]["id"] for row in rows if row["tag"] in by_tag]
        assert len(found) in (0, len(rows)), "an insert is there by half"
        explained |= set(found)
    return explained
