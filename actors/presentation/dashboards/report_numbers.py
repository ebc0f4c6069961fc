"""Numbers in reports, as the reader expects them."""

from __future__ import annotations

import math

from babel import Locale
from babel.numbers import format_decimal, format_scientific


def number_text(value: float, locale: Locale) -> str:
    """A number with at most six significant digits; whole numbers unchanged.

    The largest and the smallest are in scientific notation, since hundreds of digits cannot be read, and are more than
    Babel writes.
    """
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 1e21 or 0 < size < 1e-6:
        return format_scientific(float(f"{value:.6g}"), locale=locale, decimal_quantization=False)
    if isinstance(value, int) or (value == int(value) and size < 1e15):
        return format_decimal(int(value), locale=locale)
    return format_decimal(float(f"{value:.6g}"), locale=locale, decimal_quantization=False)
