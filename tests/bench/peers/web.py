"""FastAPI on Uvicorn in front of a database: a simple application as most people would write it.

Owns the source of the application, which runs in an environment of its own (it needs packages that this project
does not), and the two databases behind it. It does less than a real one must: no tokens, no checks of attributes,
one table, and the fastest statement that each database has for the purpose.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec

from tests.bench.peers.environment import environment, version
from tests.bench.peers.peer import Kept, Peer, Posts, Started
from tests.bench.peers.series import Means, SeriesPoints, SeriesSource
from trunkline.bench.client import Connection
from trunkline.bench.errors import BenchError, WireError
from trunkline.bench.fleet import with_body
from trunkline.bench.programs import Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.transport import Origin

POOL_CONNECTIONS = 16
"""Connections of the application to PostgreSQL: of 4, 8, 16, 32 and 64 none was clearly faster on two cores."""

_ROWS = "each state as a row, by device and time"
_SOCKET = ".s.PGSQL.5432"

_APPLICATION = """
import json, os
from contextlib import asynccontextmanager
from fastapi import FastAPI, Response
from pydantic import BaseModel
{imports}

class State(BaseModel):
    time: int
    data: dict[str, bool | float | str]

@asynccontextmanager
async def lifespan(app):
{opening}
    yield

app = FastAPI(lifespan=lifespan)

@app.post("/devices/{{device}}/state")
async def post_state(device: str, state: State):
{store_one}
    return {{"success": True}}

@app.post("/devices/{{device}}/states")
async def post_states(device: str, states: list[State]):
{store_many}
    return {{"success": True}}

@app.get("/count")
async def count():
{count}

@app.post("/series/{{device}}")
async def post_series(device: int, points: list[tuple[int, float]]):
{store_series}
    return {{"success": True}}

@app.get("/series")
async def get_series(first: int, end: int):
{means}
    return Response(json.dumps([list(row) for row in rows]), media_type="application/json")

@app.post("/checkpoint")
async def checkpoint():
{checkpoint}
    return {{"success": True}}
"""

_POSTGRES = {
    "imports": "import asyncpg",
    "opening": """
    global pool
    pool = await asyncpg.create_pool(host=os.environ["PEER_SOCKET"], user="bench", database="postgres",
        min_size=int(os.environ["PEER_POOL"]), max_size=int(os.environ["PEER_POOL"]))
    await pool.execute("create table if not exists states"
        " (device text, time bigint, data jsonb, primary key (device, time))")
    await pool.execute("create table if not exists series"
        " (device int, time timestamptz, temperature float8, primary key (device, time))")
""",
    "store_one": """
    await pool.execute("insert into states values ($1, $2, $3)"
        " on conflict (device, time) do update set data = states.data || excluded.data",
        device, state.time, json.dumps(state.data))
""",
    "store_many": """
    await pool.execute("insert into states select $1, * from unnest($2::bigint[], $3::jsonb[])"
        " on conflict (device, time) do update set data = states.data || excluded.data",
        device, [state.time for state in states], [json.dumps(state.data) for state in states])
""",
    "count": """
    return await pool.fetchval("select count(*) from states")
""",
    "store_series": """
    await pool.execute("insert into series select $1, to_timestamp(t / 1000.0), v"
        " from unnest($2::bigint[], $3::float8[]) as points(t, v)",
        device, [t for t, _ in points], [v for _, v in points])
""",
    "means": """
    rows = await pool.fetch("select device, (extract(epoch from minute) * 1000)::bigint, mean from ("
        " select device, date_bin('1 minute', time, 'epoch') as minute, avg(temperature) as mean from series"
        " where time >= to_timestamp($1 / 1000.0) and time < to_timestamp($2 / 1000.0) group by 1, 2) as means",
        first, end)
""",
    "checkpoint": """
    await pool.execute("checkpoint")
""",
}

_SQLITE = {
    "imports": "import sqlite3",
    "opening": """
    global database
    database = sqlite3.connect(os.environ["PEER_FILE"], isolation_level=None, check_same_thread=False)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = full")
    database.execute("create table if not exists states"
        " (device text, time integer, data text, primary key (device, time)) without rowid")
    database.execute("create table if not exists series"
        " (device integer, time integer, temperature real, primary key (device, time)) without rowid")
""",
    "store_one": """
    database.execute("insert into states values (?, ?, ?)"
        " on conflict do update set data = json_patch(data, excluded.data)",
        (device, state.time, json.dumps(state.data)))
""",
    "store_many": """
    database.execute("begin")
    database.executemany("insert into states values (?, ?, ?)"
        " on conflict do update set data = json_patch(data, excluded.data)",
        [(device, state.time, json.dumps(state.data)) for state in states])
    database.execute("commit")
""",
    "count": """
    return database.execute("select count(*) from states").fetchone()[0]
""",
    "store_series": """
    database.execute("begin")
    database.executemany("insert into series values (?, ?, ?)", [(device, t, v) for t, v in points])
    database.execute("commit")
""",
    "means": """
    rows = database.execute("select device, time / 60000 * 60000, avg(temperature) from series"
        " where time >= ? and time < ? group by 1, 2", (first, end)).fetchall()
""",
    "checkpoint": """
    database.execute("pragma wal_checkpoint(truncate)")
