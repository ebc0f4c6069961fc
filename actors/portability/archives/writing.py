"""What is written to an archive: the files of a day, all data tables, all events, an export of the application.

Owns the paths of the files, and what happens to what cannot be read. Does not own how a file gets its place
(`slices.py`), nor which days are archived (`jobs.py`). Under the directory of an archive:

    devices/ID/YYYY/MM/YYYY-MM-DD.states.csv        also .commands.csv and .connections.csv
    events/YYYY/MM/YYYY-MM-DD.csv                   events that were created on the day
    dataTables/ID/YYYY-MM-DD.csv                    all rows, on the day when they were written
    allEvents/YYYY-MM-DD.csv                        all events, on the day when they were written
    exports/YYYY-MM-DD.zip                          the application, on the day when it was written
    manifests/days/YYYY/YYYY-MM-DD.jsonl            also in dataTables, allEvents and exports
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.platform.applications.archive_days import day_text, includes
from trunkline.actors.platform.jobs.results import Pauses
from trunkline.actors.portability.archives.contents import (
    FAILURES,
    Rows,
    device_ids,
    device_parts,
    event_part,
    events_from,
    next_day_of,
    next_event_day,
    selected_device,
    table_part,
)
from trunkline.actors.portability.archives.manifest import What
from trunkline.actors.portability.archives.slices import (
    ManifestFile,
    Place,
    Slice,
    Written,
    new_slice,
)
from trunkline.limits.table import DAY_MS
from trunkline.store.archive_folder import Drafts

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.job import Job
    from trunkline.store.snapshot import Snapshot


_SLICE_DEVICES_MAX: Final = 2000
"""Devices that are looked at on one snapshot: some 20 ms, mostly without a report."""


async def write_day(job: Job, place: Place, day: int, kinds: frozenset[What]) -> tuple[Written, int | None]:
    """Archive what the devices reported for a day, and the events of the day: what is of one of these `kinds`.

    Returns what was written, and the next day that has anything; None if there is none. Idempotent.
    """
    config, application, text = place.config, place.application, day_text(day)
    done, next_day = Written(), _NextDay()
    with place.drafts() as drafts:
        manifest = ManifestFile(place, drafts, f"days/{text[:4]}/{text}.jsonl")

        def read_devices(snapshot: Snapshot, slice: Slice, after: bytes) -> bytes | None:
            """Read the devices after an id; the id of the last one, None if there are no more."""
            pause = Pauses()
            for number, device in enumerate(device_ids(snapshot, application, after)):
                if slice.is_full or number >= _SLICE_DEVICES_MAX:
                    return after
                after = device
                pause()
                try:
                    next_day.see(read_device(snapshot, slice, device))
                except FAILURES as failure:
                    slice.fail(f"device {device.hex()} on {text}", failure)
                    next_day.see(day + 1)
            return None

        def read_device(snapshot: Snapshot, slice: Slice, device: bytes) -> int | None:
            """Write the files of a device; the next day for which it has anything, None if there is none."""
            found, id = next_day_of(snapshot, device, day), device.hex()
            doc = None if found is None else selected_device(snapshot, application, device, config)
            if doc is None:
                return None
            if found != day:
                return found
            for part in device_parts(snapshot, device, doc, day):
                if part.what in kinds:
                    path = f"devices/{id}/{text[:4]}/{text[5:7]}/{text}.{part.what}"
                    slice.add(part, path, day, device=id, name=doc["name"])
            return next_day_of(snapshot, device, day + 1)

        def read_events(snapshot: Snapshot, slice: Slice) -> None:
            span = (day * DAY_MS, (day + 1) * DAY_MS)
            if "events" in kinds and next(events_from(snapshot, application, *span), None) is not None:
                part = event_part(snapshot, application, *span)
                slice.add(part, f"events/{text[:4]}/{text[5:7]}/{text}", day)

        after: bytes | None = b""
        while after is not None and includes(config, "devices"):
            slice, last = new_slice(job, place, drafts), after
            after = await job.read(lambda snapshot: read_devices(snapshot, slice, last))  # noqa: B023
            done = done.plus(await slice.store(manifest.new))
        if includes(config, "events"):
            done = done.plus(
                await _write_file(job, place, drafts, manifest, f"events of {text}", read_events)
            )
            next_day.see(await job.read(lambda snapshot: next_event_day(snapshot, application, day + 1)))
        await trio.to_thread.run_sync(manifest.store)
    return done, next_day.day


async def first_day(job: Job, config: Doc) -> int | None:
    """The first day for which a selected device or an event has anything; None if there is none."""
    application = job.application

    def search(snapshot: Snapshot) -> int | None:
        first = _NextDay()
        if includes(config, "devices"):
            pause = Pauses()
            for device in device_ids(snapshot, application, b""):
                pause()
                with contextlib.suppress(*FAILURES):  # reported when its day is archived
                    if selected_device(snapshot, application, device, config) is not None:
                        first.see(next_day_of(snapshot, device, 0))
        if includes(config, "events"):
            first.see(next_event_day(snapshot, application, 0))
        return first.day

    return await job.read(search)


async def write_tables(job: Job, place: Place, day: int) -> Written:
    """Write all rows of the selected data tables, a file each."""
    text, application, config = day_text(day), place.application, place.config

    def selected(snapshot: Snapshot) -> list[tuple[bytes, str]]:
        mode, named = config.get("dataTablesMode", "all"), config["dataTableIds"]
        return [
            (id, doc["name"])
            for id, doc in records.scan(snapshot, DATA_TABLE, application)
            if mode == "all" or (id.hex() in named) == (mode == "whitelist")
        ]

    def read(snapshot: Snapshot, slice: Slice, id: bytes, name: str) -> None:
        if records.find(snapshot, DATA_TABLE, application, id) is not None:  # deleted since
            part = table_part(snapshot, application, id)
            slice.add(part, f"dataTables/{id.hex()}/{text}", day, table=id.hex(), name=name)

    tables = await job.read(selected)
    job.completed, job.total, done = 0, len(tables), Written()
    with place.drafts() as drafts:
        manifest = ManifestFile(place, drafts, f"dataTables/{text}.jsonl")
        for id, name in tables:
            read_table = partial(read, id=id, name=name)
            what = f"data table {id.hex()}"
            done = done.plus(await _write_file(job, place, drafts, manifest, what, read_table))
            job.completed += 1
        await trio.to_thread.run_sync(manifest.store)
    return done


async def write_events(job: Job, place: Place, day: int) -> Written:
    """Write all events to one file."""
    text = day_text(day)

    def counted(rows: Rows) -> Rows:
        for row in rows:
            yield row
            job.completed += 1

    def read(snapshot: Snapshot, slice: Slice) -> None:
        job.completed, job.total = 0, records.total(snapshot, EVENT, place.application)
        part = event_part(snapshot, place.application, 0, None)
        slice.add(part._replace(rows=counted(part.rows)), f"allEvents/{text}", day)

    with place.drafts() as drafts:
        manifest = ManifestFile(place, drafts, f"allEvents/{text}.jsonl")
        done = await _write_file(job, place, drafts, manifest, "events", read)
        await trio.to_thread.run_sync(manifest.store)
    return done


async def write_export(job: Job, place: Place, day: int) -> Written:
    """Write an export of the application, as of now."""
    text = day_text(day)

    def read(snapshot: Snapshot, slice: Slice) -> None:
        slice.add_export(job.system, snapshot, f"exports/{text}.zip", day)

    with place.drafts() as drafts:
        manifest = ManifestFile(place, drafts, f"exports/{text}.jsonl")
        done = await _write_file(job, place, drafts, manifest, "the application", read)
        await trio.to_thread.run_sync(manifest.store)
    return done


async def _write_file(
    job: Job,
    place: Place,
    drafts: Drafts,
    manifest: ManifestFile,
    what: str,
    read: Callable[[Snapshot, Slice], None],
) -> Written:
    """Write a slice of its own; `what` cannot be read if `read` fails."""
    slice = new_slice(job, place, drafts)
    try:
        await job.read(lambda snapshot: read(snapshot, slice))
    except FAILURES as failure:
        slice.fail(what, failure)
    return await slice.store(manifest.new)


class _NextDay:
    """The earliest of the days that were seen."""

    def __init__(self) -> None:
        self.day: int | None = None

    def see(self, day: int | None) -> None:
        if day is not None and (self.day is None or day < self.day):
            self.day = day
