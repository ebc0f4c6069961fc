"""Arrays of rows of two users: who sends many fills no room of another."""

from __future__ import annotations

from typing import Any

import trio

from tests.e2e.neighbours import neighbours
from tests.e2e.test_fair_reads import table

ROWS = [{"a": f"row {number}"} for number in range(200)]


async def test_arrays_of_many_applications_do_not_refuse_those_of_another_owner(start_server: Any) -> None:
    async with start_server(limits={"bulk_items_max": 200, "bulk_waiting_calls_max": 4}) as server:
        greedy, quiet = await neighbours(server, 5)
        paths = [f"{await table(greedy, each, 0)}/rows" for each in greedy.applications]
        own = f"{await table(quiet, quiet.applications[0], 0)}/rows"
        refused = trio.Event()

        async def insert(path: str) -> None:
            async with server.client(greedy.token) as client:
                while True:
                    if (await client.post(path, json=ROWS)).status_code == 503:
                        refused.set()

        async with trio.open_nursery() as nursery:
            for path in paths * 4:
                nursery.start_soon(insert, path)
            await refused.wait()
            for _ in range(10):
                await quiet.call("POST", own, ROWS, status=201)
            nursery.cancel_scope.cancel()