""",
}


class FastApiPostgres(Peer):
    """FastAPI, Uvicorn, asyncpg and a PostgreSQL cluster of its own, on a Unix socket."""

    name = "FastAPI + Uvicorn + PostgreSQL"

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        server, initdb = _debian(workspace, "postgres"), _debian(workspace, "initdb")
        bin_directory = await environment(work, workspace, ("fastapi", "uvicorn[standard]", "asyncpg"))
        cluster = workspace.make("cluster", unprivileged=True)
        # The path of a Unix socket has at most 107 characters, so it is not in the user's directory.
        with tempfile.TemporaryDirectory(prefix="trunkline-") as socket_directory:
            os.chmod(socket_directory, 0o777)  # noqa: PTH101 - for the unprivileged server; it lives for a minute
            await workspace.run(
                [initdb, "-D", str(cluster), "-U", "bench", "--auth=trust", "--encoding=UTF8", "--locale=C"],
                unprivileged=True,
            )
            workspace.start(
                [
                    *(server, "-D", str(cluster), "-c", "listen_addresses="),
                    *("-c", f"unix_socket_directories={socket_directory}"),
                    *("-c", "synchronous_commit=on", "-c", "fsync=on", "-c", "full_page_writes=on"),
                ],
                unprivileged=True,
                stop=signal.SIGINT,
            )
            await workspace.until((Path(socket_directory) / _SOCKET).exists)
            variables = {"PEER_SOCKET": socket_directory, "PEER_POOL": str(POOL_CONNECTIONS)}
            origin = await _serve(workspace, bin_directory, _POSTGRES, variables)
            number = re.search(r"[0-9.]+", await workspace.run([server, "--version"]))
            yield Started(
                version=f"FastAPI {await version(workspace, bin_directory, 'fastapi')}, "
                f"Uvicorn {await version(workspace, bin_directory, 'uvicorn')}, "
                f"PostgreSQL {number[0] if number else '?'}",
                durable=True,
                durability="on disk before the answer (synchronous_commit=on, fsync=on)",
                keeps=_ROWS,
                origin=origin,
                callers=(posts := _posts(origin, devices)).callers,
                kept=lambda: _kept(origin, posts),
                finish=partial(_checkpoint, origin),
                series=WebSeries(origin),
            )


class FastApiSqlite(Peer):
    """FastAPI, Uvicorn and SQLite in the same process, one connection, one transaction per call."""

    name = "FastAPI + Uvicorn + SQLite"

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        bin_directory = await environment(work, workspace, ("fastapi", "uvicorn[standard]"))
        origin = await _serve(
            workspace, bin_directory, _SQLITE, {"PEER_FILE": str(workspace.directory / "states.sqlite")}
        )
        library = await workspace.run(
            [str(bin_directory / "python"), "-c", "import sqlite3; print(sqlite3.sqlite_version)"]
        )
        yield Started(
            version=f"FastAPI {await version(workspace, bin_directory, 'fastapi')}, "
            f"Uvicorn {await version(workspace, bin_directory, 'uvicorn')}, SQLite {library}",
            durable=True,
            durability="on disk before the answer (WAL, synchronous=FULL)",
            keeps=_ROWS,
            origin=origin,
            callers=(posts := _posts(origin, devices)).callers,
            kept=lambda: _kept(origin, posts),
            finish=partial(_checkpoint, origin),
            series=WebSeries(origin),
        )


class WebSeries(SeriesSource):
    """A table of its own, with typed columns."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    async def store(self, points: SeriesPoints) -> None:
        for device, some in points.calls():
            await _call(self._origin, "POST", f"/series/{device}", msgspec.json.encode(some))

    async def ask(self, points: SeriesPoints) -> bytes:
        return await _call(self._origin, "GET", f"/series?first={points.first_ms}&end={points.end_ms}")

    def read(self, answer: bytes) -> Means:
        rows = msgspec.json.decode(answer, type=list[tuple[int, int, float]])
        return {(device, minute_ms): mean for device, minute_ms, mean in rows}


async def _checkpoint(origin: Origin) -> None:
    await _call(origin, "POST", "/checkpoint")


async def _call(origin: Origin, method: str, path: str, body: bytes | None = None) -> bytes:
    async with Connection(origin) as connection:
        response = await connection.request(method, path, body)
    if response.status != 200:
        raise BenchError(f"{method} {path} was answered with {response.status}")
    return response.body


def _debian(workspace: Workspace, program: str) -> str:
    """The path of a program of PostgreSQL: Debian installs them by version, outside of PATH."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return str(versions[-1] / program) if versions else workspace.find(program, "postgresql")


async def _serve(
    workspace: Workspace, bin_directory: Path, parts: dict[str, str], variables: dict[str, str]
) -> Origin:
    """Write the application and start it; return its address."""
    text = _APPLICATION.format(**{name: part.strip("\n") for name, part in parts.items()})
    (workspace.directory / "app.py").write_text(text, encoding="utf-8")
    port = free_port()
    workspace.start(
        [
            *(str(bin_directory / "uvicorn"), "app:app", "--host", "127.0.0.1", "--port", str(port)),
            *("--workers", "1", "--no-access-log", "--log-level", "warning"),
        ],
        env={**os.environ, **variables},
    )
    await workspace.listens(port)
    return Origin("127.0.0.1", port, tls=False, prefix="")


def _posts(origin: Origin, devices: int) -> Posts:
    encoder = Connection(origin)

    def build(device_id: str, body: bytes, count: int) -> bytes:
        head = heads.get((device_id, count))
        if head is None:
            route = "state" if count == 1 else "states"
            head = heads[device_id, count] = encoder.encode_head("POST", f"/devices/{device_id}/{route}")
        return with_body(head, body)

    heads: dict[tuple[str, int], bytes] = {}
    return Posts(devices, build)


async def _kept(origin: Origin, posts: Posts) -> Kept:
    try:
        async with Connection(origin) as connection:
            response = await connection.request("GET", "/count")
    except WireError:
        return posts.kept(None)
    return posts.kept(msgspec.json.decode(response.body, type=int) if response.status == 200 else None)
