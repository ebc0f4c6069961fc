"""Writing the files of an archive: drafts first, then their names, then the manifest.

Owns the paths, the slices, and what happens to a file that cannot be written. Does not own which days are archived
(`jobs.py`).

A slice is read on one snapshot in a worker thread and written to drafts, so that no snapshot waits for a network.
Then the drafts are put in their places. Under the directory of an archive:

    devices/ID/YYYY/MM/YYYY-MM-DD.states.csv        also .commands.csv and .connections.csv
    events/YYYY/MM/YYYY-MM-DD.csv                   events that were created on the day
    dataTables/ID/YYYY-MM-DD.csv                    all rows, on the day when they were written
    allEvents/YYYY-MM-DD.csv                        all events, on the day when they were written
    exports/YYYY-MM-DD.zip                          the application, on the day when it was written
    manifests/days/YYYY/YYYY-MM-DD.jsonl            also in dataTables, allEvents and exports
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
import trio

from trunkline.actors.applications.archive_days import DAY_MS, day_text, includes
from trunkline.actors.archives.contents import (
    Part,
    device_ids,
    device_parts,
    event_part,
    next_day_of,
    next_event_day,
    selects,
    table_part,
)
from trunkline.actors.archives.manifest import Entry, What, line, lines_of, merged
from trunkline.actors.archives.tables import Format, open_table
from trunkline.actors.bundles.writer import write_bundle
from trunkline.actors.jobs.results import PAUSE_PIECES, PAUSE_S
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.unreadable import UNREADABLE
from trunkline.actors.tables.kind import DATA_TABLE
from trunkline.actors.values.timestamps import iso
from trunkline.store.archive_folder import Draft, Drafts, Target
from trunkline.store.codec import decode
from trunkline.store.errors import StoreDamaged

if TYPE_CHECKING:
    from trunkline.actors.jobs.job import Job
    from trunkline.actors.runtime.system import System
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

_FAILURES: Final = (*UNREADABLE, StoreDamaged)

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


class _NextDay:
    """The earliest of the days that were seen."""

    def __init__(self) -> None:
        self.day: int | None = None

    def see(self, day: int | None) -> None:
        if day is not None and (self.day is None or day < self.day):
            self.day = day


class _File(NamedTuple):
    """A file that is written and not yet in its place; the entry is its line in the manifest."""

    entry: Entry
    draft: Draft


class _Slice:
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
        return (
            len(self.files) >= self._limits.archive_slice_files_max
            or self._bytes >= self._limits.archive_slice_bytes_max
        )

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
        file = open_table(self._place.format, draft, part.columns, self._limits)
        for number, row in enumerate(part.rows, 1):
            _pause(number)
            file.add(row)
        file.finish()
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
        if len(self.failures) < self._limits.archive_failed_files_max:
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


class _Manifest:
    """The manifest of one run. The lines of the new files are collected in a draft, in the order of their paths."""

    def __init__(self, place: Place, drafts: Drafts, name: str) -> None:
        self.new = drafts.new()
        self._place = place
        self._drafts = drafts
        self._name = name

    def store(self) -> None:
        """Write the manifest. In a worker thread."""
        whole = self._drafts.new()
        old = self._place.target.read(self._name)
        for each in merged(iter(()) if old is None else lines_of(old), self.new.lines()):
            trio.from_thread.check_cancelled()
            whole.write(each)
        if whole.size_bytes:
            self._place.target.put(self._name, whole)


async def write_day(job: Job, place: Place, day: int, kinds: frozenset[What]) -> tuple[Written, int | None]:
    """Archive what the devices reported for a day, and the events of the day: what is of one of these `kinds`.

    Returns what was written, and the next day that has anything; None if there is none. Idempotent.
    """
    config, application, text = place.config, place.application, day_text(day)
    done, next_day = Written(), _NextDay()
    with place.drafts() as drafts:
        manifest = _Manifest(place, drafts, f"manifests/days/{text[:4]}/{text}.jsonl")

        def read_devices(snapshot: Snapshot, slice: _Slice, after: bytes) -> bytes | None:
            """Read the devices after an id; the id of the last one, None if there are no more."""
            seen = 0
            for device, raw in device_ids(snapshot, application, after):
                if slice.is_full or seen >= job.system.limits.archive_slice_devices_max:
                    return after
                after, seen = device, seen + 1
                _pause(seen)
                try:
                    next_day.see(_read_device(snapshot, slice, config, kinds, device, raw, day))
                except _FAILURES as failure:
                    slice.fail(f"device {device.hex()} on {text}", failure)
                    next_day.see(day + 1)
            return None

        def read_events(snapshot: Snapshot, slice: _Slice) -> None:
            found = next_event_day(snapshot, application, day)
            if found == day and "events" in kinds:
                first_ms = day * DAY_MS
                part = event_part(snapshot, application, first_ms, first_ms + DAY_MS)
                slice.add(part, f"events/{text[:4]}/{text[5:7]}/{text}", day)
            if found == day:
                found = next_event_day(snapshot, application, day + 1)
            next_day.see(found)

        after: bytes | None = b""
        while after is not None and includes(config, "devices"):
            slice, last = _new_slice(job, place, drafts), after
            after = await job.read(lambda snapshot: read_devices(snapshot, slice, last))  # noqa: B023
            done = done.plus(await slice.store(manifest.new))
        if includes(config, "events"):
            slice = _new_slice(job, place, drafts)
            try:
                await job.read(lambda snapshot: read_events(snapshot, slice))
            except _FAILURES as failure:
                slice.fail(f"events of {text}", failure)
                next_day.see(day + 1)
            done = done.plus(await slice.store(manifest.new))
        await trio.to_thread.run_sync(manifest.store)
    return done, next_day.day


def _read_device(
    snapshot: Snapshot,
    slice: _Slice,
    config: Doc,
    kinds: frozenset[What],
    device: bytes,
    raw: bytes,
    day: int,
) -> int | None:
    """Write the files of a device for a day. Return the next day for which it has anything, None if there is none."""
    found = next_day_of(snapshot, device, day)
    if found is None:
        return None
    doc, id, text = decode(raw), device.hex(), day_text(day)
    if not selects(config, id, doc["tags"]):
        return None
    if found > day:
        return found
    for part in device_parts(snapshot, device, doc, day):
        if part.what not in kinds:
            continue
        path = f"devices/{id}/{text[:4]}/{text[5:7]}/{text}.{part.what}"
        slice.add(part, path, day, device=id, name=doc["name"])
    return next_day_of(snapshot, device, day + 1)


async def first_day(job: Job, config: Doc) -> int | None:
    """The first day for which a selected device or an event has anything; None if there is none."""
    application = job.application

    def search(snapshot: Snapshot) -> int | None:
        first = _NextDay()
        if includes(config, "devices"):
            for number, (device, raw) in enumerate(device_ids(snapshot, application, b"")):
                _pause(number)
                with contextlib.suppress(*_FAILURES):  # reported when its day is archived
                    if selects(config, device.hex(), decode(raw)["tags"]):
                        first.see(next_day_of(snapshot, device, 0))
        if includes(config, "events"):
            first.see(next_event_day(snapshot, application, 0))
        return first.day

    return await job.read(search)


async def write_tables(job: Job, place: Place, day: int) -> Written:
    """Write all rows of the selected data tables, a file each."""
    text = day_text(day)
    tables = await job.read(lambda snapshot: list(_selected_tables(snapshot, place)))
    job.completed, job.total, done = 0, len(tables), Written()
    with place.drafts() as drafts:
        manifest = _Manifest(place, drafts, f"manifests/dataTables/{text}.jsonl")
        for id, name in tables:
            slice = _new_slice(job, place, drafts)
            try:
                await job.read(lambda snapshot: _read_table(snapshot, slice, place, id, name, day))  # noqa: B023
            except _FAILURES as failure:
                slice.fail(f"data table {id.hex()}", failure)
            done = done.plus(await slice.store(manifest.new))
            job.completed += 1
        await trio.to_thread.run_sync(manifest.store)
    return done


def _selected_tables(snapshot: Snapshot, place: Place) -> Iterator[tuple[bytes, str]]:
    mode, named = place.config.get("dataTablesMode", "all"), place.config["dataTableIds"]
    for id, doc in records.scan(snapshot, DATA_TABLE, place.application):
        if mode == "all" or (id.hex() in named) == (mode == "whitelist"):
            yield id, doc["name"]


def _read_table(snapshot: Snapshot, slice: _Slice, place: Place, id: bytes, name: str, day: int) -> None:
    if records.find(snapshot, DATA_TABLE, place.application, id) is not None:  # deleted since
        part = table_part(snapshot, place.application, id)
        slice.add(part, f"dataTables/{id.hex()}/{day_text(day)}", day, table=id.hex(), name=name)


async def write_events(job: Job, place: Place, day: int) -> Written:
    """Write all events to one file."""
    text = day_text(day)
    with place.drafts() as drafts:
        manifest = _Manifest(place, drafts, f"manifests/allEvents/{text}.jsonl")
        slice = _new_slice(job, place, drafts)

        def read(snapshot: Snapshot) -> None:
            slice.add(event_part(snapshot, place.application, 0, None), f"allEvents/{text}", day)

        try:
            await job.read(read)
        except _FAILURES as failure:
            slice.fail("events", failure)
        done = await slice.store(manifest.new)
        await trio.to_thread.run_sync(manifest.store)
    return done


async def write_export(job: Job, place: Place, day: int) -> Written:
    """Write an export of the application, as of now."""
    text = day_text(day)
    with place.drafts() as drafts:
        manifest = _Manifest(place, drafts, f"manifests/exports/{text}.jsonl")
        slice = _new_slice(job, place, drafts)
        try:
            path = f"exports/{text}.zip"
            await job.read(lambda snapshot: slice.add_export(job.system, snapshot, path, day))
        except _FAILURES as failure:
            slice.fail("the application", failure)
        done = await slice.store(manifest.new)
        await trio.to_thread.run_sync(manifest.store)
    return done


def _pause(number: int) -> None:
    """Let the event loop go on after some pieces of work, as for all results of jobs."""
    if not number % PAUSE_PIECES:
        time.sleep(PAUSE_S)
        trio.from_thread.check_cancelled()


def _new_slice(job: Job, place: Place, drafts: Drafts) -> _Slice:
    system = job.system
    return _Slice(place, drafts, system.limits, iso(system.clock.wall_ms()))
