"""The operators and functions of expressions, on values: what JavaScript computes for the same operands.

`+` alone differs: the public documentation of the format has it as addition among the arithmetic operators, so it takes
its operands for numbers, as the others do, where JavaScript would join texts.

Numbers are doubles. A result may be a whole float, as 3.0: `expressions.py` makes an int of the final one. Nothing
here raises anything but `EvaluationError`, for an array whose text would be too long, or that is too long to search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.long_texts import contains
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.values import (
    ARRAY_CHARS_MAX,
    EXACT_INTEGER_MAX,
    ITEMS_AT_ONCE,
    UNDEFINED,
    compare,
    length_of,
    loose_equal,
    strict_equal,
    to_number,
    to_text,
    truth,
)

INCLUDES_ITEMS_MAX: Final = 262_144
"""Items of an array that `includes` looks at: the bound on the items of a loop."""


def add(one: Any, other: Any) -> float:
    """`+`: addition. It joins nothing: `0 + {{path}}` is how expressions make a number of a text."""
    return float(to_number(one)) + to_number(other)


def text(value: Any) -> str:
    """The text of an operand."""
    return to_text(value, ARRAY_CHARS_MAX)


def subtract(one: Any, other: Any) -> float:
    return float(to_number(one)) - to_number(other)


def multiply(one: Any, other: Any) -> float:
    return float(to_number(one)) * to_number(other)


def divide(one: Any, other: Any) -> float:
    x, y = float(to_number(one)), float(to_number(other))
    if y != 0:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)


def remainder(one: Any, other: Any) -> float:
    """`%`: the sign is that of the dividend."""
    x, y = float(to_number(one)), float(to_number(other))
    return math.nan if y == 0 or math.isinf(x) else math.fmod(x, y)


def power(one: Any, other: Any) -> float:
    """`^`, which is exponentiation, as `**` of JavaScript. It differs from Python's for a base of 1 or -1."""
    x, y = float(to_number(one)), float(to_number(other))
    if math.isnan(y) or (abs(x) == 1 and math.isinf(y)):
        return math.nan
    try:
        return math.pow(x, y)
    except ValueError:
        if x != 0:
            return math.nan
    except OverflowError:
        pass
    # What is too large, and zero to a negative power. It has the sign of the base where the exponent is odd.
    return math.copysign(math.inf, x) if math.fmod(y, 2) in (1, -1) else math.inf


def shift_left(one: Any, other: Any) -> float:
    return _signed(_bits(one) << (_bits(other) & 31))


def shift_right(one: Any, other: Any) -> float:
    return _signed(_bits(one)) >> (_bits(other) & 31)


def _bits(value: Any) -> int:
    """The 32 low bits of the whole part of a number, as `ToUint32`."""
    number = to_number(value)
    return int(number) & 0xFFFFFFFF if math.isfinite(number) else 0


