"""Shared types of the records of an experience."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.structs import Body, Query
from trunkline.actors.core.values.terms import Key, Name

TagMap = Annotated[dict[Key, Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=100)]
By = Literal["flow", "user", "apiToken"]

HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,255}")
"""The name of a header, and of a cookie."""

REPLIES: Final = ("staticReply", "unauthorizedReply", "notFoundReply")
"""The fields of endpoints and versions that hold a `Reply`."""


class Reply(Body, frozen=True):
    """An answer that needs no workflow: a page, by id, or a redirection to an address."""

    value: Annotated[str, Meta(max_length=32767)]
    type: Literal["page", "redirect"]
    status_code: Annotated[int, Meta(ge=100, le=599)] | UnsetType = UNSET


class VersionChoice(Query, frozen=True):
    """The version, by id or name, whose endpoint or view is shown."""

    version: Name = "develop"


def page_of(reply: Doc | None) -> str | None:
    """The id of the page with which a stored reply answers; None for a redirection or no reply."""
    return str(reply["value"]).lower() if reply is not None and reply["type"] == "page" else None
