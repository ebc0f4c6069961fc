"""Exports of the rows of a data table: what is written is what the table holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Json, Server
from tests.e2e.test_data_table_rows import SCORES, filled
from tests.e2e.test_data_tables import make_table
from tests.e2e.test_exports import ended, fetched, rows

PLAYERS = [
    {"name": "ann", "score": 3, "team": "red"},
    {"name": "bob", "score": None, "team": "=red"},
    {"name": 'cy, the "quick"', "score": -1.5, "team": ""},
    {"name": "dee", "score": 10},
]


async def exported(server: Server, table: str, body: Json) -> tuple[dict[str, Any], list[list[str]]]:
    """The log of an export, and its file without the columns that every row has."""
    queued = await server.call("POST", f"{table}/rows/export", body, status=202)
    log = await ended(server, table.partition("/data-tables/")[0], queued["jobId"])
    assert log["status"] == "completed", log
    lines = rows(await fetched(server, log["output"]["file"]["url"]))
    assert lines[0][:3] == ["id", "createdAt", "updatedAt"]
    return log, [line[3:] for line in lines]


async def test_all_rows_are_exported(server: Server) -> None:
    table = await filled(server, PLAYERS)
    log, lines = await exported(server, table, {})
    assert lines == [
        ["name", "score", "team"],
        ["ann", "3", "red"],
        ["bob", "", "'=red"],
        ['cy, the "quick"', "-1.5", ""],
        ["dee", "10", ""],
    ]
    assert (log["name"], log["resourceType"]) == ("dataTableRows.export", "datatable")
    assert log["resourceId"] == table.rpartition("/")[2]
    assert log["progress"] == {"completed": 4, "total": 4, "status": "completed"}
    assert log["output"]["rows"] == 4
    assert log["output"]["escapedTexts"] == 1
    raw = (await fetched(server, log["output"]["file"]["url"])).text
    assert raw.splitlines()[3].endswith(',""'), "an empty text is not null"
    assert raw.splitlines()[4].endswith(",10,")
    shown = (await server.call("GET", f"{table}/rows"))["items"]
    assert raw.splitlines()[1].split(",")[:3] == [shown[0][name] for name in ("id", "createdAt", "updatedAt")]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"query": {"score": {"$gt": 0}}}, ["ann", "dee"]),
        (
            {"query": {}, "queryOptions": {"sortColumn": "score", "sortDirection": "DESC"}},
            ["dee", "ann", "cy", "bob"],
        ),
        (
            {"queryOptions": {"sortColumn": "name", "sortDirection": "", "offset": 1, "limit": 2}},
            ["bob", "cy"],
        ),
        ({"query": {"score": {"$ne": 3}}, "queryOptions": {"sortDirection": "desc", "limit": 1}}, ["dee"]),
        ({"queryOptions": {"limit": 0}}, []),
    ],
)
async def test_what_is_exported_can_be_chosen(server: Server, body: Json, names: list[str]) -> None:
    table = await filled(server, PLAYERS)
    log, lines = await exported(server, table, body)
    assert [line[0].partition(",")[0] for line in lines[1:]] == names
    assert log["output"]["rows"] == len(names)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": {"points": 1}}, "query.points"),
        ({"query": {"$or": []}}, "$or"),
        ({"queryOptions": {"sortColumn": "points"}}, "sortColumn"),
        ({"queryOptions": {"limit": -1}}, "queryOptions.limit"),
        ({"queryOptions": {"limit": 2**64 - 1}}, "queryOptions.limit"),
        ({"queryOptions": {"page": 1}}, "queryOptions.page"),
        ({"callbackUrl": "example.com"}, "callbackUrl"),
    ],
)
async def test_a_wrong_export_queues_nothing(server: Server, body: Json, field: str) -> None:
    table = await filled(server, PLAYERS)
    refused = await server.call("POST", f"{table}/rows/export", body, status=400)
    assert field in refused["message"]
    application = table.partition("/data-tables/")[0]
    await server.call("POST", f"{application}/data-tables/{'0' * 24}/rows/export", {}, status=404)
    assert (await server.call("GET", f"{application}/jobLogs"))["items"] == []


async def test_a_table_is_exported_once_at_a_time(start_server: Callable[..., Any]) -> None:
    """There is no room for results, so the first export waits for its next attempt."""
    async with start_server(limits={"job_results_bytes_max": 1, "job_pause_s": 3600}) as server:
        table = await filled(server, PLAYERS)
        await server.call("POST", f"{table}/rows/export", {}, status=202)
        refused = await server.call("POST", f"{table}/rows/export", {}, status=429)
        assert "this data table is queued or runs" in refused["message"]
        other = await make_table(server, table.partition("/data-tables/")[0], SCORES)
        await server.call("POST", f"{other}/rows/export", {}, status=202)


async def test_an_export_of_a_table_that_is_deleted_meanwhile_ends_with_a_sentence(
    start_server: Callable[..., Any],
) -> None:
    async with start_server(limits={"job_results_bytes_max": 1, "job_pause_s": 3600}) as server:
        table = await filled(server, PLAYERS)
        queued = await server.call("POST", f"{table}/rows/export", {}, status=202)
        await server.call("DELETE", table)
    async with start_server() as server:
        log = await ended(server, table.partition("/data-tables/")[0], queued["jobId"])
        assert log["status"] == "errored"
        assert log["error"]["name"] == "NotFound"
