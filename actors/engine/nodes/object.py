"""ObjectNode: applies operations to an object or an array of the payload, one after the other. One output.

Each operation gets what the one before it made of the source; after the last, that is put at `destPath`. Without
`destPath` it is thrown away. `keys`, `values`, `entries` and `fromPairs` leave the source as it is and put their result
at their `outputPath`. `inputTemplate` becomes JSON: an object, or an array of keys; a template that is one reference
to an object or an array is that value. A missing source, or null, is an empty object. Keys name the fields of the
object itself, not paths. `mergeDeep` merges objects within objects; all else of the input takes the place of what the
source has, arrays too. `zipObject` stops at the shorter of keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.formulas.json_values import json_value
from trunkline.actors.core.formulas.paths import Path
from trunkline.actors.core.formulas.price import computed, current
from trunkline.actors.core.formulas.templates import Template
from trunkline.actors.core.formulas.values import UNDEFINED, to_text, type_of
from trunkline.actors.core.runtime.computing import in_thread
from trunkline.actors.engine.copies import copied
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import check_payload, copy_of, is_large
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    LongTemplateSetting,
    PathSetting,
    RowsSetting,
)
from trunkline.actors.engine.tools import Unusable, list_of, needed_template, path_of, text_of
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "ObjectNode"

_SOURCE_PATH: Final = PathSetting("sourcePath")
_OUTPUT_PATH: Final = PathSetting("outputPath")
_INPUT: Final = LongTemplateSetting("inputTemplate")
_DEST_PATH: Final = PathSetting("destPath")

OPERATIONS_MAX: Final = 10

Operation = Callable[[Any, Any], Any]
"""From the source and the input: what becomes of the source, or the result."""


def prepare(config: Config) -> NodeStep:
    source, destination = path_of(config, _SOURCE_PATH), path_of(config, _DEST_PATH)
    listed = list_of(config, _OPERATIONS)
    if len(listed) > OPERATIONS_MAX:
        raise Unusable(f"config.operations: {len(listed)} operations; a node has at most {OPERATIONS_MAX}.")
    operations = [_operation(each) for each in listed]

    def work(visit: Visit, found: Any) -> int:
        if visit.progress is None:
            visit.progress = [{} if found is None or found is UNDEFINED else copied(found)]
        # What the source was before each operation that is done, and after the last one of these.
        made = visit.progress[-1]
        for each in operations[len(visit.progress) - 1 :]:
            _expect(made, each.kind.source, f"{each.config.place(_TYPE)}: {each.name} needs", "the source is")
            given = None if each.template is None else _input(each, each.template, visit)
            result = each.kind.run(made, given)
            if each.kind.input is not None:
                made = result
            elif each.output is not None:
                visit.put(each.output, copy_of(result))
            visit.progress.append(made)
            budget = current()
            if budget is not None:
                budget.keep()
        if destination is not None:
            visit.put(destination, made)
        if is_large(made):
            check_payload(visit)
        return 0

    def step(visit: Visit) -> Any:
        found = UNDEFINED if source is None else source.get(visit.payload)
        return in_thread(work, visit, found) if is_large(found) else work(visit, found)

    return step


class _Kind(NamedTuple):
    """What an operation does, the type of its source, and that of its input. One with an input makes a new source."""

    run: Operation
    source: type = dict
    input: type | None = None


class _Operation(NamedTuple):
    config: Config
    name: str
    kind: _Kind
    template: Template | None
    output: Path | None


def _operation(config: Config) -> _Operation:
    name = text_of(config, _TYPE)
    kind = _KINDS.get(name)
    if kind is None:
        raise Unusable(f"{config.place(_TYPE)}: is {name!r}; give one of {', '.join(_KINDS)}.")
    template = needed_template(config, _INPUT) if kind.input is not None else None
    return _Operation(config, name, kind, template, path_of(config, _OUTPUT_PATH))


def _input(operation: _Operation, template: Template, visit: Visit) -> Any:
    place = operation.config.place(_INPUT)
    value = template.value(visit.payload, visit.run.now_ms)
    if isinstance(value, str):
        try:
            value = computed(json_value, value)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            raise NodeError("InvalidJsonTemplate", f"{place}: becomes no JSON: {error}.") from None
    _expect(value, operation.kind.input, f"{place}: is to become", "it becomes")
    return copy_of(value)


_WORDS: Final[dict[type, str]] = {dict: "an object", list: "an array"}


def _expect(value: Any, kind: type | None, needs: str, found: str) -> None:
    if kind is not None and not isinstance(value, kind):
        raise refused(f"{needs} {_WORDS[kind]}; {found} of the type {type_of(value)}.")


def _keys(given: list[Any]) -> dict[str, None]:
    """Keys that are asked for, in their order."""
    return dict.fromkeys(to_text(each) for each in given)


def _without(source: dict[str, Any], given: list[Any]) -> dict[str, Any]:
    left_out = _keys(given)
    return {key: value for key, value in source.items() if key not in left_out}


def _from_pairs(source: list[Any], _: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for place, pair in enumerate(source):
        if not isinstance(pair, list) or len(pair) != 2:
            raise refused(
                f"config.operations: item {place} of the source is not a pair of a key and a value."
            )
        made[to_text(pair[0])] = pair[1]
    return made


def _merged(source: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    waiting = [(source, more)]
    while waiting:
        into, other = waiting.pop()
        for key, value in other.items():
            old = into.get(key)
            if isinstance(old, dict) and isinstance(value, dict):
                waiting.append((old, value))
            else:
                into[key] = value
    return source


_KINDS: Final[dict[str, _Kind]] = {
    "assign": _Kind(lambda source, more: {**source, **more}, input=dict),
    "entries": _Kind(lambda source, _: [[key, value] for key, value in source.items()]),
    "fromPairs": _Kind(_from_pairs, list),
    "keys": _Kind(lambda source, _: list(source)),
    "mergeDeep": _Kind(_merged, input=dict),
    "omit": _Kind(_without, input=list),
    "pick": _Kind(
        lambda source, keys: {key: source[key] for key in _keys(keys) if key in source}, input=list
    ),
    "values": _Kind(lambda source, _: list(source.values())),
    "zipObject": _Kind(
        lambda source, keys: dict(zip(map(to_text, keys), source, strict=False)), list, input=list
    ),
}

_TYPE: Final = ChoiceSetting("type", *_KINDS, is_needed=True)
_OPERATIONS: Final = RowsSetting("operations", _TYPE, _OUTPUT_PATH, _INPUT)
FORM: Final = Form("logic", (_SOURCE_PATH, _OPERATIONS, _DEST_PATH))
