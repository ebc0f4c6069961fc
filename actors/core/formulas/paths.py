"""Payload paths: `data.temperature`, `data.list.[0]`, `data.[a key with spaces]`; "." is the whole payload.

Also `list[0]` is accepted, and quotes around a key in brackets. A path is compiled once; a key of digits is the index
where it meets an array or a text, and a key where it meets an object. `length` of an array or a text is its length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.values import UNDEFINED, character_at, length_of

PATH_CHARS_MAX: Final = 1024
PATH_KEYS_MAX: Final = 100
PATH_CHARS_A_STEP: Final = 16
"""Characters of a path that are compiled for a step."""
ARRAY_ITEMS_MAX: Final = 262_144
"""Items to which writing behind the end extends an array, filled with null: the bound on the items of a loop."""

_INDEX_DIGITS_MAX: Final = 9
_NO_INDEX: Final = -1


class Path:
    """A compiled path. `get(payload)` gives the value, or UNDEFINED where there is none."""

    __slots__ = ("_steps", "get", "set", "text")

    def __init__(self, text: str, keys: list[str]) -> None:
        self.text = text
        self._steps = tuple((key, _index_of(key)) for key in keys)
        self.get: Final = _getter(keys, self._steps)
        self.set: Final = _setter(text, keys, self._steps)
        """Put a value at the path and return the payload: the same object, or `value` if the path is the whole.

        Objects are created on the way, also in place of a text, a number, a boolean or null. An array on the way keeps
        its items and takes an index only. Raises `EvaluationError` for another key or too high an index.
        """

    def __repr__(self) -> str:
        return f"Path({self.text!r})"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the path; none for the whole payload."""
        return tuple(key for key, _ in self._steps)

    def delete(self, payload: Any) -> Any:
        """Remove what is at the path and return the payload. The items behind a removed item move up.

        A path to nothing changes nothing. Without the whole payload an empty object is left.
        """
        if not self._steps:
            return {}
        here = payload
        for key, index in self._steps[:-1]:
            here = here.get(key) if isinstance(here, dict) else _item(here, index)
        key, index = self._steps[-1]
        if isinstance(here, dict):
            here.pop(key, None)
        elif isinstance(here, list) and 0 <= index < len(here):
            del here[index]
        return payload


def compile_path(text: str) -> Path:
    """Compile a path. Raises `FormulaError` if it is empty, malformed, or beyond the bounds."""
    if len(text) > PATH_CHARS_MAX:
        raise FormulaError(f"A path has at most {PATH_CHARS_MAX} characters; this one has {len(text)}.")
    spend(1 + len(text) // PATH_CHARS_A_STEP)
    trimmed = text.strip()
    keys = [] if trimmed == "." else _keys(trimmed)
    if len(keys) > PATH_KEYS_MAX:
        raise FormulaError(f"A path has at most {PATH_KEYS_MAX} keys; this one has {len(keys)}.")
    return Path(trimmed, keys)


def _keys(path: str) -> list[str]:
    keys: list[str] = []
    at = 0
    while True:
        if path.startswith("[", at):
            end = path.find("]", at)
            if end < 0:
                raise FormulaError(f"Path {path!r}: the bracket at position {at + 1} is not closed.")
            keys.append(_without_quotes(path[at + 1 : end]))
            at = end + 1
        else:
            end = at
            while end < len(path) and path[end] not in ".[]":
                end += 1
            if end == at:
                raise FormulaError(f"Path {path!r}: a key is missing at position {at + 1}.")
            keys.append(path[at:end])
            at = end
        if at == len(path):
            return keys
        if path[at] == ".":
            at += 1
        elif path[at] != "[":
            raise FormulaError(f"Path {path!r}: expected a dot at position {at + 1}.")


def _without_quotes(key: str) -> str:
    quoted = len(key) > 1 and key[0] in "\"'" and key[-1] == key[0]
    return key[1:-1] if quoted else key


def _index_of(key: str) -> int:
    """The index that a key of digits stands for, else `_NO_INDEX`."""
    if len(key) <= _INDEX_DIGITS_MAX and key.isascii() and key.isdigit() and key == str(int(key)):
        return int(key)
    return _NO_INDEX


def _getter(keys: list[str], steps: tuple[tuple[str, int], ...]) -> Callable[[Any], Any]:
    """A function that reads the path. The short ones try objects first: those steps fail on all else."""

    def walk(payload: Any) -> Any:
        found = payload
        for key, index in steps:
            if isinstance(found, dict):
                found = found.get(key, UNDEFINED)
            elif index == _NO_INDEX:
                found = length_of(found) if key == "length" else UNDEFINED
            elif isinstance(found, str):
                found = character_at(found, index)
            else:
                found = _item(found, index)
            if found is UNDEFINED:
                return UNDEFINED
        return found

    if len(keys) == 1:
        (only,) = keys

        def get_one(payload: Any) -> Any:
            try:
                return payload.get(only, UNDEFINED)
            except AttributeError:
                return walk(payload)

        return get_one
    if len(keys) == 2:
        first, second = keys

        def get_two(payload: Any) -> Any:
            try:
                return payload[first].get(second, UNDEFINED)
            except (AttributeError, KeyError, TypeError):
                return walk(payload)

        return get_two
    return walk


def _setter(text: str, keys: list[str], steps: tuple[tuple[str, int], ...]) -> Callable[[Any, Any], Any]:
    """A function that writes the path. The one of two keys tries objects first.

    It does not refer to the `Path` that has it: that would be a cycle, and leave each path to the garbage collector.
    """

    def walk(payload: Any, value: Any) -> Any:
        if not steps:
            return value
        if not isinstance(payload, dict | list):
            payload = {}
        here = payload
        for key, index in steps[:-1]:
            found = here.get(key) if isinstance(here, dict) else _item(here, index)
            if not isinstance(found, dict | list):
                found = {}
                _put(text, here, key, index, found)
            here = found
        _put(text, here, *steps[-1], value)
        return payload

    if len(keys) != 2:
        return walk
    first, second = keys

    def set_two(payload: Any, value: Any) -> Any:
        if type(payload) is dict:
            inner = payload.get(first)
            if type(inner) is dict:
                inner[second] = value
                return payload
        return walk(payload, value)

    return set_two


def _put(text: str, container: dict[str, Any] | list[Any], key: str, index: int, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif 0 <= index < len(container):
        container[index] = value
    elif index == _NO_INDEX:
        raise EvaluationError(f"{text}: {key} cannot be set on an array; give an index such as [0].")
    elif index >= ARRAY_ITEMS_MAX:
        raise EvaluationError(f"{text}: an array has at most {ARRAY_ITEMS_MAX} items.")
    else:
        container.extend([None] * (index - len(container)))
        container.append(value)


def _item(container: Any, index: int) -> Any:
    """The item of an array at an index, else UNDEFINED."""
    if isinstance(container, list) and 0 <= index < len(container):
        return container[index]
    return UNDEFINED
