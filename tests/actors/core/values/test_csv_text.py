"""CSV: what is read back is what was written, and nothing begins a formula."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.csv_text import CsvLines

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("=+-@\t\r\n'\",;"))


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2)))
def test_texts_come_back_as_they_were(rows: list[list[str]]) -> None:
    lines = CsvLines()
    written = b"".join(lines.line(row) for row in rows)
    read = list(csv.reader(io.StringIO(written.decode(), newline=""), strict=True))
    assert [[text.removeprefix("'") for text in row] for row in read] == rows
    for row in read:
        assert all(not text or text[0] not in "=+-@\t\r\n" for text in row)
    pairs = [pair for row, old in zip(read, rows, strict=True) for pair in zip(row, old, strict=True)]
    assert lines.escaped == sum(text != was for text, was in pairs)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, b""),
        ("", b'""'),
        (True, b"true"),
        (False, b"false"),
        (-5, b"-5"),
        (0.1, b"0.1"),
        (1e300, b"1e300"),
        ("-5", b"'-5"),
        ('a "b"', b'"a ""b"""'),
        ("a;b", b"a;b"),
        ("=1,2", b'"\'=1,2"'),
        ({"a": [1, None]}, b'"{""a"":[1,null]}"'),
        ([], b"[]"),
    ],
)
def test_each_kind_of_value(value: Any, written: bytes) -> None:
    assert CsvLines().line([value, 1]) == written + b",1\r\n"
