"""The table of the statements of both specifications is complete, and what it names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
TABLE = TESTS.parent / "docs" / "reference" / "mqtt-conformance.md"
FOLDERS = ("e2e", "http/mqtt", "actors/data/topics")
OF_3_1_1 = (
    "1.5.3-3 2.2.2-2 2.3.1-7 3.1.0-2 3.1.2-24 3.1.3-11 3.1.4-5 3.2.0-1 3.2.2-6 3.3.1-12 3.3.2-3 3.3.4-1 3.3.5-2 "
    "3.6.1-1 3.8.1-1 3.8.3-3 3.8.4-6 3.9.3-2 3.10.1-1 3.10.3-2 3.10.4-6 3.12.4-1 3.14.1-1 3.14.4-3 4.1.0-2 4.3.1-1 "
    "4.3.2-2 4.3.3-2 4.4.0-1 4.5.0-2 4.6.0-6 4.7.1-3 4.7.2-1 4.7.3-4 4.8.0-2 6.0.0-4 7.0.0-2 7.1.1-1 7.1.2-1"
)
"""The last statement of each section: the numbers begin with 1."""
OF_5 = (
    "1.5.4-3 1.5.5-1 1.5.7-1 2.1.3-1 2.2.1-6 2.2.2-1 3.1.0-2 3.1.2-30 3.1.3-12 3.1.4-6 3.2.0-2 3.2.2-22 3.3.1-13 "
    "3.3.2-20 3.3.4-10 3.4.2-3 3.5.2-3 3.6.1-1 3.6.2-3 3.7.2-3 3.8.1-1 3.8.3-5 3.8.4-8 3.9.2-2 3.9.3-2 3.10.1-1 "
    "3.10.3-2 3.10.4-6 3.11.2-2 3.11.3-2 3.12.4-1 3.14.0-1 3.14.1-1 3.14.2-4 3.14.4-3 3.15.1-1 3.15.2-3 4.1.0-2 "
    "4.2.0-1 4.3.1-1 4.3.2-5 4.3.3-13 4.4.0-2 4.5.0-2 4.6.0-6 4.7.0-1 4.7.1-2 4.7.2-1 4.7.3-4 4.8.2-6 4.9.0-3 "
    "4.12.0-7 4.12.1-2 4.13.1-1 4.13.2-1 6.0.0-4"
)


def numbers(lasts: str) -> set[str]:
    found = set()
    for last in lasts.split():
        section, _, count = last.rpartition("-")
        found |= {f"{section}-{number}" for number in range(1, int(count) + 1)}
    return found


def rows() -> Iterator[list[str]]:
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| ([\d.-]|  *\| \d)", line):
            yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize(
    ("column", "known", "count"),
    [
        # 3.1.1 has no MQTT-3.1.2-7, but a MQTT-3.1.2.7, and a MQTT-3-8.3-4.
        (0, numbers(OF_3_1_1) - {"3.1.2-7"} | {"3.1.2.7", "3-8.3-4"}, 141),
        (1, numbers(OF_5) - {"2.2.1-1"}, 251),
    ],
    ids=["3.1.1", "5.0"],
)
def test_each_statement_is_in_the_table_once(column: int, known: set[str], count: int) -> None:
    listed = [number for row in rows() for number in row[column].split(", ") if number]
    assert len(known) == count
    assert sorted(listed) == sorted(known)


def test_each_statement_is_shown_by_what_exists_or_it_says_why_not() -> None:
    sources = (path.read_text(encoding="utf-8") for each in FOLDERS for path in (TESTS / each).glob("*.py"))
    defined = set(re.findall(r"^(?:async )?def (\w+)", "\n".join(sources), re.M))
    for *_, shown in rows():
        named = re.findall(r"`(\w+)`", shown)
        assert set(named) <= defined, shown
        assert named or shown.startswith(("of clients", "not there: ", "not shown: ")), shown
