"""CSVDecodeNode and CSVEncodeNode: a text with rows becomes an array of objects, and an array of objects a text.

Both put `{"error": {"message": ...}}` at `destination` if they cannot do it. The first row of a decoded text has the
names of the columns; each other row has as many values, all of them texts. Empty rows are left out. An encoded text
has the columns of `headerTemplateType`: `objectKeys` (the keys of all objects, in the order in which they are met),
`stringTemplates` (a list of templates in `headerTemplate`) or `payloadPath` (an array of names at the path
`headerTemplate`). A value that is missing or null is an empty text, arrays and objects are written as JSON.

`delimiterTemplate` (,), `quoteCharTemplate` (") and `escapeCharTemplate` (the quote, doubled) are one character each.
Decoding takes LF, CR LF and CR as the end of a row, whichever `recordDelimiterTemplate` names; encoding writes it. A
value that is decoded has at most 131,072 characters.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO
from itertools import chain
from typing import Any, Final, TypedDict

from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.json_text import json_text
from trunkline.actors.core.formulas.paths import ARRAY_ITEMS_MAX
from trunkline.actors.core.formulas.price import computed, spend
from trunkline.actors.core.formulas.templates import compile_template
from trunkline.actors.core.formulas.values import TEXT_CHARS_MAX, to_text
from trunkline.actors.core.runtime.computing import give_up_if_cancelled, in_thread
from trunkline.actors.core.values.csv_text import fault
from trunkline.actors.engine.copies import size_of
from trunkline.actors.engine.heavy_work import check_items, check_payload
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    FlagSetting,
    JsonSetting,
    PathSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    is_on,
    needed_path,
    shortened,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

_SOURCE: Final = PathSetting("source", is_needed=True)
_DESTINATION: Final = PathSetting("destination", is_needed=True)
_DELIMITER: Final = TemplateSetting("delimiterTemplate")
_QUOTE_CHAR: Final = TemplateSetting("quoteCharTemplate")
_ESCAPE_CHAR: Final = TemplateSetting("escapeCharTemplate")
_RECORD_DELIMITER: Final = TemplateSetting("recordDelimiterTemplate")
_STRIP_BOM: Final = FlagSetting("stripBom")
_HEADER_TYPE: Final = ChoiceSetting("headerTemplateType", "objectKeys", "stringTemplates", "payloadPath")
_HEADER: Final = JsonSetting("headerTemplate")

INLINE_CHARS_MAX: Final = 8_192
"""Longer texts are read and written in a thread: they take more than some milliseconds."""
INLINE_VALUES_MAX: Final = 2_000
"""More values, rows times columns, are written in a thread: they take some milliseconds."""
COLUMNS_MAX: Final = 1_000
VALUES_MAX: Final = 1_000_000
"""Values that are read from a text, rows times columns: they take some 50 MB."""
ROWS_BETWEEN_LOOKS: Final = 256
"""Rows after which work in a thread looks whether the run was cancelled."""
_LINE_ENDS: Final = ("\n", "\r\n", "\r")
_BYTE_ORDER_MARK: Final = "\ufeff"


class _CannotConvert(Exception):
    """Why a text or an array cannot be converted."""


class _Form(TypedDict):
    """How rows are written, in the words of the module csv."""

    delimiter: str
    quotechar: str
    escapechar: str | None
    doublequote: bool


def _decode(config: Config) -> NodeStep:
    source, destination = needed_path(config, _SOURCE), needed_path(config, _DESTINATION)
    form, record_end = _form(config), text_reader(config, _RECORD_DELIMITER)
    has_mark = is_on(config, _STRIP_BOM)

    def step(visit: Visit) -> Any:
        text = source.get(visit.payload)
        if not isinstance(text, str):
            raise refused(f"config.source: leads to {shortened(text)}, not to a text.")
        end = record_end(visit) or "\n"
        if end not in _LINE_ENDS:
            raise refused(
                f"config.recordDelimiterTemplate: gives {shortened(end)}; rows are read where they end with LF, CR LF "
                "or CR."
            )
        written = form(visit)
        if has_mark:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        is_long = len(text) > INLINE_CHARS_MAX
        return _converted(visit, destination, is_long, lambda: _rows(text, written))

    return step


def _rows(text: str, form: _Form) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    reader = csv.reader(StringIO(text, newline=""), strict=True, **form)
    names: list[str] | None = None
    begun = 1
    try:
        for row in reader:
            begun = reader.line_num + 1
            if not row:
                continue
            if names is None:
                names = row
                if len(names) > COLUMNS_MAX:
                    raise _CannotConvert(f"The text has {len(names)} columns; {COLUMNS_MAX} are accepted.")
                continue
            if len(row) != len(names):
                raise _CannotConvert(
                    f"The row at line {reader.line_num} has {len(row)} values; there are {len(names)} columns."
                )
            rows.append(dict(zip(names, row, strict=True)))
            if len(rows) > ARRAY_ITEMS_MAX or len(rows) * len(names) > VALUES_MAX:
                raise _CannotConvert(
                    f"The text has more than {ARRAY_ITEMS_MAX} rows, or more than {VALUES_MAX} values."
                )
            if not len(rows) % ROWS_BETWEEN_LOOKS:
                give_up_if_cancelled()
    except csv.Error as error:
        raise _CannotConvert(f"The text is not valid CSV at {fault(error, begun, reader.line_num)}") from None
    return rows


def _encode(config: Config) -> NodeStep:
    source, destination = needed_path(config, _SOURCE), needed_path(config, _DESTINATION)
    form, record_end = _form(config), text_reader(config, _RECORD_DELIMITER)
    columns = _columns(config)

    def step(visit: Visit) -> Any:
        items = source.get(visit.payload)
        if isinstance(items, list):
            check_items(visit, len(items), "config.source")
        else:
            raise refused(f"config.source: leads to {shortened(items)}, not to an array of objects.")
        written, end, names = form(visit), record_end(visit) or "\n", columns(visit)
        is_long = _is_long(items, names)

        def convert() -> str:
            if not all(isinstance(item, dict) for item in items):
                raise refused(f"config.source: leads to {shortened(items)}, not to an array of objects.")
            return _text(items, names, end, written)

        return _converted(visit, destination, is_long, convert)

    return step


def _is_long(items: list[Any], names: list[str] | None) -> bool:
    """Whether the text of so many objects, whose columns are no more than their keys, is made in a thread."""
    if size_of(items, INLINE_CHARS_MAX) > INLINE_CHARS_MAX:
        return True
    most = sum(len(item) for item in items if isinstance(item, dict)) if names is None else len(names)
    return len(items) * most > INLINE_VALUES_MAX


def _text(items: list[dict[str, Any]], names: list[str] | None, end: str, form: _Form) -> str:
    if names is None:
        names = list(dict.fromkeys(key for item in items for key in item))
    if len(names) > COLUMNS_MAX:
        raise _CannotConvert(f"There are {len(names)} columns; {COLUMNS_MAX} are accepted.")
    if not names:
        return ""
    pieces: list[str] = []
    length = 0
    for values in chain([names], ([_cell(item.get(name)) for name in names] for item in items)):
        # A single empty value is quoted, because an empty row is none.
        cells = [_quoted(value, end, form) for value in values] if values != [""] else [form["quotechar"] * 2]
        pieces.append(form["delimiter"].join(cells) + end)
        if not len(pieces) % ROWS_BETWEEN_LOOKS:
            give_up_if_cancelled()
        length += len(pieces[-1])
        if length > TEXT_CHARS_MAX:
            raise _CannotConvert(f"The text has more than {TEXT_CHARS_MAX} characters.")
    return "".join(pieces)


def _quoted(value: str, end: str, form: _Form) -> str:
    quote, escape = form["quotechar"], form["escapechar"]
    if not any(mark in value for mark in ("\n", "\r", end, form["delimiter"], quote, escape or quote)):
        return value
    if escape is not None:
        value = value.replace(escape, escape * 2)
    return f"{quote}{value.replace(quote, (escape or quote) + quote)}{quote}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(json_text(value)) if isinstance(value, dict | list) else to_text(value)


def _columns(config: Config) -> Callable[[Visit], list[str] | None]:
    """Reads the names of the columns; None for those of the objects."""
    kind = choice_of(config, _HEADER_TYPE)
    if kind == "objectKeys":
        return lambda _visit: None
    if kind == "stringTemplates":
        written = config[_HEADER] or []
        if not isinstance(written, list) or not all(isinstance(each, str) for each in written):
            raise Unusable("config.headerTemplate: give a list of texts, the names of the columns.")
        try:
            templates = [compile_template(each) for each in written]
        except FormulaError as error:
            raise Unusable(f"config.headerTemplate: {error}") from None
        return lambda visit: [
            computed(to_text, template.value(visit.payload, visit.run.now_ms)) for template in templates
        ]
    path = needed_path(config, _HEADER)

    def read(visit: Visit) -> list[str]:
        names = path.get(visit.payload)
        if not isinstance(names, list):
            raise refused(f"config.headerTemplate: leads to {shortened(names)}, not to an array of names.")
        columns: list[str] = computed(_names, names)
        return columns

    return read


def _names(given: list[Any]) -> list[str]:
    names = []
    for each in given:
        spend(1)
        names.append(to_text(each))
    return names


def _form(config: Config) -> Callable[[Visit], _Form]:
    """Reads how rows are written."""
    delimiter = _character(config, _DELIMITER, ",")
    quote, escape = _character(config, _QUOTE_CHAR, '"'), _character(config, _ESCAPE_CHAR, "")

    def read(visit: Visit) -> _Form:
        quoted, escaped = quote(visit), escape(visit)
        is_doubled = escaped in ("", quoted)
        if delimiter(visit) in (quoted, escaped):
            raise refused("config.delimiterTemplate: is the quote or the escape character as well.")
        return {
            "delimiter": delimiter(visit),
            "quotechar": quoted,
            "escapechar": None if is_doubled else escaped,
            "doublequote": is_doubled,
        }

    return read


def _character(config: Config, setting: TemplateSetting, default: str) -> Callable[[Visit], str]:
    written = text_reader(config, setting)

    def read(visit: Visit) -> str:
        text = written(visit) or default
        if len(text) > 1 or text in ("\n", "\r", " "):
            raise refused(f"config.{setting}: gives {shortened(text)}, not one character that can be used.")
        return text

    return read


def _converted(visit: Visit, destination: Any, is_long: bool, convert: Callable[[], Any]) -> Any:
    """Convert here, or in a thread if it is much, and put the result or the problem into the payload."""

    def guarded() -> Any:
        try:
            return convert()
        except _CannotConvert as error:
            return {"error": {"message": str(error)}}

    if not is_long:
        visit.put(destination, guarded())
        return 0

    async def in_its_thread() -> int:
        visit.put(destination, await in_thread(guarded))
        check_payload(visit)
        return 0

    return in_its_thread()


TYPES: Final[dict[str, NodeType]] = {
    "CSVDecodeNode": NodeType(
        _decode,
        Form(
            "data",
            (_SOURCE, _DESTINATION, _DELIMITER, _QUOTE_CHAR, _ESCAPE_CHAR, _RECORD_DELIMITER, _STRIP_BOM),
        ),
    ),
    "CSVEncodeNode": NodeType(
        _encode,
        Form(
            "data",
            (
                _SOURCE,
                _DESTINATION,
                _HEADER_TYPE,
                _HEADER,
                _DELIMITER,
                _QUOTE_CHAR,
                _ESCAPE_CHAR,
                _RECORD_DELIMITER,
            ),
        ),
    ),
}
