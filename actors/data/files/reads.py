"""Reads of files: one, a page, one by its path. Pure reads of a snapshot; the links are added where they are sent."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.records.kind import facet_index
from trunkline.actors.core.records.listing import AccessPath, Listing, index_range, read_page
from trunkline.actors.core.records.page import Match, all_of, envelope, glob_match, glob_range
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.data.files.kind import NO_TYPE, TREES
from trunkline.actors.data.files.messages import (
    FileContent,
    FileView,
    FindFile,
    GetFile,
    ListFiles,
    ShownFile,
    ShownFiles,
    Upload,
)
from trunkline.actors.data.files.paths import directory_of, split_path
from trunkline.actors.data.files.tree import Tree
from trunkline.store import keys
from trunkline.store.object_store import Stored

_SHAPE = Shape(FileView)


def get_file(reading: Reading, message: GetFile) -> ShownFile:
    """One file or directory."""
    tree = Tree(reading.snapshot.get, message.application, TREES[message.tree])
    found = tree.record(message.file)
    if found is None:
        raise missing(tree.kind, message.file)
    return _show(tree, message.application, found)


def find_file(reading: Reading, message: FindFile) -> ShownFile:
    """The complete file at a path."""
    tree = Tree(reading.snapshot.get, message.application, TREES[message.tree])
    try:
        found = tree.find(split_path(message.path, "path"))
    except Invalid:
        found = None
    if found is None or "content" not in found.doc:
        raise NotFound("There is no file at this path.")
    return _show(tree, message.application, found)


def list_files(reading: Reading, message: ListFiles) -> ShownFiles:
    """A page of files and directories."""
    query, application = message.query, message.application
    tree = Tree(reading.snapshot.get, application, TREES[message.tree])
    kind, directory = tree.kind, None
    more: dict[str, Any] = {"applicationId": application.hex()}
    if query.directory is not None:
        directory = tree.find_directory(split_path(query.directory, "directory"))
        more["parentExists"] = directory is not None
    matches: list[Match] = glob_match(query, query.filter_field)
    paths: list[AccessPath] = [
        tuple(index_range(kind, application, field, low, high) for low, high in bounds.spans)
        for field, bounds in glob_range(query, query.filter_field).items()
    ]
    if query.type is not None:
        matches.append(lambda doc: doc["type"] == query.type)
        index = "type" if directory is None else facet_index("type", directory)
        paths.append((index_range(kind, application, index, keys.sortable(query.type)),))
    if query.status is not None:
        matches.append(lambda doc: tree.status(dict(doc)) == query.status)
        paths.append((index_range(kind, application, "status", keys.sortable(query.status)),))
    if query.directory is not None and directory is None:
        return ShownFiles(envelope(f"{kind.name}s", [], 0, query) | more, [])
    listing = Listing.of(
        query, kind, application, match=all_of(matches), facet=directory, access_paths=tuple(paths)
    )
    found, total = read_page(reading, listing)
    files = [_show(tree, application, each) for each in found]
    return ShownFiles(envelope(f"{kind.name}s", [each.shown for each in files], total, query) | more, files)


def _show(tree: Tree, application: bytes, found: Found) -> ShownFile:
    doc, id, kind = found.doc, found.id.hex(), tree.kind
    where = tree.place_of(doc)
    status = "deleting" if where.deleting else doc["status"]
    shown = {
        "id": id,
        f"{kind.name}Id": id,
        "applicationId": application.hex(),
        **_SHAPE.of(doc),
        "parentDirectory": directory_of(where.names),
        "status": status,
        "_etag": found.revision,
        "_type": kind.name,
    }
    content = upload = None
    if "content" in doc:
        shown["s3etag"] = doc.get("md5") or doc["sha256"]  # the MD5 of earlier contents is not known
        if status == "completed":
            stored = Stored(doc["fileSize"], doc["sha256"])
            type = doc.get("contentType", NO_TYPE)
            content = FileContent(bytes.fromhex(doc["content"]), stored, doc["name"], type)
    if "upload" in doc and status != "deleting":
        wanted = doc["upload"]
        type = wanted.get("named", {}).get("contentType") or doc.get("contentType", "")
        upload = Upload(bytes.fromhex(wanted["content"]), wanted["size"], type, wanted["expires"])
    job = bytes.fromhex(doc["job"]) if "job" in doc else None
    return ShownFile(shown, "/".join((*where.names, doc["name"])), content, upload, job)
