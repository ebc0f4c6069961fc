"""The cost of a data table of a million rows: time, memory, and stalls of the server's event loop.

Run in the checkout it prints the figures, which no test asserts because machines differ:

    python -m tests.e2e.table_scale --rows 1000000

The stalls are measured in the server process by a task that should run every millisecond. During each step a second
client reads one row repeatedly; its slowest response shows the effect on other clients.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import trio

from tests.e2e.server_process import ServerProcess, serving
from trunkline.bench.client import Connection
from trunkline.bench.session import Session

WATCHED = (str(Path(__file__).with_name("stall_program.py")),)
COLUMNS = [
    {"name": "key", "dataType": "string", "constraint": "unique"},
    {"name": "serial", "dataType": "number", "constraint": "unique"},
    {"name": "score", "dataType": "number", "constraint": "required"},
    {"name": "label", "dataType": "string", "constraint": "optional"},
    {"name": "flag", "dataType": "boolean", "constraint": "optional", "defaultValue": False},
]
BULK_ROWS = 1000
BULK_CONNECTIONS = 4

Json = dict[str, Any]
Write = Callable[[str], Any]


class Figure(NamedTuple):
    """One step: its duration, the longest stall of the loop, the slowest response beside it, and the memory."""

    what: str
    seconds: float
    stall_s: float
    beside_s: float
    memory_bytes: int
    note: str

    def __str__(self) -> str:
        return (
            f"{self.what:<44} {self.seconds:>9.3f} s  stall {self.stall_s * 1000:>6.1f} ms  "
            f"beside {self.beside_s * 1000:>6.1f} ms  {self.memory_bytes / 1e6:>6.1f} MB  {self.note}"
        )


def heap_bytes(pid: int) -> int:
    """The memory of a process without mapped files: the operating system may drop the pages of the store."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


