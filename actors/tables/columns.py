"""The columns of a data table: what they are called, what they take, and how their values are kept.

Owns the declarations and every rule about a single value: its type, whether it may be null, its default. Does
not own uniqueness across rows (`tables/actor.py`), nor what lies in the store. Pure.

A column is stored with a number that the table never uses again, and rows carry the numbers. So adding or
removing a column touches no row: an old row is null in a new column, and what a removed column left in rows
has a number that nobody asks for, also after another column of the same name was added.

The rules of a value:

1. A value has its column's type: text, a number or a boolean. Nothing is converted. A number is one that a
   double can hold, or a whole number that lies strictly between -2**64 and 2**64.
2. The default fills a field that is left out of an insert. An explicit null stays null, and a default never
   fills old rows.
3. A required column refuses null, and an insert without it where it has no default. Rows that are older than
   the column stay null until they are patched.
4. A unique column holds each value once. Null is no value: any number of rows may be null in it. Equal means
   equal: 1 is 1.0, and texts differ by case. A default of a unique column serves one row.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from trunkline.actors.query.conditions import did_you_mean, shown
from trunkline.actors.query.fields import Field
from trunkline.actors.tables.messages import ROW_FIELDS, Column
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.store.codec import decode, encode

Values = dict[int, Any]
"""A row as it is stored: column number to value, nulls left out; at UPDATED the moment of its last change."""

UPDATED: Final = 0
"""The number under which a row that was changed keeps when, in milliseconds. Columns count from 1."""

KEPT: Final = ("id", "createdAt", "updatedAt")
"""What the server keeps of each row; no column may be called so."""

COLUMNS_MAX: Final = 50
"""The API's limit for the columns of a table."""

WHOLE_MAX: Final = 2**64
"""Whole numbers are told apart below this, in the index as well."""

Check = Callable[[str, Any, int], Any]


def _text(name: str, value: Any, bytes_max: int) -> Any:
    if type(value) is not str:
        raise Invalid(f"{name}: {shown(value)} is not text; the column {name} takes text.")
    # A character has at most four bytes, so most texts need not be counted.
    if 4 * len(value) > bytes_max and len(value.encode("utf-8", "surrogatepass")) > bytes_max:
        raise Invalid(f"{name}: the text has more than {bytes_max} bytes, which a cell takes at most.")
    return value


def _number(name: str, value: Any, _bytes_max: int) -> Any:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is not int:
        raise Invalid(f"{name}: {shown(value)} is not a number; the column {name} takes numbers.")
    if not -WHOLE_MAX < value < WHOLE_MAX:
        raise Invalid(
            f"{name}: the whole number is too large to be kept exactly; give less than 2**64, "
            "write it as 1e30, or use a column of text."
        )
    return value


def _boolean(name: str, value: Any, _bytes_max: int) -> Any:
    if type(value) is not bool:
        raise Invalid(f"{name}: {shown(value)} is not a boolean; the column {name} takes true and false.")
    return value


_CHECKS: Final[Mapping[str, Check]] = {"string": _text, "number": _number, "boolean": _boolean}


class Cell:
    """One column, ready to take values."""

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
    """The columns of one table in the order in which they were declared. Immutable."""

    __slots__ = ("_expected", "by_name", "docs", "fields", "numbers", "shown", "unique")

    def __init__(self, docs: list[dict[str, Any]]) -> None:
        self.docs = docs
        cells = [Cell(doc) for doc in docs]
        self.by_name = {cell.name: cell for cell in cells}
        self.unique = [cell for cell in cells if cell.unique]
        self.shown = [(cell.name, cell.number) for cell in cells]
        self.numbers = frozenset((UPDATED, *(cell.number for cell in cells)))
        self.fields = {
            **ROW_FIELDS,
            **{doc["name"]: Field("value", doc["dataType"]) for doc in docs},
        }
        """What a query may ask for."""
        self._expected = [cell for cell in cells if cell.required or cell.default is not None]

    def inserted(self, given: Mapping[str, Any], bytes_max: int) -> Values:
        """A new row as it is stored. `Invalid` names the column."""
        values: Values = {}
        by_name = self.by_name
        for name, value in given.items():
            cell = by_name.get(name)
            if cell is None:
                raise Invalid(self._unknown(name))
            if value is not None:
                values[cell.number] = cell.check(name, value, bytes_max)
            elif cell.required:
                raise Invalid(_null(name))
        for cell in self._expected:
            if cell.name not in given:
                if cell.default is None:
                    raise Invalid(f"{cell.name}: is missing; the column is required.")
                values[cell.number] = cell.default
        return values

    def patched(self, given: Mapping[str, Any], bytes_max: int) -> Values:
        """What a patch changes, with None for what becomes null. `Invalid` names the column."""
        values: Values = {}
        for name, value in given.items():
            cell = self.by_name.get(name)
            if cell is None:
                raise Invalid(self._unknown(name))
            if value is None and cell.required:
                raise Invalid(_null(name))
            values[cell.number] = None if value is None else cell.check(name, value, bytes_max)
        return values

    def _unknown(self, name: str) -> str:
        if name in KEPT:
            return f"{name}: is kept by the server; leave it out."
        guess = did_you_mean(name, self.by_name)
        return f"{name[:255]}: the table has no such column{guess}; correct its name or leave it out."

    def added(self, column: Column, number: int) -> Columns:
        """These columns and one more. `Invalid` where it can not be."""
        return Columns([*self.docs, declared(column, number, self.by_name, len(self.docs))])

    def removed(self, name: str) -> tuple[Columns, Cell]:
        """These columns without one, and the one."""
        cell = self.by_name.get(name)
        if cell is None:
            raise NotFound(f"The table has no column {name[:255]}{did_you_mean(name, self.by_name)}.")
        return Columns([doc for doc in self.docs if doc["number"] != cell.number]), cell


def _null(name: str) -> str:
    return f"{name}: is null; the column is required."


def declared(
    column: Column, number: int, taken: Mapping[str, Any], count: int, at: str = ""
) -> dict[str, Any]:
    """A declaration as it is stored. `at` is put before the field that a refusal names."""
    if count >= COLUMNS_MAX:
        raise Invalid(
            f"{at}name: the table has {COLUMNS_MAX} columns already, which is the most that it takes."
        )
    if column.name in KEPT:
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
        Cell(doc).check(f"{at}defaultValue", default, 2**16)
    return doc


class Table:
    """What is needed of a table's record to read and write its rows. Immutable; made once for each revision."""

    __slots__ = ("_salt", "columns", "doc", "generation")

    def __init__(self, raw: bytes) -> None:
        self.doc: dict[str, Any] = decode(raw)
        self.columns = Columns(self.doc["columns"])
        self.generation: int = self.doc["generation"]
        self._salt = hashlib.blake2b(encode(self.doc["columns"]), digest_size=16).digest()

    def row_etag(self, raw: bytes) -> str:
        """The entity tag of a stored row: what is shown of it depends on the columns as well."""
        return hashlib.blake2b(raw, digest_size=8, key=self._salt).hexdigest()


@lru_cache(maxsize=256)
def read_table(raw: bytes) -> Table:
    """The table of a stored record. Readers in threads share it."""
    return Table(raw)
