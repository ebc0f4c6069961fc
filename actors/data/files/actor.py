"""The tree of files: the only writer of the files and directories of one application, private and public ones.

Both trees have one actor, because whether a path is free, and where a directory may be moved, is decided by looking at
several records. It keeps no state in memory.

A file is pending until its content has arrived. A complete file that is to get new content keeps the old one until
then: the new one is named by the field `upload`, and the bytes are counted and discarded by `Contents`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import UNSET

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.messages import CompleteUpload
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.records.revision import Found, check_match
from trunkline.actors.core.records.summary import STORED_BYTES, STORED_FILES
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.turns import as_domain_error
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Created
from trunkline.actors.data.files.fields import (
    check_announced,
    check_directory,
    content_fields,
    named_types,
    place_fields,
    type_fields,
)
from trunkline.actors.data.files.kind import NO_TYPE, TREES
from trunkline.actors.data.files.messages import (
    CreateFile,
    DeleteDirectory,
    DeleteFile,
    EraseFiles,
    FilePatch,
    MoveFile,
    PatchFile,
    ReserveContent,
    SetContent,
)
from trunkline.actors.data.files.paths import path_of, split_path
from trunkline.actors.data.files.tree import ROOT_DIRECTORY, Tree, extent
from trunkline.actors.data.files.triggers import Action, stage_file
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.store.object_store import Stored

UPLOAD: Final = "upload"
"""The field with the content that a form was given for, and with what the file becomes when that has arrived."""


class FileTree(Actor):
    """All files of one application. `ref.parent` and `ref.id` are both the application's id."""

    kind: ClassVar[str] = "fileTree"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True  # it exists as long as its application

    # Files and directories.

    def on_create_file(self, message: CreateFile) -> Created:
        """Create a file or a directory, and the directories above it."""
        kind, body = TREES[message.tree], message.body
        now_ms = self.system.clock.wall_ms()
        if message.id is not None and self._tree(kind).record(message.id) is not None:
            return Created(message.id)
        names = self._path(body.parent_directory or "", body.name, is_directory=body.type == "directory")
        if body.type == "file" and body.name.endswith("/"):
            raise Invalid("name: ends with a slash, as directories do; leave it out, or create a directory.")
        id = message.id or self.system.ids.new(now_ms)
        doc: Doc = {
            "creationDate": now_ms,
            "lastUpdated": now_ms,
            "authorType": message.by.type,
            "authorId": message.by.id,
            "type": body.type,
        }
        if body.type == "directory":
            check_directory(body)
            doc["status"] = "completed"
        elif message.content is not None and message.stored is not None:
            self._contents.keep(self, message.content, message.stored.size_bytes)
            self._count(kind, 1, message.stored.size_bytes)
            doc |= {
                "status": "completed",
                **content_fields(message.content, message.stored),
                **type_fields(body),
            }
        else:
            doc |= {"status": "pending", **type_fields(body)}
            if body.file_size is not UNSET:
                self._check_size(body.file_size)
                doc["fileSize"] = body.file_size
                doc[UPLOAD] = self._reserve_upload(body.file_size)
        doc |= self._claim(kind, names, message.by, now_ms)
        records.write(self, kind, self.ref.parent, id, None, doc)
        if "content" in doc:
            stage_file(self, kind, "create", id, doc, message.origin or _origin(message.by), names)
        return Created(id)

    def on_patch_file(self, message: PatchFile) -> None:
        """Change a file, or reserve new content for it."""
        kind, body = TREES[message.tree], message.body
        found = self._file(kind, message.file)
        check_match(message.if_match, found.raw)
        doc = dict(found.doc)
        named = named_types(body)
        is_pending = doc["status"] == "pending"
        if body.file_size is UNSET or is_pending:
            doc = records.apply_patch(doc, named)
        size = doc.get("fileSize") if is_pending and body.file_size is UNSET else body.file_size
        if isinstance(size, int) or body == FilePatch():
            # Who names nothing has new content, of a size that is not told.
            told = size if isinstance(size, int) else None
            self._check_size(told or 0)
            self._discard_upload(doc)
            doc[UPLOAD] = self._reserve_upload(told)
            if is_pending and told is not None:
                doc["fileSize"] = told
            elif not is_pending:
                doc[UPLOAD] |= {"named": named}
        if doc != found.doc:
            self._update(kind, found, doc)

    async def on_move_file(self, message: MoveFile) -> None:
        """Move a file or a directory: its record changes, and what is in a directory goes with it."""
        kind, query = TREES[message.tree], message.query
        found = self._found(kind, message.file)
        check_match(message.if_match, found.raw)
        tree = self._tree(kind)
        here = tree.place_of(found.doc)
        parent = here.path if query.parent_directory is None else query.parent_directory
        is_directory = found.doc["type"] == "directory"
        names = self._path(parent, query.name or found.doc["name"], is_directory=is_directory)
        old_names = (*here.names, found.doc["name"])
        if names == old_names:
            return
        if not is_directory and query.name is not None and query.name.endswith("/"):
            raise Invalid("name: ends with a slash, as directories do; leave it out.")
        if is_directory:
            if names[: len(old_names)] == old_names:
                raise Invalid("parentDirectory: a directory cannot be moved into itself.")
            await self._check_extent(kind, found.id, names)
        now_ms = self.system.clock.wall_ms()
        moved = self._update(kind, found, {**found.doc, **self._claim(kind, names, message.by, now_ms)})
        if "content" in moved:
            origin = message.origin or _origin(message.by)
            stage_file(self, kind, "delete", found.id, found.doc, origin, old_names)
            stage_file(self, kind, "create", found.id, moved, origin, names)

    def on_delete_file(self, message: DeleteFile) -> None:
        """Delete a file."""
        kind = TREES[message.tree]
        found = self._file(kind, message.file)
        check_match(message.if_match, found.raw)
        self._erase(kind, found, message.origin)

    # Directories are deleted by a job.

    def on_delete_directory(self, message: DeleteDirectory) -> None:
        """Let nobody write into a directory any more, so that a job can remove what is in it."""
        kind = TREES[message.tree]
        found = self._tree(kind).record(message.file)
        if found is None:
            raise missing(kind, message.file)
        check_match(message.if_match, found.raw)
        self._update(kind, found, {**found.doc, "status": "deleting", "job": message.job.hex()})

    def on_erase_files(self, message: EraseFiles) -> int:
        """Remove records of a directory that is being deleted."""
        kind = TREES[message.tree]
        tree = self._tree(kind)
        erased = [found for found in map(tree.record, message.ids) if found is not None]
        for found in erased:
            self._erase(kind, found)
        return len(erased)

    # Contents.

    def on_complete_upload(self, message: CompleteUpload) -> None:
        """Give a file the content for which a form was given. Again with the same content: nothing changes."""
        kind = TREES[message.kind]
        found = self._file(kind, message.record)
        id = message.content.hex()
        if found.doc.get("content") == id:
            if found.doc["sha256"] != message.stored.sha256:
                raise Invalid(
                    "file: this form was used already, with another content; change the file first."
                )
            return
        if found.doc.get(UPLOAD, {}).get("content") != id:
            raise Invalid(
                "key: the file was given another form or another content meanwhile; use the newest form."
            )
        self._complete(kind, found, message.content, message.stored, None)

    def on_reserve_content(self, message: ReserveContent) -> bytes:
        """Reserve a content for an upload that the server receives."""
        found = self._file(TREES[message.tree], message.file)
        check_match(message.if_match, found.raw)
        upload = self._reserve_upload(0)
        return bytes.fromhex(upload["content"])

    def on_set_content(self, message: SetContent) -> None:
        """Give a file a content that was received."""
        kind = TREES[message.tree]
        found = self._file(kind, message.file)
        check_announced(message.tree, message.stored.size_bytes, found.doc.get(UPLOAD, {}).get("size"))
        self._discard_upload(found.doc)
        self._complete(kind, found, message.content, message.stored, message.content_type, message.origin)

    def _complete(
        self,
        kind: Kind,
        found: Found,
        content: bytes,
        stored: Stored,
        content_type: str | None,
        origin: Origin | None = None,
    ) -> None:
        self._contents.keep(self, content, stored.size_bytes)
        self._count(kind, 1, stored.size_bytes)
        doc = dict(found.doc)
        upload = doc.pop(UPLOAD, {})
        if "content" in doc:
            self._discard_content(kind, doc)
            # The dimensions of a picture are those of the old content, unless the change named new ones.
            doc.pop("fileDimensions", None)
        doc = records.apply_patch(doc, upload.get("named", {}))
        doc |= {"status": "completed", **content_fields(content, stored)}
        if "contentType" not in doc:
            doc["contentType"] = content_type or NO_TYPE
        action: Action = "update" if "content" in found.doc else "create"
        stage_file(self, kind, action, found.id, self._update(kind, found, doc), origin)

    def _reserve_upload(self, size: int | None) -> Doc:
        """Reserve a content; the answer is what a record keeps of it. The size is None if it is not told."""
        now_ms = self.system.clock.wall_ms()
        content, expires_ms = self.system.ids.new(now_ms), now_ms + self.system.limits.upload_form_s * 1000
        self._contents.reserve(self, content, expires_ms)
        return {"content": content.hex(), "size": size, "expires": expires_ms}

    def _discard_content(self, kind: Kind, doc: Doc) -> None:
        self._contents.discard(self, bytes.fromhex(doc["content"]), doc["fileSize"])
        self._count(kind, -1, -doc["fileSize"])

    def _count(self, kind: Kind, files: int, size_bytes: int) -> None:
        """Count complete files and their bytes, for the summary of the application."""
        counts = {STORED_FILES: files, STORED_BYTES: size_bytes}
        self.add(keys.COUNTS, keys.total_key(kind.name, self.ref.parent), counts)

    def _discard_upload(self, doc: Doc) -> None:
        if UPLOAD in doc:
            self._contents.discard(self, bytes.fromhex(doc[UPLOAD]["content"]))

    # Parts.

    @property
    def _contents(self) -> Contents:
        return self.system.component(Contents)

    def _tree(self, kind: Kind) -> Tree:
        return Tree(self.system.journal.get, self.ref.parent, kind)

    def _found(self, kind: Kind, id: bytes) -> Found:
        """A record that may be changed. Raises `NotFound`, or `Invalid` if it is being deleted."""
        tree = self._tree(kind)
        found = tree.record(id)
        if found is None:
            raise missing(kind, id)
        if tree.status(found.doc) == "deleting":
            raise Invalid(f"The {kind.noun} {id.hex()} is being deleted.")
        return found

    def _file(self, kind: Kind, id: bytes) -> Found:
        found = self._found(kind, id)
        if found.doc["type"] == "directory":
            raise Invalid(f"The {kind.noun} {id.hex()} is a directory and has no content.")
        return found

    def _update(self, kind: Kind, found: Found, doc: Doc) -> Doc:
        """Stage a change of a record; return it."""
        now_ms = records.next_update_ms(self.system.clock.wall_ms(), found.doc)
        doc = {**doc, "lastUpdated": now_ms}
        records.write(self, kind, self.ref.parent, found.id, found.doc, doc)
        return doc

    def _erase(self, kind: Kind, found: Found, origin: Origin | None = None) -> None:
        self._discard_upload(found.doc)
        if "content" in found.doc:
            self._discard_content(kind, found.doc)
            stage_file(self, kind, "delete", found.id, found.doc, origin)
        records.erase(self, kind, self.ref.parent, found.id, found.doc)

    def _check_size(self, size: int) -> None:
        most = self.system.limits.file_bytes_max
        if size > most:
            raise Invalid(f"fileSize: is {size}; a file has at most {most} bytes.")

    # Paths.

    def _path(self, parent: str, name: str, *, is_directory: bool) -> tuple[str, ...]:
        """The names of a path that a call gives. Raises `Invalid` if it is outside the bounds."""
        last = split_path(name, "name")
        if not last:
            raise Invalid("name: is only a slash; give the name of a file or directory.")
        names = (*split_path(parent, "parentDirectory"), *last)
        directory = names if is_directory else names[:-1]
        self._check_path(len(directory), len(path_of(directory)))
        return names

    def _check_path(self, depth: int, chars: int) -> None:
        """Check the number of directories in each other, and the length of their path."""
        limits = self.system.limits
        if depth > limits.file_directories_max:
            raise Invalid(
                f"parentDirectory: there would be {depth} directories in each other; "
                f"at most {limits.file_directories_max} are allowed."
            )
        if chars > limits.file_path_chars_max:
            raise Invalid(
                f"parentDirectory: the path of the directory would have {chars} characters; "
                f"at most {limits.file_path_chars_max} are allowed."
            )

    def _claim(self, kind: Kind, names: tuple[str, ...], by: Creator, now_ms: int) -> Doc:
        """The fields of a record that say where it is. The directories above are created where they are missing.

        Raises `Invalid` if there is something at the path already, or a file where a directory is needed.
        """
        tree, parent = self._tree(kind), ROOT_DIRECTORY
        is_new = False
        for number, name in enumerate(names[:-1], start=1):
            found = None if is_new else tree.child(parent, name)
            if found is None:
                is_new = True
                id = self.system.ids.new(now_ms)
                directory: Doc = {
                    "creationDate": now_ms,
                    "lastUpdated": now_ms,
                    "authorType": by.type,
                    "authorId": by.id,
                    "status": "completed",
                    "type": "directory",
                    **place_fields(parent, name),
                }
                records.write(self, kind, self.ref.parent, id, None, directory)
                parent = id.hex()
                continue
            path = path_of(names[:number])[:200]
            if found.doc["type"] != "directory":
                raise Invalid(f"parentDirectory: {path} is a file; give a directory.")
            if found.doc["status"] == "deleting":
                raise Invalid(f"parentDirectory: {path} is being deleted; try again when that is done.")
            parent = found.id.hex()
        taken = None if is_new else tree.child(parent, names[-1])
        if taken is not None:
            type = taken.doc["type"]
            what = "being deleted" if taken.doc["status"] == "deleting" else f"a {type}"
            advice = "change that for new content" if type == "file" else "give another name"
            raise Invalid(
                f"name: {path_of(names)[:200]} exists, with the id {taken.id.hex()}, and is {what}; {advice}."
            )
        return place_fields(parent, names[-1])

    async def _check_extent(self, kind: Kind, directory: bytes, names: tuple[str, ...]) -> None:
        """Check that all that is in a directory stays within the bounds of paths if the directory is moved."""
        try:
            await self.system.journal.submit(Batch()).wait()  # so that the snapshot shows all earlier turns
        except StoreError as failure:
            raise as_domain_error(failure) from failure
        depth, chars = await self.system.read(
            partial(extent, application=self.ref.parent, kind=kind, directory=directory)
        )
        self._check_path(len(names) + depth, len(path_of(names)) + chars)


def _origin(by: Creator) -> Origin:
    return Origin(by.id, by.type)
