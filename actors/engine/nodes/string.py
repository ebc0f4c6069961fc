"""StringNode: makes one value of a text, and puts it at `resultPath`. One output.

`sourceData` and each of `methodArgs` are templates; a missing value is the empty text. `method` is one of the keys of
`_METHODS`; without it the source is passed on as it is, with its type. `toNumber` gives null for what is no number.
`split` at an empty text gives the characters. An empty text to look for is never replaced. The index of `indexOf`
counts UTF-16 code units, as payload paths do; lengths are counted in characters. A length is from 0 to 1,000, and the
characters that fill are spaces if they are not set. The omission of `truncate` counts as a part of its length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from trunkline.actors.core.formulas.long_texts import joined, lowered, stripped, uppered
from trunkline.actors.core.formulas.price import CHARACTERS_A_STEP, computed, spend
from trunkline.actors.core.formulas.templates import Template
from trunkline.actors.core.formulas.values import (
    TEXT_CHARS_MAX,
    UNDEFINED,
    WHITE_SPACE,
    to_number,
    whole_as_int,
)
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import check_items, copy_of
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import NEEDED_RESULT, Config, TemplateSetting, TextSetting, TextsSetting
from trunkline.actors.engine.tools import (
    Unusable,
    item_template,
    needed_path,
    shortened,
    template_of,
    text_of,
    text_of_value,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "StringNode"

_SOURCE_DATA: Final = TemplateSetting("sourceData")
_METHOD: Final = TextSetting("method")
_METHOD_ARGS: Final = TextsSetting("methodArgs")
FORM: Final = Form("logic", (_SOURCE_DATA, _METHOD, _METHOD_ARGS, NEEDED_RESULT))

LENGTH_MAX: Final = 1_000
ARGUMENTS_MAX: Final = 100

Method = Callable[[Visit, str, list[str]], Any]


def prepare(config: Config) -> NodeStep:
    source, result = template_of(config, _SOURCE_DATA), needed_path(config, NEEDED_RESULT)
    name = text_of(config, _METHOD) or _UNCHANGED
    if name != _UNCHANGED and name not in _METHODS:
        raise Unusable(f"config.method: is {name!r}; give one of {', '.join([*_METHODS, _UNCHANGED])}.")
    arguments = _arguments(config)
    method = _METHODS.get(name)
    if method is not None and not method.least <= len(arguments):
        raise Unusable(
            f"config.methodArgs: has {len(arguments)} arguments; {name} takes {' and '.join(method.takes)}."
        )

    def step(visit: Visit) -> int:
        value = UNDEFINED if source is None else source.value(visit.payload, visit.run.now_ms)
        if method is None:
            visit.put(result, copy_of("" if value is UNDEFINED else value))
            return 0
        given = ["" if each is None else text_of_value(_value(each, visit)) for each in arguments]
        given += [""] * (len(method.takes) - len(given))
        visit.put(result, computed(_run, method.run, visit, text_of_value(value), given))
        return 0

    return step


def _run(method: Method, visit: Visit, text: str, given: list[str]) -> Any:
    spend((len(text) + sum(map(len, given))) // CHARACTERS_A_STEP)
    return method(visit, text, given)


def _arguments(config: Config) -> list[Template | None]:
    given = config[_METHOD_ARGS] or []
    if not isinstance(given, list) or len(given) > ARGUMENTS_MAX:
        raise Unusable(f"config.methodArgs: give a list of at most {ARGUMENTS_MAX} texts.")
    return [item_template(config.place(_METHOD_ARGS, at), each) for at, each in enumerate(given)]


def _value(template: Template, visit: Visit) -> Any:
    return template.value(visit.payload, visit.run.now_ms)


def _checked(length: int) -> None:
    if length > TEXT_CHARS_MAX:
        raise NodeError("PayloadTooLarge", f"The text would have more than {TEXT_CHARS_MAX} characters.")


def _length(given: str, place: int) -> int:
    number = to_number(given) if given.strip() else math.nan
    if not (0 <= number <= LENGTH_MAX and number == int(number)):
        raise refused(
            f"config.methodArgs[{place}]: gives {shortened(given)}, not a whole number from 0 to {LENGTH_MAX}."
        )
    return int(number)


def _split(visit: Visit, text: str, given: list[str]) -> list[str]:
    separator = given[0]
    check_items(visit, text.count(separator) + 1 if separator else len(text), "config.sourceData")
    return text.split(separator) if separator else list(text)


def _replaced(text: str, searched: str, replacement: str, most: int) -> str:
    if not searched:
        return text
    count = text.count(searched) if most < 0 else min(most, text.count(searched))
    _checked(len(text) + count * (len(replacement) - len(searched)))
    return text.replace(searched, replacement, most)


def _index_of(_: Visit, text: str, given: list[str]) -> int:
    searched, start = given[0], _length(given[1] or "0", 1)
    if text.isascii():
        return text.find(searched, start) if searched else min(start, len(text))
    units, sought = text.encode("utf-16-be", "surrogatepass"), searched.encode("utf-16-be", "surrogatepass")
    at = units.find(sought, min(2 * start, len(units)))
    # An odd place is between the two bytes of a code unit.
    while at % 2 and at > 0:
        at = units.find(sought, at + 1)
    return at // 2


def _to_number(_: Visit, text: str, _given: list[str]) -> Any:
    number = to_number(text)
    return whole_as_int(number) if math.isfinite(number) else None


def _concatenated(_: Visit, text: str, given: list[str]) -> str:
    _checked(len(text) + sum(map(len, given)))
    return joined([text, *given])


def _filled(characters: str, length: int) -> str:
    characters = characters or " "
    return (characters * (length // len(characters) + 1))[:length]


def _padded(_: Visit, text: str, given: list[str]) -> str:
    missing = max(0, _length(given[0], 0) - len(text))
    return f"{_filled(given[1], missing // 2)}{text}{_filled(given[1], missing - missing // 2)}"


def _padded_at_start(_: Visit, text: str, given: list[str]) -> str:
    return _filled(given[1], max(0, _length(given[0], 0) - len(text))) + text


def _padded_at_end(_: Visit, text: str, given: list[str]) -> str:
    return text + _filled(given[1], max(0, _length(given[0], 0) - len(text)))


def _truncated(_: Visit, text: str, given: list[str]) -> str:
    length, omission = _length(given[0], 0), given[1]
    if len(text) <= length:
        return text
    return text[: max(0, length - len(omission))] + omission[:length]


class _Method(NamedTuple):
    """What makes the result, what the arguments are, and how many of them must be given."""

    run: Method
    takes: tuple[str, ...] = ()
    least: int = 0


_UNCHANGED: Final = "noop"
_PAD: Final = ("a length", "the characters that fill")
_REPLACE: Final = ("what is searched", "what replaces it")

_METHODS: Final[dict[str, _Method]] = {
    "concat": _Method(_concatenated, ("what is added",), 1),
    "indexOf": _Method(_index_of, ("what is searched", "the index to start at"), 1),
    "pad": _Method(_padded, _PAD, 1),
    "padEnd": _Method(_padded_at_end, _PAD, 1),
    "padStart": _Method(_padded_at_start, _PAD, 1),
    "replaceAll": _Method(lambda _, text, given: _replaced(text, given[0], given[1], -1), _REPLACE, 1),
    "replaceFirst": _Method(lambda _, text, given: _replaced(text, given[0], given[1], 1), _REPLACE, 1),
    "split": _Method(_split, ("a separator",), 1),
    "toLower": _Method(lambda _, text, __: lowered(text)),
    "toNumber": _Method(_to_number),
    "toUpper": _Method(lambda _, text, __: uppered(text)),
    "trim": _Method(lambda _, text, __: stripped(text, WHITE_SPACE)),
    "trimEnd": _Method(lambda _, text, __: stripped(text, WHITE_SPACE, start=False)),
    "trimStart": _Method(lambda _, text, __: stripped(text, WHITE_SPACE, end=False)),
    "truncate": _Method(_truncated, ("a length", "an omission"), 1),
}
