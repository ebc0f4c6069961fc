"""JSON values with the meaning that JavaScript gives them: truth, equality, order, conversions.

Workflows are written for an engine in JavaScript, so `"" == 0` holds and `[5]` is the number 5. The rules are those of
ECMA-262, section 7 (abstract operations), for the values of JSON and `undefined`. The int and the float of Python are
one type here: a double. An int beyond 2**53 therefore counts, compares and prints as the nearest double.

Nothing here recurses over a value: the nesting of a payload never ends in a RecursionError.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final, Self

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.long_texts import JOINED_PARTS
from trunkline.actors.core.formulas.price import spend

TEXT_CHARS_MAX: Final = 5 * 1024 * 1024
"""Characters of one text that an evaluation makes."""
ARRAY_CHARS_MAX: Final = 65_536
"""Characters of an array's text where it is an operand. An operator may meet it often; a template writes it once."""
TEXT_OF_STEP: Final = 4_096
"""Characters for a step where a text is only copied or compared."""
ITEMS_AT_ONCE: Final = 256
"""Items that are charged together."""
NUMBER_CHARS_MAX: Final = 4_096
"""Characters of a text that may be a number; a longer one is NaN. A double has some 800 digits at most."""
NESTING_MAX: Final = 1_000
"""Arrays within arrays of which a text is made. It ends the text of an array that contains itself."""


class Undefined:
    """The type of UNDEFINED. It has one value, also after a copy."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


UNDEFINED: Final = Undefined()
"""What a path to nothing gives. It is not valid JSON value: it must not be stored in a payload."""

EXACT_INTEGER_MAX: Final = 2**53
"""Up to here a double has each whole number."""

_NUMBERS: Final = frozenset((int, float))
_CONTAINERS: Final = frozenset((list, dict))
_TEXTUAL: Final = frozenset((str, list, dict))
_NAMES: Final = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
WHITE_SPACE: Final = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What counts as white space in JavaScript."""

_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_RADIX: Final = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_INFINITIES: Final = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}


def type_of(value: Any) -> str:
    """Return undefined, null, boolean, number, string, array or object."""
    if value is UNDEFINED:
        return "undefined"
    if value is None:
        return "null"
    return _NAMES.get(type(value), "object")


def truth(value: Any) -> bool:
    """Whether a value counts as true. Empty arrays and objects do."""
    kind = type(value)
    if kind is float:
        return not math.isnan(value) and value != 0.0
    return kind is list or kind is dict or bool(value)


def strict_equal(one: Any, other: Any) -> bool:
    """`===`: no conversions. Arrays and objects are equal to themselves only."""
    kind = type(one)
    if kind is str:
        return type(other) is str and _same_text(one, other)
    if kind is int or kind is float:
        return type(other) in _NUMBERS and double(one) == double(other)
    return one is other


def loose_equal(one: Any, other: Any) -> bool:
    """`==`: null equals undefined; otherwise a text, a boolean, an array or an object is converted to fit."""
    if one is None or one is UNDEFINED or other is None or other is UNDEFINED:
        return (one is None or one is UNDEFINED) and (other is None or other is UNDEFINED)
    kind, other_kind = type(one), type(other)
    if kind in _CONTAINERS:
        if other_kind in _CONTAINERS:
            return one is other
        one, kind = to_text(one, ARRAY_CHARS_MAX), str
    elif other_kind in _CONTAINERS:
        other, other_kind = to_text(other, ARRAY_CHARS_MAX), str
    if kind is str and other_kind is str:
        return _same_text(one, other)
    return to_number(one) == to_number(other)


