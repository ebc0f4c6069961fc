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
from collections.abc import Iterator
from typing import TYPE_CHECKING

import trio

from trunkline.actors.applications.archive_days import DAY_MS, day_text, includes
from trunkline.actors.archives.contents import (
    device_ids,
    device_parts,
    event_part,
    next_day_of,
    next_event_day,
    selects,
    table_part,
)
from trunkline.actors.archives.manifest import What
from trunkline.actors.archives.slices import (
    FAILURES,
    ManifestFile,
    Place,
    Slice,
    Written,
    new_slice,
    pause,
)
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.tables.kind import DATA_TABLE
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.jobs.job import Job
    from trunkline.store.snapshot import Snapshot


async def write_day(job: Job, place: Place, day: int, kinds: frozenset[What]) -> tuple[Written, int | None]:
    """Archive what the devices reported for a day, and the events of the day: what is of one of these `kinds`.

    Returns what was written, and the next day that has anything; None if there is none. Idempotent.
    """
    config, application, text = place.config, place.application, day_text(day)
    done, next_day = Written(), _NextDay()
    with place.drafts() as drafts:
        manifest = ManifestFile(place, drafts, f"manifests/days/{text[:4]}/{text}.jsonl")

        def read_devices(snapshot: Snapshot, slice: Slice, after: bytes) -> bytes | None:
            """Read the devices after an id; the id of the last one, None if there are no more."""
            seen = 0
            for device, raw in device_ids(snapshot, application, after):
                if slice.is_full or seen >= job.system.limits.archive_slice_devices_max:
                    return after
                after, seen = device, seen + 1
                pause(seen)
                try:
                    next_day.see(_read_device(snapshot, slice, config, kinds, device, raw, day))
                except FAILURES as failure:
                    slice.fail(f"device {device.hex()} on {text}", failure)
                    next_day.see(day + 1)
            return None

        def read_events(snapshot: Snapshot, slice: Slice) -> None:
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
            slice, last = new_slice(job, place, drafts), after
            after = await job.read(lambda snapshot: read_devices(snapshot, slice, last))  # noqa: B023
            done = done.plus(await slice.store(manifest.new))
        if includes(config, "events"):
            slice = new_slice(job, place, drafts)
            try:
                await job.read(lambda snapshot: read_events(snapshot, slice))
            except FAILURES as failure:
                slice.fail(f"events of {text}", failure)
                next_day.see(day + 1)
            done = done.plus(await slice.store(manifest.new))
        await trio.to_thread.run_sync(manifest.store)
    return done, next_day.day


def _read_device(
    snapshot: Snapshot,
    slice: Slice,
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
                pause(number)
                with contextlib.suppress(*FAILURES):  # reported when its day is archived
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
        manifest = ManifestFile(place, drafts, f"manifests/dataTables/{text}.jsonl")
        for id, name in tables:
            slice = new_slice(job, place, drafts)
            try:
                await job.read(lambda snapshot: _read_table(snapshot, slice, place, id, name, day))  # noqa: B023
            except FAILURES as failure:
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


def _read_table(snapshot: Snapshot, slice: Slice, place: Place, id: bytes, name: str, day: int) -> None:
    if records.find(snapshot, DATA_TABLE, place.application, id) is not None:  # deleted since
        part = table_part(snapshot, place.application, id)
        slice.add(part, f"dataTables/{id.hex()}/{day_text(day)}", day, table=id.hex(), name=name)


async def write_events(job: Job, place: Place, day: int) -> Written:
    """Write all events to one file."""
    text = day_text(day)
    with place.drafts() as drafts:
        manifest = ManifestFile(place, drafts, f"manifests/allEvents/{text}.jsonl")
        slice = new_slice(job, place, drafts)

        def read(snapshot: Snapshot) -> None:
            slice.add(event_part(snapshot, place.application, 0, None), f"allEvents/{text}", day)

        try:
            await job.read(read)
        except FAILURES as failure:
            slice.fail("events", failure)
        done = await slice.store(manifest.new)
        await trio.to_thread.run_sync(manifest.store)
    return done


async def write_export(job: Job, place: Place, day: int) -> Written:
    """Write an export of the application, as of now."""
    text = day_text(day)
    with place.drafts() as drafts:
        manifest = ManifestFile(place, drafts, f"manifests/exports/{text}.jsonl")
        slice = new_slice(job, place, drafts)
        try:
            path = f"exports/{text}.zip"
            await job.read(lambda snapshot: slice.add_export(job.system, snapshot, path, day))
        except FAILURES as failure:
            slice.fail("the application", failure)
        done = await slice.store(manifest.new)
        await trio.to_thread.run_sync(manifest.store)
    return done


class _NextDay:
    """The earliest of the days that were seen."""

    def __init__(self) -> None:
        self.day: int | None = None

    def see(self, day: int | None) -> None:
        if day is not None and (self.day is None or day < self.day):
            self.day = day
