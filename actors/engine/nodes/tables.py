"""DataTableDeleteRowNode, DataTableInsertRowNode, DataTableQueryNode and DataTableUpdateRowNode: rows of data tables.

The values of a row come from `rowFields` (`dataMethod` "individualFields"), whose texts become what their columns have:
numbers, booleans, null for a blank text; from the JSON of `rowJsonTemplate` ("jsonTemplate"), or from `rowPayloadPath`
("payloadPath"). An insertion also takes an array of rows from these two: all are inserted, or none.

An update changes the row `rowIdTemplate`, or the oldest one that matches `queryTemplate` (`rowSelectType` "query").
With `upsertCheck` a row is inserted if none matches, in one step: of several runs at the same time, one inserts it. A
deletion removes the row `rowIdTemplate`, or those that match, the oldest first, at most `limitTemplate`.

`resultPath` gets `{items, count, totalCount}`; the row, null if none matches; of an array `{createdAt, count, rowIds}`;
of a deletion `{result: true, count}`; or the error. Without it an error fails the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.formulas.values import UNDEFINED, to_number, to_text, whole_as_int
from trunkline.actors.core.runtime.computing import decoded
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.data.tables.messages import (
    ChangeMatchingRow,
    DeleteRow,
    DeleteRows,
    GetDataTable,
    InsertRows,
    ListRows,
    PatchRow,
    RowBody,
    RowOrRows,
    RowsLimit,
    RowsPage,
    SelectRows,
)
from trunkline.actors.engine.bodies import (
    BULK_VALUES_MAX,
    body_of,
    id_of,
    id_reader,
    json_reader,
    query_reader,
    with_error,
)
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_rights import may_read, may_write
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    DATA_METHOD,
    NEEDED_RESULT,
    RESULT,
    VALUE,
    ChoiceSetting,
    Config,
    FlagSetting,
    JsonSetting,
    LongTemplateSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Reader,
    choice_of,
    is_on,
    list_of,
    needed_path,
    needed_text_reader,
    path_of,
    shortened,
    template_of,
    text_of,
    text_of_value,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

_DATA_TABLE_ID: Final = TemplateSetting("dataTableIdTemplate", is_needed=True)
_ROW_ID: Final = TemplateSetting("rowIdTemplate")
_QUERY: Final = LongTemplateSetting("queryTemplate")
_LIMIT: Final = TemplateSetting("limitTemplate")
_COLUMN: Final = TemplateSetting("columnTemplate", is_needed=True)
_ROW_FIELDS: Final = RowsSetting("rowFields", _COLUMN, VALUE)
_ROW_JSON: Final = LongTemplateSetting("rowJsonTemplate")
_ROW_PAYLOAD_PATH: Final = PathSetting("rowPayloadPath")
_OFFSET: Final = TemplateSetting("offsetTemplate")
_SORT_COLUMN: Final = TemplateSetting("sortColumnTemplate")
_SORT_DIRECTION: Final = TemplateSetting("sortDirectionTemplate")
_INCLUDE_FIELDS: Final = JsonSetting("includeFieldsTemplate")
_ROW_SELECT_TYPE: Final = ChoiceSetting("rowSelectType", "id", "query")
_UPSERT_CHECK: Final = FlagSetting("upsertCheck")

_PAGE_FIELDS: Final = "limitTemplate, offsetTemplate, sortColumnTemplate, sortDirectionTemplate"
"""What a sentence about a page of rows names, before the field of the page that does not fit."""

DELETED_AT_ONCE: Final = 200
"""Rows deleted in one turn of the table's actor, which takes some milliseconds."""

_Query = Callable[[Visit], dict[str, Any] | None]


