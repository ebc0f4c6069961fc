"""What node types use to read their configuration: templates, paths and expressions, compiled once.

An empty text means "not set" everywhere, as in exported workflows. A text that cannot be compiled does not prevent the
other nodes from running: it fails the run that reaches the node, with a sentence that names the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from reprlib import Repr
from typing import Any, Final, TypeVar

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.expressions import compile_expression
from trunkline.actors.core.formulas.paths import Path, compile_path
from trunkline.actors.core.formulas.templates import Template, compile_template, compile_variable
from trunkline.actors.core.formulas.values import UNDEFINED, to_number, to_text
from trunkline.actors.engine.visit import Visit, refused

Config = dict[str, Any]
T = TypeVar("T")
Reader = Callable[[Visit], Any]
"""Reads a value for a visit."""


class Unusable(Exception):
    """A configuration cannot be used. The sentence names the field."""


def text_of(config: Config, name: str) -> str:
    """A field as text; "" if it is not set. Exports have numbers where texts are expected."""
    value = config.get(name)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Unusable(f"config.{name}: is {type(value).__name__}, not a text.")


def _compiled(name: str, text: str, compile: Callable[[str], T]) -> T | None:
    """A text of a field, compiled; None if it is empty."""
    try:
        return compile(text) if text else None
    except FormulaError as error:
        raise Unusable(f"config.{name}: {error}") from None


def path_of(config: Config, name: str) -> Path | None:
    """A field with a payload path; None if it is not set."""
    return _compiled(name, text_of(config, name).strip(), compile_path)


def needed_path(config: Config, name: str) -> Path:
    """The same for a field that a node cannot do without."""
    path = path_of(config, name)
    if path is None:
        raise Unusable(f"config.{name}: is not set; give a payload path such as data.temperature.")
    return path


def template_of(config: Config, name: str) -> Template | None:
    """A field with a template; None if it is not set."""
    return _compiled(name, text_of(config, name), compile_template)


def needed_template(config: Config, name: str) -> Template:
    """The same for a field that a node cannot do without."""
    template = template_of(config, name)
    if template is None:
        raise Unusable(f"config.{name}: is not set; give a text or a template.")
    return template


def text_reader(config: Config, name: str) -> Callable[[Visit], str]:
    """Reads a field with a template as text; "" if it is not set. A bare path is not escaped, as no HTML is made."""
    template = template_of(config, name)
    return (lambda _visit: "") if template is None else _text_reader(template)


def _text_reader(template: Template) -> Callable[[Visit], str]:
    def read(visit: Visit) -> str:
        return text_of_value(template.value(visit.payload, visit.run.now_ms))

    return read


def text_of_value(value: Any) -> str:
    """What a template gives as a text, in the price of the visit; "" for nothing."""
    if isinstance(value, list):
        text: str = price.computed(to_text, value)
        return text
    return "" if value is UNDEFINED or value is None else to_text(value)


def needed_text_reader(config: Config, name: str) -> Callable[[Visit], str]:
    """The same for a field that a node cannot do without."""
    return _text_reader(needed_template(config, name))


def remaining(visit: Visit, parts: Sequence[T]) -> Iterator[T]:
    """The parts of the work of a node, one after the other: one that is done is not done again (`Visit.progress`)."""
    budget = price.current()
    for at in range(visit.progress or 0, len(parts)):
        yield parts[at]
        visit.progress = at + 1
        if budget is not None:
            budget.keep()


def expression_of(config: Config, name: str) -> Callable[[Any], Any]:
    """A field with an expression."""
    text = text_of(config, name)
    if not text.strip():
        raise Unusable(
            f"config.{name}: is not set; give an expression such as {{{{data.temperature}}}} > 30."
        )
    try:
        return compile_expression(text, compile_variable)
    except FormulaError as error:
        raise Unusable(f"config.{name}: {error}") from None


def number_reader(config: Config, name: str) -> Reader | None:
    """Reads a field whose template gives a number; None if it is not set."""
    template = template_of(config, name)
    if template is None:
        return None

    def read(visit: Visit) -> float:
        value = template.value(visit.payload, visit.run.now_ms)
        number = to_number(value)
        if math.isnan(number):
            raise refused(f"config.{name}: gives {shortened(value)}, not a number.")
        return number

    return read


def choice_of(config: Config, name: str, choices: tuple[str, ...]) -> str:
    """A field with one of some words; the first one if it is not set."""
    word = text_of(config, name) or choices[0]
    if word not in choices:
        raise Unusable(f"config.{name}: is {word!r}; give one of {', '.join(choices)}.")
    return word


def list_of(config: Config, name: str) -> list[Config]:
    """A field with a list of objects; empty if it is not set."""
    value = config.get(name) or []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Unusable(f"config.{name}: give a list of objects.")
    return value


def shortened(value: Any) -> str:
    """A value for a sentence."""
    text = _SHORT.repr(value) if value is not UNDEFINED else "nothing"
    return text if len(text) <= 100 else f"{text[:100]}..."


_SHORT: Final = Repr()
"""Writes a few levels and a few items of a value, whatever its size."""
_SHORT.maxstring = 100
