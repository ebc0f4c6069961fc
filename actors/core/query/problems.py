"""What may be wrong with a query: the error that names the place, the limits of a query, and values in sentences."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.values.errors import Invalid

ITEMS_MAX: Final = 100
TAG_CHARS_MAX: Final = 255
"""The limits of the API: items of an array, characters of a key or a value of a tag."""


class QueryError(Invalid, ValueError):
    """A query that cannot be compiled: the `path` inside it, and the `problem` with the accepted forms."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'query'}: {problem}.")
        self.path = path or "query"
        self.problem = problem


class Budget:
    """The limits of one query, and how many conditions it may still have."""

    __slots__ = ("_conditions_max", "_left", "items_max", "price", "tag_chars_max")

    def __init__(self, conditions_max: int, *, items_max: int, tag_chars_max: int) -> None:
        self.items_max = items_max
        self.tag_chars_max = tag_chars_max
        self._conditions_max = conditions_max
        self._left = conditions_max
        self.price = 0
        """What it costs to match one document (`core/query/price.py`)."""

    def spend(self, conditions: int, path: str) -> None:
        """Count conditions, before they are compiled. Raises QueryError above the limit."""
        self._left -= conditions
        self.price += conditions
        if self._left < 0:
            raise QueryError(
                path, f"the query grows too large here; give at most {self._conditions_max} conditions"
            )


def shown(value: object) -> str:
    """Return the given value, shortened for a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int) and value.bit_length() > 1024:
        return "a number of over 300 digits"
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def shown_key(key: object) -> str:
    """Return a key for a path, shortened: a caller may send one of any length."""
    text = str(key)
    return text if len(text) <= 60 else text[:57] + "..."
