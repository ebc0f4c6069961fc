"""Conditions on tags: `$tagKey` and `$tagValue`, the map of keys to values, null, `$eq`, `$ne`.

Owns the forms of the tag condition and rule 10 of `core/query/compile.py`. Does not own the other kinds of field
(`core/query/conditions.py`). Every form is converted to pairs of sides, key and value, so that both notations
always mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trunkline.actors.core.query.conditions import Doc, Predicate, all_of
from trunkline.actors.core.query.operands import read_items
from trunkline.actors.core.query.problems import Budget, QueryError, shown

_TAG_FORMS = (
    'give null, {"$tagKey": ..., "$tagValue": ...}, a map of tag key to tag value such as {"floor": "1"}, '
    'or one of these below "$eq" or "$ne"'
)
_TAG_KEY = re.compile(r"[0-9a-zA-Z_-]+")


@dataclass(frozen=True, slots=True)
class _Side:
    """The condition on the keys, or on the values, of tags."""

    wanted: frozenset[str] | None = None
    forbidden: frozenset[str] | None = None
    absent: bool = False

    def forbids(self, text: str | None) -> bool:
        """Whether a match must not have a tag with this key or value, if the tag matches the other side."""
        return self.absent or (self.forbidden is not None and text in self.forbidden)


def compile_tags(name: str, condition: object, path: str, budget: Budget) -> Predicate:
    """Compile the condition of the field `name`, of the kind `tags`."""
    if isinstance(condition, dict) and ("$eq" in condition or "$ne" in condition):
        if len(condition) != 1:
            raise QueryError(path, f"$eq or $ne stands alone in a condition on tags; {_TAG_FORMS}")
        ((key, inner),) = condition.items()
        part = _compile_tag_form(name, inner, f"{path}.{key}", budget)
        return part if key == "$eq" else Predicate(lambda doc: not part.matches(doc))
    return _compile_tag_form(name, condition, path, budget)


def _compile_tag_form(name: str, form: object, path: str, budget: Budget) -> Predicate:
    if form is None:
        budget.spend(1, path)
        return Predicate(lambda doc: not doc.get(name))
    if not isinstance(form, dict) or not form:
        raise QueryError(path, f"{shown(form)} is not a condition on tags; {_TAG_FORMS}")
    budget.spend(len(form), path)
    if "$tagKey" in form or "$tagValue" in form:
        for key in form:
            if key not in ("$tagKey", "$tagValue"):
                raise QueryError(
                    path, f"{shown(key)} cannot stand beside $tagKey and $tagValue; {_TAG_FORMS}"
                )
        # No tag has a blank side, so an editor that writes one beside the other means any.
        blank = [key for key in form if form[key] == ""]
        named = form.keys() - blank if len(blank) == 1 and len(form) == 2 else form.keys()
        sides = [
            _read_side(form[key], f"{path}.{key}", budget) if key in named else _Side()
            for key in ("$tagKey", "$tagValue")
        ]
        return _tag_pair(name, *sides)
    parts = []
    for key, condition in form.items():
        if _TAG_KEY.fullmatch(key) is None or len(key) > budget.tag_chars_max:
            raise QueryError(
                path,
                f"{shown(key)} is not a valid tag key, which is 1 to {budget.tag_chars_max} letters, digits, "
                f"- and _; {_TAG_FORMS}",
            )
        side = _read_side(condition, f"{path}.{key}", budget)
        parts.append(_tag_pair(name, _Side(wanted=frozenset({key})), side))
    return all_of(parts)


def _read_side(condition: object, path: str, budget: Budget) -> _Side:
    def read_text(item: object, place: str) -> str:
        if not isinstance(item, str):
            raise QueryError(place, f"{shown(item)} is not a string; keys and values of tags are strings")
        if len(item) > budget.tag_chars_max:
            raise QueryError(place, f"this has {len(item)} characters; give at most {budget.tag_chars_max}")
        return item

    if condition is None:
        return _Side(absent=True)
    if isinstance(condition, str):
        return _Side(wanted=frozenset({read_text(condition, path)}))
    if isinstance(condition, dict) and len(condition) == 1 and ("$in" in condition or "$nin" in condition):
        ((key, operand),) = condition.items()
        texts = frozenset(read_items(operand, read_text, f"{path}.{key}", budget))
        return _Side(wanted=texts) if key == "$in" else _Side(forbidden=texts)
    raise QueryError(
        path,
        f"{shown(condition)} is not a condition on a tag; give a string, null, "
        '{"$in": [strings]} or {"$nin": [strings]}',
    )


def _tag_pair(name: str, key: _Side, value: _Side) -> Predicate:
    """Match documents with a tag that matches both sides or, if a side forbids, without any forbidden tag."""
    forbidding = any(side.absent or side.forbidden is not None for side in (key, value))
    keys, values = key.wanted, value.wanted

    def has_one(doc: Doc) -> bool:
        for tag in _listed(doc.get(name)):
            if (keys is None or tag.get("key") in keys) and (values is None or tag.get("value") in values):
                return True
        return False

    def has_none(doc: Doc) -> bool:
        for tag in _listed(doc.get(name)):
            tag_key, tag_value = tag.get("key"), tag.get("value")
            if (keys is not None and tag_key not in keys) or (values is not None and tag_value not in values):
                continue
            if key.forbids(tag_key) or value.forbids(tag_value):
                return False
        return True

    return Predicate(has_none if forbidding else has_one)


def _listed(tags: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(tags, dict):
        return [{"key": key, "value": value} for key, value in tags.items()]
    return tags or ()
