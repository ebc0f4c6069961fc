"""The columns of a data table: their declarations and the rules for their values.

Owns every rule about a single value: its type, whether it may be null, its default. Does not own uniqueness across
rows (`data/tables/actor.py`), nor the storage. Pure.

A column is stored with a number that the table never uses again, and rows contain the numbers instead of the names.
So adding or removing a column changes no row: an old row is null in a new column, and the values of a removed column
are ignored, also after another column of the same name was added.

The rules of a value:

1. A value has its column's type: text, a number or a boolean. Nothing is converted. A number is a finite double, or
   a whole number strictly between -2**64 and 2**64.
2. The default is used for a field that an insert omits. An explicit null stays null, and a default never changes old
   rows.
3. A required column refuses null, and an insert that omits it if it has no default. Rows that are older than the
   column stay null until they are patched.
4. A unique column contains each value once. Null is not a value: any number of rows may be null in it. 1 equals 1.0,
   and texts are compared with case. A default of a unique column can be used by one row only.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from trunkline.actors.core.query.fields import Field
from trunkline.actors.core.query.problems import shown
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.names import did_you_mean
from trunkline.actors.data.tables.messages import ROW_FIELDS, Column
from trunkline.store.codec import decode, encode

Values = dict[int, Any]
"""A row as it is stored: column number to value, without nulls; at UPDATED the time of its last change."""

UPDATED: Final = 0
"""The number of the time of a row's last change in ms; absent if it was never changed. Columns count from 1."""

SERVER_FIELDS: Final = ("id", "createdAt", "updatedAt")
"""Fields of each row that the server sets; no column may have these names."""

COLUMNS_MAX: Final = 50
"""The API's limit for the columns of a table."""

WHOLE_MAX: Final = 2**64
"""Whole numbers below this are distinguished exactly, in the index as well."""

Check = Callable[[str, Any, int], Any]


def _text(name: str, value: Any, bytes_max: int) -> Any:
    if type(value) is not str:
        raise Invalid(f"{name}: {shown(value)} is not text, which this column takes.")
    # A character has at most four bytes, so most texts need not be encoded.
    if 4 * len(value) > bytes_max and len(value.encode("utf-8", "surrogatepass")) > bytes_max:
        raise Invalid(f"{name}: the text has more than {bytes_max} bytes, which a cell takes at most.")
    return value


def _number(name: str, value: Any, _bytes_max: int) -> Any:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is not int:
        raise Invalid(f"{name}: {shown(value)} is not a number, which this column takes.")
    if not -WHOLE_MAX < value < WHOLE_MAX:
        raise Invalid(
            f"{name}: the whole number is too large to be kept exactly; give less than 2**64, "
            "write it as 1e30, or use a column of text."
        )
    return value


def _boolean(name: str, value: Any, _bytes_max: int) -> Any:
    if type(value) is not bool:
        raise Invalid(f"{name}: {shown(value)} is not a boolean; this column takes true and false.")
    return value


_CHECKS: Final[Mapping[str, Check]] = {"string": _text, "number": _number, "boolean": _boolean}


class ColumnSpec:
    """One declared column, with the check of its values."""

    __slots__ = ("check", "default", "name", "number", "required", "takes_text", "unique")

    def __init__(self, doc: Mapping[str, Any]) -> None:
        self.name: str = doc["name"]
        self.number: int = doc["number"]
        self.takes_text = doc["dataType"] == "string"
        self.check = _CHECKS[doc["dataType"]]
        self.unique = doc["constraint"] == "unique"
        self.required = doc["constraint"] == "required"
        self.default: Any = doc.get("defaultValue")


