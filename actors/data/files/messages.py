"""Files: the bodies, queries, messages and views."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import FORM, Body, Message, Query, View
from trunkline.actors.core.values.terms import Id, RecordView
from trunkline.actors.data.files.kind import TreeName
from trunkline.actors.data.files.paths import NAME_CHARS_MAX
from trunkline.store.object_store import Stored

FileName = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
DirectoryPath = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
_TYPE: Final = r"[0-9A-Za-z!#$&^_.+-]+/[0-9A-Za-z!#$&^_.+-]+ *(;[ -~]*)?"
_TYPE_CHARS_MAX: Final = 1024
ContentType = Annotated[
    str,
    Meta(
        max_length=_TYPE_CHARS_MAX,
        pattern=rf"^(|{_TYPE})(?!\n)$",
        extra={FORM: "a media type of at most 1024 characters, such as image/png"},
    ),
]
"""Blank counts as not given: a browser says so of a file whose type it does not know."""
FileSize = Annotated[int, Meta(ge=0)]
FileType = Literal["file", "directory"]
UrlTtl = Annotated[int, Meta(ge=0, le=604_800)]
"""Seconds for which a link works; 0: no link. A week at most, as for the results of jobs."""


def usable_type(text: str | None) -> str | None:
    """A media type that somebody gives, if a file or a page can have it."""
    if text is None or len(text) > _TYPE_CHARS_MAX or re.fullmatch(_TYPE, text, re.ASCII) is None:
        return None
    return text


class FileDimensions(Body, frozen=True):
    """The size of a picture in pixels."""

    width: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    height: Annotated[float, Meta(ge=0)] | UnsetType = UNSET


class FilePost(Body, frozen=True):
    """A new file or directory. Slashes in `name` create the directories between, as does `parentDirectory`."""

    name: FileName
    type: FileType
    parent_directory: DirectoryPath | UnsetType = UNSET
    file_size: FileSize | UnsetType = UNSET
    content_type: ContentType | UnsetType = UNSET
    file_dimensions: FileDimensions | UnsetType = UNSET


class FilePatch(Body, frozen=True):
    """New content for a file, or another type or other dimensions for the content that it has.

    With `fileSize`, the answer has a form for the new content. The file changes when that has arrived; until then,
    reads show and give the old one. Without `fileSize` the other fields change at once, and null removes them. A body
    without any field gives a form as well, for a content of any size.
    """

    file_size: FileSize | UnsetType = UNSET
    content_type: ContentType | UnsetType | None = UNSET
    file_dimensions: FileDimensions | UnsetType | None = UNSET


# Query strings.


class FileMove(Query, frozen=True):
    """The new place; what is left out stays. Slashes in `name` create the directories between."""

    name: FileName | None = None
    parent_directory: DirectoryPath | None = None


class PrivateFileMove(FileMove, frozen=True):
    """As of a public file."""

    url_ttl: UrlTtl | None = msgspec.field(default=None, name="urlTTL")


class FilePage(Page, frozen=True):
    """A page of files and directories; without `directory` of the whole tree."""

    sort_field: Literal["lastUpdated", "type", "name", "creationDate"] = "lastUpdated"
    filter_field: Literal["name"] | None = None
    type: FileType | None = None
    status: Literal["completed", "pending"] | None = None
    directory: DirectoryPath | None = None


class PrivateFilePage(FilePage, frozen=True):
    """As of public files."""

    url_ttl: UrlTtl | None = msgspec.field(default=None, name="urlTTL")


class PrivateFileChoice(Query, frozen=True):
    """For how long the link works."""

    url_ttl: UrlTtl | None = msgspec.field(default=None, name="urlTTL")


# Messages to the tree of files. `tree` is the name of a kind: `file` or `privateFile`.


class CreateFile(Message, frozen=True):
    """Create a file or a directory. The answer is a `Created`.

    Other parts of the server may choose its `id`; then nothing changes if it exists already. A file with `content` is
    complete at once: the content is reserved and was written.
    """

    tree: TreeName
    body: FilePost
    by: Creator
    id: bytes | None = None
    content: bytes | None = None
    stored: Stored | None = None
    origin: Origin | None = None


class PatchFile(Message, frozen=True):
    """Change a file, or prepare new content for it."""

    tree: TreeName
    file: bytes
    body: FilePatch
    if_match: str | None = None


class MoveFile(Message, frozen=True):
    """Move or rename a file, or a directory with all that is in it."""

    tree: TreeName
    file: bytes
    query: FileMove
    by: Creator
    if_match: str | None = None
    origin: Origin | None = None


class DeleteFile(Message, frozen=True):
    """Delete a file. A directory is deleted by `DeleteDirectory`."""

    tree: TreeName
    file: bytes
    if_match: str | None = None
    origin: Origin | None = None


class DeleteDirectory(Message, frozen=True):
    """Begin to delete a directory: from now on it takes no files, and `job` removes what is in it."""

    tree: TreeName
    file: bytes
    job: bytes
    if_match: str | None = None


class EraseFiles(Message, frozen=True):
    """Remove records of a directory that is being deleted. The answer is the number of those that existed."""

    tree: TreeName
    ids: list[bytes]


class ReserveContent(Message, frozen=True):
    """Reserve a content for a file that is about to be uploaded. The answer is its id."""

    tree: TreeName
    file: bytes
    if_match: str | None = None


class SetContent(Message, frozen=True):
    """Give a file a content that was reserved and written. It takes the place of one that a form was given for.

    `content_type` is that of the upload, for a file without one.
    """

    tree: TreeName
    file: bytes
    content: bytes
    stored: Stored
    content_type: str | None = None
    origin: Origin | None = None


# Messages of reads.


class GetFile(Message, frozen=True):
    """One file or directory. The answer is a `ShownFile`."""

    tree: TreeName
    application: bytes
    file: bytes


class ListFiles(Message, frozen=True):
    """A page of files and directories. The answer is a `ShownFiles`."""

    tree: TreeName
    application: bytes
    query: FilePage


class FindFile(Message, frozen=True):
    """The complete file at a path. The answer is a `ShownFile`."""

    tree: TreeName
    application: bytes
    path: str


class FileContent(msgspec.Struct, frozen=True):
    """The content of a complete file, as a link names it."""

    content: bytes
    stored: Stored
    name: str
    type: str


class Upload(msgspec.Struct, frozen=True):
    """A content that is reserved for a direct upload."""

    content: bytes
    size_bytes: int | None
    type: str
    expires_ms: int


class ShownFile(msgspec.Struct, frozen=True):
    """A record as it is shown, but for links: those need `content`, if the file can be read, and `upload`.

    `job` is the job that deletes it, if it is a directory.
    """

    shown: dict[str, Any]
    path: str
    content: FileContent | None = None
    upload: Upload | None = None
    job: bytes | None = None


class ShownFiles(msgspec.Struct, frozen=True):
    """A page as it is shown, but for links; `files` are its items."""

    shown: dict[str, Any]
    files: list[ShownFile]


# Answers.


class FileDimensionsView(View, frozen=True):
    """The size of a picture in pixels."""

    width: float | None = None
    height: float | None = None


class FileView(RecordView, frozen=True, kw_only=True):
    """A file or a directory."""

    application_id: Id
    author_id: Id
    author_type: Literal["flow", "user", "device", "apiToken", "notebook"]
    status: Literal["pending", "moving", "deleting", "completed"]
    name: str
    parent_directory: str
    file_type: FileType = msgspec.field(name="type")
    file_id: Id | None = None
    private_file_id: Id | None = None
    file_size: int | None = None
    s3etag: str | None = None
    content_type: str | None = None
    file_dimensions: FileDimensionsView | None = None
    move_into_id: Id | None = None
    url: str | None = None


class DirectUpload(View, frozen=True):
    """Where a content is uploaded: a form with these fields, and the file as the last field, named `file`."""

    url: str
    fields: dict[str, str]


class FileUploadView(FileView, frozen=True, kw_only=True):
    """A file with the form for its content."""

    upload: DirectUpload | None = None
