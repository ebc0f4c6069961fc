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

from trunkline.bench.client import Connection
from trunkline.bench.errors import WireError
from trunkline.bench.fleet import with_body
from trunkline.bench.peers.peer import Kept, Peer, Posts, Started
from trunkline.bench.peers.programs import PeerUnavailable, Workspace, free_port
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
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
"""
_TEXT = {"content-type": "text/plain"}


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
            raise PeerUnavailable("influxd did not create a database.")
        output = await workspace.run([program, "version"])
        yield Started(
            version=output.partition(" (")[0],
            durable=True,
            durability="on disk before the answer (wal-fsync-delay = 0s)",
            keeps="each state, by device and time",
            origin=origin,
            callers=(posts := _posts(origin, devices)).callers,
            kept=lambda: _kept(origin, posts),
        )


def _posts(origin: Origin, devices: int) -> Posts:
    head = Connection(origin).encode_head("POST", "/write?db=bench&precision=ms", _TEXT)

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
            response = await connection.request(method, f"/query?{urlencode({'db': 'bench', 'q': query})}")
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
