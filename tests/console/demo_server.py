"""A server of this process with the demo, as `trunkline serve --demo` shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import trio

from tests.e2e.conftest import Server, running_server
from trunkline.bench.demo import DemoReady, run_demo
from trunkline.bench.demo_records import ensure_records


@dataclass(frozen=True)
class DemoServer:
    """A server with the demo: its application, its devices by name, and all records by the names of their ids."""

    server: Server
    application: str
    devices: Mapping[str, str]
    ids: Mapping[str, str]


@asynccontextmanager
async def demo_server(data_dir: Path, **settings: Any) -> AsyncIterator[DemoServer]:
    """A server with the demo, whose devices report until the end. Their behaviour is the same each time."""
    async with running_server(data_dir, **settings) as server, trio.open_nursery() as nursery:
        begun = trio.Event()
        found: list[DemoReady] = []

        def ready(demo: DemoReady) -> None:
            found.append(demo)
            begun.set()

        async def run() -> None:
            await run_demo(server.url, server.token, on_ready=ready, random=Random(7))

        nursery.start_soon(run)
        await begun.wait()
        ids = await ensure_records(server.token, found[0])
        yield DemoServer(server, f"/applications/{found[0].application_id}", found[0].device_ids, ids)
        nursery.cancel_scope.cancel()
