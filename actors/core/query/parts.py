"""Conditions on parts: the triggers and nodes of a workflow, by type, key and settings (rule 11 of `compile.py`)."""

from __future__ import annotations

import re
from typing import Any, Final

from trunkline.actors.core.query.conditions import Doc, Predicate
from trunkline.actors.core.query.problems import Budget, QueryError, shown, shown_key

PART_CHARS_MAX: Final = 255
CONFIG_CHARS_MAX: Final = 1024
"""Characters of a type, and of a key or a setting."""

_FORMS: Final = (
    'give null, {"type": "timer"}, with "key" and "config" where one part must have them, '
    'or this below "$eq" or "$ne"'
)
_CONFIG_KEY: Final = re.compile(r"[0-9a-zA-Z_-]{1,255}")


def compile_parts(name: str, condition: object, path: str, budget: Budget) -> Predicate:
    """Compile the condition of the field `name`, of the kind `parts`."""
    if isinstance(condition, dict) and ("$eq" in condition or "$ne" in condition):
        if len(condition) != 1:
            raise QueryError(path, f"$eq or $ne stands alone in a condition on parts; {_FORMS}")
        ((operator, inner),) = condition.items()
        part = _compile_part(name, inner, f"{path}.{operator}", budget)
        return part if operator == "$eq" else Predicate(lambda doc: not part.matches(doc))
    return _compile_part(name, condition, path, budget)


def _compile_part(name: str, form: object, path: str, budget: Budget) -> Predicate:
    if form is None:
        budget.spend(1, path)
        return Predicate(lambda doc: not doc.get(name))
    if not isinstance(form, dict) or "type" not in form:
        raise QueryError(path, f"{shown(form)} is not a condition on parts; {_FORMS}")
    for key in form:
        if key not in ("type", "key", "config"):
            raise QueryError(f"{path}.{shown_key(key)}", f"there is no such field of a part; {_FORMS}")
    config = form.get("config", {})
    if not isinstance(config, dict):
        raise QueryError(f"{path}.config", f"{shown(config)} is not an object; {_FORMS}")
    budget.spend(len(form) + len(config), path)
    wanted = {key: _text(form[key], f"{path}.{key}") for key in ("type", "key") if key in form}
    settings = {key: _setting(key, value, f"{path}.config") for key, value in config.items()}

    def matches(doc: Doc) -> bool:
        return any(_has(part, wanted, settings) for part in doc.get(name) or ())

    return Predicate(matches)


def _has(part: dict[str, Any], wanted: dict[str, str], settings: dict[str, Any]) -> bool:
    if any(part.get(key) != text for key, text in wanted.items()):
        return False
    config = part.get("config") or {}
    return all(_equal(config.get(key), value) for key, value in settings.items())


def _equal(value: Any, wanted: Any) -> bool:
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _text(value: object, path: str) -> str:
    if not isinstance(value, str) or len(value) > (
        PART_CHARS_MAX if path.endswith(".type") else CONFIG_CHARS_MAX
    ):
        raise QueryError(path, f"{shown(value)} is not a text of a part; {_FORMS}")
    return value


def _setting(key: str, value: object, path: str) -> Any:
    if _CONFIG_KEY.fullmatch(key) is None:
        raise QueryError(path, f"{shown(key)} is not a name of a setting; give letters, digits, - and _")
    if isinstance(value, str) and len(value) > CONFIG_CHARS_MAX:
        raise QueryError(
            f"{path}.{key}", f"this has {len(value)} characters; give at most {CONFIG_CHARS_MAX}"
        )
    if value is not None and not isinstance(value, str | int | float | bool):
        raise QueryError(
            f"{path}.{key}", f"{shown(value)} is not a value; give a text, a number, a boolean or null"
        )
    return value
