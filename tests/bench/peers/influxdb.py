"""InfluxDB: the same values in line protocol over HTTP; its write-ahead log is synced before each answer."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from tests.bench.peers.peer import Kept, Peer, Posts, Started
from tests.bench.peers.series import Means, SeriesPoints, SeriesSource
from trunkline.bench.client import Connection
from trunkline.bench.errors import BenchError, WireError
from trunkline.bench.fleet import with_body
from trunkline.bench.programs import ProgramUnavailable, Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.transport import Origin

_CONFIGURATION = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"
[meta]
  dir = "{directory}/meta"
[data]
  dir = "{directory}/data"
  wal-dir = "{directory}/wal"
  wal-fsync-delay = "0s"
  cache-snapshot-write-cold-duration = "1s"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
"""
_TEXT = {"content-type": "text/plain"}
_WRITE = "/write?db=bench&precision=ms"


class InfluxDb(Peer):
    """InfluxDB 1 from Debian."""

    name = "InfluxDB, line protocol"

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        program = workspace.find("influxd", "influxdb")
        port, directory = free_port(), workspace.make("influx")
        configuration = workspace.directory / "influxdb.conf"
        configuration.write_text(
            _CONFIGURATION.format(port=port, rpc_port=free_port(), directory=directory), encoding="utf-8"
        )
        environment = {**os.environ, "HOME": str(directory)}
        workspace.start([program, "-config", str(configuration)], env=environment)
        await workspace.listens(port)
        origin = Origin("127.0.0.1", port, tls=False, prefix="")
        if await _query(origin, "POST", "CREATE DATABASE bench") is None:
            raise ProgramUnavailable("influxd did not create a database.")
        output = await workspace.run([program, "version"])
        yield Started(
            version=output.partition(" (")[0],
            durable=True,
            durability="on disk before the answer (wal-fsync-delay = 0s)",
            keeps="each state, by device and time",
            origin=origin,
            callers=(posts := _posts(origin, devices)).callers,
            kept=lambda: _kept(origin, posts),
            finish=lambda: _compacted(workspace, directory / "wal"),
            series=InfluxSeries(origin),
        )


class InfluxSeries(SeriesSource):
    """A measurement of its own, with a tag for the device."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    async def store(self, points: SeriesPoints) -> None:
        async with Connection(self._origin) as connection:
            for device, some in points.calls():
                lines = "\n".join(
                    f"temperatures,device={device} temperature={value!r} {at}" for at, value in some
                )
                response = await connection.request("POST", _WRITE, lines.encode(), _TEXT)
                if response.status != 204:
                    raise BenchError(f"a write was answered with {response.status}")

    async def ask(self, points: SeriesPoints) -> bytes:
        span = f"time >= {points.first_ms}ms AND time < {points.end_ms}ms"
        query = (
            f"SELECT mean(temperature) FROM temperatures WHERE {span} GROUP BY device, time(1m) fill(none)"
        )
        answer = await _query(self._origin, "GET", query)
        if answer is None:
            raise BenchError("the query failed")
        return answer

    def read(self, answer: bytes) -> Means:
        (result,) = msgspec.json.decode(answer)["results"]
        return {
            (int(series["tags"]["device"]), time_ms): mean
            for series in result.get("series", [])
            for time_ms, mean in series["values"]
        }


async def _compacted(workspace: Workspace, wal: Path) -> None:
    """Wait until the cache is written to the final files: the segments of the log that it needs are then empty."""
    await workspace.until(lambda: not any(segment.stat().st_size for segment in wal.rglob("*.wal")))


def _posts(origin: Origin, devices: int) -> Posts:
    head = Connection(origin).encode_head("POST", _WRITE, _TEXT)

    def build(device_id: str, body: bytes, _count: int) -> bytes:
        return with_body(
            head, b"\n".join(b"states,device=%b %b" % (device_id.encode(), one) for one in _fields(body))
        )

    return Posts(devices, build)


@lru_cache(maxsize=256)
def _fields(body: bytes) -> list[bytes]:
    """The fields and the time of each state of a JSON body, as the end of a line of the line protocol."""
    states = json.loads(body)
    found = []
    for state in states if isinstance(states, list) else [states]:
        data = state["data"]
        running = str(data["running"]).lower()
        found.append(
            b"sequence=%d,temperature=%g,running=%b %d"
            % (data["sequence"], data["temperature"], running.encode(), state["time"])
        )
    return found


async def _query(origin: Origin, method: str, query: str) -> bytes | None:
    try:
        async with Connection(origin) as connection:
            words = urlencode({"db": "bench", "epoch": "ms", "q": query})
            response = await connection.request(method, f"/query?{words}")
    except WireError:
        return None
    return response.body if response.status == 200 else None


async def _kept(origin: Origin, posts: Posts) -> Kept:
    body = await _query(origin, "GET", "SELECT count(sequence) FROM states")
    if body is None:
        return posts.kept(None)
    try:
        return posts.kept(int(msgspec.json.decode(body)["results"][0]["series"][0]["values"][0][1]))
    except (KeyError, IndexError):
        return posts.kept(0)