def _get(config: Config) -> NodeStep:
    table, result = id_reader(config, _DATA_TABLE_ID), needed_path(config, NEEDED_RESULT)
    query = _query(config)
    texts = {
        "limit": text_reader(config, _LIMIT),
        "offset": text_reader(config, _OFFSET),
        "sortColumn": text_reader(config, _SORT_COLUMN),
        "sortDirection": text_reader(config, _SORT_DIRECTION),
    }
    fields = _names(config, _INCLUDE_FIELDS)

    async def find(visit: Visit) -> Any:
        asked: dict[str, Any] = {name: text for name, read in texts.items() if (text := read(visit).strip())}
        asked |= {name: int(asked[name]) for name in ("limit", "offset") if asked.get(name, "").isdecimal()}
        if "sortDirection" in asked:
            asked["sortDirection"] = asked["sortDirection"].lower()
        names = fields(visit)
        page = body_of(RowsPage, asked | ({"includeFields": names} if names else {}), _PAGE_FIELDS)
        application = visit.world.application
        message = ListRows(application=application, data_table=table(visit), query=page, body=query(visit))
        found = await visit.read(message)
        raw = bytes(found["items"])
        return {"items": await decoded(raw), "count": found["count"], "totalCount": found["totalCount"]}

    async def step(visit: Visit) -> int:
        output = await with_error(visit, result, find(visit))
        check_payload(visit)
        return output

    return step


def _insert(config: Config) -> NodeStep:
    table, result = id_reader(config, _DATA_TABLE_ID), path_of(config, RESULT)
    values = _values(config)

    async def insert(visit: Visit) -> Any:
        id = table(visit)
        body = body_of(RowOrRows, await values(visit, id), "dataMethod", BULK_VALUES_MAX)
        answer = await visit.ask(_ref(visit, id), InsertRows(body=body, origin=visit.world.origin))
        return answer if isinstance(body, list) else answer["value"]

    return lambda visit: with_error(visit, result, insert(visit))


def _update(config: Config) -> NodeStep:
    table, result = id_reader(config, _DATA_TABLE_ID), path_of(config, RESULT)
    values = _values(config)
    row: Reader | None = None
    query: Reader | None = None
    if choice_of(config, _ROW_SELECT_TYPE) == "id":
        row = needed_text_reader(config, _ROW_ID)
    else:
        query = query_reader(config, _QUERY)
    inserts = is_on(config, _UPSERT_CHECK)

    async def update(visit: Visit) -> Any:
        id, origin = table(visit), visit.world.origin
        message: Any
        if row is not None:
            chosen = id_of(row(visit).strip(), "rowIdTemplate")
            message = PatchRow(row=chosen, body=await body_for(visit, id), origin=origin)
        else:
            assert query is not None
            body = await body_for(visit, id)
            message = ChangeMatchingRow(query=query(visit), body=body, inserts=inserts, origin=origin)
        answer = await visit.ask(_ref(visit, id), message)
        return None if answer is None else answer["value"]

    async def body_for(visit: Visit, id: bytes) -> Any:
        return body_of(RowBody, await values(visit, id), "dataMethod")

    return lambda visit: with_error(visit, result, update(visit))


def _delete(config: Config) -> NodeStep:
    table, result = id_reader(config, _DATA_TABLE_ID), path_of(config, RESULT)
    if text_of(config, _ROW_ID):
        row = text_reader(config, _ROW_ID)

        async def delete(visit: Visit) -> Any:
            chosen = id_of(row(visit).strip(), "rowIdTemplate")
            await visit.ask(_ref(visit, table(visit)), DeleteRow(row=chosen, origin=visit.world.origin))
            return {"result": True, "count": 1}

        return lambda visit: with_error(visit, result, delete(visit))
    query, limit = query_reader(config, _QUERY), text_reader(config, _LIMIT)

    async def delete_all(visit: Visit) -> Any:
        id, body, most = table(visit), query(visit), _limit(limit(visit).strip())
        ref, application, removed = _ref(visit, id), visit.world.application, 0
        # Each step looks for rows anew: if the run is repeated, the first steps give their answers again, and what they
        # have removed is not found any more.
        while removed < most:
            page = RowsLimit(limit=int(min(DELETED_AT_ONCE, most - removed)))
            rows = await visit.read(SelectRows(application=application, data_table=id, query=page, body=body))
            if not rows:
                break
            removed += await visit.ask(ref, DeleteRows(rows=rows, body=body, origin=visit.world.origin))
        return {"result": True, "count": removed}

    return lambda visit: with_error(visit, result, delete_all(visit))


def _limit(text: str) -> float:
    if text and not text.isdecimal():
        raise refused(f"config.limitTemplate: gives {shortened(text)}, not a number of rows.")
    return int(text) if text else math.inf


def _ref(visit: Visit, table: bytes) -> Ref:
    return Ref("dataTable", visit.world.application, table)


def _query(config: Config) -> _Query:
    """Reads the query of a list; none if it is not set."""
    if config[_QUERY] in (None, ""):
        return lambda _visit: None
    query = query_reader(config, _QUERY)
    return lambda visit: query(visit) or None


