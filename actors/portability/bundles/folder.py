"""Template folders: whole applications as YAML with placeholders, as repositories and other servers have them.

A folder becomes a bundle (`portable.py`), which an import then checks and creates as any other. Each YAML file has
`resourceType`, `resources` and `version` 1, and may lie anywhere in the folder; the paths in it are relative to it.
Trees of devices and groups become lists, parents first; texts of views, rows of tables and public files are files
beside. What has no place in a bundle (domains, credentials, fields that this server does not know) is left out and
told. Nothing of the folder is executed.

Memory: the YAML and the texts of views, `TEXT_BYTES_MAX` in all; rows and files are streamed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.contents.signatures import PUBLIC_PATH
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.platform.jobs.archive import Archive
from trunkline.actors.portability.bundles.folder_files import content_of, csv_rows, file_lines
from trunkline.actors.portability.bundles.folder_resources import FILES, TYPES, Resources
from trunkline.actors.portability.bundles.folder_tree import APPLICATION, Tree, resolved
from trunkline.actors.portability.bundles.portable import (
    BY_NAME,
    FORMAT,
    MANIFEST,
    TOKEN_OF,
    VERSION,
    BundleApplication,
    Manifest,
    contents_path,
    rows_path,
    version_path,
)
from trunkline.actors.workflows.flows.yaml_documents import (
    PLACEHOLDER,
    VALUES_MAX,
    documents,
    made_id,
    resources_of,
    values,
)

if TYPE_CHECKING:
    from trunkline.actors.core.records.kind import Doc
    from trunkline.actors.core.records.portable import ResourceName
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.limits.table import Limits

TEXT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of YAML, views and the readme: all of it is in memory, and a megabyte of YAML takes a second or two to read.
The largest public template has 4 MB."""

_DEPTH_MAX: Final = 100
_OF_SERVERS: Final = ("-domain~", "-url~")
"""The ends of placeholders that stand for addresses of a server."""
_PREFIXES: Final = ("~exportplaceholderid-", "~losant-")
_TOKEN: Final = re.compile(r"~(exportplaceholderid|losant)-webhookToken-([\w-]+?)~")


class Converted(NamedTuple):
    """What became of a folder: the numbers of lines by name, and what was left out, each with its count."""

    counts: dict[str, int]
    left_out: Counter[str]


def convert_folder(
    tree: Tree,
    limits: Limits,
    write: Write,
    now_ms: int,
    pause: Callable[[], None] = lambda: None,
    base_url: str = "",
) -> Converted:
    """Write the bundle of a folder piece by piece. Raises `Invalid` or `PayloadTooLarge` with a sentence.

    `pause` is called between the pieces: in a worker thread, it lets the event loop have its turn. `base_url` is
    the address of the server, which has the public files and the webhooks; without it, such addresses stay.
    """
    folder = _Folder(tree, limits, pause, base_url)
    folder.read()
    with Archive(write, dated=False) as archive:
        folder.write(archive)
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            exported_at=iso(now_ms),
            application_id=folder.application_id,
            application=folder.application,
            resources=dict(folder.counts),
        )
        archive.add(MANIFEST, [msgspec.json.encode(manifest)])
    return Converted(dict(folder.counts), folder.resources.left_out)