class Columns:
    """The columns of one table in the order of their declaration. Immutable."""

    __slots__ = ("_expected", "by_name", "docs", "fields", "numbers", "shown", "unique")

    def __init__(self, docs: list[dict[str, Any]]) -> None:
        self.docs = docs
        columns = [ColumnSpec(doc) for doc in docs]
        self.by_name = {column.name: column for column in columns}
        self.unique = [column for column in columns if column.unique]
        self.shown = [(column.name, column.number) for column in columns]
        self.numbers = frozenset((UPDATED, *(column.number for column in columns)))
        self.fields = {
            **ROW_FIELDS,
            **{doc["name"]: Field("value", doc["dataType"]) for doc in docs},
        }
        """The fields that a query may use."""
        self._expected = [column for column in columns if column.required or column.default is not None]

    def inserted(self, given: Mapping[str, Any], bytes_max: int, *, is_import: bool = False) -> Values:
        """Return a new row as it is stored. Raises `Invalid` naming the column.

        `is_import`: it comes from another table with these columns, and may be older than a required one.
        """
        values: Values = {}
        by_name = self.by_name
        for name, value in given.items():
            column = by_name.get(name)
            if column is None:
                raise Invalid(self._unknown(name))
            if value is not None:
                values[column.number] = column.check(name, value, bytes_max)
            elif column.required and not is_import:
                raise Invalid(_null(name))
        for column in self._expected:
            if column.name not in given:
                if column.default is None:
                    raise Invalid(f"{column.name}: is missing; the column is required.")
                values[column.number] = column.default
        return values

    def patched(self, given: Mapping[str, Any], bytes_max: int) -> Values:
        """Return the values that a patch changes; None for null. Raises `Invalid` naming the column."""
        values: Values = {}
        for name, value in given.items():
            column = self.by_name.get(name)
            if column is None:
                raise Invalid(self._unknown(name))
            if value is None and column.required:
                raise Invalid(_null(name))
            values[column.number] = None if value is None else column.check(name, value, bytes_max)
        return values

    def _unknown(self, name: str) -> str:
        if name in SERVER_FIELDS:
            return f"{name}: is kept by the server; leave it out."
        guess = did_you_mean(name, self.by_name)
        return f"{name[:255]}: the table has no such column{guess}; correct its name or leave it out."

    def added(self, column: Column, number: int) -> Columns:
        """Return these columns and one more. Raises `Invalid`."""
        return Columns([*self.docs, declared(column, number, self.by_name, len(self.docs))])

    def removed(self, name: str) -> tuple[Columns, ColumnSpec]:
        """Return these columns without the one of this name, and that one. Raises `NotFound`."""
        column = self.by_name.get(name)
        if column is None:
            raise NotFound(f"The table has no column {name[:255]}{did_you_mean(name, self.by_name)}.")
        return Columns([doc for doc in self.docs if doc["number"] != column.number]), column


def _null(name: str) -> str:
    return f"{name}: is null; the column is required."


def declared(
    column: Column, number: int, taken: Mapping[str, Any], count: int, at: str = ""
) -> dict[str, Any]:
    """Return a declaration as it is stored. Raises `Invalid`; `at` is the path before the field in its sentence."""
    if count >= COLUMNS_MAX:
        raise Invalid(
            f"{at}name: the table has {COLUMNS_MAX} columns already, which is the most that it takes."
        )
    if column.name in SERVER_FIELDS:
        raise Invalid(f"{at}name: {column.name} is kept by the server of each row; choose another name.")
    if column.name in taken:
        raise Invalid(f"{at}name: the table has a column {column.name} already; choose another name.")
    doc: dict[str, Any] = {
        "number": number,
        "name": column.name,
        "dataType": column.data_type,
        "constraint": column.constraint,
    }
    default = column.default_value
    if default is not msgspec.UNSET and default is not None:
        doc["defaultValue"] = default
        ColumnSpec(doc).check(f"{at}defaultValue", default, 2**16)
    return doc


class Table:
    """The parts of a table's record that reads and writes of rows need. Immutable; one for each revision."""

    __slots__ = ("_salt", "columns", "doc", "generation")

    def __init__(self, raw: bytes) -> None:
        self.doc: dict[str, Any] = decode(raw)
        self.columns = Columns(self.doc["columns"])
        self.generation: int = self.doc["generation"]
        self._salt = hashlib.blake2b(encode(self.doc["columns"]), digest_size=16).digest()

    def row_revision(self, raw: bytes) -> str:
        """Return the revision of a stored row. It includes the columns, because the shown row depends on them."""
        return hashlib.blake2b(raw, digest_size=8, key=self._salt).hexdigest()


@lru_cache(maxsize=256)
def read_table(raw: bytes) -> Table:
    """Return the table of a stored record. The result is cached and shared between threads."""
    return Table(raw)
