"""CSV as this server writes it, and what is wrong with CSV that it reads: RFC 4180, and safe to open in a spreadsheet.

All exports have the same form; `docs/guides/api.md` describes it for users:

- UTF-8 without a byte order mark; lines end with CR LF; the first line has the names of the columns.
- Null is an empty field. An empty text is `""`, which differs from null.
- Booleans are `true` and `false`. Numbers are as in JSON: a decimal point, no digit grouping.
- Lists and objects are JSON text.
- A text with a comma, a quotation mark, CR or LF is enclosed in quotation marks, and a quotation mark inside it
  is doubled.
- Spreadsheets would run a text that begins with `=`, `+`, `-`, `@`, a tab, CR or LF as a formula, so an
  apostrophe is written before it. A text that begins with an apostrophe gets one more, so that removing one
  leading apostrophe always restores the original. The job's `output` reports the number of such texts
  (`escapedTexts`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any

import msgspec

_RISKY = re.compile(r"[=+\-@\t\r\n']")
_QUOTED = re.compile(r'[",\r\n]')


CSV = "text/csv; charset=utf-8; header=present"


class CsvLines:
    """Formats lines of CSV. `escaped` counts the texts that got an apostrophe."""

    __slots__ = ("escaped",)

    def __init__(self) -> None:
        self.escaped = 0

    def line(self, values: Iterable[Any]) -> bytes:
        """One line, including the line end."""
        text = ",".join([self._field(value) for value in values])
        return text.encode() + b"\r\n"

    def _field(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        json = msgspec.json.encode(value).decode()
        return json if isinstance(value, int | float) else self._text(json)

    def _text(self, text: str) -> str:
        if not text:
            return '""'
        if _RISKY.match(text):
            self.escaped += 1
            text = "'" + text
        if _QUOTED.search(text):
            return '"' + text.replace('"', '""') + '"'
        return text


def fault(error: csv.Error, begun: int, line: int) -> str:
    """What is wrong with a row that begins at the line `begun`, and which a strict reader gave up at `line`."""
    if str(error) == "unexpected end of data":
        return f"line {begun}: a quotation mark in the row that begins here is never closed."
    return f"line {line}: {error}."
