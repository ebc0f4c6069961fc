"""Slices: files of an archive that are read on one snapshot, and then put in their places together.

Owns the drafts of a slice and the manifest. A slice is read in a worker thread and written to drafts, so that no
snapshot waits for a network. Then the drafts get their names, several at a time, and their lines in the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
import trio

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.platform.applications.archive_days import day_text
from trunkline.actors.platform.jobs.results import Pauses
from trunkline.actors.portability.archives.contents import FAILURES, Part
from trunkline.actors.portability.archives.manifest import MANIFESTS, Entry, What, line, lines_of, merged
from trunkline.actors.portability.archives.tables import Format, open_table
from trunkline.actors.portability.bundles.writer import write_bundle
from trunkline.store.archive_folder import Draft, Drafts, Target

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.platform.jobs.job import Job
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

_FILES_MAX: Final = 48
"""Files of an archive that are written on one snapshot, and are open at a time."""
_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes after which the next file begins on a new snapshot, so that no snapshot is old."""
FAILED_FILES_MAX: Final = 20
"""Files that could not be written, and are named in the log of the job: the first ones."""
_log = structlog.get_logger("trunkline.archives")


class Place(NamedTuple):
    """An archive: its configuration, its format, and where its files are put."""

    application: bytes
    config: Doc
    format: Format
    target: Target
    drafts: Callable[[], Drafts]


class Written(NamedTuple):
    """What was written: files, rows and bytes; and the files that could not be written, with the reasons."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    failures: Sequence[str] = ()

    def plus(self, other: Written) -> Written:
        """The sum."""
        return Written(
            self.files + other.files,
            self.rows + other.rows,
            self.bytes + other.bytes,
            (*self.failures, *other.failures),
        )


class _File(NamedTuple):
    """A file that is written and not yet in its place; the entry is its line in the manifest."""

    entry: Entry
    draft: Draft


class Slice:
    """The files of one slice. `add` and `fail` are called in the thread that reads."""

    def __init__(self, place: Place, drafts: Drafts, limits: Limits, written: str) -> None:
        self.files: list[_File] = []
        self.failures: list[str] = []
        self._place = place
        self._drafts = drafts
        self._limits = limits
        self._written = written
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return len(self.files) >= _FILES_MAX or self._bytes >= _BYTES_MAX

    def add(
        self,
        part: Part,
        path: str,
        day: int,
        *,
        device: str | None = None,
        table: str | None = None,
        name: str | None = None,
    ) -> None:
        """Write a part to a draft. `path` is without its suffix."""
        draft = self._drafts.new()
        try:
            file = open_table(self._place.format, draft, part.columns, self._limits)
            pause = Pauses()
            for row in part.rows:
                pause()
                file.add(row)
            file.finish()
        except FAILURES:
            self._drafts.remove(draft)  # so that many of them do not stay open
            raise
        columns = [column.described() for column in part.columns]
        about = {"rows": file.rows, "columns": columns, "device_id": device, "data_table_id": table}
        self._keep(draft, f"{path}.{self._place.format}", part.what, day, name=name, **about)

    def add_export(self, system: System, snapshot: Snapshot, path: str, day: int) -> None:
        """Write an export of the application to a draft."""
        draft, place = self._drafts.new(), self._place
        options = place.config.get("applicationExportOptions", {})
        counts = write_bundle(system, snapshot, place.application, options, draft.add)
        self._keep(draft, path, "application", day, rows=sum(counts.values()), columns=[])

    def _keep(self, draft: Draft, path: str, what: What, day: int, **about: Any) -> None:
        entry = Entry(
            path=path,
            what=what,
            day=day_text(day),
            bytes=draft.size_bytes,
            sha256=draft.written.sha256,
            written=self._written,
            **about,
        )
        self.files.append(_File(entry, draft))
        self._bytes += draft.size_bytes

    def fail(self, what: str, reason: Exception) -> None:
        """Note that something cannot be read; the rest goes on."""
        _log.error("not archived", what=what, exc_info=reason)
        if len(self.failures) < FAILED_FILES_MAX:
            self.failures.append(what)

    async def store(self, manifest: Draft) -> Written:
        """Put the drafts in their places, several at a time, and then add their lines to the manifest."""
        limiter = trio.CapacityLimiter(self._limits.archive_put_files_max)
        problems: list[Exception] = []

        async def put(file: _File) -> None:
            try:
                await trio.to_thread.run_sync(
                    self._place.target.put, file.entry.path, file.draft, limiter=limiter
                )
            except Exception as problem:  # noqa: BLE001 - raised below, without the group of a nursery
                problems.append(problem)
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for file in self.files:
                nursery.start_soon(put, file)
        if problems:
            raise problems[0]
        await trio.to_thread.run_sync(self._list, manifest)
        entries = [file.entry for file in self.files]
        rows, size = sum(entry.rows for entry in entries), sum(entry.bytes for entry in entries)
        return Written(len(entries), rows, size, tuple(self.failures))

    def _list(self, manifest: Draft) -> None:
        for entry, draft in self.files:
            self._drafts.remove(draft)
            manifest.write(line(entry))


class ManifestFile:
    """The manifest of one run. The lines of the new files are collected in a draft, in the order of their paths."""

    def __init__(self, place: Place, drafts: Drafts, name: str) -> None:
        self.new = drafts.new()
        self._place = place
        self._drafts = drafts
        self._name = f"{MANIFESTS}/{name}"

    def store(self) -> None:
        """Write the manifest. In a worker thread."""
        whole = self._drafts.new()
        old = self._place.target.read(self._name)
        for each in merged(iter(()) if old is None else lines_of(old), self.new.lines()):
            trio.from_thread.check_cancelled()
            whole.write(each)
        if whole.size_bytes:
            self._place.target.put(self._name, whole)


def new_slice(job: Job, place: Place, drafts: Drafts) -> Slice:
    system = job.system
    return Slice(place, drafts, system.limits, iso(system.clock.wall_ms()))
