"""Texts are read as dates by formats, as moment reads them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.formulas.date_parsing import DATE_CHARS_MAX, parse_in_format
from trunkline.actors.core.formulas.dates import parse_date, written_date
from trunkline.actors.core.formulas.errors import EvaluationError

NOW = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("12/25/1995", "MM/DD/YYYY", "1995-12-25T00:00:00+00:00"),
        ("12-25-1995", "MM/DD/YYYY", "1995-12-25T00:00:00+00:00"),
        ("25 dec 95", "D MMM YY", "1995-12-25T00:00:00+00:00"),
        ("68-1-2", "YY-M-D", "2068-01-02T00:00:00+00:00"),
        ("31", "YYYY", "2031-01-01T00:00:00+00:00"),
        ("Mon, September 21st 2026 at 3:05 pm", "ddd, MMMM Do YYYY [at] h:mm a", "2026-09-21T15:05:00+00:00"),
        ("12:30 AM", "h:mm A", "2026-09-21T00:30:00+00:00"),
        ("12:30 PM", "h:mm A", "2026-09-21T12:30:00+00:00"),
        ("05-03", "MM-DD", "2026-05-03T00:00:00+00:00"),
        ("7", "D", "2026-09-07T00:00:00+00:00"),
        ("2026-01-01 24:00", "YYYY-MM-DD HH:mm", "2026-01-02T00:00:00+00:00"),
        ("2026-01-01 24", "YYYY-MM-DD k", "2026-01-01T00:00:00+00:00"),
        ("2024-366", "YYYY-DDDD", "2024-12-31T00:00:00+00:00"),
        ("2026 Q3", "YYYY [Q]Q", "2026-07-01T00:00:00+00:00"),
        ("20260921T141320.5+0530", "YYYYMMDD[T]HHmmss.SSSSZZ", "2026-09-21T08:43:20.500000+00:00"),
        ("2026-09-21T14:13:20-03:00", "YYYY-MM-DDTHH:mm:ssZ", "2026-09-21T17:13:20+00:00"),
        ("2026-09-21T14:13:20Z", "YYYY-MM-DDTHH:mm:ssZ", "2026-09-21T14:13:20+00:00"),
        ("1790000000.123", "X", "2026-09-21T14:13:20.123000+00:00"),
        ("1790000000123", "x", "2026-09-21T14:13:20.123000+00:00"),
        ("1530", "Hmm", "2026-09-21T15:30:00+00:00"),
        ("93015", "Hmmss", "2026-09-21T09:30:15+00:00"),
        ("09/21/2026", "L", "2026-09-21T00:00:00+00:00"),
    ],
)
def test_formats(text: str, form: str, expected: str) -> None:
    read = parse_in_format(text, form, NOW)
    assert read is not None
    assert read.isoformat() == expected


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", "YYYY"),
        ("soon", "YYYY-MM-DD"),
        ("2026-13-01", "YYYY-MM-DD"),
        ("2026-02-29", "YYYY-MM-DD"),
        ("2026-01-01 25:00", "YYYY-MM-DD HH:mm"),
        ("2026-01-01 24:01", "YYYY-MM-DD HH:mm"),
        ("2026-366", "YYYY-DDDD"),
        ("0000-01-01", "YYYY-MM-DD"),
        ("-1", "Y"),
        ("99999999999999999999", "x"),
        ("2026" + " " * DATE_CHARS_MAX, "YYYY"),
    ],
)
def test_what_is_no_date(text: str, form: str) -> None:
    assert parse_in_format(text, form, NOW) is None


def test_a_format_that_makes_no_date_is_refused() -> None:
    with pytest.raises(EvaluationError, match="A date cannot be read by gggg in the format"):
        parse_in_format("2026-05", "gggg-ww", NOW)
    with pytest.raises(EvaluationError, match="at most"):
        parse_in_format("2026", "Y" * 2000, NOW)


@given(
    st.integers(-30_000_000_000_000, 253_000_000_000_000),
    st.sampled_from(
        [
            "YYYY-MM-DDTHH:mm:ss.SSSZ",
            "x",
            "MMMM Do YYYY, h:mm:ss.SSS A ZZ",
            "YYYY DDDD HH mm ss SSS",
            "YYYYMMDDHHmmssSSS",
        ]
    ),
)
def test_what_a_format_writes_it_reads(at_ms: int, form: str) -> None:
    date = parse_date(at_ms)
    assert date is not None
    assert parse_in_format(written_date(date, form), form, NOW) == date


@given(st.text(max_size=300), st.text(alphabet="YMDHhmsSaAZXxQk []-:/T\\", max_size=40))
def test_any_text_is_read_or_is_no_date(text: str, form: str) -> None:
    read = parse_in_format(text, form, NOW)
    assert read is None or read.tzinfo is UTC
