"""Long reads of two users: they take turns by owner, and each read ends."""

from __future__ import annotations

import time
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Json
from tests.e2e.neighbours import Tenant, neighbours
from tests.e2e.sse_client import until
from tests.patience import PATIENCE_S

DEAR: Json = {
    "$and": [{"$or": [{"a": {"$contains": f"{one}-{two}"}} for two in range(90)]} for one in range(10)]
}
"""Matches no row, and looks at up to 900 conditions; 90 of them where the first fails."""
COLUMN = {"name": "a", "dataType": "string", "constraint": "optional"}


async def table(tenant: Tenant, application: str, rows: int) -> str:
    """The path of a new table with so many rows."""
    made = await tenant.call("POST", f"{application}/data-tables", {"name": "t", "columns": [COLUMN]})
    path = f"{application}/data-tables/{made['id']}"
    values = [{"a": f"row {number} {'x' * 100}"} for number in range(rows)]
    for start in range(0, rows, 500):
        await tenant.call("POST", f"{path}/rows", values[start : start + 500])
    return path


async def test_long_reads_of_many_applications_do_not_delay_those_of_another_owner(start_server: Any) -> None:
    async with start_server() as server:
        greedy, quiet = await neighbours(server, 10)
        tables = [await table(greedy, each, 1000) for each in greedy.applications]
        own = await table(quiet, quiet.applications[0], 300)
        reads, ended = server.system.reads, 0

        async def read(path: str) -> None:
            nonlocal ended
            assert (await greedy.call("POST", f"{path}/rows/query", DEAR))["count"] == 0
            ended += 1

        async with trio.open_nursery() as nursery:
            for path in tables * 4:
                nursery.start_soon(read, path)
            await until(lambda: reads.waiting > 20)
            before = ended
            assert (await quiet.call("POST", f"{own}/rows/query", {"a": {"$contains": "row"}}))[
                "totalCount"
            ] == 300
            assert ended - before < 10, "it waited for the reads of other applications"


async def test_who_fills_the_room_for_reads_is_refused_and_never_another_owner(start_server: Any) -> None:
    limits = {"read_threads_max": 2, "read_queue_length_max": 8}
    async with start_server(limits=limits) as server:
        greedy, quiet = await neighbours(server, 10)
        tables = [await table(greedy, each, 1000) for each in greedy.applications]
        own = await table(quiet, quiet.applications[0], 300)
        reads, statuses = server.system.reads, []

        async def read(path: str) -> None:
            async with server.client(greedy.token) as client:
                statuses.append((await client.post(f"{path}/rows/query", json=DEAR)).status_code)

        async with trio.open_nursery() as nursery:
            for path in tables * 3:
                nursery.start_soon(read, path)
            await until(lambda: reads.waiting == 8)
            for _ in range(3):
                await quiet.call("POST", f"{own}/rows/query", {"a": {"$contains": "row"}})
        assert set(statuses) == {200, 503}


async def test_a_read_that_computes_for_too_long_is_ended_and_says_what_to_narrow(start_server: Any) -> None:
    async with start_server(limits={"read_cpu_s": 0.001}) as server:
        greedy, quiet = await neighbours(server, 1)
        path = await table(greedy, greedy.applications[0], 1000)
        refusal = await greedy.call("POST", f"{path}/rows/query", DEAR, status=400)
        assert refusal["type"] == "Validation"
        assert "limit, query: the read computed for 0.001 seconds, which is the most" in refusal["message"]
        own = await table(quiet, quiet.applications[0], 10)
        assert (await quiet.call("POST", f"{own}/rows/query", {}))["count"] == 10


async def test_a_query_with_many_conditions_leaves_the_event_loop(start_server: Any) -> None:
    """A few rows are read in the loop, but not with a thousand conditions each."""
    async with start_server() as server:
        greedy, _ = await neighbours(server, 1)
        path = await table(greedy, greedy.applications[0], 250)
        reads, taken = server.system.reads, 0
        take = reads.take

        async def counted(owner: Any, places: int) -> None:
            nonlocal taken
            taken += 1
            await take(owner, places)

        reads.take = counted
        folded = [{"a": {"$contains": f"{number}-", "$ci": True}} for number in range(90)]
        await greedy.call("POST", f"{path}/rows/query", {"a": {"$contains": "row"}})
        assert taken == 0
        await greedy.call("POST", f"{path}/rows/query", {"$or": [{"$or": folded}] * 10})
        assert taken == 1


async def test_a_long_read_lets_the_event_loop_go_first(
    start_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of reads have the interpreter only while the loop waits, or has been busy for a while."""
    pauses, sleep = 0, time.sleep

    def counted(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        sleep(seconds)

    async with start_server() as server:
        greedy, _ = await neighbours(server, 1)
        path = await table(greedy, greedy.applications[0], 1000)
        monkeypatch.setattr(time, "sleep", counted)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(greedy.call, "POST", f"{path}/rows/query", DEAR)
            await until(lambda: server.system.reads.running == 1)
            with trio.fail_after(PATIENCE_S):
                while not pauses and server.system.reads.running:
                    await trio.lowlevel.checkpoint()
        assert pauses, "the read did not look at the loop"
