"""The export and import of files. Directories stand before what is in them. Files without content are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records.export_lines import body_of, line, more_of_content
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.portable import Get, Item, Portable, ResourceName, WithContent
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.files.kind import TREES, TreeName
from trunkline.actors.data.files.messages import CreateFile, FilePatch, FilePost, PatchFile, SetContent
from trunkline.actors.data.files.paths import split_path
from trunkline.actors.data.files.tree import Tree, in_order
from trunkline.store.object_store import Stored

if TYPE_CHECKING:
    from trunkline.actors.core.records.export_lines import Lines
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot


def _files(name: ResourceName, tree: TreeName, option: str, contents: str) -> Portable:
    kind = TREES[tree]

    def scan(snapshot: Snapshot, application: bytes) -> Iterator[tuple[bytes, Doc]]:
        for found, directory in in_order(snapshot, application, kind):
            yield found.id, {**found.doc, "parentDirectory": directory}

    def read(snapshot: Snapshot, application: bytes) -> Lines:
        for id, doc in scan(snapshot, application):
            yield line(id, body_of(FilePost, doc), more_of_content(kind, doc))

    def make(item: Item) -> Iterator[Ask]:
        ref = Ref("fileTree", item.application, item.application)
        if item.existing is None:
            yield ref, CreateFile(tree=tree, body=item.body, by=item.by, id=item.id)
        elif item.body.type == "file":
            # Its content is written when the file is changed.
            yield ref, SetContent(tree=tree, file=item.id, content=b"", stored=Stored(0, ""))
            body = FilePatch(content_type=item.body.content_type, file_dimensions=item.body.file_dimensions)
            yield ref, PatchFile(tree=tree, file=item.id, body=body)

    def find(get: Get, application: bytes, body: Doc) -> bytes | None:
        """What is at the path of a file or a directory, if it is of the same type."""
        try:
            directory = split_path(str(body.get("parentDirectory") or ""), "parentDirectory")
            names = (*directory, *split_path(str(body.get("name")), "name"))
        except Invalid:
            return None
        found = Tree(get, application, kind).find(names)
        return found.id if found is not None and found.doc["type"] == body.get("type") else None

    return Portable(
        name=name,
        created_by=f"{contents}.post",
        changed_by=f"{kind.name}.patch",
        body=FilePost,
        kinds=(kind,),
        more=WithContent,
        option=option,
        contents=contents,
        read=read,
        scan=scan,
        make=make,
        find=find,
    )


FILES: Final = (
    _files("File", "file", "includeFiles", "files"),
    _files("PrivateFile", "privateFile", "includePrivateFiles", "privateFiles"),
)
