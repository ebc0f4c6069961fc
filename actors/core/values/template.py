"""Templates in texts of a dashboard or a notebook: `{{path}}` is replaced by the value at a path.

Only paths are filled in, such as `{{ctx.room.value}}` or `{{dashboard.duration}}`. Helpers and blocks of a template
language are left as they are: a client of the dashboard understands them, a report shows the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any, Final

import msgspec

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

    A text that is one path only becomes the value as text: then the value is the JSON text.
    """
    whole = _PATH.fullmatch(text.strip())
    if whole is not None:
        return _text(_look_up(whole, values))
    return _PATH.sub(lambda match: msgspec.json.encode(_text(_look_up(match, values))).decode()[1:-1], text)


def fill_all(
    value: Any,
    values: Mapping[str, Any],
    *,
    queries: Set[str] = frozenset(),
    later: Set[str] = frozenset(),
) -> Any:
    """Replace the paths of all texts within a value.

    The texts of the fields `queries` are JSON (`fill_json`), those of the fields `later` stay as they are.
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
            else:
                filled[name] = fill_all(each, values, queries=queries, later=later)
        return filled
    if isinstance(value, list):
        return [fill_all(each, values, queries=queries, later=later) for each in value]
    return value


def _look_up(match: re.Match[str], values: Mapping[str, Any]) -> Any:
    """The value at the path of a match of `_PATH`."""
    found: Any = values
    for name in (match[1] or match[2]).split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _text(value: Any) -> str:
    if value is None or isinstance(value, Mapping | list):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