class Scale:
    """A server with a table, and how its steps are measured."""

    def __init__(self, server: ServerProcess, rows: int, write: Write) -> None:
        self.server = server
        self.rows = rows
        self.session = Session(server.url, token=server.token)
        self.path = ""
        self.figures: list[Figure] = []
        self._write = write
        self._asked = 0

    async def prepare(self) -> None:
        application = await self.session.create_application("scale")
        body = {"name": "large", "columns": COLUMNS}
        made = await self.session.call("POST", f"/applications/{application}/data-tables", body)
        self.path = f"/applications/{application}/data-tables/{made['id']}"
        body = {"name": "small", "columns": COLUMNS}
        small = await self.session.call("POST", f"/applications/{application}/data-tables", body)
        place = f"/applications/{application}/data-tables/{small['id']}/rows"
        row = await self.session.call("POST", place, {"key": "k", "score": 1})
        self.beside = f"{place}/{row['id']}"

    def row(self, number: int) -> Json:
        """The row of a number: keys are in random order, so that all of the index is written."""
        random = Random(number)
        return {
            "key": f"{random.getrandbits(64):016x}",
            "serial": number,
            "score": random.random(),
            "label": f"label {random.randrange(1000)}",
        }

    async def measure(self, what: str, step: Callable[[], Awaitable[str]]) -> Figure:
        """Run one step and measure it."""
        await self._stall()
        slowest_s = 0.0
        over = trio.CancelScope()

        async def beside() -> None:
            nonlocal slowest_s
            async with Connection(self.session.origin, token=self.session.token) as connection:
                with over:
                    while True:
                        began_s = time.perf_counter()
                        answer = await connection.request("GET", self.beside)
                        assert answer.status == 200
                        slowest_s = max(slowest_s, time.perf_counter() - began_s)
                        await trio.sleep(0.002)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beside)
            began_s = time.perf_counter()
            note = await step()
            took_s = time.perf_counter() - began_s
            over.cancel()
        held = heap_bytes(self.server.process.pid)
        figure = Figure(what, took_s, await self._stall(), slowest_s, held, note)
        self.figures.append(figure)
        self._write(f"{figure}\n")
        return figure

    async def _stall(self) -> float:
        """The longest stall since the previous request."""
        self._asked += 1
        self.server.send_signal(signal.SIGUSR1)
        found = await self.server.prints(rf"stall {self._asked} (\S+)\n")
        return float(found[1])

    # The steps.

    async def fill(self) -> str:
        numbers = iter(range(0, self.rows, BULK_ROWS))
        began_s = time.perf_counter()

        async def insert() -> None:
            async with Connection(self.session.origin, token=self.session.token) as connection:
                for start in numbers:
                    many = [self.row(number) for number in range(start, min(start + BULK_ROWS, self.rows))]
                    answer = await connection.request("POST", f"{self.path}/rows", json.dumps(many).encode())
                    assert answer.status == 201, answer.body

        async with trio.open_nursery() as nursery:
            for _ in range(BULK_CONNECTIONS):
                nursery.start_soon(insert)
        return f"{self.rows / (time.perf_counter() - began_s):,.0f} rows/s"

    async def page(self, query: str, body: Json | None = None) -> Json:
        method = "GET" if body is None else "POST"
        place = f"{self.path}/rows" if body is None else f"{self.path}/rows/query"
        page: Json = await self.session.call(method, f"{place}?{query}", body)
        return page

    def reading(
        self, query: str, body: Json | None = None, *, total: int | None = None
    ) -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            page = await self.page(query, body)
            assert total is None or page["totalCount"] == total, (query, body, page["totalCount"])
            column = page["sortColumn"]
            values = [row[column] for row in page["items"]]
            assert values == sorted(values, reverse=page["sortDirection"] == "desc")
            return f"{page['count']} of {page['totalCount']:,}"

        return step

    async def singles(self) -> str:
        count = min(2000, self.rows // 30)  # each waits for the disk
        began_s = time.perf_counter()
        async with Connection(self.session.origin, token=self.session.token) as connection:
            for number in range(self.rows, self.rows + count):
                answer = await connection.request(
                    "POST", f"{self.path}/rows", json.dumps(self.row(number)).encode()
                )
                assert answer.status == 201, answer.body
        return f"{count / (time.perf_counter() - began_s):,.0f} rows/s, one after the other"

    async def gets(self) -> str:
        page = await self.page("limit=500&includeFields=id&sortColumn=key")
        began_s = time.perf_counter()
        async with Connection(self.session.origin, token=self.session.token) as connection:
            for row in page["items"]:
                answer = await connection.request("GET", f"{self.path}/rows/{row['id']}")
                assert answer.status == 200
        return f"{len(page['items']) / (time.perf_counter() - began_s):,.0f} rows/s, one after the other"

    async def delete(self) -> str:
        answer = await self.session.call(
            "POST", f"{self.path}/rows/delete?limit=10000", {"score": {"$lt": 0.5}}
        )
        return f"{answer['removed']} removed"

    async def columns(self) -> str:
        column = {"name": "late", "dataType": "string", "constraint": "unique"}
        await self.session.call("POST", f"{self.path}/column", column)
        await self.session.call("DELETE", f"{self.path}/column?columnName=key")
        return "one added, a unique one removed"

    async def truncate(self) -> str:
        await self.session.call("POST", f"{self.path}/rows/truncate")
        assert (await self.page("limit=1"))["totalCount"] == 0
        return "all rows"


async def scale(data_dir: Path, rows: int, write: Write = lambda _: None) -> list[Figure]:
    """Fill a table with that many rows, and run every step on it."""
    async with serving(data_dir, "--limits", "off", program=WATCHED, cold=True) as server:
        scale = Scale(server, rows, write)
        await scale.prepare()
        first = heap_bytes(server.process.pid)
        write(f"{rows:,} rows; the server holds {first / 1e6:.1f} MB before the first\n")
        await scale.measure(f"insert, {BULK_CONNECTIONS} connections, {BULK_ROWS} a call", scale.fill)
        deep = rows * 9 // 10
        narrow = {"serial": {"$gte": rows // 2, "$lt": rows // 2 + rows // 1000}}
        some_key = scale.row(rows // 3)["key"]
        for what, query, body, total in (
            ("page by a unique column", "sortColumn=key&limit=1000", None, rows),
            ("the same, deep", f"sortColumn=key&limit=1000&offset={deep}", None, rows),
            ("page in order of creation, deep", f"limit=1000&offset={deep}", None, rows),
            ("page by a column without an index", "sortColumn=score&limit=1000", None, rows),
            ("query, a unique value", "", {"key": some_key}, 1),
            ("query, a range of a unique column", "sortColumn=score", narrow, rows // 1000),
            ("query, the beginning of a text", "sortColumn=key", {"key": {"$startsWith": "00f"}}, None),
            ("query without an index, few match", "", {"label": "label 7"}, None),
            ("query without an index, half match", "limit=1000", {"score": {"$gt": 0.5}}, None),
            (
                "the same, sorted by a unique column",
                "limit=100&sortColumn=key",
                {"score": {"$gt": 0.5}},
                None,
            ),
        ):
            await scale.measure(what, scale.reading(query, body, total=total))
        await scale.measure("insert, one row a call", scale.singles)
        await scale.measure("get a row", scale.gets)
        await scale.measure("delete 10,000 by query", scale.delete)
        await scale.measure("columns", scale.columns)
        await scale.measure("truncate", scale.truncate)
        scale.session.close()
        assert await server.terminate() == 0
    return scale.figures


async def print_figures(rows: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        data_dir = Path(directory) / "data"
        await scale(data_dir, rows, sys.stdout.write)
        file_bytes = (data_dir / "store" / "data.mdb").stat().st_size
        sys.stdout.write(f"the file has {file_bytes / 1e6:.1f} MB, {file_bytes / rows:.0f} bytes a row\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What a data table of many rows costs.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    trio.run(print_figures, parser.parse_args().rows)
