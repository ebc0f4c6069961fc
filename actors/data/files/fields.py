"""The fields of the records of files, from what a call gives."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.files.kind import PARENT, PLACE, place
from trunkline.actors.data.files.messages import FilePatch, FilePost
from trunkline.store.object_store import Stored


def place_fields(parent: str, name: str) -> Doc:
    """The fields of a record that say where it is."""
    return {"name": name, PARENT: parent, PLACE: place(parent, name)}


def content_fields(content: bytes, stored: Stored) -> Doc:
    """The fields of a file that name its content."""
    hashes = {"sha256": stored.sha256, "md5": stored.md5}
    return {"content": content.hex(), "fileSize": stored.size_bytes, **hashes}


def type_fields(body: FilePost) -> Doc:
    """The fields of a new file that tell of its content."""
    fields: Doc = {}
    if body.content_type:
        fields["contentType"] = body.content_type
    if body.file_dimensions is not UNSET:
        fields["fileDimensions"] = msgspec.to_builtins(body.file_dimensions)
    return fields


def named_types(body: FilePatch) -> dict[str, Any]:
    """The changed fields of a file that tell of its content; None for those that are removed."""
    named: dict[str, Any] = {}
    if body.content_type is not UNSET:
        named["contentType"] = body.content_type or None
    if body.file_dimensions is not UNSET:
        named["fileDimensions"] = msgspec.to_builtins(body.file_dimensions)
    return named


def check_announced(field: str, size: int, announced: int | None) -> None:
    """Raise `Invalid` unless a content has the size that the last change of the file announced, if it did."""
    if announced not in (None, size):
        raise Invalid(
            f"{field}: has {size} bytes, and {announced} were announced as the fileSize of its new content; send so "
            "many, or change the file first (PATCH with the right fileSize)."
        )


def check_directory(body: FilePost) -> None:
    """Raise `Invalid` for a directory with fields of a file. Clients send empty ones."""
    for field, value in (("fileSize", body.file_size), ("contentType", body.content_type)):
        if value is not UNSET and value:
            raise Invalid(f"{field}: is for files; a directory has no content.")
