"""The nodes of data tables: what is found, inserted, changed and deleted, and which errors are results."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import Json, create_flow, kept_runs, node_runs, runs_end, trigger
from tests.actors.house import House
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.data.tables.messages import (
    AddColumn,
    ChangeMatchingRow,
    Column,
    CreateDataTable,
    InsertRows,
    ListRows,
    RowsPage,
    TablePost,
    TruncateRows,
)
from trunkline.actors.workflows.flows.bodies import ButtonPress
from trunkline.actors.workflows.flows.messages import PressButton
from trunkline.actors.workflows.triggers.button import button_ref

COLUMNS = [("name", "string"), ("n", "number"), ("on", "boolean")]


async def new_table(house: House, *rows: Json, unique: bool = False) -> Ref:
    ref = Ref("dataTable", house.application, house.system.ids.new(house.clock.wall_ms()))
    kind = "unique" if unique else "optional"
    columns = [
        Column(name=name, data_type=type, constraint=kind if name == "name" else "optional")  # type: ignore[arg-type]
        for name, type in COLUMNS
    ]
    await house.system.ask(ref, CreateDataTable(body=TablePost(name="t", columns=columns)))
    for row in rows:
        house.clock.pass_s(1)
        await house.system.ask(ref, InsertRows(body=row))
    return ref


async def rows_of(house: House, table: Ref) -> list[Json]:
    message = ListRows(application=house.application, data_table=table.id, query=RowsPage())
    rows: list[Json] = msgspec.json.decode((await house.read(message))["items"])
    return rows


async def plain_rows(house: House, table: Ref) -> list[tuple[Any, ...]]:
    return [(row["name"], row["n"], row["on"]) for row in await rows_of(house, table)]


async def result(house: House, type: str, table: Ref, config: Json, data: Any = None) -> Any:
    """What the node puts at its result path."""
    given = {"dataTableIdTemplate": table.id.hex(), "resultPath": "data.result", **config}
    shown = await node_runs(house, type, given, data)
    assert shown.get("output") == 0, shown
    return shown["data"]["result"]


THREE = ({"name": "a", "n": 1}, {"name": "b", "n": 2, "on": True}, {"name": "c", "n": 3})

FOUND: list[tuple[Json, str, int]] = [
    ({}, "abc", 3),
    ({"queryTemplate": '{"$or": []}'}, "abc", 3),
    ({"queryTemplate": '{"n": {"$gte": {{data.least}}}}'}, "bc", 2),
    ({"limitTemplate": "{{data.least}}", "offsetTemplate": 1}, "bc", 3),
    ({"sortColumnTemplate": "n", "sortDirectionTemplate": "DESC", "limitTemplate": "1"}, "c", 3),
    ({"queryTemplate": '{"name": "z"}'}, "", 0),
]


@pytest.mark.parametrize(("config", "names", "total"), FOUND)
async def test_rows_are_found(house: House, config: Json, names: str, total: int) -> None:
    table = await new_table(house, *THREE)
    found = await result(house, "DataTableQueryNode", table, config, {"least": 2})
    assert "".join(row["name"] for row in found["items"]) == names
    assert (found["count"], found["totalCount"]) == (len(names), total)


@pytest.mark.parametrize("fields", ["n,name", '["name", "{{data.n}}"]', "{{data.names}}", ["name", "n"]])
async def test_rows_are_found_with_some_of_their_fields(house: House, fields: Any) -> None:
    table = await new_table(house, THREE[0])
    config = {"includeFieldsTemplate": fields}
    found = await result(house, "DataTableQueryNode", table, config, {"n": "n", "names": ["n", "name"]})
    assert found["items"] == [{"name": "a", "n": 1}]


async def test_what_the_table_refuses_is_the_result_or_fails_the_run(house: House) -> None:
    table = await new_table(house)
    for config in (
        {"queryTemplate": '{"colour": "red"}'},
        {"limitTemplate": "many"},
        {"sortColumnTemplate": "colour"},
        {"dataTableIdTemplate": "table"},
    ):
        refused = await result(house, "DataTableQueryNode", table, config)
        assert refused["error"]["type"] == "Validation", config
    gone = await result(house, "DataTableQueryNode", table, {"dataTableIdTemplate": "0" * 24})
    assert gone["error"]["type"] == "NotFound"
    insert = {
        "dataTableIdTemplate": table.id.hex(),
        "rowFields": [{"columnTemplate": "x", "valueTemplate": "1"}],
    }
    assert (await node_runs(house, "DataTableInsertRowNode", insert))["error"][0] == "Validation"
    assert await rows_of(house, table) == []


async def test_texts_become_what_their_columns_have(house: House) -> None:
    table = await new_table(house)
    fields = [
        {"columnTemplate": "name", "valueTemplate": "{{data.number}}"},
        {"columnTemplate": "{{data.column}}", "valueTemplate": " 4.50 "},
        {"columnTemplate": "on", "valueTemplate": "{{data.on}}"},
    ]
    data: Json = {"number": 12, "column": "n", "on": "TRUE"}
    row = await result(house, "DataTableInsertRowNode", table, {"rowFields": fields}, data)
    assert (row["name"], row["n"], row["on"]) == ("12", 4.5, True)
    assert (await rows_of(house, table)) == [row]
    blank = [
        {"columnTemplate": "n", "valueTemplate": "{{data.no}}"},
        {"columnTemplate": "on", "valueTemplate": ""},
    ]
    row = await result(house, "DataTableInsertRowNode", table, {"rowFields": blank})
    assert (row["name"], row["n"], row["on"]) == (None, None, None)
    wrong = [{"columnTemplate": "n", "valueTemplate": "four"}]
    assert (await result(house, "DataTableInsertRowNode", table, {"rowFields": wrong}))["error"][
        "type"
    ] == "Validation"


async def test_a_row_or_an_array_of_rows_is_inserted(house: House) -> None:
    table = await new_table(house)
    by_json = {"dataMethod": "jsonTemplate", "rowJsonTemplate": '{"name": "{{data.s}}", "n": 1}'}
    assert (await result(house, "DataTableInsertRowNode", table, by_json, {"s": "x"}))["name"] == "x"
    by_path = {"dataMethod": "payloadPath", "rowPayloadPath": "data.rows"}
    rows = [{"name": "y"}, {"name": "z"}]
    several = await result(house, "DataTableInsertRowNode", table, by_path, {"rows": rows})
    assert (several["count"], len(several["rowIds"])) == (2, 2)
    assert [row["id"] for row in await rows_of(house, table)][1:] == several["rowIds"]
    refused = await result(
        house, "DataTableInsertRowNode", table, by_path, {"rows": [{"name": "v"}, {"w": 1}]}
    )
    assert refused["error"]["type"] == "Validation"
    assert (await result(house, "DataTableInsertRowNode", table, by_path))["error"]["type"] == "Validation"
    assert [row["name"] for row in await rows_of(house, table)] == ["x", "y", "z"]


async def test_a_row_is_changed_by_its_id_or_the_oldest_that_matches(house: House) -> None:
    table = await new_table(house, *THREE)
    first, *_ = await rows_of(house, table)
    patch = {"dataMethod": "jsonTemplate", "rowJsonTemplate": '{"on": true}'}
    by_id = {**patch, "rowSelectType": "id", "rowIdTemplate": "{{data.id}}"}
    row = await result(house, "DataTableUpdateRowNode", table, by_id, {"id": first["id"]})
    assert (row["name"], row["on"]) == ("a", True)
    gone = await result(house, "DataTableUpdateRowNode", table, by_id, {"id": "0" * 24})
    assert gone["error"]["type"] == "NotFound"
    query = {"rowSelectType": "query", "queryTemplate": '{"n": {"$gt": 1}}', "dataMethod": "individualFields"}
    fields = {"rowFields": [{"columnTemplate": "n", "valueTemplate": "20"}]}
    row = await result(house, "DataTableUpdateRowNode", table, {**query, **fields})
    assert (row["name"], row["n"]) == ("b", 20)
    none = {**query, **fields, "queryTemplate": '{"name": "z"}', "upsertCheck": False}
    assert await result(house, "DataTableUpdateRowNode", table, none) is None
    house.clock.pass_s(1)
    row = await result(house, "DataTableUpdateRowNode", table, {**none, "upsertCheck": True})
    assert (row["name"], row["n"]) == (None, 20)
    expected = [("a", 1, True), ("b", 20, True), ("c", 3, None), (None, 20, None)]
    assert await plain_rows(house, table) == expected


async def test_of_runs_at_the_same_time_one_inserts_the_row(house: House) -> None:
    table = await new_table(house)
    config = {
        "dataTableIdTemplate": table.id.hex(),
        "rowSelectType": "query",
        "queryTemplate": '{"name": "only"}',
        "upsertCheck": True,
        "dataMethod": "jsonTemplate",
        "rowJsonTemplate": '{"name": "only"}',
    }
    names = [f"b{number}" for number in range(8)]
    buttons = [trigger("virtualButton", ["n"], name, meta={"id": name}) for name in names]
    flow = await create_flow(house, buttons, [node("n", "DataTableUpdateRowNode", config)])
    async with trio.open_nursery() as nursery:
        for name in names:
            message = PressButton(flow=flow.id, body=ButtonPress(key=name))
            nursery.start_soon(house.system.ask, button_ref(house.application, flow.id, name), message)
    await runs_end(house)
    assert {run.outcome for run in kept_runs(house, flow)} == {"completed"}
    assert await plain_rows(house, table) == [("only", None, None)]


async def test_a_search_before_a_change_sees_all_that_came_before(house: House) -> None:
    """Also what is not on disk yet: rows, a new column, and that the table was truncated."""
    table = await new_table(house, {"name": "a"})
    change = ChangeMatchingRow(query={"name": "a"}, body={"name": "a", "n": 9}, inserts=True)
    column = Column(name="late", data_type="string", constraint="optional")
    late = ChangeMatchingRow(query={"late": None}, body={"late": "x"}, inserts=True)
    async with trio.open_nursery() as nursery:
        for message in (TruncateRows(), change, change, AddColumn(body=column), late, late):
            nursery.start_soon(house.system.ask, table, message)
            await trio.testing.wait_all_tasks_blocked()
    rows = await rows_of(house, table)
    assert sorted((row["name"] or "", row["late"]) for row in rows) == [("", "x"), ("a", "x")]


async def test_rows_are_deleted_by_id_and_by_query(house: House) -> None:
    table = await new_table(house, *THREE)
    first, *_ = await rows_of(house, table)
    by_id = {"rowIdTemplate": "{{data.id}}", "queryTemplate": ""}
    assert await result(house, "DataTableDeleteRowNode", table, by_id, {"id": first["id"]}) == {
        "result": True,
        "count": 1,
    }
    gone = await result(house, "DataTableDeleteRowNode", table, by_id, {"id": first["id"]})
    assert gone["error"]["type"] == "NotFound"
    by_query = {"queryTemplate": '{"$or": []}', "limitTemplate": "{{data.most}}"}
    found = await result(house, "DataTableDeleteRowNode", table, by_query, {"most": 1})
    assert found == {"result": True, "count": 1}
    assert [row["name"] for row in await rows_of(house, table)] == ["c"]
    await house.system.ask(table, InsertRows(body=[{"name": str(number)} for number in range(450)]))
    assert await result(house, "DataTableDeleteRowNode", table, by_query) == {"result": True, "count": 451}
    error = (await node_runs(house, "DataTableDeleteRowNode", {"dataTableIdTemplate": table.id.hex()}))[
        "error"
    ]
    assert error[1].startswith("config.queryTemplate: is not set")
