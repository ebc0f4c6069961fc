"""What node types use to read their settings: templates, paths and expressions, compiled once.

A reader gets the declaration of the setting (`settings.py`), of the kind that it reads.

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
from trunkline.actors.engine.settings import (
    ERROR_BEHAVIOR,
    ERROR_PATH,
    ChoiceSetting,
    Config,
    ExpressionSetting,
    FlagSetting,
    MixedSetting,
    NumberSetting,
    PathSetting,
    RowsSetting,
    Setting,
    TemplateSetting,
)
from trunkline.actors.engine.visit import Visit, refused

T = TypeVar("T")
Reader = Callable[[Visit], Any]
"""Reads a value for a visit."""


class Unusable(Exception):
    """A configuration cannot be used. The sentence names the field."""


def text_of(config: Config, setting: Setting) -> str:
    """A field as text; "" if it is not set. Exports have numbers where texts are expected."""
    return _text(config.place(setting), config[setting])


def _text(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Unusable(f"{place}: is {type(value).__name__}, not a text.")


def _compiled(place: str, text: str, compile: Callable[[str], T]) -> T | None:
    """A text of a field, compiled; None if it is empty."""
    try:
        return compile(text) if text else None
    except FormulaError as error:
        raise Unusable(f"{place}: {error}") from None


def path_of(config: Config, setting: PathSetting | MixedSetting) -> Path | None:
    """A field with a payload path; None if it is not set."""
    return _compiled(config.place(setting), text_of(config, setting).strip(), compile_path)


def needed_path(config: Config, setting: PathSetting | MixedSetting) -> Path:
    """The same for a field that a node cannot do without."""
    path = path_of(config, setting)
    if path is None:
        raise Unusable(f"{config.place(setting)}: is not set; give a payload path such as data.temperature.")
    return path


def template_of(config: Config, setting: TemplateSetting) -> Template | None:
    """A field with a template; None if it is not set."""
    return item_template(config.place(setting), config[setting])


def item_template(place: str, item: Any) -> Template | None:
    """The same for an item of a list of templates, or for what stands for a field."""
    return _compiled(place, _text(place, item), compile_template)


def needed_template(config: Config, setting: TemplateSetting) -> Template:
    """The same for a field that a node cannot do without."""
    return _needed(config.place(setting), template_of(config, setting))


def _needed(place: str, template: Template | None) -> Template:
    if template is None:
        raise Unusable(f"{place}: is not set; give a text or a template.")
    return template


def text_reader(config: Config, setting: TemplateSetting) -> Callable[[Visit], str]:
    """Reads a field with a template as text; "" if it is not set. A bare path is not escaped, as no HTML is made."""
    return item_reader(config.place(setting), config[setting])


def item_reader(place: str, item: Any) -> Callable[[Visit], str]:
    """The same for an item of a list of templates, or for what stands for a field."""
    template = item_template(place, item)
    return (lambda _visit: "") if template is None else _text_reader(template)


def item_readers(config: Config, setting: Setting) -> list[Callable[[Visit], str]]:
    """The same for each item of a list of templates; a field that has none is one template."""
    given = config[setting]
    if not isinstance(given, list):
        return [item_reader(config.place(setting), given)]
    return [item_reader(config.place(setting, at), each) for at, each in enumerate(given)]


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


def needed_text_reader(config: Config, setting: TemplateSetting) -> Callable[[Visit], str]:
    """The same for a field that a node cannot do without."""
    return _text_reader(needed_template(config, setting))


def needed_item_reader(place: str, item: Any) -> Callable[[Visit], str]:
    """The same for an item of a list, none of which may be blank."""
    return _text_reader(_needed(place, item_template(place, item)))


def remaining(visit: Visit, parts: Sequence[T]) -> Iterator[T]:
    """The parts of the work of a node, one after the other: one that is done is not done again (`Visit.progress`)."""
    budget = price.current()
    for at in range(visit.progress or 0, len(parts)):
        yield parts[at]
        visit.progress = at + 1
        if budget is not None:
            budget.keep()


def expression_of(config: Config, setting: ExpressionSetting | MixedSetting) -> Callable[[Any], Any]:
    """A field with an expression."""
    text = text_of(config, setting)
    if not text.strip():
        raise Unusable(
            f"{config.place(setting)}: is not set; give an expression such as {{{{data.temperature}}}} > 30."
        )
    try:
        return compile_expression(text, compile_variable)
    except FormulaError as error:
        raise Unusable(f"{config.place(setting)}: {error}") from None


def number_reader(config: Config, setting: NumberSetting | MixedSetting) -> Reader | None:
    """Reads a field whose template gives a number; None if it is not set."""
    template = template_of(config, setting)
    if template is None:
        return None

    def read(visit: Visit) -> float:
        value = template.value(visit.payload, visit.run.now_ms)
        number = to_number(value)
        if math.isnan(number):
            raise refused(f"{config.place(setting)}: gives {shortened(value)}, not a number.")
        return number

    return read


def constant_number(config: Config, setting: NumberSetting) -> float | None:
    """The number of a field that needs no payload; None if it is not set, or has a template."""
    text = text_of(config, setting)
    if not text or "{{" in text:
        return None
    number = to_number(text)
    if math.isnan(number):
        raise Unusable(f"{config.place(setting)}: gives {shortened(text)}, not a number.")
    return number


def is_on(config: Config, setting: FlagSetting) -> bool:
    """A field with a boolean."""
    given = config[setting]
    return given is not False if setting.is_on else given is True


def choice_of(config: Config, setting: ChoiceSetting) -> str:
    """A field with one of some words; the first one if it is not set."""
    return chosen(config, setting, text_of(config, setting))


def chosen(config: Config, setting: ChoiceSetting, word: str) -> str:
    """The option that a word names; the first one if it is ""."""
    if word and word not in setting.options:
        raise Unusable(f"{config.place(setting)}: is {word!r}; give one of {', '.join(setting.options)}.")
    return word or setting.options[0]


def list_of(config: Config, setting: RowsSetting) -> list[Config]:
    """A field with a list of objects; empty if it is not set."""
    return objects_of(config, setting, setting.rows)


def objects_of(config: Config, setting: Setting, rows: tuple[Setting, ...]) -> list[Config]:
    """The same for a list whose objects no editor describes."""
    value = config[setting] or []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Unusable(f"{config.place(setting)}: give a list of objects.")
    return [Config(each, rows, config.place(setting, position)) for position, each in enumerate(value)]


def error_path(config: Config) -> Path | None:
    """Where an error is put; None if it ends the run."""
    return None if choice_of(config, ERROR_BEHAVIOR) == "throw" else needed_path(config, ERROR_PATH)


def shortened(value: Any) -> str:
    """A value for a sentence."""
    text = _SHORT.repr(value) if value is not UNDEFINED else "nothing"
    return text if len(text) <= 100 else f"{text[:100]}..."


class _Short(Repr):
    def repr_NoneType(self, _value: None, _level: int) -> str:  # noqa: N802 - it is found by this name
        return "null"

    def repr_bool(self, value: bool, _level: int) -> str:
        return "true" if value else "false"


_SHORT: Final = _Short()
"""Writes a few levels and a few items of a value, whatever its size."""
_SHORT.maxstring = 100
