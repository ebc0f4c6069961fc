"""Numbers as texts, by the formats of d3: `[[fill]align][sign][symbol][0][width][,][.precision][~][type]`.

All of the format's language is served, with the separators of English: a comma for thousands, a dot for decimals, `$`.
The minus is that of ASCII, so that a formatted number can stand in JSON. Digits are rounded half up from the exact
value of the double, as JavaScript does.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.values import to_number, to_text

WIDTH_MAX: Final = 1000
"""Characters to which a format may fill up a number."""

FORMATS_KEPT: Final = 128

_FORMAT: Final = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>=^]))?(?P<sign>[-+( ])?(?P<symbol>[$#])?(?P<zero>0)?(?P<width>[0-9]{1,9})?"
    r"(?P<comma>,)?(?:\.(?P<precision>[0-9]{1,9}))?(?P<trim>~)?(?P<type>[A-Za-z%])?",
    re.DOTALL,
)
_PREFIXES: Final = ("y", "z", "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y")
_FIXED_BELOW: Final = 1e21
_EXACT: Final = Context(prec=1200)


@dataclass(frozen=True, slots=True)
class _Format:
    """A compiled format. `precision` is that of the type where none is given."""

    fill: str
    align: str
    sign: str
    symbol: str
    zero: bool
    width: int
    comma: bool
    precision: int
    trim: bool
    type: str


def format_number(value: Any, form: str) -> str | None:
    """Write a number, without a format with thousands and at most three decimals. None if `form` is no number format.

    Raises `EvaluationError` for too great a width.
    """
    compiled = _compile(form or ",.3~f")
    return None if compiled is None else _write(float(to_number(value)), compiled)


@lru_cache(maxsize=FORMATS_KEPT)
def _compile(form: str) -> _Format | None:
    found = _FORMAT.fullmatch(form)
    if found is None:
        return None
    width = int(found["width"] or 0)
    if width > WIDTH_MAX:
        raise EvaluationError(f"A number format fills up to at most {WIDTH_MAX} characters, not {width}.")
    type, comma, trim = found["type"] or "", bool(found["comma"]), bool(found["trim"])
    precision = int(found["precision"]) if found["precision"] else None
    if type == "n":
        type, comma = "g", True
    elif type not in ("%", "b", "c", "d", "e", "f", "g", "o", "p", "r", "s", "X", "x"):
        type, trim, precision = "g", True, 12 if precision is None else precision
    fill, align = found["fill"] or " ", found["align"] or ">"
    zero = bool(found["zero"]) or (fill == "0" and align == "=")
    if zero:
        fill, align = "0", "="
    if precision is None:
        precision = 6
    precision = min(max(precision, 1), 21) if type in "gprs" else min(precision, 20)
    return _Format(
        fill, align, found["sign"] or "-", found["symbol"] or "", zero, width, comma, precision, trim, type
    )


def _write(number: float, form: _Format) -> str:
    prefix = (
        "$"
        if form.symbol == "$"
        else f"0{form.type.lower()}"
        if form.symbol == "#" and form.type in "boxX"
        else ""
    )
    suffix = "%" if form.type in "%p" and form.symbol != "$" else ""
    if form.type == "c":
        digits, suffix = "", to_text(number) + suffix
    else:
        negative = math.copysign(1.0, number) < 0 and not math.isnan(number)
        digits, unit = ("NaN", "") if math.isnan(number) else _digits(abs(number), form)
        if form.trim:
            digits = _trimmed(digits)
        if negative and form.sign != "+" and not digits.strip("0.e+-"):
            negative = False
        if negative:
            prefix = ("(" if form.sign == "(" else "-") + prefix
        elif form.sign not in "-(":
            prefix = form.sign + prefix
        suffix = unit + suffix + (")" if negative and form.sign == "(" else "")
        if form.type in "defgprs%":
            whole = len(digits) - len(digits.lstrip("0123456789"))
            digits, suffix = digits[:whole], digits[whole:] + suffix
    return _filled(prefix, digits, suffix, form)


def _filled(prefix: str, digits: str, suffix: str, form: _Format) -> str:
    if form.comma and not form.zero:
        digits = _grouped(digits, math.inf)
    missing = max(0, form.width - len(prefix) - len(digits) - len(suffix))
    padding = form.fill * missing
    if form.comma and form.zero:
        digits = _grouped(padding + digits, form.width - len(suffix) if padding else math.inf)
        padding = ""
    if form.align == "<":
        return prefix + digits + suffix + padding
    if form.align == "=":
        return prefix + padding + digits + suffix
    if form.align == "^":
        half = len(padding) // 2
        return padding[:half] + prefix + digits + suffix + padding[half:]
    return padding + prefix + digits + suffix


def _grouped(digits: str, width: float) -> str:
    """Put commas between thousands; zeros that do not fit into the width are left out."""
    groups: list[str] = []
    end, length = len(digits), 0
    group = 3
    while end > 0 and group > 0:
        if length + group + 1 > width:
            group = max(1, int(width) - length)
        groups.append(digits[max(0, end - group) : end])
        end -= group
        length += group + 1
        if length > width:
            break
    return ",".join(reversed(groups))


def _digits(number: float, form: _Format) -> tuple[str, str]:
    """The digits of a number that is not negative, and the letter of its unit for type s."""
    type, precision = form.type, form.precision
    if type == "s":
        return _with_unit(number, precision)
    if math.isinf(number):
        return "Infinity", ""
    if type in "f%":
        return _fixed(number * 100 if type == "%" else number, precision), ""
    if type == "e":
        return _exponential(number, precision), ""
    if type == "g":
        return _significant(number, precision), ""
    if type in "rp":
        return _rounded(number * 100 if type == "p" else number, precision), ""
    whole = _round(number)
    if type == "d":
        return (
            str(whole) if number < _FIXED_BELOW else format(Decimal(repr(number)), "f").partition(".")[0]
        ), ""
    return format(whole, type), ""


def _round(number: float) -> int:
    below = math.floor(number)
    return below + (number - below >= 0.5)


def _fixed(number: float, decimals: int) -> str:
    """As `toFixed`."""
    if not number < _FIXED_BELOW:
        return to_text(number)
    rounded = Decimal(number).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _EXACT)
    return format(rounded, "f")


def _parts(number: float, digits: int) -> tuple[str, int]:
    """The significant digits, as many as asked for or for 0 as few as needed, and the exponent of the first."""
    if not number:
        return "0" * max(digits, 1), 0
    exact = Decimal(repr(number)).normalize() if digits == 0 else Decimal(number)
    if digits:
        exact = Context(prec=digits, rounding=ROUND_HALF_UP).plus(exact)
    text = "".join(map(str, exact.as_tuple().digits))
    return text.ljust(digits, "0"), exact.adjusted()


def _exponential(number: float, decimals: int) -> str:
    """As `toExponential`."""
    digits, exponent = _parts(number, decimals + 1)
    rest = f".{digits[1:]}" if decimals else ""
    return f"{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent)}"


def _significant(number: float, precision: int) -> str:
    """As `toPrecision`."""
    _, exponent = _parts(number, precision)
    if exponent < -6 or exponent >= precision:
        return _exponential(number, precision - 1)
    return _rounded(number, precision)


def _rounded(number: float, precision: int) -> str:
    """Decimals with a number of significant digits."""
    if math.isinf(number):
        return "Infinity"
    digits, exponent = _parts(number, precision)
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) > exponent + 1:
        return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    return digits + "0" * (exponent + 1 - len(digits))


def _with_unit(number: float, precision: int) -> tuple[str, str]:
    """Digits before a unit from y (10 to the power of -24) to Y (24)."""
    if math.isinf(number):
        return "Infinity", ""
    digits, exponent = _parts(number, precision)
    step = max(-8, min(8, exponent // 3))
    point = exponent - 3 * step + 1
    if point <= 0:
        digits = "0." + "0" * -point + _parts(number, max(0, precision + point - 1))[0]
    elif point >= len(digits):
        digits += "0" * (point - len(digits))
    else:
        digits = f"{digits[:point]}.{digits[point:]}"
    return digits, _PREFIXES[8 + step]


def _trimmed(digits: str) -> str:
    """Without zeros at the end of the decimals."""
    whole, dot, rest = digits.partition(".")
    decimals, mark, exponent = rest.partition("e")
    decimals = decimals.rstrip("0")
    return f"{whole}{dot if decimals else ''}{decimals}{mark}{exponent}"
