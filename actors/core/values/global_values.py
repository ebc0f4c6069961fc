"""Globals of applications, workflows and versions of experiences: values by key, each written as a text of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trunkline.actors.core.values.errors import Invalid

_NOT_JSON = (msgspec.DecodeError, RecursionError, UnicodeError)


def check_global(json: str, at: str) -> None:
    """Raise `Invalid` if the text of a global, which is at `at` of the body, is not JSON."""
    try:
        msgspec.json.decode(json)
    except _NOT_JSON as error:
        raise Invalid(f'{at}.json: is not JSON text: {error}; a text is {{"json": "\\"on\\""}}.') from None


def global_values(globals: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The values by key; null for a text that is not JSON: those of applications were stored unchecked once."""
    values: dict[str, Any] = {}
    for each in globals:
        try:
            values[each["key"]] = msgspec.json.decode(each["json"])
        except _NOT_JSON:
            values[each["key"]] = None
    return values
