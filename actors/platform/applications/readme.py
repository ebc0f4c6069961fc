"""The readme of an application: a text in Markdown. It is a record of its own, because lists of applications do not
show it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.values.structs import Body, Message, View
from trunkline.actors.core.values.terms import Id, IsoTime, Links

README: Final = Kind(name="applicationReadme", noun="readme", indexes=(), counted_as=None, audited_as=None)
"""Its id is that of its application."""


class ReadmePatch(Body, frozen=True):
    """A new text; without `content` nothing changes."""

    content: Annotated[str, Meta(max_length=131_072)] | UnsetType = UNSET


class PatchReadme(Message, frozen=True):
    """Change the readme."""

    body: ReadmePatch
    by: Creator
    if_match: str | None = None


class GetReadme(Message, frozen=True):
    """The readme; an empty text if none was written yet."""

    application: bytes


class ReadmeView(View, frozen=True, kw_only=True):
    """The readme of an application. One that was never written has no `lastUpdated`."""

    application_id: Id
    content: str
    last_updated: IsoTime | None = None
    last_updated_by_id: Id | None = None
    last_updated_by_type: Literal["flow", "user", "apiToken"] | None = None
    etag: str | None = msgspec.field(default=None, name="_etag")
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


_SHAPE: Final = Shape(ReadmeView)


def get_readme(reading: Reading, message: GetReadme) -> dict[str, Any]:
    """The readme of an application."""
    shown: dict[str, Any] = {"applicationId": message.application.hex(), "content": ""}
    found = records.find(reading.snapshot, README, message.application, message.application)
    if found is not None:
        shown |= _SHAPE.of(found.doc) | {"_etag": found.revision}
    return shown | {"_type": README.name}
