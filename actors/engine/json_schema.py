"""JSON schemas of draft 4, compiled to closures, and the checks of values by them.

Owns the schemas within a schema, references, and the course of a check. What each keyword means stands in
`schema_keywords`. Schemas are those of workflow authors, so a check is bounded: it counts its steps, and how deep
schemas lead into each other. `$ref` leads to a place within the schema, by `#/...` or an `id`; nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from trunkline.actors.core.formulas.values import type_of

SCHEMA_VALUES_MAX: Final = 10_000
"""Values in a schema."""
SCHEMA_DEPTH_MAX: Final = 100
"""Levels of arrays and objects in a schema."""
DEPTH_MAX: Final = 150
"""Schemas that lead into each other at a time; each takes up to four calls, of which Python allows 1,000."""
PROBLEMS_MAX: Final = 100
"""Problems of one value that are told."""
ASKED_MAX: Final = 1_000
ASKED_CHARS_MAX: Final = 100_000
"""Texts, and their characters, that a check asks a process of scripts about."""

Asked = dict[tuple[str, str], None]
"""Patterns and texts, in the order in which they were asked."""


class SchemaError(ValueError):
    """A schema cannot be used. The sentence names the keyword."""


class TooMuchWork(Exception):
    """A check took more steps than it may, or leads too deep."""


class Problem(NamedTuple):
    """What is wrong at a place: the keys and indexes that lead there from the value."""

    place: tuple[str | int, ...]
    message: str


class Schema:
    """A compiled schema, or a schema within it."""

    __slots__ = ("rules",)

    def __init__(self) -> None:
        self.rules: list[Rule] = []


class Check:
    """One check of a value. `look` is called now and then, and may end the check by an exception."""

    def __init__(
        self, steps: int, look: Callable[[], None], known: Mapping[tuple[str, str], bool] | None = None
    ) -> None:
        self.problems: list[Problem] = []
        self.asked: Asked = {}
        """The patterns and texts of which the check would have to know whether they match."""
        self._known = known or {}
        self._asked_chars = 0
        self._steps_left = steps
        self._look = look
        self._next_look = max(0, steps - _STEPS_A_LOOK)
        self._depth = 0
        self._trying = 0

    def run(self, schema: Schema, value: Any, place: Place) -> None:
        """Check a value, and keep its problems."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise TooMuchWork(
                f"The schema leads into itself or into the value more than {DEPTH_MAX} levels deep."
            )
        for rule in schema.rules:
            self.spend(1)
            rule(self, value, place)
            if self._is_told():
                break
        self._depth -= 1

    def fits(self, schema: Schema, value: Any) -> bool:
        """Whether a value has no problems."""
        told, self.problems = self.problems, []
        self._trying += 1
        self.run(schema, value, None)
        self._trying -= 1
        fits, self.problems = not self.problems, told
        return fits

    def spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < self._next_look:
            if self._steps_left < 0:
                raise TooMuchWork("The check of the value by the schema takes too many steps.")
            self._next_look = max(0, self._steps_left - _STEPS_A_LOOK)
            self._look()

    def ask(self, pattern: str, text: str) -> bool:
        """Whether a text matches a pattern, as far as it is known; else it is asked, and assumed meanwhile."""
        self.spend(1)
        found = self._known.get((pattern, text))
        if found is not None:
            return found
        if (pattern, text) not in self.asked:
            self.asked[pattern, text] = None
            self._asked_chars += len(text)
            if len(self.asked) > ASKED_MAX or self._asked_chars > ASKED_CHARS_MAX:
                raise TooMuchWork(
                    f"Patterns with lookaround or backreferences are searched for in at most {ASKED_MAX} texts "
                    f"of {ASKED_CHARS_MAX} characters together."
                )
        return True

    def tell(self, place: Place, message: str) -> None:
        if not self._is_told():
            self.problems.append(Problem(_keys_of(place), message))

    def _is_told(self) -> bool:
        """Whether further problems make no difference."""
        return len(self.problems) >= (1 if self._trying else PROBLEMS_MAX)


