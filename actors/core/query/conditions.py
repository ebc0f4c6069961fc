"""The condition of one field: operators, operands, and the kinds of field.

Owns the operators, the validation of operands, and what all parts of a query share: the compiled predicate, the
error and its wording, the limits. Does not own tags (`core/query/tags.py`), nor the logic between conditions
(`core/query/compile.py`, whose numbered rules are cited here). Everything that depends only on the query (the type
of an operand, whether case is ignored) is decided during compilation, so that a closure only compares.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.core.query import bounds as query_bounds
from trunkline.actors.core.query.bounds import Bounds
from trunkline.actors.core.query.fields import Field
from trunkline.actors.core.query.operands import read_items, reader_of
from trunkline.actors.core.query.price import FOLDED_PRICE, TEXT_PRICE
from trunkline.actors.core.query.problems import Budget, QueryError, shown, shown_key
from trunkline.actors.core.values.names import did_you_mean, either, listed
from trunkline.actors.core.values.timestamps import iso
from trunkline.store import keys

Doc = Mapping[str, Any]
Matches = Callable[[Doc], bool]
Test = Callable[[Any], bool]
"""Whether one value, or one element of a list, matches an operand."""


class Predicate(NamedTuple):
    """A compiled part of a query: whether a document matches, and the bounds of the fields of every match."""

    matches: Matches
    bounds: Mapping[str, Bounds] = {}


def compile_condition(name: str, field: Field, condition: object, path: str, budget: Budget) -> Predicate:
    """Compile the condition of the field `name`, of any kind but tags: a literal, or an object of operators."""
    if not isinstance(condition, dict) or (field.kind == "time" and "$date" in condition):
        budget.spend(1, path)
        return _predicate(name, field, "$eq", reader_of(field)(condition, path), ci=False)
    return _compile_operators(name, field, condition, path, budget)


# -- operators -----------------------------------------------------------------------------------------------

_RANGES: Final = ("$gt", "$lt", "$gte", "$lte")
TEXT_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "$startsWith": str.startswith,
    "$endsWith": str.endswith,
    "$contains": operator.contains,
}
ID_OPERATORS: Final = ("$eq", "$ne", "$gt", "$lt", "$gte", "$lte", "$in", "$nin")
OPERATORS: Final = (*ID_OPERATORS, *TEXT_OPERATORS)
"""The operators that compare. `$ci` is not among them; it changes how they compare."""


_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("regex", "regexp", "like", "ilike", "match", "text"), tuple(TEXT_OPERATORS)),
    "between": ("$gte", "$lte"),
    "exists": ("$ne",),
    "not": ("$ne", "$nin"),
}
"""Operators of other query languages, and those that do their work here."""


def _meant(key: object, known: Iterable[str]) -> str:
    """A clause that suggests the operators that somebody may have meant."""
    instead = _ELSEWHERE.get(str(key).lower().lstrip("$"), ())
    if instead and set(instead) <= set(known):
        return f" (did you mean {either(instead)}?)"
    return did_you_mean(key, known, cutoff=0.7)


def _compile_operators(
    name: str, field: Field, condition: dict[Any, Any], path: str, budget: Budget
) -> Predicate:
    is_id = field.kind in ("id", "ids")
    known = ID_OPERATORS if is_id else (*OPERATORS, "$ci")
    for key in condition:
        if key not in known:
            raise QueryError(
                f"{path}.{shown_key(key)}",
                f"there is no such operator{' of identifiers' if is_id else ''}{_meant(key, known)}; "
                f"give one of {listed(known)}",
            )
    if is_id and len(condition) != 1:
        raise QueryError(
            path, f"these are {len(condition)} operators; give exactly one, and join several with $and"
        )
    ci = condition.get("$ci", False)
    if not isinstance(ci, bool):
        raise QueryError(f"{path}.$ci", f"{shown(ci)} is not a boolean; give true to ignore case, or false")
    operators = {key: operand for key, operand in condition.items() if key != "$ci"}
    if not operators:
        raise QueryError(path, f"there is nothing to compare with; give at least one of {listed(OPERATORS)}")
    budget.spend(len(operators), path)
    searches = sum(key in TEXT_OPERATORS for key in operators)
    budget.price += TEXT_PRICE * searches + (FOLDED_PRICE * len(operators) if ci else 0)
    parts = []
    for key, operand in operators.items():
        read = _read_operand(field, key, operand, f"{path}.{key}", budget)
        parts.append(_predicate(name, field, key, read, ci=ci))
    return all_of(parts)


def _read_operand(field: Field, key: str, operand: object, path: str, budget: Budget) -> Any:
    """Validate the operand of an operator, and return it in the form that documents use."""
    read = reader_of(field)
    if key in ("$in", "$nin"):
        return read_items(operand, read, path, budget)
    if key in TEXT_OPERATORS:
        if not isinstance(operand, str) or not operand:
            raise QueryError(
                path, f"{shown(operand)} cannot be searched for; give a text of at least one character"
            )
        return operand.lower() if field.holds == "id" else operand
    return read(operand, path)


def _predicate(name: str, field: Field, key: str, operand: Any, *, ci: bool) -> Predicate:
    """Compile one operator of one field."""
    if key == "$eq" and isinstance(operand, str) and not ci and field.kind in ("value", "id"):
        return Predicate(_equals_text(name, operand), {name: query_bounds.one_of([operand])})
    test = _test(field, key, operand, ci=ci)
    matches = _over(name, field, test, negated=key in ("$ne", "$nin"))
    if field.kind in ("values", "ids"):
        # Two operators may be matched by two elements (rule 7), so their bounds must not be intersected.
        return Predicate(matches)
    bounds = _bounds(field, key, operand, ci=ci)
    return Predicate(matches) if bounds is None else Predicate(matches, {name: bounds})


def _test(field: Field, key: str, operand: Any, *, ci: bool) -> Test:
    """Return the test of one operator; `$ne` and `$nin` give the test that must fail (rule 4)."""
    if key in ("$in", "$nin"):
        return _member(operand, ci=ci)
    if key in TEXT_OPERATORS:
        text = _text(TEXT_OPERATORS[key], operand, ci=ci)
        return _over_iso(text) if field.kind == "time" else text
    return _compare(key, operand) if key in _RANGES else _equal(operand, ci=ci)


def _bounds(field: Field, key: str, operand: Any, *, ci: bool) -> Bounds | None:
    """Return the bounds of the values that match one operator; None if they are unbounded."""
    match key:
        case "$eq":
            return _equal_bounds(operand, ci=ci)
        case "$in" if not ci:
            return query_bounds.one_of(operand)
        case "$in":
            return query_bounds.union(_equal_bounds(item, ci=ci) for item in operand)
        case "$ne":
            return query_bounds.within(*keys.NOT_NULL) if operand is None else None
        case "$nin":
            return None
        case "$startsWith" | "$endsWith" | "$contains":
            if field.kind == "time":
                return query_bounds.within(*keys.NUMBERS)
            starting = key == "$startsWith"
            return query_bounds.starting_with(operand) if starting else query_bounds.within(*keys.TEXTS)
        case _:
            return _range_bounds(field, key, operand)


def _equal_bounds(operand: Any, *, ci: bool) -> Bounds:
    folded = ci and isinstance(operand, str)
    return query_bounds.equal_folded(operand) if folded else query_bounds.one_of([operand])


def _range_bounds(field: Field, key: str, operand: Any) -> Bounds:
    """The bounds of a range operator, by rules 3 and 5, as in `_compare`."""
    if operand is None or isinstance(operand, bool):
        return query_bounds.one_of(value for value in (None, False, True) if _compare(key, operand)(value))
    if isinstance(operand, str) and not ("id" in (field.kind, field.holds) and operand.isascii()):
        # The order of code points is not the order of an index, except among identifiers.
        return query_bounds.within(*keys.TEXTS)
    low, high = keys.TEXTS if isinstance(operand, str) else keys.NUMBERS
    if key in ("$gt", "$gte"):
        return query_bounds.within(query_bounds.at_least(operand), high)
    return query_bounds.within(low, query_bounds.at_most(operand))


def _over(name: str, field: Field, test: Test, *, negated: bool = False) -> Matches:
    """Apply a test to a field of a document: to its value, or to any of its elements (rule 7)."""
    if field.kind in ("values", "ids"):
        if negated:
            return lambda doc: not any(map(test, doc.get(name) or _NO_ELEMENTS))
        return lambda doc: any(map(test, doc.get(name) or _NO_ELEMENTS))
    if negated:
        return lambda doc: not test(doc.get(name))
    return lambda doc: test(doc.get(name))


def _equals_text(name: str, operand: str) -> Matches:
    """`$eq` of a text and a single value, by far the most common condition, in one call."""
    return lambda doc: bool(doc.get(name) == operand)


_NO_ELEMENTS: Final = (None,)
_NUMBERS: Final = frozenset({int, float})
_TYPES: Final = {int: _NUMBERS, float: _NUMBERS, bool: frozenset({bool}), str: frozenset({str})}
"""For each type, the types that compare with it (true is not a number). Decoded documents contain no other types."""


def _equal(operand: Any, *, ci: bool) -> Test:
    if operand is None or isinstance(operand, bool):
        return lambda value: value is operand
    if isinstance(operand, str):
        if not ci:
            return lambda value: bool(value == operand)
        folded = operand.casefold()
        return lambda value: isinstance(value, str) and value.casefold() == folded
    return lambda value: type(value) in _NUMBERS and bool(value == operand)


def _member(operands: list[Any], *, ci: bool) -> Test:
    booleans = frozenset(item for item in operands if isinstance(item, bool))
    numbers = frozenset(item for item in operands if not isinstance(item, bool | str))
    texts = frozenset(item.casefold() if ci else item for item in operands if isinstance(item, str))

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return (value.casefold() if ci else value) in texts
        if isinstance(value, bool):
            return value in booleans
        return type(value) in _NUMBERS and value in numbers

    return test


def _compare(key: str, operand: Any) -> Test:
    """Rules 3 and 5: only values of the operand's type match; null matches only `$gte` and `$lte` of null."""
    if operand is None:
        return (lambda value: value is None) if key in ("$gte", "$lte") else (lambda value: False)  # noqa: ARG005
    types = _TYPES[type(operand)]
    # One closure for each operator: calling an operator function would take as long as the rest of the test.
    match key:
        case "$gt":
            return lambda value: type(value) in types and value > operand
        case "$gte":
            return lambda value: type(value) in types and value >= operand
        case "$lt":
            return lambda value: type(value) in types and value < operand
        case _:
            return lambda value: type(value) in types and value <= operand


def _text(fits: Callable[[str, str], bool], operand: str, *, ci: bool) -> Test:
    if not ci:
        return lambda value: isinstance(value, str) and fits(value, operand)
    folded = operand.casefold()
    return lambda value: isinstance(value, str) and fits(value.casefold(), folded)


def _over_iso(test: Test) -> Test:
    return lambda value: value is not None and test(iso(value))


def all_of(parts: list[Predicate]) -> Predicate:
    """Join predicates that must all match; without any, everything matches."""
    if len(parts) == 1:
        return parts[0]
    tests = [part.matches for part in parts]
    if not tests:
        return Predicate(lambda doc: True)  # noqa: ARG005

    def matches(doc: Doc) -> bool:
        for test in tests:  # noqa: SIM110 - a third faster than all() of a generator
            if not test(doc):
                return False
        return True

    return Predicate(matches, query_bounds.intersect_fields(part.bounds for part in parts))
