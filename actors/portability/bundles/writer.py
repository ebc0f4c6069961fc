"""Writes a bundle: one application in one snapshot, as a zip. The format is described in `portable.py`.

Two bundles of the same application, without a change in between, differ in `exportedAt` only. Memory is bounded: lines
and contents are written one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.downloads import PIECE_BYTES
from trunkline.actors.core.records import records
from trunkline.actors.core.records.export_lines import content_of
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.portable import Portable, ResourceName
from trunkline.actors.core.values.errors import NotFound, PayloadTooLarge
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.portable import row_lines
from trunkline.actors.data.tables.rows import find_table, read_counts
from trunkline.actors.platform.applications.readme import README
from trunkline.actors.platform.jobs.archive import Archive
from trunkline.actors.platform.jobs.results import Pauses
from trunkline.actors.portability.bundles.portable import (
    FORMAT,
    MANIFEST,
    PORTABLE,
    VERSION,
    BundleApplication,
    Manifest,
    contents_path,
    rows_path,
    version_path,
)
from trunkline.actors.presentation.experience.kind import VERSION as EXPERIENCE_VERSION
from trunkline.actors.presentation.experience.portable import VERSION_PARTS, version_lines

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.store.object_store import Content
    from trunkline.store.snapshot import Snapshot

Counts = dict[ResourceName, int]
"""Numbers of lines by name."""
Options = Mapping[str, Any]
"""What is exported: a boolean for each `Portable.option`; one that is missing is false."""


def chosen(options: Options) -> list[Portable]:
    """What an export with these options has."""
    return [each for each in PORTABLE if each.option is None or options.get(each.option)]


def count_resources(snapshot: Snapshot, application: bytes, options: Options) -> int:
    """The number of records, and of rows if they are exported: a few reads, and one for each table."""
    names = {each.name for each in chosen(options)}
    kinds = {kind for each in chosen(options) for kind in each.kinds}
    count = sum(records.total(snapshot, kind, application) for kind in kinds)
    if "DataTableRow" in names:
        for id, _ in records.scan(snapshot, DATA_TABLE, application):
            count += read_counts(snapshot, id, find_table(snapshot, application, id)).rows
    return count


def write_bundle(
    system: System,
    snapshot: Snapshot,
    application: bytes,
    options: Options,
    write: Write,
    count: Callable[[], None] = lambda: None,
) -> Counts:
    """Write the bundle piece by piece with `write`; return the numbers of lines by name, as the manifest has them.

    `count` is called after each line. For a worker thread: it pauses for the event loop. Raises NotFound if there is no
    such application, PayloadTooLarge for more entries than a bundle may have, StoreBroken for a content that is missing
    or damaged, or was deleted meanwhile.
    """
    found = records.find(snapshot, APPLICATION, ROOT, application)
    if found is None:
        raise NotFound(f"There is no application {application.hex()}.")
    with Archive(write, dated=False) as archive:
        writer = _Writer(system, snapshot, application, archive, count)
        counts = writer.write_all(chosen(options))
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            exported_at=iso(system.clock.wall_ms()),
            application_id=application.hex(),
            application=_application(snapshot, application, found.doc),
            resources=counts,
        )
        archive.add(MANIFEST, [msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=2)])
    return counts


def _application(snapshot: Snapshot, application: bytes, doc: Doc) -> BundleApplication:
    fields = {
        field.encode_name: doc[field.encode_name]
        for field in msgspec.structs.fields(BundleApplication)
        if doc.get(field.encode_name) is not None
    }
    readme = records.find(snapshot, README, application, application)
    if readme is not None:
        fields["readme"] = readme.doc["content"]
    return msgspec.convert(fields, BundleApplication)


class _Writer:
    """Writes the entries of one bundle."""

    def __init__(
        self,
        system: System,
        snapshot: Snapshot,
        application: bytes,
        archive: Archive,
        count: Callable[[], None],
    ) -> None:
        self._contents = system.component(Contents)
        self._entries_max = system.limits.bundle_entries_max
        self._snapshot = snapshot
        self._application = application
        self._archive = archive
        self._count = count
        self._pause = Pauses()
        self._encoder = msgspec.json.Encoder(order="sorted")

    def write_all(self, resources: Iterable[Portable]) -> Counts:
        """Write all lines with what belongs to them; return their numbers by name."""
        counts: Counts = {}
        for portable in resources:
            if portable.name == "DataTableRow":
                counts[portable.name] = self._rows()
                continue
            lines = portable.read(self._snapshot, self._application)
            counts[portable.name] = self._entry(portable.path, lines)
            if portable.name == "ExperienceVersion":
                self._version_contents()
            elif portable.contents is not None:
                self._stored_contents(portable)
        return counts

    def _rows(self) -> int:
        return sum(
            self._entry(rows_path(id.hex()), row_lines(self._snapshot, self._application, id))
            for id, _ in records.scan(self._snapshot, DATA_TABLE, self._application)
        )

    def _version_contents(self) -> None:
        for id, _ in records.scan(self._snapshot, EXPERIENCE_VERSION, self._application):
            for name in VERSION_PARTS:
                lines = version_lines(self._snapshot, self._application, id, name)
                self._entry(version_path(id.hex(), name), lines)

    def _stored_contents(self, portable: Portable) -> None:
        kind = portable.kinds[0]
        if portable.scan is None:
            scanned = records.scan(self._snapshot, kind, self._application)
        else:
            scanned = portable.scan(self._snapshot, self._application)
        for id, doc in scanned:
            found = content_of(kind, doc)
            if found is None:
                continue
            with self._contents.open(self._application, *found) as content:
                path = contents_path(portable, id.hex())
                # Most files are compressed already; and one that shrinks to nothing would look like a bomb.
                self._add(path, self._pieces(content), compressed=False)

    def _pieces(self, content: Content) -> Iterator[bytes]:
        while piece := content.read(PIECE_BYTES):
            yield piece
            self._pause()

    def _entry(self, path: str, lines: Iterable[Doc]) -> int:
        """Write an entry of lines; return their number."""
        number = 0

        def encoded() -> Iterator[bytes]:
            nonlocal number
            for line in lines:
                yield self._encoder.encode(line) + b"\n"
                number += 1
                self._count()
                self._pause()

        self._add(path, encoded())
        return number

    def _add(self, path: str, pieces: Iterable[bytes], *, compressed: bool = True) -> None:
        # The manifest comes last.
        if len(self._archive.filelist) + 1 >= self._entries_max:
            raise PayloadTooLarge(
                f"A bundle has at most {self._entries_max} entries; leave files or rows out, or remove data tables."
            )
        self._archive.add(path, pieces, compressed=compressed)
