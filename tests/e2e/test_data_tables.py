"""Data tables: their records and columns, and the effect of a column on existing rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Json, Server

COLUMNS: list[dict[str, Any]] = [
    {"name": "sku", "dataType": "string", "constraint": "unique"},
    {"name": "price", "dataType": "number", "constraint": "required"},
    {"name": "sold", "dataType": "boolean", "constraint": "optional", "defaultValue": False},
]


async def make_table(server: Server, application: str, columns: Json = None, **fields: Any) -> str:
    """The path of a new data table."""
    body = {"name": "stock", "columns": COLUMNS if columns is None else columns, **fields}
    made = await server.call("POST", f"{application}/data-tables", body, status=201)
    return f"{application}/data-tables/{made['id']}"


async def test_a_table_is_made_read_changed_and_deleted(server: Server) -> None:
    application = await server.application()
    body = {"name": "stock", "description": "what we have", "columns": COLUMNS}
    made = await server.call("POST", f"{application}/data-tables", body, status=201)
    path = f"{application}/data-tables/{made['id']}"
    assert made["dataTableId"] == made["id"]
    assert made["applicationId"] == application.rpartition("/")[2]
    assert (made["name"], made["description"]) == ("stock", "what we have")
    assert made["columns"] == COLUMNS
    assert made["_type"] == "dataTable"
    assert made["_links"]["self"]["href"] == path
    assert await server.call("GET", path) == made
    changed = await server.call("PATCH", path, {"name": "store"})
    assert (changed["name"], changed["description"]) == ("store", "what we have")
    assert changed["lastUpdated"] > made["lastUpdated"]
    assert changed["_etag"] != made["_etag"]
    assert await server.call("DELETE", path) == {"success": True}
    for method, rest, sent in (("GET", "", None), ("GET", "/rows", None), ("POST", "/rows", {"price": 1})):
        answer = await server.call(method, path + rest, sent, status=404)
        assert made["id"] in answer["message"]


async def test_a_table_may_begin_without_columns(server: Server) -> None:
    application = await server.application()
    made = await server.call("POST", f"{application}/data-tables", {"name": "bare"}, status=201)
    assert made["columns"] == []
    path = f"{application}/data-tables/{made['id']}"
    row = await server.call("POST", f"{path}/rows", {}, status=201)
    assert row.keys() == {"id", "createdAt", "updatedAt"}


async def test_tables_are_listed_sorted_and_filtered(server: Server) -> None:
    application = await server.application()
    for name in ("beta", "Alpha", "gamma"):
        await make_table(server, application, [], name=name)
    path = f"{application}/data-tables"
    listed = await server.call("GET", path)
    assert [each["name"] for each in listed["items"]] == ["Alpha", "beta", "gamma"]
    assert (listed["count"], listed["totalCount"], listed["_type"]) == (3, 3, "dataTables")
    assert (listed["sortField"], listed["sortDirection"], listed["perPage"]) == ("name", "asc", 100)
    for sort in ("id", "creationDate", "lastUpdated"):
        listed = await server.call("GET", f"{path}?sortField={sort}&sortDirection=desc&perPage=1")
        assert [each["name"] for each in listed["items"]] == ["gamma"]
    listed = await server.call("GET", f"{path}?filterField=name&filter=*ta")
    assert [each["name"] for each in listed["items"]] == ["beta"]
    summary = (await server.call("GET", application))["summary"]
    assert summary["dataTableCount"] == 3


async def test_a_table_of_one_application_is_not_found_in_another(server: Server) -> None:
    own, other = await server.application("own"), await server.application("other")
    path = await make_table(server, own)
    row = await server.call("POST", f"{path}/rows", {"price": 1})
    strange = path.replace(own, other)
    for method, rest, body in (
        ("GET", "", None),
        ("PATCH", "", {"name": "x"}),
        ("DELETE", "", None),
        ("POST", "/column", {"name": "x", "dataType": "string", "constraint": "optional"}),
        ("DELETE", "/column?columnName=sku", None),
        ("GET", "/rows", None),
        ("POST", "/rows", {"price": 1}),
        ("POST", "/rows/query", {}),
        ("POST", "/rows/delete", {}),
        ("POST", "/rows/truncate", None),
        ("GET", f"/rows/{row['id']}", None),
        ("PATCH", f"/rows/{row['id']}", {"price": 2}),
        ("DELETE", f"/rows/{row['id']}", None),
    ):
        await server.call(method, strange + rest, body, status=404)
    # Nor is a row of one table found in another.
    second = await make_table(server, own)
    await server.call("GET", f"{second}/rows/{row['id']}", status=404)
    assert (await server.call("GET", f"{path}/rows"))["items"] == [row]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ({"name": "id"}, "columns[0].name: id is kept by the server"),
        ({"name": "createdAt"}, "columns[0].name: createdAt is kept by the server"),
        ({"name": "two words"}, "columns[0].name: got"),
        ({"name": ""}, "columns[0].name: got"),
        ({"dataType": "date"}, "columns[0].dataType: is 'date'; give one of boolean, number, string."),
        (
            {"constraint": "primary"},
            "columns[0].constraint: is 'primary'; give one of optional, required, unique.",
        ),
        (
            {"defaultValue": "cheap"},
            "columns[0].defaultValue: 'cheap' is not a number, which this column takes.",
        ),
        ({"defaultValue": True}, "columns[0].defaultValue: true is not a number"),
        ({"dataType": "string", "defaultValue": 5}, "columns[0].defaultValue: 5 is not text"),
        ({"size": 5}, "columns[0].size: there is no such field"),
    ],
)
async def test_a_wrong_column_is_refused_with_its_place(
    server: Server, column: dict[str, Any], problem: str
) -> None:
    application = await server.application()
    good = {"name": "price", "dataType": "number", "constraint": "optional"}
    body = {"name": "stock", "columns": [{**good, **column}]}
    answer = await server.call("POST", f"{application}/data-tables", body, status=400)
    assert problem in answer["message"] or answer["message"].startswith(problem.partition(" got")[0])
    assert (await server.call("GET", f"{application}/data-tables"))["totalCount"] == 0


async def test_a_name_of_a_column_stands_for_one_column(server: Server) -> None:
    application = await server.application()
    body = {"name": "stock", "columns": [COLUMNS[0], COLUMNS[0]]}
    answer = await server.call("POST", f"{application}/data-tables", body, status=400)
    assert answer["message"].startswith("columns[1].name: the table has a column sku already")
    path = await make_table(server, application)
    answer = await server.call("POST", f"{path}/column", COLUMNS[0], status=400)
    assert answer["message"].startswith("name: the table has a column sku already")


async def test_a_table_has_at_most_fifty_columns(server: Server) -> None:
    application = await server.application()
    columns = [{"name": f"c{n}", "dataType": "number", "constraint": "optional"} for n in range(51)]
    body = {"name": "wide", "columns": columns}
    await server.call("POST", f"{application}/data-tables", body, status=400)
    path = await make_table(server, application, columns[:50])
    answer = await server.call("POST", f"{path}/column", columns[50], status=400)
    assert "50 columns already" in answer["message"]
    await server.call("DELETE", f"{path}/column?columnName=c7")
    changed = await server.call("POST", f"{path}/column", columns[50])
    assert [each["name"] for each in changed["columns"]][-2:] == ["c49", "c50"]
    row = await server.call("POST", f"{path}/rows", {f"c{n}": n for n in range(51) if n != 7}, status=201)
    assert row["c50"] == 50


async def test_old_rows_are_null_in_a_new_column_whatever_it_is(server: Server) -> None:
    path = await make_table(server, await server.application())
    old = await server.call("POST", f"{path}/rows", {"price": 1})
    for constraint in ("optional", "required", "unique"):
        column = {"name": constraint, "dataType": "string", "constraint": constraint, "defaultValue": "x"}
        await server.call("POST", f"{path}/column", column)
        shown = await server.call("GET", f"{path}/rows/{old['id']}")
        assert shown[constraint] is None, "a default fills what an insert leaves out, and no old row"
    # A patch without the required column leaves it null; a patch with it cannot make it null.
    patched = await server.call("PATCH", f"{path}/rows/{old['id']}", {"price": 2})
    assert patched["required"] is None
    answer = await server.call("PATCH", f"{path}/rows/{old['id']}", {"required": None}, status=400)
    assert answer["message"] == "required: is null; the column is required."
    # The default of the unique column serves one row.
    new = await server.call("POST", f"{path}/rows", {"price": 3}, status=201)
    assert [new[name] for name in ("optional", "required", "unique")] == ["x", "x", "x"]
    answer = await server.call("POST", f"{path}/rows", {"price": 4}, status=400)
    assert answer["message"].startswith("unique: 'x' stands in another row already")
    await server.call("POST", f"{path}/rows", {"price": 4, "unique": None}, status=201)


async def test_a_column_that_comes_back_is_another_one(server: Server) -> None:
    path = await make_table(server, await server.application())
    row = await server.call("POST", f"{path}/rows", {"sku": "a", "price": 1})
    await server.call("DELETE", f"{path}/column?columnName=sku")
    shown = await server.call("GET", f"{path}/rows/{row['id']}")
    assert "sku" not in shown
    answer = await server.call("POST", f"{path}/rows", {"sku": "a", "price": 1}, status=400)
    assert answer["message"].startswith("sku: the table has no such column")
    await server.call("POST", f"{path}/column", COLUMNS[0])
    shown = await server.call("GET", f"{path}/rows/{row['id']}")
    assert shown["sku"] is None
    found = await server.call("POST", f"{path}/rows/query", {"sku": "a"})
    assert found["totalCount"] == 0
    # The value is free: what the former column held is not in the way, also before it was swept.
    again = await server.call("POST", f"{path}/rows", {"sku": "a", "price": 2}, status=201)
    patched = await server.call("PATCH", f"{path}/rows/{row['id']}", {"sku": "b"})
    assert (again["sku"], patched["sku"]) == ("a", "b")
    answer = await server.call("DELETE", f"{path}/column?columnName=nothing", status=404)
    assert "nothing" in answer["message"]
    await server.call("DELETE", f"{path}/column", status=400)


async def test_if_match_guards_tables_and_rows(server: Server) -> None:
    path = await make_table(server, await server.application())
    table = await server.call("GET", path)
    old = {"If-Match": f'"{table["_etag"]}"'}
    await server.call("PATCH", path, {"name": "store"}, headers=old, status=200)
    column = {"name": "x", "dataType": "string", "constraint": "optional"}
    for method, rest, body in (
        ("PATCH", "", {"name": "other"}),
        ("DELETE", "", None),
        ("DELETE", "/column?columnName=sku", None),
    ):
        await server.call(method, path + rest, body, headers=old, status=412)
    row = f"{path}/rows/" + (await server.call("POST", f"{path}/rows", {"price": 1}))["id"]
    async with server.client() as client:
        tag = (await client.get(row)).headers["etag"]
        assert (await client.get(row, headers={"If-None-Match": tag})).status_code == 304
        # Another column shows another row, though its bytes are the same.
        await client.post(f"{path}/column", json=column)
        assert (await client.get(row, headers={"If-None-Match": tag})).status_code == 200
        tag = (await client.get(row)).headers["etag"]
        changed = await client.patch(row, json={"price": 2}, headers={"If-Match": tag})
        assert changed.status_code == 200
        assert changed.headers["etag"] != tag
        for method in ("PATCH", "DELETE"):
            sent: Json = {"price": 3} if method == "PATCH" else None
            refused = await client.request(method, row, json=sent, headers={"If-Match": tag})
            assert refused.status_code == 412
        assert (await client.get(row)).json()["price"] == 2
        assert (await client.get(row)).headers["etag"] == changed.headers["etag"]
