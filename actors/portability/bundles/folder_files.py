"""The files beside the YAML of a template folder: rows of tables as CSV, and the files of the application."""

from __future__ import annotations

import codecs
import csv
import hashlib
import mimetypes
import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.portability.bundles.folder_tree import Tree
from trunkline.actors.workflows.flows.yaml_documents import made_id

if TYPE_CHECKING:
    from trunkline.actors.core.records.kind import Doc
    from trunkline.limits.table import Limits

_OWN: Final = frozenset({"id", "createdAt", "updatedAt"})
"""Columns that every table has, and that an import makes anew."""

_UNKNOWN_TYPE: Final = "application/octet-stream"


def csv_rows(
    tree: Tree, path: str, columns: list[Doc], limits: Limits, text_of: Callable[[str], str]
) -> Iterator[Doc]:
    """Yield the rows of a table as lines. A cell is read by the type of its column. Raises `Invalid`."""
    by_name = {str(each.get("name")): each for each in columns}
    reader = csv.reader(_lines(tree, path, limits), strict=True)
    number = 0
    try:
        header = next(reader, [])
        for number, cells in enumerate(reader, 1):
            if not cells:
                continue
            if len(cells) != len(header):
                raise Invalid(f"{path}: row {number} has {len(cells)} cells, and the header {len(header)}.")
            given = {
                name: _cell(by_name.get(name, {}), text_of(cell))
                for name, cell in zip(header, cells, strict=True)
                if name not in _OWN or name in by_name
            }
            yield {"body": {**dict.fromkeys(by_name), **given}}
    except csv.Error as error:
        raise Invalid(f"{path}: is not CSV behind row {number}: {error}.") from None


def _cell(column: Mapping[str, Any], text: str) -> Any:
    """A cell as its column has it. What is not of its type stays a text, which the check of the bundle refuses."""
    type = column.get("dataType", "string")
    if not text:
        return "" if type == "string" and column.get("constraint") != "optional" else None
    if type == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    if type != "number":
        return text
    try:
        return int(text) if text.lstrip("+-").isdecimal() and len(text) < 40 else float(text)
    except ValueError:
        return text


def _lines(tree: Tree, path: str, limits: Limits) -> Iterator[str]:
    """Yield the lines of a text with their ends, as the reader of CSV takes them."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest, most = "", limits.bundle_line_bytes_max
    csv.field_size_limit(most)
    for piece in tree.pieces(path):
        *complete, rest = (rest + decoder.decode(piece)).split("\n")
        for line in complete:
            yield f"{line}\n"
        if len(rest) > most:
            raise PayloadTooLarge(f"{path}: a line has more than {most} characters, which is the limit.")
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest


def file_lines(
    tree: Tree, name: str, at: str, paths: list[str], pause: Callable[[], None]
) -> Iterator[tuple[Doc, str | None]]:
    """Yield the lines of the directories and files below `at`, each with the path of its content."""
    directories = {posixpath.dirname(path[len(at) :]) for path in paths}
    for each in tuple(directories):
        while each := posixpath.dirname(each):
            directories.add(each)
    for each in sorted(directories - {""}, key=lambda each: (each.count("/"), each)):
        yield _line(name, each, {"type": "directory"}, {}), None
    for path in paths:
        more = content_of(tree, path, pause)
        type = mimetypes.guess_type(path)[0] or _UNKNOWN_TYPE
        body = {"type": "file", "fileSize": more["size"], "contentType": type}
        yield _line(name, path[len(at) :], body, more), path


def content_of(tree: Tree, path: str, pause: Callable[[], None]) -> Doc:
    """The size and the hash of a file, as a bundle says them beside its line."""
    size, hash = 0, hashlib.sha256()
    for piece in tree.pieces(path):
        size += len(piece)
        hash.update(piece)
        pause()
    return {"size": size, "sha256": hash.hexdigest()}


def _line(name: str, path: str, body: Doc, more: Doc) -> Doc:
    directory, file = posixpath.split(path)
    label = f"{name}/{path}".encode().hex()
    line: Doc = {"id": made_id(f"~exportplaceholderid-{label}~"), "body": {"name": file, **body}}
    if directory:
        line["body"]["parentDirectory"] = directory
    if more:
        line["more"] = more
    return line
