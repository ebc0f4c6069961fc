"""The base classes of messages: frozen, typed structs that decode, validate and document themselves."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all messages to actors and readers.

    `throttle` names the `Rate` in `trunkline.limits.table.Limits` that limits this message: each actor has one
    bucket for each name. None: no throttle.
    """

    throttle: ClassVar[str | None] = None


FORM: Final = "form"
"""The name in the `extra` of a `Meta` under which a type says in words what a value is, for messages."""


BLANK: Final = "blank"
"""The name in the `extra` of a `Meta` for parameters of the query string where blank has a meaning of its own. Other
blank parameters count as not given."""


class Body(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """Base of all JSON bodies of requests: field names in camelCase, unknown fields refused.

    `hint` tells a caller who sent an unknown field what the body looks like.
    """

    hint: ClassVar[str] = ""


class Query(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Base of all query strings: parameter names in camelCase, unknown parameters refused."""


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all JSON answers. Used for the API document and checked by the tests."""


class Created(msgspec.Struct, frozen=True):
    """The answer to a creation: the new id, and secrets that are shown only in this answer."""

    id: bytes
    shown_once: dict[str, str] = {}


class Renamed(msgspec.Struct, frozen=True):
    """The answer to a change of a named part: its current name."""

    name: str
