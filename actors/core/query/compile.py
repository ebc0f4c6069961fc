"""The advanced query: one compiler for all resources, and the glob of list filters.

Owns the logical structure of a query: sub-queries and fields. Does not own the tables of fields
(`core/query/fields.py`), the condition of one field (`core/query/conditions.py`, `core/query/tags.py`), parsing JSON
(`http/`), or finding documents. A query is compiled once into nested closures, which are pure and may run in
any thread, and into bounds: the values of fields that it can match at all (`core/query/bounds.py`).

A document is a mapping from field names to values as their `Field` describes them; a missing field is null.
The rules are those of document databases, so that a query means what its author expects:

1. The entries of one object, fields and `$and`, `$or`, `$nor` alike, must all match; `{}` matches everything.
   `$nor` is exactly "not `$or`". An empty array of queries is refused, as in document databases: a caller who
   builds `$or` from an empty list means "none of these", and any interpretation other than a refusal might
   delete the wrong documents. `$in: []` matches nothing, and `$nin: []` is its opposite.
2. A literal means `$eq`; the operators of one object must all match.
3. Missing is null. `$eq: null` matches both, and so do `$gte: null` and `$lte: null`; `$gt` and `$lt` of null
   match nothing.
4. `$ne` and `$nin` are exactly "not `$eq`" and "not `$in`": they match missing fields and other types.
5. Values of different types are never equal: 1 is 1.0, but neither true nor "1". A field that holds numbers only is
   compared with the number in a text ("7"), one of booleans with "true" and "false" as these. The range operators
   compare numbers with numbers, texts with texts (by code point), false with true, and match nothing across types.
6. `$startsWith`, `$endsWith` and `$contains` match texts only. `$ci: true` ignores case (Unicode
   case folding) of texts in these and in `$eq`, `$ne`, `$in` and `$nin`; the range operators ignore `$ci`.
7. A field of many values (kinds `ids`, `values`) matches an operator if any of its elements does, `$ne` and
   `$nin` if none is equal. Two operators may be matched by two different elements. An empty list is null:
   callers cannot distinguish it from a missing one.
8. Identifiers are compared as lower-case hex, regardless of the case in the query.
9. Times are compared as timestamps: with ISO text, `{"$date": text}`, or milliseconds since the epoch, also as
   text (never relative to now: a compiled query has no clock). Text operators see the ISO text that the API shows.
10. Tags: null means "no tags". `{floor: "1"}` means a tag `floor` with the value `1`, and is the same as
    `{$tagKey: "floor", $tagValue: "1"}` (a blank one of the two means any); several keys of a map must all match.
    A text or `$in` requires one tag that matches the key and the value given in this form. Null and `$nin` forbid
    tags: among the tags that match the other side, there must be none at all (null), or none with one of these
    (`$nin`). So `{floor: null}` means "has no tag floor", and `{floor: {$nin: ["1"]}}` also matches devices
    without that tag, as in rule 4. If both sides forbid, each applies independently. `{$ne: ...}` is "not".

11. Parts (the triggers and the nodes of a workflow): null means "no parts", `{type: "timer"}` a part of this
    type. With `key` and `config` one part must have all of it; values of `config` are compared as in rule 5.
    `{$ne: ...}` is "not".

A condition that can only be a mistake (an unknown field, a text that is not a time, an object without an
operator) is refused. It must not silently match nothing or, if rows are deleted by query, everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from trunkline.actors.core.query import bounds as query_bounds
from trunkline.actors.core.query.bounds import Bounds
from trunkline.actors.core.query.conditions import Doc, Matches, Predicate, all_of, compile_condition
from trunkline.actors.core.query.fields import Field
from trunkline.actors.core.query.parts import compile_parts
from trunkline.actors.core.query.price import spend
from trunkline.actors.core.query.problems import (
    ITEMS_MAX,
    TAG_CHARS_MAX,
    Budget,
    QueryError,
    shown,
    shown_key,
)
from trunkline.actors.core.query.tags import compile_tags
from trunkline.actors.core.values.names import did_you_mean, listed

__all__ = [
    "Bounds",
    "Field",
    "Query",
    "QueryError",
    "compile_glob",
    "compile_query",
    "glob_bounds",
]

DEPTH_MAX: Final = 16
"""Levels of `$and`, `$or`, `$nor`. People write three; evaluation recurses once for each level."""

CONDITIONS_MAX: Final = 1000
"""Operators and sub-queries in total: well under a millisecond for each document, and more than a person writes."""

LOGICAL: Final = ("$and", "$or", "$nor")


@dataclass(frozen=True, slots=True)
class Query:
    """A compiled query. Immutable and stateless: many readers may use it at once."""

    matches: Matches
    """Whether a document matches. Never raises for a document that conforms to the table of fields."""

    fields: frozenset[str]
    """The fields that it uses, so that a reader need not build the other parts of a document."""

    bounds: Mapping[str, Bounds]
    """For each field, the bounds of its values in every match (`core/query/bounds.py`). A field that is missing here
    is unbounded; fields of many values, and tags, always are."""


def compile_query(
    query: object,
    fields: Mapping[str, Field],
    *,
    at: str = "",
    items_max: int = ITEMS_MAX,
    tag_chars_max: int = TAG_CHARS_MAX,
    depth_max: int = DEPTH_MAX,
    conditions_max: int = CONDITIONS_MAX,
) -> Query:
    """Compile a parsed query for documents that `fields` describes. Raises QueryError, which names the path.

    `at` is the prefix of each path, as in `deviceQuery.$or[1].name`. `items_max` limits every array,
    `tag_chars_max` the keys and values of tags.
    """
    compiler = _Compiler(
        fields, Budget(conditions_max, items_max=items_max, tag_chars_max=tag_chars_max), depth_max
    )
    whole = compiler.query(query, at, 0)
    return Query(_priced(whole.matches, compiler.budget.price), frozenset(compiler.used), whole.bounds)


class _Compiler:
    """Compiles one query."""

    def __init__(self, fields: Mapping[str, Field], budget: Budget, depth_max: int) -> None:
        self.budget = budget
        self.used: set[str] = set()
        self._fields = fields
        self._depth_max = depth_max

    def query(self, part: object, path: str, depth: int) -> Predicate:
        if not isinstance(part, dict):
            raise QueryError(path, f'{shown(part)} is not a query; give an object such as {{"name": "pump"}}')
        conditions: list[Predicate] = []
        for key, condition in part.items():
            place = f"{path}.{shown_key(key)}" if path else shown_key(key)
            if key in LOGICAL:
                self.budget.spend(1, place)
                conditions.append(self._logical(key, condition, place, depth + 1))
            elif (field := self._fields.get(key)) is not None:
                self.used.add(key)
                conditions.append(self._field(key, field, condition, place))
            elif isinstance(key, str) and key.startswith("$"):
                raise QueryError(
                    place,
                    f"this is not a logical operator{did_you_mean(key, LOGICAL)}; give {listed(LOGICAL)} "
                    'here, and operators such as $gt below a field: {"name": {"$gt": "m"}}',
                )
            else:
                raise QueryError(
                    place,
                    f"there is no such field{did_you_mean(key, self._fields)}; give one of {listed(self._fields)}",
                )
        return all_of(conditions)

    def _field(self, key: str, field: Field, condition: object, place: str) -> Predicate:
        if field.kind == "tags":
            return compile_tags(key, condition, place, self.budget)
        if field.kind == "parts":
            return compile_parts(key, condition, place, self.budget)
        return compile_condition(key, field, condition, place, self.budget)

    def _logical(self, key: str, items: object, path: str, depth: int) -> Predicate:
        if depth > self._depth_max:
            raise QueryError(path, f"this is nested too deep; give at most {self._depth_max} levels")
        if not isinstance(items, list):
            raise QueryError(path, f"{shown(items)} is not an array; give an array of queries")
        if not items:
            raise QueryError(
                path, f"an empty array joins nothing; give at least one query, or leave {key} out"
            )
        if len(items) > self.budget.items_max:
            raise QueryError(path, f"these are {len(items)} queries; give at most {self.budget.items_max}")
        parts = [self.query(item, f"{path}[{index}]", depth) for index, item in enumerate(items)]
        if key == "$and":
            return all_of(parts)
        return _any_of(parts) if key == "$or" else _none_of(parts)


def _priced(matches: Matches, price: int) -> Matches:
    """The same, paid for with each document."""

    def matches_for_price(doc: Doc) -> bool:
        spend(price)
        return matches(doc)

    return matches_for_price


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Compile the `filter` of a list: `*` matches any run of characters, every other character itself; case is ignored.

    A blank pattern matches everything. The parts between the stars are searched one after the other, each at
    its leftmost position, which needs no backtracking: a hostile pattern costs one search for each of its parts.
    """
    if not pattern.strip():
        return lambda text: True  # noqa: ARG005
    first, *rest = pattern.casefold().split("*")
    if not rest:
        return lambda text: text.casefold() == first
    *middle, last = rest
    middle = [part for part in middle if part]
    chars_min = len(first) + len(last)

    def matches(text: str) -> bool:
        text = text.casefold()
        if len(text) < chars_min or not text.startswith(first) or not text.endswith(last):
            return False
        position, end = len(first), len(text) - len(last)
        for part in middle:
            found = text.find(part, position, end)
            if found < 0:
                return False
            position = found + len(part)
        return True

    return matches


def glob_bounds(pattern: str) -> Bounds | None:
    """The bounds of the texts that such a pattern matches; None if they are unbounded."""
    first, *rest = pattern.split("*")
    if not pattern.strip() or not first:
        return None
    return query_bounds.starting_with(first) if rest else query_bounds.equal_folded(first)


def _any_of(parts: list[Predicate]) -> Predicate:
    if len(parts) == 1:
        return parts[0]
    tests = [part.matches for part in parts]

    def matches(doc: Doc) -> bool:
        for test in tests:  # noqa: SIM110 - a third faster than any() of a generator
            if test(doc):
                return True
        return False

    return Predicate(matches, query_bounds.union_fields([part.bounds for part in parts]))


def _none_of(parts: list[Predicate]) -> Predicate:
    """Without bounds: bounds may be wider than their query, so they cannot be inverted."""
    matches = _any_of(parts).matches
    return Predicate(lambda doc: not matches(doc))