def _same_text(one: str, other: str) -> bool:
    if len(one) > TEXT_OF_STEP:
        spend(len(one) // TEXT_OF_STEP)
    return one == other


def compare(one: Any, other: Any) -> int | None:
    """Return -1, 0 or 1 for less, equal or greater, and None where one is not a number.

    Two texts (also of arrays and objects) are compared by their UTF-16 code units, all else as numbers.
    """
    if type(one) in _TEXTUAL and type(other) in _TEXTUAL:
        left, right = to_text(one, ARRAY_CHARS_MAX), to_text(other, ARRAY_CHARS_MAX)
        if len(left) > TEXT_OF_STEP:
            spend(len(left) // TEXT_OF_STEP)
        if left == right:
            return 0
        if left.isascii() and right.isascii():
            return -1 if left < right else 1
        return -1 if _code_units(left) < _code_units(right) else 1
    x, y = to_number(one), to_number(other)
    if x < y:
        return -1
    if x > y:
        return 1
    return 0 if x == y else None


def double(number: float) -> float:
    """The number that JavaScript has for an int or a float: the int itself where it is exact, else a double."""
    if type(number) is int and not -EXACT_INTEGER_MAX <= number <= EXACT_INTEGER_MAX:
        try:
            return float(number)
        except OverflowError:
            return math.inf if number > 0 else -math.inf
    return number


def to_number(value: Any) -> float:
    """Convert as `Number(value)` does; what is no number becomes NaN. An int stays an int."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return double(value)
    if kind is bool:
        return int(value)
    if value is None:
        return 0
    if kind is list:
        # Two items have a comma between them.
        return _number_of_text(to_text(value, ARRAY_CHARS_MAX)) if len(value) < 2 else math.nan
    return _number_of_text(value) if kind is str else math.nan


def _number_of_text(text: str) -> float:
    if len(text) > NUMBER_CHARS_MAX:
        return math.nan
    text = text.strip(WHITE_SPACE)
    if not text:
        return 0
    if _DECIMAL.fullmatch(text) is not None:
        return whole_as_int(float(text))
    if _RADIX.fullmatch(text) is not None:
        return double(int(text, 0))
    return _INFINITIES.get(text, math.nan)


def whole_as_int(number: float) -> float:
    """Return an int for a whole number that is exact, so that JSON shows 3 and not 3.0. Minus zero stays a float."""
    if -EXACT_INTEGER_MAX <= number <= EXACT_INTEGER_MAX and number == (whole := int(number)):
        return number if whole == 0 and math.copysign(1.0, number) < 0 else whole
    return number


def to_text(value: Any, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Convert as `String(value)` does: arrays joined by commas, an object "[object Object]".

    Raises `EvaluationError` for an array whose text is longer than `chars_max` or that nests beyond `NESTING_MAX`.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind in _NUMBERS:
        return _text_of_number(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if kind is list:
        return _text_of_list(value, chars_max)
    return "undefined" if value is UNDEFINED else "[object Object]"


def _text_of_list(items: list[Any], chars_max: int) -> str:
    """Join the items of a list and of all lists in it, which is the same as joining the texts of those.

    The lists that are not read to their end stand in `open_lists`, instead of on the stack of Python.
    """
    pieces: list[str] = []
    groups: list[str] = []
    left = chars_max
    uncharged = 0
    open_lists: list[Iterator[Any]] = [iter(items or [None])]
    while open_lists:
        for item in open_lists[-1]:
            left -= 1
            uncharged += 1
            if uncharged == ITEMS_AT_ONCE:
                spend(uncharged)
                uncharged = 0
                if len(pieces) > JOINED_PARTS:  # to free all pieces at the end would take long
                    groups.append(",".join(pieces))
                    pieces.clear()
            if type(item) is list:
                # An empty list has an empty text, as null has.
                open_lists.append(iter(item or [None]))
                break
            if type(item) is str:  # noqa: SIM108 - as one line it is a riddle
                piece = item
            else:
                piece = "" if item is None or item is UNDEFINED else to_text(item)
            left -= len(piece)
            if left < 0:
                break
            pieces.append(piece)
        else:
            open_lists.pop()
        if left < 0:
            raise EvaluationError(f"The text of an array is longer than {chars_max} characters.")
        if len(open_lists) > NESTING_MAX:
            raise EvaluationError(f"An array nests deeper than {NESTING_MAX} levels: it has no text.")
    spend(uncharged)
    return ",".join([*groups, *pieces])


def _text_of_number(number: float) -> str:
    """The shortest digits that give the same double, laid out as in ECMA-262, Number::toString."""
    number = double(number)
    if type(number) is int:
        return str(number)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    text = repr(number)
    if "e" not in text:  # Python and JavaScript write numbers of this size alike
        return text.removesuffix(".0")
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = int(exponent or 0) + (len(whole) if whole != "0" else len(digits) - len(fraction))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def length_of(value: Any) -> Any:
    """The UTF-16 code units of a text, the items of an array, the keys of an object; else UNDEFINED."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(_code_units(value)) // 2
    return len(value) if isinstance(value, list | dict) else UNDEFINED


def character_at(text: str, index: int) -> Any:
    """The character at an index of UTF-16 code units, as `text[index]`; else UNDEFINED.

    Half of a surrogate pair is U+FFFD: UTF-8 cannot hold the half.
    """
    if text.isascii():
        return text[index] if index < len(text) else UNDEFINED
    # A character has one unit at least.
    unit = _code_units(text[: index + 1])[2 * index : 2 * index + 2]
    return unit.decode("utf-16-be", "replace") if unit else UNDEFINED


def _code_units(text: str) -> bytes:
    if len(text) > TEXT_OF_STEP:
        spend(len(text) // TEXT_OF_STEP)
    return text.encode("utf-16-be", "surrogatepass")
