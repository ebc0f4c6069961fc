"""The messages about plain records, and who made a record.

`resource` is the name of a `Resource`. `ids` are those of the path by name: `application` or `user`, and that of the
record itself under the name of its kind.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from trunkline.actors.values.structs import Message


class Creator(msgspec.Struct, frozen=True):
    """Who made or changed a record: `type` is user or apiToken."""

    id: str
    type: Literal["flow", "user", "apiToken"]
    name: str = ""


class CreateRecord(Message, frozen=True):
    """Create a record from `body`. The answer is a `Created`."""

    resource: str
    body: Any
    by: Creator


class PatchRecord(Message, frozen=True):
    """Change a record: what `body` names, and nothing else."""

    resource: str
    record: bytes
    body: Any
    by: Creator
    if_match: str | None = None


class DeleteRecord(Message, frozen=True):
    """Delete a record."""

    resource: str
    record: bytes
    if_match: str | None = None


class GetRecord(Message, frozen=True):
    """Read one record."""

    resource: str
    ids: dict[str, bytes]
    query: Any


class ListRecords(Message, frozen=True):
    """Read a page of records."""

    resource: str
    ids: dict[str, bytes]
    query: Any
