"""The messages about plain records, and the creator of a record.

`resource` is the name of a `Resource`. `ids` are the ids of the path by name: `application` or `user`, and the id of
the record itself under the name of its kind.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from trunkline.actors.core.records.mandate import Mandates
from trunkline.actors.core.values.structs import Message


class Creator(msgspec.Struct, frozen=True):
    """Who created or changed a record, and in whose name that record acts later, if it does."""

    id: str
    type: Literal["flow", "user", "apiToken", "device", "system"]
    name: str = ""
    mandates: Mandates = ()


class CreateRecord(Message, frozen=True):
    """Create a record from `body`. The answer is a `Created`.

    `import_id`: the record comes from another application (`actors/portability/bundles/`), and this is its id. What it
    names beside the references that the API requires may be missing here. `more` are fields of the record that no body
    has. `in_batch`: what it names may be made in the same batch by others.
    """

    resource: str
    body: Any
    by: Creator
    import_id: bytes | None = None
    more: dict[str, Any] = msgspec.field(default_factory=dict)
    in_batch: bool = False


class CreateRecords(Message, frozen=True):
    """Create several records, all or none. The answer is a list of `Created` in the same order.

    What they name may be made in the same batch by others.
    """

    resource: str
    bodies: list[Any]
    by: Creator


class PatchRecord(Message, frozen=True):
    """Change the fields of a record that `body` contains. `is_import`: they come from another application."""

    resource: str
    record: bytes
    body: Any
    by: Creator
    if_match: str | None = None
    is_import: bool = False


class DeleteRecord(Message, frozen=True):
    """Delete a record."""

    resource: str
    record: bytes
    if_match: str | None = None


class ReleaseRecords(Message, frozen=True):
    """Remove those of the records that exist, to give them to another parent. The answer is a list of their documents,
    each as `(id, document)`."""

    resource: str
    ids: list[bytes]


class AdoptRecords(Message, frozen=True):
    """Take records that another parent releases in the same batch, with their ids."""

    resource: str
    records: list[tuple[bytes, dict[str, Any]]]


class GetRecord(Message, frozen=True):
    """Read one record."""

    resource: str
    ids: dict[str, bytes]
    query: Any = None
    now_ms: int = 0


class ListRecords(Message, frozen=True):
    """Read a page of records."""

    resource: str
    ids: dict[str, bytes]
    query: Any
    now_ms: int = 0
