"""What every message is: a frozen, typed struct that decodes, validates, documents and travels."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything an actor can be asked.

    `throttle` names the `Rate` of `trunkline.limits.table.Limits` that a call of this message spends, one
    bucket for each actor and name; None where it spends none.
    """

    throttle: ClassVar[str | None] = None


class Body(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """Base of everything that arrives as JSON: camelCase outside, unknown fields refused."""


class Query(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Base of every query string: camelCase outside, unknown parameters refused."""


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of everything that is answered as JSON. Used for the API document and checked by the tests."""


class Created(msgspec.Struct, frozen=True):
    """The answer of an actor that made something: its id, and what its maker is shown in this one answer."""

    id: bytes
    shown_once: dict[str, str] = {}


class Renamed(msgspec.Struct, frozen=True):
    """The answer of an actor that changed a named part: the name that the part has now."""

    name: str
