"""Shared types of the records of an experience."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.values.structs import Body
from trunkline.actors.values.terms import Key

TagMap = Annotated[dict[Key, Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=100)]
By = Literal["flow", "user", "apiToken"]


class Reply(Body, frozen=True):
    """An answer that needs no workflow: a page (its id or its name), or a redirection to an address."""

    value: Annotated[str, Meta(max_length=32767)]
    type: Literal["page", "redirect"]
    status_code: Annotated[int, Meta(ge=100, le=599)] | UnsetType = UNSET
