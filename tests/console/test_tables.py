"""Data tables in the console: created, edited, queried, imported and exported."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

LARGE = 12345678901234567890
"""A whole number that a double cannot hold."""

PARTS = [
    {"name": "part", "dataType": "string", "constraint": "unique"},
    {"name": "pieces", "dataType": "number", "constraint": "optional"},
    {"name": "checked", "dataType": "boolean", "constraint": "optional"},
]


async def parts(server: Server, *rows: dict[str, object]) -> tuple[str, str]:
    """A table of parts: the paths of its application and of itself."""
    application = await server.application()
    table = await server.call("POST", f"{application}/data-tables", {"name": "parts", "columns": PARTS})
    path = f"{application}/data-tables/{table['id']}"
    if rows:
        await server.call("POST", f"{path}/rows", list(rows))
    return application, path


async def stored(server: Server, table: str) -> list[tuple[object, ...]]:
    rows = await server.call("GET", f"{table}/rows")
    return [tuple(row[each["name"]] for each in PARTS) for row in rows["items"]]


async def test_a_table_is_created_and_its_rows_are_changed(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/tables")
    await console.sees("There are no data tables yet")
    await console.at("button", "Create a data table").click()
    await console.at("textbox", "Name").fill("parts")
    for at, (name, type) in enumerate((("part", "string"), ("pieces", "number"), ("checked", "boolean")), 1):
        if at > 1:
            await console.at("button", "Another column").click()
        await console.at("textbox", f"Name of column {at}").fill(name)
        await console.at("combobox", f"Type of column {at}").choose(type)
    await console.at("combobox", "Constraint of column 1").choose("unique")
    await console.at("button", "Create").click()
    await console.sees("There are no rows yet")
    (table,) = (await server.call("GET", f"{application}/data-tables"))["items"]
    path = f"{application}/data-tables/{table['id']}"
    for name, pieces, checked in (("valve", "7", "true"), ("pump", str(LARGE), "")):
        await console.at("button", "Add a row").click()
        form = console.at("dialog")
        await form.at("textbox", re.compile("^part")).fill(name)
        await form.at("textbox", re.compile("^pieces")).fill(pieces)
        if checked:
            await form.at("combobox", re.compile("^checked")).choose(checked)
        await form.at("button", "Add").click()
        await form.gone()
    assert await stored(server, path) == [("valve", 7, True), ("pump", LARGE, None)]
    await console.at("button", str(LARGE)).shown()

    async with console.expecting("400"):
        await console.at("button", "pump").click()
        await console.at("textbox", "part").fill("valve")
        await console.press("Enter")
        await console.at("alert").says("valve")
    await console.at("textbox", "part").fill("tank")
    await console.press("Enter")
    await console.at("button", "tank").shown()
    await console.gives("document.activeElement.textContent", "tank")
    assert await stored(server, path) == [("valve", 7, True), ("tank", LARGE, None)]

    await console.at("checkbox", "Select this row").click()
    await console.at("button", "Delete 1 selected").click()
    await console.at("dialog").at("button", "Delete").click()
    await console.at("dialog").gone()
    await console.sees("1 row")
    assert await stored(server, path) == [("tank", LARGE, None)]

    await console.at("link", "Columns").click()
    await console.at("button", "Remove checked").click()
    await console.at("dialog").at("textbox").fill("checked")
    await console.at("dialog").at("button", "Remove").click()
    await console.at("dialog").gone()
    assert [each["name"] for each in (await server.call("GET", path))["columns"]] == ["part", "pieces"]

    await server.call("PATCH", path, {"name": "parts of pumps"})
    await console.at("button", "Change").click()
    await console.at("dialog").at("textbox", "Description").fill("In the cellar")
    await console.at("dialog").at("button", "Save").click()
    await console.at("heading", "parts of pumps").shown()


async def test_rows_are_queried_and_exported(server: Server, console: ConsolePage) -> None:
    rows = [
        {"part": f"part {number:03}", "pieces": number, "checked": number % 2 == 0} for number in range(120)
    ]
    application, path = await parts(server, *rows)
    await console.go(f"#{application}/tables/{path.rpartition('/')[2]}")
    await console.sees("Page 1 of 3")
    await console.at("columnheader", "pieces").at("button").click()
    await console.at("columnheader", re.compile("pieces")).at("button").click()
    await console.at("button", "part 119").shown()
    await console.at("combobox", "Column of condition 1").choose("pieces")
    await console.at("combobox", "Operator of condition 1").choose("<")
    await console.at("textbox", "Value of condition 1").fill("5")
    await console.at("button", "Another condition").click()
    await console.at("combobox", "Column of condition 2").choose("checked")
    await console.at("combobox", "Value of condition 2").choose("true")
    await console.at("button", "Show matching rows").click()
    await console.sees("3 rows")
    await console.reload()
    await console.sees("3 rows")
    await console.at("combobox", "Operator of condition 1").holds("$lt")

    await console.at("button", "Export as CSV").click()
    await console.sees("completed")
    async with console.download() as file:
        await console.at("link", re.compile("^Download")).click()
        lines = list(csv.DictReader((await file()).read_text().splitlines()))
    assert [line["part"] for line in lines] == ["part 004", "part 002", "part 000"]
    await console.at("dialog").at("button", "Close").click()

    # A row that is selected and leaves the list is not deleted with the others.
    await console.at("checkbox", "Select this row").click()
    await console.at("button", "Delete 1 selected").shown()
    await console.at("button", "4").click()
    await console.at("textbox", "pieces").fill("50")
    await console.press("Enter")
    await console.sees("2 rows")
    await console.at("button", "Delete 0 selected").shown()
    await console.at("checkbox", "Select this row").click()
    await console.at("button", "Delete 1 selected").click()
    await console.at("dialog").at("button", "Delete").click()
    await console.at("dialog").gone()
    await console.sees("1 row")
    names = {row[0] for row in await stored(server, path)}
    assert names & {"part 002", "part 004"} == {"part 004"}

    await console.at("button", "Write as JSON").click()
    async with console.expecting("400"):
        await console.at("textbox", "Query as JSON").fill('{"pieces": {"$near": 5}}')
        await console.at("button", "Show matching rows").click()
        await console.sees("pieces.$near: there is no such operator")
        await console.at("region", "Rows").gone()
        await console.at("textbox", "Query as JSON").fill('{"part": {}}')
        await console.at("button", "Show matching rows").click()
        await console.sees("part: ")
    await console.at("textbox", "Query as JSON").fill(
        '{"$or": [{"pieces": 3}, {"part": {"$endsWith": "9"}}]}'
    )
    await console.at("button", "Show matching rows").click()
    await console.sees("13 rows")
    await console.at("button", "Delete all that match").click()
    await console.at("dialog").at("textbox").fill("parts")
    await console.at("dialog").at("button", "Delete").click()
    await console.sees("13 rows deleted.")
    assert len(await stored(server, path)) == 106


async def test_a_csv_file_is_imported(server: Server, console: ConsolePage, tmp_path: Path) -> None:
    application, path = await parts(server)
    await console.go(f"#{application}/tables/{path.rpartition('/')[2]}?tab=import")
    file = tmp_path / "parts.csv"
    file.write_text('part;pieces\n"a\nb";"never;2\ntank;3\n')
    await console.at(css="input[type=file]").upload(file)
    await console.sees("Line 3 of the file: a field begins with a quotation mark that is never closed.")
    await console.at("button", "Import").gone()
    file.write_text('part;pieces\ntank;3\n"' + "y" * 1_100_000)
    await console.at(css="input[type=file]").upload(file)
    await console.at("button", "Import").click()
    await console.sees("Line 3 of the file: a field begins with a quotation mark that is not closed within")
    file.write_text("part,pieces\nvalve,7,\npump,1,500\n")
    await console.at(css="input[type=file]").upload(file)
    await console.at("button", "Import").click()
    await console.sees("Line 3 of the file has 3 fields, and its first line has 2.")
    assert await stored(server, path) == []
    lines = [
        'part;Number;"checked"',
        '"a ""large"" valve; with\r\ntwo lines";7;true',
        f'"";{LARGE};FALSE',
        ";;",
        "tank;1.5e3;",
        "grains;1e20;",
        "drops;1.2345678901234568e18;",
    ]
    file.write_bytes("\r\n".join(lines).encode())
    await console.at(css="input[type=file]").upload(file)
    await console.at("combobox", "Number").choose("pieces (number)")
    await console.at("button", "Import").click()
    await console.sees("6 rows stored. The file is imported.")
    assert await stored(server, path) == [
        ('a "large" valve; with\r\ntwo lines', 7, True),
        ("", LARGE, False),
        (None, None, None),
        ("tank", 1500, None),
        ("grains", 1e20, None),
        ("drops", 1.2345678901234568e18, None),
    ]
    file.write_text("part\n" + "".join(f"{at} {'漢' * 400}\n" for at in range(1000)))
    await console.at(css="input[type=file]").upload(file)
    await console.at("button", "Import").click()
    await console.sees("1,000 rows stored. The file is imported.")
    await console.at("link", "Rows").click()
    await console.at("button", "1.2345678901234568e+18").shown()
    await console.at("button", "1e+20").click()
    await console.at("textbox", "pieces").holds("1e+20")


async def test_an_import_stops_at_the_first_part_that_is_refused(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    application, path = await parts(server)
    await console.go(f"#{application}/tables/{path.rpartition('/')[2]}?tab=import")
    file = tmp_path / "parts.csv"
    numbers: list[object] = [*range(1500), "many", *range(1501, 2500)]
    file.write_text("part,pieces\n" + "".join(f"part {at},{number}\n" for at, number in enumerate(numbers)))
    await console.at(css="input[type=file]").upload(file)
    async with console.expecting("400"):
        await console.at("button", "Import").click()
        await console.sees("1,000 rows stored. The import has stopped")
        await console.sees("Line 1,502 of the file: [500].pieces:")
    assert len(await stored(server, path)) == 1000
    file.write_text(file.read_text().replace("many", "1500"))
    await console.at(css="input[type=file]").upload(file)
    await console.at("spinbutton").fill("1000")
    await console.at("button", "Import").click()
    await console.sees("1,500 rows stored. The file is imported.")
    assert (await server.call("GET", f"{path}/rows?limit=1"))["totalCount"] == 2500


async def test_a_number_beyond_a_double_is_refused_and_does_not_become_null(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    application, path = await parts(server)
    await console.go(f"#{application}/tables/{path.rpartition('/')[2]}?tab=import")
    file = tmp_path / "parts.csv"
    file.write_text("part,pieces\nvalve,1e400\n")
    await console.at(css="input[type=file]").upload(file)
    async with console.expecting("400"):
        await console.at("button", "Import").click()
        await console.sees("Line 2 of the file: [0].pieces:")
    assert await stored(server, path) == []


async def test_a_column_whose_name_begins_with_a_hyphen_is_found_in_an_export(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    application = await server.application()
    columns = [{"name": "-x", "dataType": "string", "constraint": "optional"}]
    table = await server.call(
        "POST", f"{application}/data-tables", {"name": "t", "columns": columns}, status=201
    )
    path = f"{application}/data-tables/{table['id']}"
    await console.go(f"#{application}/tables/{table['id']}?tab=import")
    file = tmp_path / "rows.csv"
    file.write_text("id,createdAt,updatedAt,'-x\n1,2,3,'=one\n")
    await console.at(css="input[type=file]").upload(file)
    await console.at("button", "Import").click()
    await console.sees("1 row stored. The file is imported.")
    assert [row["-x"] for row in (await server.call("GET", f"{path}/rows"))["items"]] == ["=one"]


async def test_an_import_goes_on_when_the_server_is_reached_again(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    application, path = await parts(server)
    await console.go(f"#{application}/tables/{path.rpartition('/')[2]}?tab=import")
    file = tmp_path / "parts.csv"
    file.write_text("part,pieces\n" + "".join(f"part {at},{at}\n" for at in range(1200)))
    await console.at(css="input[type=file]").upload(file)
    wire: dict[str, Any] = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    async with console.expecting("ERR_INTERNET_DISCONNECTED"):
        await console.command("Network.emulateNetworkConditions", offline=True, **wire)
        await console.at("button", "Import").click()
        await console.sees("Waiting for the server.")
        await console.command("Network.emulateNetworkConditions", offline=False, **wire)
        await console.sees("1,200 rows stored. The file is imported.")
    assert (await server.call("GET", f"{path}/rows?limit=1"))["totalCount"] == 1200
