"""The helpers of templates, one table: name, function, number of arguments.

A helper charges what it does with the items and the characters of its arguments (`price.py`): a step an item.

Arithmetic and comparison follow JavaScript, as all of `values` does. A helper that a template calls as `{{#name ...}}`
stands in `CONDITIONS`. What `format` and the dates do stands in files of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import re2

from trunkline.actors.core.formulas import dates, geometry, operators
from trunkline.actors.core.formulas.byte_texts import FROM_TEXT, decoded, from_base64
from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.json_text import json_text
from trunkline.actors.core.formulas.json_values import json_value
from trunkline.actors.core.formulas.long_texts import in_pieces, joined, lowered, stripped, to_base64, uppered
from trunkline.actors.core.formulas.number_formats import format_number
from trunkline.actors.core.formulas.paths import Path, compile_path
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.template_run import Evaluate, Scope, Write
from trunkline.actors.core.formulas.uri_texts import (
    COMPONENT,
    WHOLE_URI,
    decode_uri,
    decode_uri_component,
    encode_uri,
    query_string_encode,
)
from trunkline.actors.core.formulas.values import (
    ITEMS_AT_ONCE,
    TEXT_CHARS_MAX,
    UNDEFINED,
    WHITE_SPACE,
    length_of,
    strict_equal,
    to_number,
    to_text,
    truth,
    type_of,
    whole_as_int,
)

PATTERN_CHARS_MAX: Final = 1024
"""Characters of a regular expression. Its compiled form has at most `PATTERN_BYTES_MAX` bytes."""

PATTERN_BYTES_MAX: Final = 256 * 1024
PATTERN_STEPS: Final = 1000
"""Steps for which a regular expression is compiled: up to some milliseconds of work."""

PATTERN_WORK_A_STEP: Final = 256
"""Bytes of a text times instructions of a regular expression that are searched for one step: 5 ns each at worst."""

PATTERNS_KEPT: Final = 64
PATHS_KEPT: Final = 256

_TIME_OPTIONS: Final = frozenset({"tz", "locale"})


@dataclass(frozen=True, slots=True)
class Helper:
    """A function and what it takes: `least` to `most` arguments (None: any number) and `named` ones (None: any).

    An array becomes its text before the call, unless the helper takes it `whole`. An `of_run` helper takes the scope
    before its arguments. The result of a `markup` helper is written without escapes.
    """

    function: Callable[..., Any]
    least: int = 1
    most: int | None = 1
    named: frozenset[str] | None = frozenset()
    whole: bool = False
    of_run: bool = False
    markup: bool = False


class Dialect(NamedTuple):
    """What templates of one kind have in addition: helpers, and blocks with one argument.

    A block is made of the function of its argument and of that which writes its content.
    """

    helpers: Mapping[str, Helper]
    blocks: Mapping[str, Callable[[Evaluate, Write], Write]]


def _gps_distance(one: Any, other: Any) -> Any:
    """The metres between two places; false if one is no place, so that a condition can ask."""
    distance = geometry.distance_m(one, other)
    return False if math.isnan(distance) else distance


def _add(one: Any, other: Any) -> float:
    return float(to_number(one)) + float(to_number(other))


def _whole(compute: Callable[..., float]) -> Callable[..., float]:
    """An operation of expressions whose whole results are ints."""
    return lambda *values: whole_as_int(compute(*values))


def _scale_linear(from_low: Any, from_high: Any, to_low: Any, to_high: Any, value: Any) -> float:
    low, high, start, end, at = (
        float(to_number(each)) for each in (from_low, from_high, to_low, to_high, value)
    )
    return whole_as_int(start + operators.divide(at - low, high - low) * (end - start))


def _written(value: Any) -> str:
    """The text of a value as a template writes it: nothing for what is missing."""
    return "" if value is None or value is UNDEFINED else to_text(value)


def _title_case(value: Any) -> str:
    before = " "

    def changed(piece: str) -> str:
        nonlocal before
        spend(len(piece) // 4)
        characters = []
        for character in piece:
            characters.append(character.upper() if before.isspace() else character.lower())
            before = character
        return "".join(characters)

    return in_pieces(changed, _written(value), ITEMS_AT_ONCE)


def _substring(value: Any, start: Any, end: Any = UNDEFINED) -> str:
    text = _written(value)
    if text.isascii():
        first = _clamped(start, len(text))
        last = len(text) if end is UNDEFINED else _clamped(end, len(text))
        return text[min(first, last) : max(first, last)]
    units = text.encode("utf-16-le", "surrogatepass")
    length = len(units) // 2
    one = _clamped(start, length)
    other = length if end is UNDEFINED else _clamped(end, length)
    return units[2 * min(one, other) : 2 * max(one, other)].decode("utf-16-le", "replace")


def _clamped(value: Any, length: int) -> int:
    number = float(to_number(value))
    return 0 if math.isnan(number) else int(min(max(number, 0), length))


def _join(value: Any, separator: Any = ",") -> str:
    if not isinstance(value, list):
        return _written(value)
    between = "," if separator is UNDEFINED else _written(separator)
    if len(between) * len(value) > TEXT_CHARS_MAX:
        raise EvaluationError(f"The joined text is longer than {TEXT_CHARS_MAX} characters.")
    pieces: list[str] = []
    left = TEXT_CHARS_MAX
    for item in value:
        spend(1)
        pieces.append(_written(item))
        left -= len(pieces[-1])
        if left < 0:
            raise EvaluationError(f"The joined text is longer than {TEXT_CHARS_MAX} characters.")
    return joined(pieces, between)


def _length(value: Any) -> int:
    length = length_of(value)
    return 0 if length is UNDEFINED else length


def _default_to(value: Any, default: Any) -> Any:
    nothing = (
        value is None or value is UNDEFINED or value == "" or (isinstance(value, float) and math.isnan(value))
    )
    return default if nothing else value


def _encode_base64(value: Any) -> str:
    return to_base64(FROM_TEXT["utf8"](_written(value)))


def _decode_base64(value: Any) -> str:
    return decoded(from_base64(_written(value)), "utf-8")


def _json_encode(value: Any, spacer: Any = UNDEFINED) -> Any:
    return json_text(value, spacer)


def _json_decode(value: Any) -> Any:
    try:
        return json_value(to_text(value))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return UNDEFINED


def _obj(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not UNDEFINED}


def _array(*items: Any) -> list[Any]:
    return [None if each is UNDEFINED else each for each in items]


def _merge(*objects: Any) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for each in objects:
        if isinstance(each, dict):
            items = iter(each.items())
            for _ in range(0, len(each), ITEMS_AT_ONCE):
                spend(ITEMS_AT_ONCE // 4)
                merged.update(islice(items, ITEMS_AT_ONCE))
    return merged


def _lookup(collection: Any, key: Any) -> Any:
    if not truth(collection):
        return collection
    return Path("lookup", [to_text(key)]).get(collection)


def _last(value: Any) -> Any:
    if isinstance(value, str):
        return value[-1:] or UNDEFINED
    return value[-1] if isinstance(value, list) and value else UNDEFINED


def _index_by_key(items: Any, wanted: Any, key: Any = "key") -> int:
    path = _path(to_text(key))
    get, price = path.get, 1 + len(path.keys) // 4
    for index, item in enumerate(items if isinstance(items, list) else ()):
        spend(price)
        if strict_equal(get(item), wanted):
            return index
    return -1


def _value_by_key(items: Any, wanted: Any, key: Any = "key", value: Any = "value") -> Any:
    index = _index_by_key(items, wanted, key)
    return UNDEFINED if index < 0 else _path(to_text(value)).get(items[index])


@lru_cache(maxsize=PATHS_KEPT)
def _path(text: str) -> Path:
    try:
        return compile_path(text)
    except FormulaError as error:
        raise EvaluationError(str(error)) from None


def _includes(collection: Any, value: Any) -> bool:
    if isinstance(collection, dict):
        values = iter(collection.values())
        for _ in range(0, len(collection), ITEMS_AT_ONCE):
            spend(ITEMS_AT_ONCE)
            if any(strict_equal(each, value) for each in islice(values, ITEMS_AT_ONCE)):
                return True
        return False
    return bool(operators.FUNCTIONS["includes"](collection, value))


def _match(scope: Scope, text: Any, pattern: Any) -> bool:
    kept = _pattern.cache_info().misses
    compiled = _pattern(_checked_pattern(_written(pattern)))
    searched = FROM_TEXT["utf8"](_written(text))  # in a text RE2 counts the characters before a match
    steps = len(searched) * compiled.programsize // PATTERN_WORK_A_STEP
    scope.run.spend(steps + (PATTERN_STEPS if _pattern.cache_info().misses > kept else 0))
    return compiled.search(searched) is not None


def _checked_pattern(pattern: str) -> str:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise EvaluationError(f"match: a regular expression has at most {PATTERN_CHARS_MAX} characters.")
    return pattern


@lru_cache(maxsize=PATTERNS_KEPT)
def _pattern(pattern: str) -> Any:
    """A regular expression of RE2, whose search takes a time linear in the text. It remembers no groups."""
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    try:
        return re2.compile(pattern.encode("utf-8", "replace"), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error
        raise EvaluationError(
            f"match: {pattern!r} is not a valid regular expression of RE2: {reason}."
        ) from None


def _current_date_time(scope: Scope, form: Any = UNDEFINED, **options: Any) -> str:
    return dates.format_date(scope.run.clock(), form, **options)


def _format_date_relative(scope: Scope, value: Any, to: Any = UNDEFINED, **options: Any) -> str:
    return dates.format_relative(value, scope.run.clock() if to is UNDEFINED else to, **options)


def _format(value: Any, form: Any = UNDEFINED) -> Any:
    """Numbers in a format of d3, dates in one of moment, objects as JSON, other texts as they are."""
    if isinstance(value, list | dict):
        return json_text(value)
    wanted = "" if form is UNDEFINED else _written(form)
    if isinstance(value, bool) or value is None or value is UNDEFINED:
        return value
    if isinstance(value, str):
        return dates.format_date(value, wanted) if dates.is_date_text(value) else value
    formatted = format_number(value, wanted)
    return dates.format_date(value, wanted) if formatted is None else formatted


HELPERS: Final[dict[str, Helper]] = {
    "add": Helper(_whole(_add), 2, 2),
    "array": Helper(_array, 1, None, whole=True),
    "ceil": Helper(_whole(operators.FUNCTIONS["ceil"])),
    "currentDateTime": Helper(_current_date_time, 0, 1, _TIME_OPTIONS, of_run=True),
    "decodeBase64": Helper(_decode_base64),
    "decodeURI": Helper(decode_uri),
    "decodeURIComponent": Helper(decode_uri_component),
    "defaultTo": Helper(_default_to, 2, 2, whole=True),
    "divide": Helper(_whole(operators.divide), 2, 2),
    "encodeBase64": Helper(_encode_base64),
    "encodeURI": Helper(encode_uri(WHOLE_URI)),
    "encodeURIComponent": Helper(encode_uri(COMPONENT)),
    "eq": Helper(strict_equal, 2, 2, whole=True),
    "floor": Helper(_whole(operators.FUNCTIONS["floor"])),
    "format": Helper(_format, 1, 2, whole=True),
    "formatDate": Helper(dates.format_date, 1, 2, _TIME_OPTIONS),
    "formatDateRelative": Helper(_format_date_relative, 1, 2, frozenset({"locale"}), of_run=True),
    "formatGps": Helper(geometry.format_gps, 1, 3),
    "gpsDistance": Helper(_gps_distance, 2, 2),
    "gpsIsPointInside": Helper(geometry.is_point_inside, 2, 2, whole=True),
    "gt": Helper(operators.greater, 2, 2),
    "gte": Helper(operators.greater_or_equal, 2, 2),
    "includes": Helper(_includes, 2, 2, whole=True),
    "indexByKey": Helper(_index_by_key, 2, 3, whole=True),
    "join": Helper(_join, 1, 2, whole=True),
    "jsonDecode": Helper(_json_decode),
    "jsonEncode": Helper(_json_encode, 1, 2, whole=True, markup=True),
    "last": Helper(_last, whole=True),
    "length": Helper(_length, whole=True),
    "lookup": Helper(_lookup, 2, 2, whole=True),
    "lower": Helper(lambda value: lowered(_written(value))),
    "lt": Helper(operators.less, 2, 2),
    "lte": Helper(operators.less_or_equal, 2, 2),
    "match": Helper(_match, 2, 2, of_run=True),
    "max": Helper(_whole(operators.FUNCTIONS["max"]), 1, None),
    "merge": Helper(_merge, 1, None, whole=True),
    "min": Helper(_whole(operators.FUNCTIONS["min"]), 1, None),
    "multiply": Helper(_whole(operators.multiply), 2, 2),
    "ne": Helper(operators.strictly_unequal, 2, 2, whole=True),
    "obj": Helper(_obj, 0, 0, None, whole=True),
    "queryStringEncode": Helper(query_string_encode, whole=True),
    "scaleLinear": Helper(_scale_linear, 5, 5),
    "substring": Helper(_substring, 2, 3),
    "subtract": Helper(_whole(operators.subtract), 2, 2),
    "titleCase": Helper(_title_case),
    "trim": Helper(lambda value: stripped(_written(value), WHITE_SPACE)),
    "typeof": Helper(type_of, whole=True),
    "upper": Helper(lambda value: uppered(_written(value))),
    "valueByKey": Helper(_value_by_key, 2, 4, whole=True),
}

CONDITIONS: Final = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "match", "includes"})
"""The helpers that open a block, whose text is written where the result is true."""

NOT_SERVED: Final = frozenset({"colorMarker", "dashboardUrl", "toHtml"})
"""Helpers that exports name and that are refused by a sentence. What they make is not documented well enough."""
