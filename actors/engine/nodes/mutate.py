"""MutateNode: sets, copies, moves and removes values of the payload, rule after rule.

A rule that copies or moves what is not there does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.paths import Path
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import check_sum, copy_of
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    LongTemplateSetting,
    PathSetting,
    RowsSetting,
)
from trunkline.actors.engine.tools import choice_of, list_of, needed_path, remaining, template_of
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "MutateNode"

_TYPE: Final = ChoiceSetting("type", "set", "copy", "move", "remove")
_SOURCE: Final = PathSetting("source")
_DESTINATION: Final = PathSetting("destination")
_VALUE_TYPE: Final = ChoiceSetting("valueTemplateType", "string", "json")
_VALUE: Final = LongTemplateSetting("valueTemplate")
_RULES: Final = RowsSetting("rules", _TYPE, _SOURCE, _DESTINATION, _VALUE_TYPE, _VALUE)
FORM: Final = Form("logic", (_RULES,))

LARGE_TEXT: Final = 10_000


def prepare(config: Config) -> NodeStep:
    rules = [_rule(each) for each in list_of(config, _RULES)]

    def step(visit: Visit) -> int:
        for rule in remaining(visit, rules):
            rule(visit)
        return 0

    return step


def _rule(rule: Config) -> Callable[[Visit], None]:
    kind = choice_of(rule, _TYPE)
    if kind == "set":
        return _set(rule)
    source = needed_path(rule, _SOURCE)
    if kind == "remove":

        def remove(visit: Visit) -> None:
            visit.payload = source.delete(visit.payload)

        return remove
    destination = needed_path(rule, _DESTINATION)

    def transfer(visit: Visit) -> None:
        value = source.get(visit.payload)
        if value is UNDEFINED:
            return
        _put(visit, destination, value, removed=source if kind == "move" else None)

    return transfer


def _put(visit: Visit, destination: Path, value: Any, removed: Path | None = None) -> None:
    """Set a copy of a value, which may be moved.

    It is looked before whether the payload becomes too large: some rules could double it again and again.
    """
    is_container = isinstance(value, dict | list)
    if is_container:
        value = copy_of(value)
    if removed is not None:
        visit.payload = removed.delete(visit.payload)
    elif is_container or (isinstance(value, str) and len(value) > LARGE_TEXT):
        check_sum(visit, value, destination.get(visit.payload))
    visit.payload = destination.set(visit.payload, value)


def _set(rule: Config) -> Callable[[Visit], None]:
    destination = needed_path(rule, _DESTINATION)
    template = template_of(rule, _VALUE)
    is_json = choice_of(rule, _VALUE_TYPE) == "json"

    def assign(visit: Visit) -> None:
        if template is None:
            value: Any = ""
        elif is_json:
            try:
                value = template.json(visit.payload, visit.run.now_ms)
            except EvaluationError as error:
                raise NodeError("InvalidJsonTemplate", f"{rule.place(_VALUE)}: {error}") from None
        else:
            # A bare reference keeps the type of the value.
            value = template.value(visit.payload, visit.run.now_ms)
        if value is not UNDEFINED:
            _put(visit, destination, value)

    return assign