def _signed(bits: int) -> int:
    return ((bits & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def unequal(one: Any, other: Any) -> bool:
    return not loose_equal(one, other)


def strictly_unequal(one: Any, other: Any) -> bool:
    return not strict_equal(one, other)


def less(one: Any, other: Any) -> bool:
    return compare(one, other) == -1


def less_or_equal(one: Any, other: Any) -> bool:
    return compare(one, other) in (-1, 0)


def greater(one: Any, other: Any) -> bool:
    return compare(one, other) == 1


def greater_or_equal(one: Any, other: Any) -> bool:
    return compare(one, other) in (0, 1)


def negate(value: Any) -> float:
    return -float(to_number(value))


def invert(value: Any) -> bool:
    return not truth(value)


# --- Functions. Each takes the arguments that were given: a missing one is undefined, one too many is ignored.


def _of_number(compute: Callable[[float], float]) -> Callable[..., float]:
    """A function of one number that is NaN outside its domain."""

    def function(value: Any = UNDEFINED, *_: Any) -> float:
        try:
            return compute(float(to_number(value)))
        except ValueError:
            return math.nan

    return function


def _unbounded(compute: Callable[[float], float]) -> Callable[[float], float]:
    """`compute` with an infinity of the sign of its argument where the result is too large for a double."""

    def function(x: float) -> float:
        try:
            return compute(x)
        except OverflowError:
            return math.copysign(math.inf, x)

    return function


def _whole(compute: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding that keeps the sign of zero, and what is not finite."""
    return lambda x: math.copysign(float(compute(x)), x) if math.isfinite(x) else x


def _round(x: float) -> int:
    """Half goes up: -2.5 becomes -2."""
    below = math.floor(x)
    return below if x - below < 0.5 else below + 1


def _logarithm(compute: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: -math.inf if x == 0 else compute(x)


def _area_tangent(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x)


def _atan2(y: Any = UNDEFINED, x: Any = UNDEFINED, *_: Any) -> float:
    return math.atan2(to_number(y), to_number(x))


def _pow(base: Any = UNDEFINED, exponent: Any = UNDEFINED, *_: Any) -> float:
    return power(base, exponent)


def _least(*values: Any) -> float:
    """The least number; NaN if one is not a number, and Infinity of none. Minus zero is below zero."""
    numbers = [float(to_number(value)) for value in values]
    if any(map(math.isnan, numbers)):
        return math.nan
    return min(numbers, key=lambda number: (number, math.copysign(1.0, number)), default=math.inf)


def _greatest(*values: Any) -> float:
    return -_least(*map(negate, values))


def _length(value: Any = UNDEFINED, *_: Any) -> Any:
    return length_of(value)


def _includes(collection: Any = UNDEFINED, wanted: Any = UNDEFINED, *_: Any) -> bool:
    """Whether an array has an item (NaN is like NaN), or a text contains a text. All else contains nothing."""
    if isinstance(collection, str):
        return contains(collection, text(wanted))
    if not isinstance(collection, list):
        return False
    if len(collection) > INCLUDES_ITEMS_MAX:
        raise EvaluationError(f"includes takes arrays of at most {INCLUDES_ITEMS_MAX} items.")
    return has_item(collection, wanted)


def has_item(items: list[Any], wanted: Any) -> bool:
    """Whether an array has an item; NaN is like NaN."""
    if isinstance(wanted, float) and math.isnan(wanted):
        found: Callable[[Any], bool] = lambda item: isinstance(item, float) and math.isnan(item)  # noqa: E731
    else:
        found = lambda item: strict_equal(item, wanted)  # noqa: E731
    # Python finds texts and exact numbers faster, but for it 1 is true.
    quick = isinstance(wanted, str) or (isinstance(wanted, int | float) and abs(wanted) < EXACT_INTEGER_MAX)
    for start in range(0, len(items), ITEMS_AT_ONCE):
        part = items[start : start + ITEMS_AT_ONCE]
        spend(len(part))
        if not (quick and wanted not in part) and any(map(found, part)):
            return True
    return False


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "sin": _of_number(math.sin),
    "cos": _of_number(math.cos),
    "tan": _of_number(math.tan),
    "asin": _of_number(math.asin),
    "acos": _of_number(math.acos),
    "atan": _of_number(math.atan),
    "sinh": _of_number(_unbounded(math.sinh)),
    "cosh": _of_number(lambda x: _unbounded(math.cosh)(abs(x))),
    "tanh": _of_number(math.tanh),
    "asinh": _of_number(math.asinh),
    "acosh": _of_number(math.acosh),
    "atanh": _of_number(_area_tangent),
    "atan2": _atan2,
    "sqrt": _of_number(math.sqrt),
    "log": _of_number(_logarithm(math.log)),
    "log10": _of_number(_logarithm(math.log10)),
    "abs": _of_number(abs),
    "ceil": _of_number(_whole(math.ceil)),
    "floor": _of_number(_whole(math.floor)),
    "round": _of_number(_whole(_round)),
    "trunc": _of_number(_whole(math.trunc)),
    "exp": _of_number(_unbounded(math.exp)),
    "pow": _pow,
    "min": _least,
    "max": _greatest,
    "length": _length,
    "includes": _includes,
}
