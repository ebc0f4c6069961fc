"""Rows of data tables: inserted, read, queried, changed and deleted through the API."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.e2e.conftest import Json, Server
from tests.e2e.test_data_tables import make_table

SCORES: list[dict[str, Any]] = [
    {"name": "name", "dataType": "string", "constraint": "unique"},
    {"name": "score", "dataType": "number", "constraint": "optional"},
    {"name": "team", "dataType": "string", "constraint": "optional"},
]


async def filled(server: Server, rows: Json) -> str:
    """The path of a table of scores with these rows."""
    path = await make_table(server, await server.application(), SCORES)
    made = await server.call("POST", f"{path}/rows", rows, status=201)
    assert made["count"] == len(rows)
    return path


async def shown(server: Server, path: str, query: str = "", body: Json = None, field: str = "name") -> Json:
    """One field of all rows of a page, by GET or, with a body, by a query."""
    if body is None:
        page = await server.call("GET", f"{path}/rows{query}")
    else:
        page = await server.call("POST", f"{path}/rows/query{query}", body)
    assert page["count"] == len(page["items"])
    return [row[field] for row in page["items"]]


async def test_a_row_is_inserted_read_changed_and_deleted(server: Server) -> None:
    path = await make_table(server, await server.application())
    made = await server.call("POST", f"{path}/rows", {"sku": "a-1", "price": 2.5}, status=201)
    assert made == {
        "id": made["id"],
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
        "sku": "a-1",
        "price": 2.5,
        "sold": False,
    }
    row = f"{path}/rows/{made['id']}"
    assert await server.call("GET", row) == made
    changed = await server.call("PATCH", row, {"price": 3, "sku": None})
    assert changed == {**made, "price": 3, "sku": None, "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] > made["updatedAt"]
    assert await server.call("GET", row) == changed
    assert await server.call("DELETE", row) == {"success": True}
    for method, body in (("GET", None), ("PATCH", {"price": 1}), ("DELETE", None)):
        answer = await server.call(method, row, body, status=404)
        assert answer["message"] == f"There is no row {made['id']} here."


async def test_an_array_is_inserted_whole_and_in_its_order(server: Server) -> None:
    path = await make_table(server, await server.application())
    rows = [{"sku": f"s{n:03}", "price": n} for n in range(1000)]
    made = await server.call("POST", f"{path}/rows", rows, status=201)
    assert made.keys() == {"createdAt", "count", "rowIds"}
    assert (made["count"], len(set(made["rowIds"]))) == (1000, 1000)
    assert made["rowIds"] == sorted(made["rowIds"])
    page = await server.call("GET", f"{path}/rows")
    assert [row["id"] for row in page["items"]] == made["rowIds"]
    assert [row["price"] for row in page["items"]] == list(range(1000))
    assert {row["createdAt"] for row in page["items"]} == {made["createdAt"]}
    nothing = await server.call("POST", f"{path}/rows", [], status=201)
    assert (nothing["count"], nothing["rowIds"]) == (0, [])
    answer = await server.call("POST", f"{path}/rows", [{"price": 1}] * 1001, status=413)
    assert "at most 1000" in answer["message"]
    assert (await server.call("GET", f"{path}/rows?limit=0"))["totalCount"] == 1000


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"sku": "s17", "price": "x"}, "price: 'x' is not a number, which this column takes."),
        ({"sku": "s17", "price": True}, "price: true is not a number"),
        ({"sku": "s17", "price": None}, "price: is null; the column is required."),
        ({"sku": "s17"}, "price: is missing; the column is required."),
        ({"sku": 17, "price": 1}, "sku: 17 is not text, which this column takes."),
        ({"sku": ["s"], "price": 1}, "sku: an array is not text"),
        ({"sku": {}, "price": 1}, "sku: an empty object is not text"),
        ({"sold": 1, "price": 1}, "sold: 1 is not a boolean"),
        ({"price": 2**64}, "price: the whole number is too large to be kept exactly"),
        ({"price": 1, "sku": "x" * 65_537}, "sku: the text has more than 65536 bytes"),
        ({"pric": 1, "price": 1}, "pric: the table has no such column (did you mean price?)"),
        ({"id": "0" * 24, "price": 1}, "id: is kept by the server; leave it out."),
        ({"price": 1, "sku": "s3"}, "sku: 's3' stands in row [3] of this call already"),
        ({"price": 1, "sku": "there"}, "sku: 'there' stands in another row already"),
    ],
)
async def test_a_refusal_names_row_and_column_and_stores_nothing(
    server: Server, bad: dict[str, Any], problem: str
) -> None:
    path = await make_table(server, await server.application())
    await server.call("POST", f"{path}/rows", {"sku": "there", "price": 0})
    rows = [{"sku": f"s{n}", "price": n} for n in range(17)]
    answer = await server.call("POST", f"{path}/rows", [*rows, bad], status=400)
    assert answer["message"].startswith(f"[17].{problem}")
    if "of this call" not in problem:
        answer = await server.call("POST", f"{path}/rows", bad, status=400)
        assert answer["message"].startswith(problem)
    page = await server.call("GET", f"{path}/rows")
    assert [row["sku"] for row in page["items"]] == ["there"]
    # And no value of the refused call is taken.
    await server.call("POST", f"{path}/rows", rows, status=201)


async def test_null_is_no_value_of_a_unique_column(server: Server) -> None:
    path = await make_table(server, await server.application())
    rows = [{"sku": None, "price": 1}, {"price": 2}, {"sku": "", "price": 3}]
    await server.call("POST", f"{path}/rows", rows, status=201)
    await server.call("POST", f"{path}/rows", {"sku": None, "price": 4}, status=201)
    answer = await server.call("POST", f"{path}/rows", {"sku": "", "price": 4}, status=400)
    assert answer["message"].startswith("sku: '' stands in another row")


async def test_a_value_is_free_again_when_its_row_is_gone_or_changed(server: Server) -> None:
    path = await make_table(server, await server.application())
    first = await server.call("POST", f"{path}/rows", {"sku": "a", "price": 1})
    second = await server.call("POST", f"{path}/rows", {"sku": "b", "price": 1})
    answer = await server.call("PATCH", f"{path}/rows/{second['id']}", {"sku": "a"}, status=400)
    assert answer["message"].startswith("sku: 'a' stands in another row")
    await server.call("PATCH", f"{path}/rows/{first['id']}", {"sku": "a"})
    await server.call("PATCH", f"{path}/rows/{first['id']}", {"sku": "c"})
    await server.call("PATCH", f"{path}/rows/{second['id']}", {"sku": "a"})
    await server.call("DELETE", f"{path}/rows/{second['id']}")
    await server.call("POST", f"{path}/rows", [{"sku": "a", "price": 1}, {"sku": "b", "price": 1}])
    await server.call("POST", f"{path}/rows", {"sku": "c", "price": 1}, status=400)


async def test_equal_numbers_are_equal_and_long_texts_are_told_apart(server: Server) -> None:
    columns = [
        {"name": "n", "dataType": "number", "constraint": "unique"},
        {"name": "t", "dataType": "string", "constraint": "unique"},
    ]
    path = await make_table(server, await server.application(), columns)
    long = "x" * 1000
    good: list[Any] = [1, 1.5, 2**53, 2**53 + 1, 2**64 - 1, -(2**64) + 1, 0, 1e300]
    rows = [{"n": number, "t": f"{long}{place}"} for place, number in enumerate(good)]
    await server.call("POST", f"{path}/rows", rows, status=201)
    for equal in (1.0, -0.0, 9007199254740992.0):
        await server.call("POST", f"{path}/rows", {"n": equal}, status=400)
    await server.call("POST", f"{path}/rows", {"t": f"{long}3"}, status=400)
    await server.call("POST", f"{path}/rows", {"t": long}, status=201)
    page = await server.call("GET", f"{path}/rows?sortColumn=n&includeFields=n&offset=1")
    assert [row["n"] for row in page["items"]] == sorted(good)


async def test_pages_are_cut_in_any_order(server: Server) -> None:
    names = ["delta", "alpha", "Echo", "bravo", "charlie"]
    rows = [{"name": name, "score": len(name), "team": "a" if name < "c" else None} for name in names]
    path = await filled(server, [*rows, {"score": 9}])
    by_name = ["Echo", "alpha", "bravo", "charlie", "delta"]
    assert await shown(server, path) == [*names, None]
    assert await shown(server, path, "?sortColumn=id&sortDirection=desc") == [None, *names[::-1]]
    assert await shown(server, path, "?sortColumn=createdAt&limit=2&offset=1") == names[1:3]
    # Null comes first, texts go by code point, and descending is the exact reverse.
    assert await shown(server, path, "?sortColumn=name") == [None, *by_name]
    assert await shown(server, path, "?sortColumn=name&sortDirection=desc") == [*by_name[::-1], None]
    for offset in range(8):
        expected = [None, *by_name][offset : offset + 2]
        query = f"limit=2&offset={offset}"
        assert await shown(server, path, f"?sortColumn=name&{query}") == expected
        assert await shown(server, path, f"?sortColumn=name&{query}", {"score": {"$gt": 0}}) == expected
        reverse = [*by_name[::-1], None][offset : offset + 2]
        assert await shown(server, path, f"?sortColumn=name&sortDirection=desc&{query}") == reverse
    # Equal ones follow in order of creation.
    assert await shown(server, path, "?sortColumn=score") == [
        "Echo", "delta", "alpha", "bravo", "charlie", None,
    ]  # fmt: skip
    assert await shown(server, path, "?sortColumn=score&sortDirection=desc&limit=2&offset=1") == [
        "charlie", "bravo",
    ]  # fmt: skip
    await server.call("PATCH", f"{path}/rows/{(await shown(server, path, field='id'))[1]}", {"team": "b"})
    assert (await shown(server, path, "?sortColumn=updatedAt"))[-1] == "alpha"
    page = await server.call("GET", f"{path}/rows?sortColumn=name&sortDirection=desc&limit=2&offset=1")
    ids = path.split("/")
    assert {name: value for name, value in page.items() if name not in ("items", "_links")} == {
        "count": 2, "totalCount": 6, "limit": 2, "offset": 1, "sortColumn": "name", "sortDirection": "desc",
        "applicationId": ids[2], "dataTableId": ids[4], "_type": "dataTableRows",
    }  # fmt: skip


async def test_fields_are_chosen(server: Server) -> None:
    path = await filled(server, [{"name": "a", "score": 1}])
    page = await server.call("GET", f"{path}/rows?includeFields=score,name")
    assert page["items"] == [{"name": "a", "score": 1}]
    page = await server.call("POST", f"{path}/rows/query?includeFields=id,updatedAt", {"name": "a"})
    assert page["items"][0].keys() == {"id", "updatedAt"}
    for query in ("includeFields=nam", "sortColumn=nam"):
        answer = await server.call("GET", f"{path}/rows?{query}", status=400)
        assert "did you mean name?" in answer["message"]
    answer = await server.call("GET", f"{path}/rows?limit=10001", status=400)
    assert "10000" in answer["message"]


async def test_rows_are_queried(server: Server) -> None:
    rows = [
        {"name": "ann", "score": 3, "team": "red"},
        {"name": "Bob", "score": 5, "team": "blue"},
        {"name": "cid", "score": None, "team": "red"},
        {"name": "dan", "score": 8.5},
    ]
    path = await filled(server, rows)
    ids = await shown(server, path, field="id")
    made = (await server.call("GET", f"{path}/rows"))["items"][0]["createdAt"]
    for query, expected in (
        ({}, "ann Bob cid dan"),
        ({"score": {"$gt": 3}}, "Bob dan"),
        ({"score": None}, "cid"),
        ({"team": {"$ne": "red"}}, "Bob dan"),
        ({"name": {"$startsWith": "b", "$ci": True}}, "Bob"),
        ({"$or": [{"name": "ann"}, {"score": 8.5}]}, "ann dan"),
        ({"name": {"$in": ["ann", "cid", "zoe"]}, "team": "red"}, "ann cid"),
        ({"id": ids[2]}, "cid"),
        ({"id": {"$gte": ids[2]}}, "cid dan"),
        ({"id": {"$gt": ids[0], "$lt": ids[3].upper()}}, "Bob cid"),
        ({"id": {"$in": [ids[1].upper(), "zz", "0a"]}}, "Bob"),
        ({"id": "no id at all"}, ""),
        ({"id": {"$contains": ids[3][4:]}}, "dan"),
        ({"createdAt": made}, "ann Bob cid dan"),
        ({"createdAt": {"$lt": made}}, ""),
        ({"updatedAt": {"$gte": {"$date": made}}, "score": {"$lte": 3}}, "ann"),
    ):
        assert await shown(server, path, body=query) == expected.split(), query
        page = await server.call("POST", f"{path}/rows/query?limit=1", query)
        assert page["totalCount"] == len(expected.split())
        assert page["query"] == query
    # Without a body, every row matches.
    assert (await server.call("POST", f"{path}/rows/query"))["totalCount"] == 4
    answer = await server.call("POST", f"{path}/rows/query", {"scor": 1}, status=400)
    assert "did you mean score?" in answer["message"]
    await server.call("POST", f"{path}/rows/query", [], status=400)


async def test_too_many_bytes_are_413_and_a_word_how_to_page(start_server: Any) -> None:
    async with start_server(limits={"rows_bytes_max": 100_000}) as server:
        path = await filled(server, [{"name": f"{n}", "team": "x" * 1000} for n in range(200)])
        for call in (("GET", "/rows", None), ("POST", "/rows/query", {"score": None})):
            answer = await server.call(call[0], path + call[1], call[2], status=413)
            assert "limit=" in answer["message"]
        limit = int(answer["message"].partition("limit=")[2].partition(" ")[0])
        assert len(await shown(server, path, f"?limit={limit}")) == limit
        assert len(await shown(server, path, "?includeFields=name")) == 200


async def test_rows_are_deleted_by_query_and_no_more_than_the_limit(server: Server) -> None:
    path = await filled(server, [{"name": f"n{n:04}", "score": n % 3} for n in range(600)])
    answer = await server.call("POST", f"{path}/rows/delete?limit=50", {"score": 1}, status=200)
    assert answer == {"removed": 50}
    page = await server.call("POST", f"{path}/rows/query?limit=1", {"score": 1})
    assert (page["totalCount"], page["items"][0]["name"]) == (150, "n0151"), "the oldest went first"
    assert await server.call("POST", f"{path}/rows/delete", {"score": 1}) == {"removed": 150}
    assert await server.call("POST", f"{path}/rows/delete", {"score": 1}) == {"removed": 0}
    assert await server.call("POST", f"{path}/rows/delete?limit=0", {}) == {"removed": 0}
    assert await server.call("POST", f"{path}/rows/delete?limit=7") == {"removed": 7}
    assert await server.call("POST", f"{path}/rows/delete?limit=3", {}) == {"removed": 3}
    assert (await server.call("GET", f"{path}/rows?limit=0"))["totalCount"] == 390
    refused: list[Json] = [
        {"scor": 1},
        {"score": {"$gt": 1, "$lte": []}},
        {"$or": {}},
        {"$or": []},
        {"$and": []},
    ]
    for wrong in refused:
        await server.call("POST", f"{path}/rows/delete", wrong, status=400)
    await server.call("POST", f"{path}/rows/delete?limit=10001", {}, status=400)
    assert await server.call("POST", f"{path}/rows/delete", {"name": {"$lt": "n9"}}) == {"removed": 390}
    # Their values are free.
    await server.call("POST", f"{path}/rows", {"name": "n0000"}, status=201)


async def test_a_row_by_its_id_in_an_empty_table(server: Server) -> None:
    path = await filled(server, [{"name": "only"}])
    (row,) = await shown(server, path, field="id")
    for removed in (1, 0, 0):
        assert await server.call("POST", f"{path}/rows/delete", {"id": row}) == {"removed": removed}
    for query in ({"id": row}, {"name": "only"}, {"id": {"$gte": row}}):
        assert (await server.call("POST", f"{path}/rows/query", query))["totalCount"] == 0
        assert await server.call("POST", f"{path}/rows/delete", query) == {"removed": 0}


async def test_a_table_is_truncated_and_goes_on(server: Server) -> None:
    path = await filled(server, [{"name": f"{n}"} for n in range(300)])
    (row, *_) = await shown(server, path, field="id")
    for _ in range(2):
        refused = await server.call("POST", f"{path}/rows/truncate", {"name": "1"}, status=400)
        assert "this operation takes none" in refused["message"]
    assert (await server.call("GET", f"{path}/rows"))["totalCount"] == 300
    assert await server.call("POST", f"{path}/rows/truncate", {}) == {"success": True}
    page = await server.call("GET", f"{path}/rows?sortColumn=name")
    assert (page["items"], page["totalCount"]) == ([], 0)
    await server.call("GET", f"{path}/rows/{row}", status=404)
    await server.call("PATCH", f"{path}/rows/{row}", {"name": "x"}, status=404)
    assert (await server.call("POST", f"{path}/rows/query", {"name": "1"}))["totalCount"] == 0
    await server.call("POST", f"{path}/rows", [{"name": "1"}, {"name": "2"}], status=201)
    assert await shown(server, path, "?sortColumn=name&sortDirection=desc") == ["2", "1"]
    await server.call("POST", f"{path}/rows/truncate")
    await server.call("POST", f"{path}/rows/truncate")
    assert (await server.call("GET", f"{path}/rows"))["totalCount"] == 0


async def test_rows_are_counted_as_payloads(server: Server) -> None:
    application = await server.application()
    path = await make_table(server, application)
    row = await server.call("POST", f"{path}/rows", {"price": 1})
    await server.call("POST", f"{path}/rows", [{"price": 1}] * 5)
    await server.call("PATCH", f"{path}/rows/{row['id']}", {"price": 2})
    await server.call("DELETE", f"{path}/rows/{row['id']}")
    await server.call("POST", f"{path}/rows/delete", {})
    counts = await server.call("GET", f"{application}/payloadCounts")
    assert counts["dataTable"] == {"total": 1 + 5 + 1 + 1 + 5}


async def test_a_value_is_taken_once_by_many_writers(server: Server) -> None:
    path = await make_table(server, await server.application())
    statuses: list[int] = []

    async def write(value: str, as_array: bool) -> None:
        body: Json = {"sku": value, "price": 1}
        async with server.client() as client:
            answer = await client.post(f"{path}/rows", json=[body] if as_array else body)
            statuses.append(answer.status_code)

    async with trio.open_nursery() as nursery:
        for writer in range(40):
            nursery.start_soon(write, f"v{writer % 10}", writer % 3 == 0)
    assert sorted(statuses) == [201] * 10 + [400] * 30
    page = await server.call("GET", f"{path}/rows?sortColumn=sku")
    assert [row["sku"] for row in page["items"]] == [f"v{n}" for n in range(10)]


async def test_columns_may_be_called_almost_anything(server: Server) -> None:
    names = ["_type", "_links", "items", "updated_at", "0", "-", "x" * 255, "__proto__"]
    columns = [{"name": name, "dataType": "string", "constraint": "optional"} for name in names]
    path = await make_table(server, await server.application(), columns)
    values = dict.fromkeys(names, "v")
    row = await server.call("POST", f"{path}/rows", values, status=201)
    assert {name: row[name] for name in names} == values
    page = await server.call("POST", f"{path}/rows/query", {"$and": [{name: "v"} for name in names]})
    assert page["items"] == [row]


async def test_bulk_inserts_beyond_the_bound_are_told_to_come_back(start_server: Any) -> None:
    async with start_server(limits={"bulk_items_max": 10, "bulk_waiting_calls_max": 2}) as server:
        path = await make_table(server, await server.application())
        rows = [{"price": number} for number in range(10)]
        statuses: list[int] = []
        stored = 0

        async def insert() -> None:
            async with server.client() as client:
                answer = await client.post(f"{path}/rows", json=rows)
            statuses.append(answer.status_code)
            if answer.status_code == 503:
                assert answer.headers["retry-after"] == "1"

        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(insert)
        stored = (await server.call("GET", f"{path}/rows?limit=0"))["totalCount"]
        assert set(statuses) <= {201, 503}
        assert stored == 10 * statuses.count(201) >= 30
