"""ArrayNode: applies rules to an array of the payload, one after the other. One output.

Without an array at `sourceArrayPath` an empty one is put there. A text stands for the array of its characters, and
stays a text. What the rules make of the array is put at `destArrayPath`, without it at `sourceArrayPath`; rules that
only look at the array give their result at their `outputPath`. A result that is missing, such as the last item of an
empty array, leaves nothing there.

`inputTemplate` is a value, a number, an expression, or a path within an item (`_OPERATIONS` says which). As a value, a
template that is one reference keeps the type; a text without references that is JSON is the value of that JSON, as is
a text with references that becomes the JSON of an array or an object. A missing value is null. Values are compared as
by `===`, so arrays and objects equal nothing. Sorting puts booleans first, then numbers, texts, arrays and objects,
and null and what is missing last; `descending` is the opposite. `flatten` removes all nesting. `sum` adds the numbers
and leaves out what is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.formulas.json_values import json_value
from trunkline.actors.core.formulas.paths import ARRAY_ITEMS_MAX, Path
from trunkline.actors.core.formulas.price import computed, current
from trunkline.actors.core.formulas.values import (
    UNDEFINED,
    double,
    strict_equal,
    to_text,
    truth,
    type_of,
    whole_as_int,
)
from trunkline.actors.core.runtime.computing import give_up_if_cancelled, in_thread
from trunkline.actors.engine.heavy_work import INLINE_ITEMS_MAX, check_items, check_payload, copy_of, is_large
from trunkline.actors.engine.json_equality import equality_key
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    MixedSetting,
    NumberSetting,
    PathSetting,
    RowsSetting,
)
from trunkline.actors.engine.sorting import sort_by
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    expression_of,
    list_of,
    needed_path,
    needed_template,
    number_reader,
    path_of,
    template_of,
    text_of,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "ArrayNode"

_SOURCE_ARRAY_PATH: Final = PathSetting("sourceArrayPath", is_needed=True)
_INPUT: Final = MixedSetting("inputTemplate")
_INDEX: Final = NumberSetting("indexTemplate")
_ORDER: Final = ChoiceSetting("order", "ascending", "descending")
_OUTPUT_PATH: Final = PathSetting("outputPath")
_DEST_ARRAY_PATH: Final = PathSetting("destArrayPath")

RULES_MAX: Final = 15

Items = list[Any]
Read = Callable[[Visit, Items], Any]
Operation = Callable[[Items, Any, Any], tuple[Items | None, Any]]
"""From the items, the input and the index (whether a sort descends): the changed array, or None, and the result."""


def prepare(config: Config) -> NodeStep:
    source, destination = needed_path(config, _SOURCE_ARRAY_PATH), path_of(config, _DEST_ARRAY_PATH)
    listed = list_of(config, _RULES)
    if len(listed) > RULES_MAX:
        raise Unusable(f"config.rules: {len(listed)} rules; a node has at most {RULES_MAX}.")
    rules = [_rule(each) for each in listed]

    def work(visit: Visit) -> int:
        state: _State | None = visit.progress
        if state is None:
            found = source.get(visit.payload)
            state = visit.progress = _State(found)
            if not state.is_text and not isinstance(found, list):
                visit.put(source, [])
        while state.rules_done < len(rules):
            _apply(visit, rules[state.rules_done], state)
            state.rules_done += 1
            budget = current()
            if budget is not None:
                budget.keep()
        items = state.items
        if state.is_changed and destination is not None:
            visit.put(destination, copy_of(items))
        elif state.is_changed and not state.is_text:
            visit.put(source, items)
        if state.grows or (destination is not None and is_large(items)):
            check_payload(visit)
        return 0

    inline_items = min((rule.inline_items for rule in rules), default=INLINE_ITEMS_MAX)

    def step(visit: Visit) -> Any:
        found = source.get(visit.payload)
        if not isinstance(found, list | str) or (len(found) <= inline_items and not is_large(found)):
            return work(visit)
        check_items(visit, len(found), "config.sourceArrayPath")
        return in_thread(work, visit)

    return step


class _State:
    """What the rules that are done have made of the array."""

    __slots__ = ("grows", "is_changed", "is_text", "items", "rules_done")

    def __init__(self, found: Any) -> None:
        self.is_text = isinstance(found, str)
        self.items: Items = list(found) if isinstance(found, list | str) else []
        self.is_changed = False
        self.grows = False
        self.rules_done = 0


def _apply(visit: Visit, rule: _Rule, state: _State) -> None:
    """Apply a rule: what can be too long for the event loop comes before what changes anything."""
    value, index = rule.input(visit, state.items), rule.place(visit, state.items)
    made, result = rule.operation(list(state.items), value, index)
    put = copy_of(result) if rule.output is not None else None
    state.grows = state.grows or is_large(value) or is_large(result)
    if made is not None:
        check_items(visit, len(made), "config.sourceArrayPath")
        state.items, state.is_changed = made, True
    if rule.output is None:
        return
    if result is UNDEFINED:
        visit.payload = rule.output.delete(visit.payload)
    else:
        visit.put(rule.output, put)


class _Rule(NamedTuple):
    operation: Operation
    input: Read
    place: Read
    output: Path | None
    inline_items: int
    """Of more items it is done in a thread."""


class _Kind(NamedTuple):
    """What reads the fields of a rule, and whether `outputPath` is "needed" or "optional"."""

    operation: Operation
    input: Callable[[Config], Read] | None = None
    place: Callable[[Config], Read] | None = None
    output: str = ""


def _rule(config: Config) -> _Rule:
    name = text_of(config, _TYPE)
    kind = _OPERATIONS.get(name)
    if kind is None:
        raise Unusable(f"{config.place(_TYPE)}: is {name!r}; give one of {', '.join(_OPERATIONS)}.")
    output = None
    if kind.output:
        output = (needed_path if kind.output == "needed" else path_of)(config, _OUTPUT_PATH)
    text = text_of(config, _INPUT)
    return _Rule(
        kind.operation,
        _nothing if kind.input is None else kind.input(config),
        _nothing if kind.place is None else kind.place(config),
        output,
        INLINE_ITEMS_MAX if name != "filter" or _WHOLES.search(text) is None else 0,
    )


_WHOLES: Final = re.compile("array|payload")
"""With one of these variables, each item of a filter may take work that grows with the payload."""


def _nothing(_visit: Visit, _items: Items) -> None:
    return None


def _whole(config: Config, setting: NumberSetting | MixedSetting) -> Read:
    """Reads a field whose template gives an index: a number, without its fraction; None if it is not set."""
    number = number_reader(config, setting)
    if number is None:
        return _nothing

    def read(visit: Visit, _items: Items) -> int:
        found = number(visit)
        if not math.isfinite(found):
            raise refused(f"{config.place(setting)}: gives {found}, not the index of an item.")
        return int(found)

    return read


def _start(config: Config) -> Read:
    return _whole(config, _INPUT)


def _end(config: Config) -> Read:
    return _whole(config, _INDEX)


def _place(config: Config) -> Read:
    needed_template(config, _INDEX)
    return _whole(config, _INDEX)


def _order(config: Config) -> Read:
    descends = choice_of(config, _ORDER) == "descending"
    return lambda _visit, _items: descends


def _value(config: Config) -> Read:
    text = text_of(config, _INPUT)
    template = template_of(config, _INPUT)
    if template is None or "{{" not in text:
        constant = _decoded(text)
        return lambda _visit, _items: copy_of(constant)

    def read(visit: Visit, _items: Items) -> Any:
        value = template.value(visit.payload, visit.run.now_ms)
        if template.bare is not None:
            return copy_of(value)
        return _decoded(value) if value.lstrip()[:1] in ("[", "{") else value

    return read


def _array(config: Config) -> Read:
    needed_template(config, _INPUT)
    read = _value(config)

    def read_array(visit: Visit, items: Items) -> Items:
        value = read(visit, items)
        if isinstance(value, str):
            value = _decoded(value)
        if value is None or value is UNDEFINED:
            return []
        return value if isinstance(value, list) else [value]

    return read_array


def _decoded(text: str) -> Any:
    """The value of a text that is JSON, else the text."""
    try:
        return computed(json_value, text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text


def _within(config: Config) -> Read:
    """The values at a path within each item."""
    path = needed_path(config, _INPUT)
    return lambda _visit, items: [path.get(each) for each in items]


def _condition(config: Config) -> Read:
    """Whether an expression is true, for each item."""
    expression = expression_of(config, _INPUT)

    def read(visit: Visit, items: Items) -> list[bool]:
        scope = {"array": items, "payload": visit.payload}
        found = []
        for index, each in enumerate(items):
            if not index % _ITEMS_A_LOOK:
                give_up_if_cancelled()
            found.append(truth(expression({**scope, "value": each, "index": index})))
        return found

    return read


_ITEMS_A_LOOK: Final = 64
"""After so many items it is looked whether the run still goes on."""


def _kept(value: Any) -> Any:
    """A value that may stand in an array: null for a missing one."""
    return None if value is UNDEFINED else value


def _at(items: Items, index: int) -> int:
    """The place of an item, counted from the end if the index is negative; -1 if there is none."""
    place = index + len(items) if index < 0 else index
    return place if 0 <= place < len(items) else -1


def _lookup_at(items: Items, _: Any, index: int) -> tuple[None, Any]:
    place = _at(items, index)
    return None, items[place] if place >= 0 else UNDEFINED


def _insert_at(items: Items, value: Any, index: int) -> tuple[Items, Any]:
    items.insert(index, _kept(value))
    return items, UNDEFINED


def _remove_at(items: Items, _: Any, index: int) -> tuple[Items, Any]:
    place = _at(items, index)
    return items, items.pop(place) if place >= 0 else UNDEFINED


def _replace_at(items: Items, value: Any, index: int) -> tuple[Items, Any]:
    if index < -len(items):
        raise refused(f"config.indexTemplate: {index} is before the first of {len(items)} items.")
    place = _at(items, index)
    if place >= 0:
        old, items[place] = items[place], _kept(value)
        return items, old
    if index >= ARRAY_ITEMS_MAX:
        raise refused(f"config.indexTemplate: is {index}; an index is below {ARRAY_ITEMS_MAX}.")
    items.extend([None] * (index - len(items)))
    items.append(_kept(value))
    return items, UNDEFINED


def _flatten(items: Items, _: Any, __: Any) -> tuple[Items, Any]:
    flat: Items = []
    opened = [iter(items)]
    while opened:
        for item in opened[-1]:
            if isinstance(item, list):
                opened.append(iter(item))
                break
            flat.append(item)
        else:
            opened.pop()
    return flat, UNDEFINED


def _index_of(items: Items, value: Any, _: Any) -> tuple[None, int]:
    return None, next((place for place, item in enumerate(items) if strict_equal(item, value)), -1)


def _distinct(items: Items, values: Items) -> Items:
    """The first item of each value; arrays and objects are all different."""
    seen: set[Any] = set()
    kept: Items = []
    for item, value in zip(items, values, strict=True):
        key = None if isinstance(value, list | dict) else equality_key(value)
        if key is None or key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def _group_by(items: Items, values: Items, _: Any) -> tuple[None, Any]:
    groups: dict[str, Items] = {}
    for item, value in zip(items, values, strict=True):
        groups.setdefault(to_text(value), []).append(item)
    return None, groups


def _key_by(items: Items, values: Items, _: Any) -> tuple[None, Any]:
    return None, {to_text(value): item for item, value in zip(items, values, strict=True)}


def _sum(items: Items, _: Any, __: Any) -> tuple[None, Any]:
    total = sum(double(item) for item in items if type_of(item) == "number")
    return None, whole_as_int(total) if math.isfinite(total) else None


_OPERATIONS: Final[dict[str, _Kind]] = {
    "compact": _Kind(lambda items, _, __: ([each for each in items if truth(each)], UNDEFINED)),
    "concat": _Kind(lambda items, more, _: (items + more, UNDEFINED), _array),
    "deduplicate": _Kind(lambda items, _, __: (_distinct(items, items), UNDEFINED)),
    "deduplicateBy": _Kind(lambda items, of, _: (None, _distinct(items, of)), _within, output="needed"),
    "filter": _Kind(
        lambda items, of, _: (None, [each for each, keeps in zip(items, of, strict=True) if keeps]),
        _condition,
        output="needed",
    ),
    "flatten": _Kind(_flatten),
    "groupBy": _Kind(_group_by, _within, output="needed"),
    "indexOf": _Kind(_index_of, _value, output="needed"),
    "insertAt": _Kind(_insert_at, _value, place=_place),
    "keyBy": _Kind(_key_by, _within, output="needed"),
    "length": _Kind(lambda items, _, __: (None, len(items)), output="needed"),
    "lookupAt": _Kind(_lookup_at, place=_place, output="needed"),
    "pop": _Kind(lambda items, _, __: _remove_at(items, _, -1), output="optional"),
    "push": _Kind(lambda items, value, _: _insert_at(items, value, len(items)), _value),
    "removeAt": _Kind(_remove_at, place=_place, output="optional"),
    "replaceAt": _Kind(_replace_at, _value, place=_place, output="optional"),
    "reverse": _Kind(lambda items, _, __: (items[::-1], UNDEFINED)),
    "shift": _Kind(lambda items, _, __: _remove_at(items, _, 0), output="optional"),
    "slice": _Kind(lambda items, start, end: (items[start:end], UNDEFINED), _start, place=_end),
    "sort": _Kind(lambda items, _, order: sort_by(items, items, order), place=_order, output="needed"),
    "sortBy": _Kind(sort_by, _within, _order, "needed"),
    "sum": _Kind(_sum, output="needed"),
    "unshift": _Kind(lambda items, value, _: _insert_at(items, value, 0), _value),
}

_TYPE: Final = ChoiceSetting("type", *_OPERATIONS, is_needed=True)
_RULES: Final = RowsSetting("rules", _TYPE, _INPUT, _INDEX, _ORDER, _OUTPUT_PATH)
FORM: Final = Form("logic", (_SOURCE_ARRAY_PATH, _RULES, _DEST_ARRAY_PATH))