_STEPS_A_LOOK: Final = 10_000

Place = tuple[Any, str | int] | None
"""A place in a value: the place of what contains it, and the key or index there."""

Rule = Callable[[Check, Any, Place], None]


def _keys_of(place: Place) -> tuple[str | int, ...]:
    keys: list[str | int] = []
    while place is not None:
        place, key = place
        keys.append(key)
    return tuple(reversed(keys))


class Compiler:
    """Makes one `Schema` of each object that is used as one; those are waiting until they are finished."""

    def __init__(self, source: Any, keywords: dict[str, Compile]) -> None:
        self._source = source
        self._keywords = keywords
        self.patterns: dict[str, Any] = {}
        """What a regular expression was compiled to, by its text."""
        self._made: dict[int, Schema] = {}
        self._waiting: list[tuple[dict[str, Any], Schema]] = []
        self._by_id: dict[str, Any] = {}
        self._look_through()

    def schema(self, source: Any, name: str) -> Schema:
        if not isinstance(source, dict):
            raise SchemaError(f"{name} is of the type {type_of(source)}; a schema is an object.")
        made = self._made.get(id(source))
        if made is None:
            made = self._made[id(source)] = Schema()
            self._waiting.append((source, made))
        return made

    def whole(self) -> Schema:
        """Compile the whole schema. Raises `SchemaError`."""
        made = self.schema(self._source, "the schema")
        self._finish()
        return made

    def _finish(self) -> None:
        while self._waiting:
            source, made = self._waiting.pop()
            if "$ref" in source:
                # What stands beside a reference is ignored, as the draft says.
                made.rules.append(_same_as(self._referred(source["$ref"])))
                continue
            for keyword, value in source.items():
                rule = self._keywords.get(keyword)
                if rule is not None:
                    made.rules.append(rule(self, value, source))

    def schemas(self, value: Any, name: str) -> list[Schema]:
        if not isinstance(value, list) or not value:
            raise SchemaError(f"{name} is not a list of schemas.")
        return [self.schema(each, f"an item of {name}") for each in value]

    def named(self, value: Any, name: str) -> dict[str, Schema]:
        if not isinstance(value, dict):
            raise SchemaError(f"{name} is not an object of schemas.")
        return {key: self.schema(each, f"{name}.{key}") for key, each in value.items()}

    def _look_through(self) -> None:
        """Count the values of the schema, and find those with an `id`."""
        level, count = [self._source], 0
        for _ in range(SCHEMA_DEPTH_MAX):
            count += len(level)
            if count > SCHEMA_VALUES_MAX:
                raise SchemaError(f"the schema has more than {SCHEMA_VALUES_MAX} values.")
            for each in level:
                if isinstance(each, dict) and isinstance(each.get("id"), str):
                    self._by_id.setdefault(each["id"], each)
            level = [
                inner
                for each in level
                if isinstance(each, dict | list)
                for inner in (each.values() if isinstance(each, dict) else each)
            ]
        if level:
            raise SchemaError(f"the schema nests deeper than {SCHEMA_DEPTH_MAX} levels.")

    def _referred(self, reference: Any) -> Schema:
        if isinstance(reference, str) and reference in self._by_id:
            return self.schema(self._by_id[reference], reference)
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SchemaError(
                f"$ref {reference!r} does not lead to a place within the schema, such as #/definitions/a."
            )
        found = self._source
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(found):
                found = found[int(key[:9])]
            else:
                raise SchemaError(f"$ref {reference!r} leads to nothing: {step!r} is missing.")
        if reference not in ("#", "#/") and not reference.startswith("#/"):
            raise SchemaError(f"$ref {reference!r} leads to nothing: no id is like it.")
        return self.schema(found, f"$ref {reference!r}")


def _same_as(schema: Schema) -> Rule:
    return lambda check, value, place: check.run(schema, value, place)


Compile = Callable[[Compiler, Any, dict[str, Any]], Rule]
"""Makes the rule of a keyword from its value and the schema around it."""
