"""Copies and sizes of JSON values. Calls within calls are bounded: no nesting of a payload is a RecursionError."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from sys import getsizeof
from typing import Any, Final

_CONTAINERS: Final = frozenset((dict, list))
_CALLS_MAX: Final = 20
"""What nests deeper is copied by a loop, which takes longer."""
_ITEMS_AT_ONCE: Final = 4_096
"""Items that one call of C goes through."""


def copied(value: Any, calls_left: int = _CALLS_MAX) -> Any:
    """A deep copy of a JSON value."""
    kind = type(value)
    if kind is dict:
        if not calls_left:
            return _copied_by_loop(value)
        made = value.copy()
        for name, part in value.items():
            if type(part) in _CONTAINERS:
                made[name] = copied(part, calls_left - 1)
        return made
    if kind is list:
        if not calls_left:
            return _copied_by_loop(value)
        return [copied(part, calls_left - 1) if type(part) in _CONTAINERS else part for part in value]
    return value


def _copied_by_loop(value: Any) -> Any:
    root: list[Any] = [None]
    waiting: list[tuple[Any, Any, Any]] = [(root, 0, value)]
    while waiting:
        into, key, each = waiting.pop()
        made = into[key] = each.copy()
        parts = made.items() if type(made) is dict else enumerate(made)
        waiting.extend((made, at, part) for at, part in parts if type(part) in _CONTAINERS)
    return root[0]


def size_of(value: Any, most: int) -> int:
    """About the bytes of a JSON value as JSON; the count ends as soon as it is above `most`."""
    size, waiting = 0, [value]
    while waiting and size <= most:
        each = waiting.pop()
        size += 2
        if isinstance(each, str):
            size += len(each)
        elif isinstance(each, dict):
            size += 4 * len(each)
            if size <= most:
                size += sum(map(len, each)) if len(each) <= _ITEMS_AT_ONCE else _total_length(each)
                waiting.extend(each.values())
        elif isinstance(each, list):
            if size + 2 * len(each) > most:
                return size + 2 * len(each)
            waiting.extend(each)
        else:
            size += 4
    return size


def _total_length(texts: Iterable[str]) -> int:
    total, rest = 0, iter(texts)
    while part := list(islice(rest, _ITEMS_AT_ONCE)):
        total += sum(map(len, part))
    return total


def copy_bytes(value: Any) -> int:
    """Bytes of memory of a deep copy: those of its arrays and objects, as a copy shares texts and numbers."""
    size, waiting = 0, [value] if type(value) in _CONTAINERS else []
    while waiting:
        each = waiting.pop()
        size += getsizeof(each)
        parts = each.values() if type(each) is dict else each
        waiting.extend([part for part in parts if type(part) in _CONTAINERS])
    return size
