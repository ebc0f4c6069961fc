"""Numbers of reports as text."""

from __future__ import annotations

import math

import pytest
from babel import Locale

from trunkline.actors.presentation.dashboards.report_numbers import number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**60, "1,152,921,504,606,846,976"),
        (-7.0, "-7"),
        (1234.56789, "1,234.57"),
        (0.000125, "0.000125"),
        (1e20, "100,000,000,000,000,000,000"),
        (1.5e308, "1.5E308"),
        (-1.2345678e30, "-1.23457E30"),
        (10**30, "1E30"),
        (5e-300, "5E-300"),
        (math.inf, "–"),
        (math.nan, "–"),
    ],
)
def test_every_number_is_a_text(value: float, text: str) -> None:
    assert number_text(value, Locale("en")) == text


def test_a_number_is_written_as_its_reader_expects() -> None:
    assert number_text(-1234.5, Locale("de")) == "-1.234,5"
    assert number_text(1.5e308, Locale("de")) == "1,5E308"
