"""Many writers change one record at the same time: no change is lost that was guarded, and all indexes agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import serving, trunkline
from tests.patience import PATIENCE_S
from trunkline.actors.maintenance.verify import verify

StartServer = Callable[..., Any]

WRITERS = 20
WRITERS_UNTIL_KILL = 10
TRIES_MAX = 1000


class Writer:
    """Adds one to the counts of records, guarded by their revision, and remembers what was acknowledged.

    A count is the number in the name of a record, so that the index of names changes with it.
    """

    def __init__(self, client: httpx.AsyncClient, path: str) -> None:
        self._client = client
        self._path = path
        self.acknowledged = 0

    async def add_one(self) -> None:
        """Read the count and change it, until nobody else has changed it in between."""
        for _ in range(TRIES_MAX):
            record = (await self._client.get(self._path)).json()
            answer = await self._client.patch(
                self._path,
                json={"name": f"count {count_of(record) + 1}"},
                headers={"If-Match": f'"{record["_etag"]}"'},
            )
            if answer.status_code == 200:
                self.acknowledged += 1
                return
            assert answer.status_code == 412, answer.text
        raise AssertionError("another writer was always faster")


def count_of(record: dict[str, Any]) -> int:
    return int(record["name"].removeprefix("count "))


async def all_agree(server: Server, path: str) -> None:
    """The list by name, the list by id, each record and the count of all are the same."""
    by_name = (await server.call("GET", path))["items"]
    by_id = await server.call("GET", f"{path}?sortField=id")
    assert by_id["totalCount"] == by_id["count"] == len(by_name)
    assert sorted(by_name, key=lambda each: str(each["id"])) == by_id["items"]
    assert [each["name"] for each in by_name] == sorted(each["name"] for each in by_name)
    for each in by_name:
        assert await server.call("GET", f"{path}/{each['id']}") == each


@pytest.mark.parametrize("plural", ["dashboards", "webhooks", "device-recipes"])
async def test_no_guarded_change_is_lost(start_server: StartServer, tmp_path: Path, plural: str) -> None:
    async with start_server() as server:
        path = f"{await server.application()}/{plural}"
        made = await server.call("POST", path, {"name": "count 0"})
        async with server.client() as client, trio.open_nursery() as nursery:
            for _ in range(WRITERS):
                nursery.start_soon(Writer(client, f"{path}/{made['id']}").add_one)
        assert count_of(await server.call("GET", f"{path}/{made['id']}")) == WRITERS
        await all_agree(server, path)
    assert verify(tmp_path / "data").problems == []


async def test_unguarded_changes_leave_one_whole_record(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server() as server:
        path = f"{await server.application()}/dashboards"
        made = await server.call("POST", path, {"name": "first"})
        each = f"{path}/{made['id']}"

        async def change(client: httpx.AsyncClient, number: int) -> None:
            body = {"name": f"name {number}", "description": f"description {number}"}
            assert (await client.patch(each, json=body)).status_code == 200

        async with server.client() as client, trio.open_nursery() as nursery:
            for number in range(WRITERS):
                nursery.start_soon(change, client, number)
        record = await server.call("GET", each)
        assert record["description"] == record["name"].replace("name", "description")
        await all_agree(server, path)
    assert verify(tmp_path / "data").problems == []


@pytest.mark.slow
async def test_guarded_changes_survive_a_kill(tmp_path: Path) -> None:
    writers: list[Writer] = []
    async with serving(tmp_path / "data") as server:
        path = f"{await server.application()}/dashboards"
        each = f"{path}/{(await server.call('POST', path, {'name': 'count 0'}))['id']}"

        async def write(client: httpx.AsyncClient, began: trio.Event) -> None:
            writer = Writer(client, each)
            writers.append(writer)
            try:
                while True:
                    await writer.add_one()
                    if sum(each.acknowledged for each in writers) >= WRITERS:
                        began.set()
            except (httpx.HTTPError, OSError):
                return  # the server was killed

        began = trio.Event()
        with trio.fail_after(PATIENCE_S):
            async with server.client() as client, trio.open_nursery() as nursery:
                for _ in range(WRITERS_UNTIL_KILL):
                    nursery.start_soon(write, client, began)
                await began.wait()
                await server.kill()
    done = await trunkline("check", "--data", str(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    async with serving(tmp_path / "data") as server:
        count = count_of(await server.call("GET", each))
        await all_agree(server, path)
        assert re.fullmatch(r"count \d+", (await server.call("GET", each))["name"])
        assert await server.terminate() == 0
    acknowledged = sum(writer.acknowledged for writer in writers)
    # At most one change of each writer was on its way, and only one of them can be stored.
    assert acknowledged <= count <= acknowledged + 1
