"""A server of this process with the demo, as `trunkline serve --demo` shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import Server, running_server
from trunkline.bench.demo import DemoReady, run_demo
from trunkline.bench.demo_incident import Incident
from trunkline.bench.demo_past import live_past
from trunkline.bench.demo_records import ensure_records
from trunkline.http.cli.demo import DemoClock


@dataclass(frozen=True)
class DemoServer:
    """A server with the demo: its application, its devices by name, all records by the names of their ids, its past."""

    server: Server
    application: str
    devices: Mapping[str, str]
    ids: Mapping[str, str]
    incident: Incident


@asynccontextmanager
async def demo_server(data_dir: Path, **settings: Any) -> AsyncIterator[DemoServer]:
    """A server with the demo and its past, whose devices report until the end."""
    clock = DemoClock()
    async with running_server(data_dir, clock=clock, **settings) as server, trio.open_nursery() as nursery:
        incident = await live_past(server.url, server.token, clock.move_to)
        begun = trio.Event()
        found: list[DemoReady] = []

        def ready(demo: DemoReady) -> None:
            found.append(demo)
            begun.set()

        async def run() -> None:
            await run_demo(server.url, server.token, on_ready=ready)

        nursery.start_soon(run)
        await begun.wait()
        ids = await ensure_records(server.token, found[0])
        application = f"/applications/{found[0].application_id}"
        yield DemoServer(server, application, found[0].device_ids, ids, incident)
        nursery.cancel_scope.cancel()