def _names(config: Config, setting: JsonSetting) -> Callable[[Visit], str]:
    """Reads names of columns: an array, or a text with commas. Answers a text with commas."""
    given = config[setting]
    if isinstance(given, list):
        return lambda _visit: ",".join(map(str, given))
    template = template_of(config, setting)
    if template is None:
        return lambda _visit: ""

    def read(visit: Visit) -> str:
        value = template.value(visit.payload, visit.run.now_ms)
        if isinstance(value, str) and value.strip().startswith("["):
            value = template.json(visit.payload, visit.run.now_ms)
        if isinstance(value, list):
            value = computed(to_text, value)
        return text_of_value(value)

    return read


# The values of a row.


def _values(config: Config) -> Callable[[Visit, bytes], Any]:
    """Reads the values by column, for a table."""
    method = choice_of(config, DATA_METHOD)
    if method == "individualFields":
        return _fields(config)
    if method == "jsonTemplate":
        read = json_reader(config, _ROW_JSON)
    else:
        path = needed_path(config, _ROW_PAYLOAD_PATH)
        read = lambda visit: path.get(visit.payload)  # noqa: E731

    async def whole(visit: Visit, _table: bytes) -> Any:
        value = read(visit)
        if value is UNDEFINED:
            raise refused("config.rowPayloadPath: leads to nothing; a row is an object.")
        return value

    return whole


def _fields(config: Config) -> Callable[[Visit, bytes], Any]:
    fields = [
        (needed_text_reader(each, _COLUMN), template_of(each, VALUE)) for each in list_of(config, _ROW_FIELDS)
    ]

    async def read(visit: Visit, table: bytes) -> dict[str, Any]:
        found = await visit.read(GetDataTable(application=visit.world.application, data_table=table))
        types = {column["name"]: column["dataType"] for column in found["columns"]}
        row = {}
        for column, template in fields:
            value = None if template is None else template.value(visit.payload, visit.run.now_ms)
            name = column(visit).strip()
            row[name] = _cell(value, types.get(name, "string"))
        return row

    return read


def _cell(value: Any, type: str) -> Any:
    """A value as its column has it; one that does not fit stays as it is, and the table refuses it."""
    if value is None or value is UNDEFINED or (value == "" and type != "string"):
        return None
    if type == "string":
        return text_of_value(value)
    if not isinstance(value, str):
        return value
    if type == "boolean":
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    number = to_number(value)
    return value if math.isnan(number) else whole_as_int(number)


TYPES: Final[dict[str, NodeType]] = {
    "DataTableDeleteRowNode": NodeType(
        _delete,
        Form("data", (_DATA_TABLE_ID, _ROW_ID, _QUERY, _LIMIT, RESULT)),
        (may_write("dataTableRow.delete", _ROW_ID), may_write("dataTableRows.delete", unless=(_ROW_ID,))),
    ),
    "DataTableInsertRowNode": NodeType(
        _insert,
        Form("data", (_DATA_TABLE_ID, DATA_METHOD, _ROW_FIELDS, _ROW_JSON, _ROW_PAYLOAD_PATH, RESULT)),
        (may_write("dataTableRows.post"),),
    ),
    "DataTableQueryNode": NodeType(
        _get,
        Form(
            "data",
            (
                _DATA_TABLE_ID,
                _QUERY,
                _LIMIT,
                _OFFSET,
                _SORT_COLUMN,
                _SORT_DIRECTION,
                _INCLUDE_FIELDS,
                NEEDED_RESULT,
            ),
        ),
        (may_read("dataTableRows.query"),),
    ),
    "DataTableUpdateRowNode": NodeType(
        _update,
        Form(
            "data",
            (
                _DATA_TABLE_ID,
                _ROW_SELECT_TYPE,
                _ROW_ID,
                _QUERY,
                DATA_METHOD,
                _ROW_FIELDS,
                _ROW_JSON,
                _ROW_PAYLOAD_PATH,
                _UPSERT_CHECK,
                RESULT,
            ),
        ),
        (
            may_write("dataTableRow.patch"),
            may_read("dataTableRows.query", _ROW_SELECT_TYPE),
            may_write("dataTableRows.post", _ROW_SELECT_TYPE, _UPSERT_CHECK),
        ),
    ),
}
