"""Templates in texts of a dashboard or a notebook: `{{path}}` is replaced by the value at a path.

Only paths are filled in, such as `{{ctx.room.value}}` or `{{dashboard.duration}}`. Helpers and blocks of a template
language are left as they are: a client of the dashboard understands them, a report shows the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any, Final

import msgspec

from trunkline.actors.core.values.errors import Invalid

_NAMES: Final = r"\s*([0-9A-Za-z_.$-]{1,255})\s*"
_PATH: Final = re.compile(rf"\{{\{{\{{{_NAMES}\}}\}}\}}|\{{\{{{_NAMES}\}}\}}")
"""`{{{path}}}` or `{{path}}`. A brace of JSON may follow the latter."""


def has_template(text: str) -> bool:
    """Whether a text contains a template."""
    return "{{" in text


def fill(text: str, values: Mapping[str, Any]) -> Any:
    """Replace the paths of a text. A text that is one path only becomes the value itself, else all become text.

    A path to nothing becomes the empty text.
    """
    whole = _PATH.fullmatch(text.strip())
    if whole is not None:
        found = _look_up(whole, values)
        return "" if found is None else found
    return _PATH.sub(lambda match: _text(_look_up(match, values)), text)


def fill_json(text: str, values: Mapping[str, Any]) -> str:
    """Replace the paths of a JSON text. A value stays within the JSON string in which its path stands.

    A text that is one path only becomes the value as text: then the value is the JSON text. Raises `Invalid` for a path
    to nothing or to an object: a query without what narrows it would match more.
    """
    whole = _PATH.fullmatch(text.strip())
    if whole is not None:
        return filled_text(text, values)
    return _PATH.sub(lambda match: msgspec.json.encode(_needed(match, values)).decode()[1:-1], text)


def filled_text(text: str, values: Mapping[str, Any]) -> str:
    """The text with its paths filled in. Raises `Invalid` if a text that is not blank becomes blank."""
    found = _text(fill(text, values))
    if text.strip() and not found.strip():
        raise Invalid(
            f"{text[:100]!r} gives nothing, so it chooses nothing; name a parameter that has a value."
        )
    return found


def fill_all(
    value: Any,
    values: Mapping[str, Any],
    *,
    queries: Set[str] = frozenset(),
    searches: Set[str] = frozenset(),
    later: Set[str] = frozenset(),
) -> Any:
    """Replace the paths of all texts within a value.

    The texts of the fields `queries` are JSON (`fill_json`), in those of the fields `searches` each path has to lead to
    something, and those of the fields `later` stay as they are. Raises `Invalid` as `fill_json`.
    """
    if isinstance(value, str):
        return fill(value, values) if has_template(value) else value
    if isinstance(value, Mapping):
        filled = {}
        for name, each in value.items():
            if name in later:
                filled[name] = each
            elif name in queries and isinstance(each, str):
                filled[name] = fill_json(each, values)
            elif name in searches and isinstance(each, str):
                filled[name] = _PATH.sub(lambda match: _needed(match, values), each)
            else:
                filled[name] = fill_all(each, values, queries=queries, searches=searches, later=later)
        return filled
    if isinstance(value, list):
        return [fill_all(each, values, queries=queries, searches=searches, later=later) for each in value]
    return value


def _look_up(match: re.Match[str], values: Mapping[str, Any]) -> Any:
    """The value at the path of a match of `_PATH`."""
    found: Any = values
    for name in (match[1] or match[2]).split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _needed(match: re.Match[str], values: Mapping[str, Any]) -> str:
    found = _look_up(match, values)
    if found is None or isinstance(found, Mapping | list):
        raise Invalid(f"{match[0]!r} leads to nothing that is a text; name a parameter that has a value.")
    return _text(found)


def _text(value: Any) -> str:
    if value is None or isinstance(value, Mapping | list):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