class _Folder:
    """One folder that is converted."""

    def __init__(self, tree: Tree, limits: Limits, pause: Callable[[], None], base_url: str) -> None:
        self._addresses = {}
        if base_url:
            for prefix in _PREFIXES:
                self._addresses[f"https://{prefix}files-domain~"] = base_url + PUBLIC_PATH
                self._addresses |= {f"https://{prefix}{of}-url~": base_url for of in ("api", "triggers")}
                self._addresses[f"wss://{prefix}triggers-url~"] = "ws" + base_url.removeprefix("http")
        self._tree = tree
        self._limits = limits
        self._pause = pause
        self._text_bytes = 0
        self._values = 0
        self.resources = Resources(self._text_of, self._hash_of)
        self.counts: dict[Any, int] = {}
        self.application_id = made_id("~exportplaceholderid-application-~")
        self.application = BundleApplication(name="Application")
        self._files_of: dict[ResourceName, str] = {}

    # Reading.

    def read(self) -> None:
        """Read all YAML of the folder: the application first, because it says where the files are."""
        self._application()
        for path in sorted(self._tree.paths):
            if path.endswith((".yaml", ".yml")) and path != APPLICATION and self._folder_of(path) is None:
                for document in documents(path, self._bytes(path), self._pause):
                    if isinstance(document, dict) and "resourceType" in document:
                        self._document(path, document)
        self.resources.finish()

    def _application(self) -> None:
        found = documents(APPLICATION, self._bytes(APPLICATION), self._pause)
        if len(found) != 1 or not isinstance(found[0], dict) or found[0].get("resourceType") != "Application":
            raise Invalid(f"{APPLICATION}: has no resourceType Application; give the folder of a template.")
        [*resources] = resources_of(APPLICATION, found[0])
        if len(resources) != 1:
            raise Invalid(f"{APPLICATION}: has {len(resources)} applications; a folder has one.")
        doc: Doc = self._filled(resources[0])
        if isinstance(doc.get("id"), str):
            self.application_id = doc["id"]
        for name, default in FILES:
            at = doc.get(f"{default}Path", f"./{default}")
            if isinstance(at, str):
                self._files_of[name] = at.removeprefix("./").strip("/") + "/"
        for each in doc.get("globals") or ():
            self.resources.add("Global", APPLICATION, each)
        fields = {
            name: doc[name]
            for name in ("name", "description", "endpointDefaultCors", "blobUrlTTL")
            if doc.get(name) is not None
        }
        if isinstance(doc.get("readmePath"), str):
            fields["readme"] = self._text_of(resolved(self._tree, APPLICATION, doc["readmePath"]))
        try:
            self.application = msgspec.convert(fields, BundleApplication)
        except msgspec.ValidationError as error:
            raise Invalid(f"{APPLICATION}: {error}.") from None

    def _document(self, path: str, document: Doc) -> None:
        type = document["resourceType"]
        if type not in TYPES:
            self.resources.left_out[f"resources of the type {str(type)[:100]}"] += 1
            return
        for resource in resources_of(path, document):
            self.resources.add(type, path, self._filled(resource))

    def _folder_of(self, path: str) -> ResourceName | None:
        """The name of the files among which a file is, None for one that is part of the folder itself."""
        return next((name for name, at in self._files_of.items() if path.startswith(at)), None)

    def _bytes(self, path: str) -> bytes:
        pieces = []
        for piece in self._tree.pieces(path):
            self._text_bytes += len(piece)
            if self._text_bytes > TEXT_BYTES_MAX:
                raise PayloadTooLarge(
                    f"{path}: with this file the texts have more than {TEXT_BYTES_MAX} bytes."
                )
            pieces.append(piece)
        self._pause()
        return b"".join(pieces)

    def _text_of(self, path: str) -> str:
        return self._with_ids(self._bytes(resolved(self._tree, "", path)).decode("utf-8-sig", "replace"))

    def _hash_of(self, path: str) -> Doc:
        return content_of(self._tree, resolved(self._tree, "", path), self._pause)

    def _with_ids(self, text: str) -> str:
        """The text with ids in the place of placeholders. Addresses of other servers stay; a token is named."""
        if "~" not in text:
            return text
        for address, own in self._addresses.items():
            text = text.replace(address, own)

        def id_of(found: re.Match[str]) -> str:
            if not found[0].endswith(_OF_SERVERS):
                return made_id(found[0])
            self.resources.left_out[f"the address of {found[0]}, which stays as it is"] += 1
            return found[0]

        named = _TOKEN.sub(lambda found: TOKEN_OF + made_id(f"~{found[1]}-webhook-{found[2]}~") + "~", text)
        return PLACEHOLDER.sub(id_of, named)

    def _filled(self, value: Any) -> Any:
        """The value with ids in the place of placeholders, as JSON has it."""
        for each in values(value):
            self._values += 1 + (len(each) // 64 if isinstance(each, str) else 0)
            if self._values > VALUES_MAX:
                raise PayloadTooLarge(f"The folder has more than {VALUES_MAX} values.")
        return _as_json(value, 0, self._with_ids)

    # Writing.

    def write(self, archive: Archive) -> None:
        """Write all entries but the manifest."""
        for name, lines in self.resources.lines.items():
            self.counts[name] = self._entry(archive, BY_NAME[name].path, lines)
        for version, part, lines in self.resources.copies():
            self._entry(archive, version_path(version, part), lines)
        for table, path, columns in self.resources.tables:
            rows = csv_rows(self._tree, resolved(self._tree, "", path), columns, self._limits, self._with_ids)
            count = self._entry(archive, rows_path(table), rows)
            self.counts["DataTableRow"] = self.counts.get("DataTableRow", 0) + count
        for name, path, id in self.resources.contents:
            self._content(archive, contents_path(BY_NAME[name], id), path)
        for kind, at in self._files_of.items():
            files = sorted(path for path in self._tree.paths if path.startswith(at))
            found = list(file_lines(self._tree, kind, at, files, self._pause))
            if found:
                self.counts[kind] = self._entry(archive, BY_NAME[kind].path, (line for line, _ in found))
            for line, content in found:
                if content is not None:
                    self._content(archive, contents_path(BY_NAME[kind], line["id"]), content)

    def _content(self, archive: Archive, entry: str, path: str) -> None:
        # Not packed: one that shrinks to nothing would look like a bomb.
        archive.add(entry, self._paused(self._tree.pieces(path)), compressed=False)

    def _entry(self, archive: Archive, entry: str, lines: Any) -> int:
        count = 0

        def encoded() -> Iterator[bytes]:
            nonlocal count
            for line in lines:
                count += 1
                yield msgspec.json.encode(line) + b"\n"

        if len(archive.filelist) + 2 > self._limits.bundle_entries_max:
            raise PayloadTooLarge(f"A bundle has at most {self._limits.bundle_entries_max} entries.")
        archive.add(entry, self._paused(encoded()))
        return count

    def _paused(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._pause()
            yield piece


def _as_json(value: Any, depth: int, filled: Callable[[str], str]) -> Any:
    if depth > _DEPTH_MAX:
        raise Invalid(f"A resource of the folder nests deeper than {_DEPTH_MAX} levels.")
    if isinstance(value, str):
        return filled(value)
    if isinstance(value, dict):
        return {filled(str(name)): _as_json(each, depth + 1, filled) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each, depth + 1, filled) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    raise Invalid(f"The folder has a value of YAML that JSON does not have: {str(value)[:100]!r}.")
