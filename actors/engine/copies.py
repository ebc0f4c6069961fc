"""Copies and sizes of JSON values. Nothing recurses, so the nesting of a payload never ends in a RecursionError."""

from __future__ import annotations

from typing import Any


def copied(value: Any) -> Any:
    """A deep copy of a JSON value."""
    root: list[Any] = [None]
    waiting: list[tuple[Any, Any, Any]] = [(root, 0, value)]
    while waiting:
        into, key, each = waiting.pop()
        if isinstance(each, dict):
            made: Any = dict(each)
            waiting.extend((made, name, part) for name, part in each.items() if isinstance(part, dict | list))
        elif isinstance(each, list):
            made = list(each)
            waiting.extend((made, at, part) for at, part in enumerate(each) if isinstance(part, dict | list))
        else:
            made = each
        into[key] = made
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
            size += sum(map(len, each)) + 4 * len(each)
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
        else:
            size += 4
    return size
