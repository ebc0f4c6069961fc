"""The jobs that remove what devices reported: of one device (`device.removeData`), of many (`devices.removeData`).

Entries are found on a snapshot and removed part by part by the device (`fleet/devices/actor/removal.py`). The batch of
a part also contains the progress of the job, with the attributes that lost their newest value; so after an
interruption the job counts nothing twice, and still gives them the newest values that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.fleet.devices.bulk.bulk_messages import DeviceChoice
from trunkline.actors.fleet.devices.bulk.bulk_selection import devices_of, newest_id
from trunkline.actors.fleet.devices.bulk.removal_messages import RemoveData, RestoreNewest
from trunkline.actors.fleet.devices.queries.selection import device_filter
from trunkline.actors.fleet.devices.record.reads import open_declared
from trunkline.actors.fleet.devices.state.history import points
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.messages import QueueJob
    from trunkline.store.snapshot import Snapshot

_NAMES: Final = {keys.TIMELINE: "states", keys.COMMANDS: "commands", keys.LOGS: "logEntries"}
"""What is removed, in this order, with the names of the numbers in the output of the job."""


class Entry(NamedTuple):
    """A stored point (in TIMELINE, by its time in ms) or log entry (by its key)."""

    db: str
    key: bytes
    time_ms: int = 0


async def remove_device_data(job: Job) -> Doc:
    """Remove the data of one device. Input: as `remove_devices_data`, without `query`."""
    if not job.note:
        await job.save(_begun())
    await _restore_newest(job)
    await _remove_from(job, job.resource)
    removed: Doc = job.note["removed"]
    return removed


async def remove_devices_data(job: Job) -> Doc:
    """Remove the data of devices. Input: `query`, `start` and `end` (milliseconds, both included), `attributes` (names;
    None for all), `commands` and `logs` (whether these are removed as well).
    """
    choice, limits = DeviceChoice(query=job.input["query"]), job.system.limits
    if not job.note:
        end = await job.read(partial(newest_id, application=job.application, choice=choice))
        await job.save({**_begun(), "last": "", "end": end.hex(), "devices": 0})
    await _restore_newest(job)
    end = bytes.fromhex(job.note["end"])

    def left(snapshot: Snapshot) -> list[bytes]:
        after, now_ms = bytes.fromhex(job.note["last"]), job.system.clock.wall_ms()
        found = devices_of(snapshot, job.application, choice, limits, now_ms, after=after, end=end)
        return list(islice(found, limits.changed_devices_max))

    while ids := await job.read(left):
        for id in ids:
            try:
                await _remove_from(job, id)
            except NotFound:
                continue  # deleted meanwhile
        await job.save({**job.note, "last": ids[-1].hex(), "devices": job.note["devices"] + len(ids)})
    return {"devices": job.note["devices"], **job.note["removed"]}


def _begun() -> Doc:
    return {"removed": dict.fromkeys(_NAMES.values(), 0), "lost": []}


async def _remove_from(job: Job, device: bytes) -> None:
    """Remove all that is found of a device, part by part. Raises NotFound if the device does not exist any more."""
    most, after = job.system.limits.removed_entries_max, None

    def found(snapshot: Snapshot) -> list[Entry]:
        return list(islice(_entries(snapshot, job, device, after), most))

    while entries := await job.read(found):
        await _do_part(job, device, entries)
        after = entries[-1]
    await _restore_newest(job)


async def _do_part(job: Job, device: bytes, entries: list[Entry]) -> None:
    by_db: dict[str, list[Entry]] = {db: [] for db in _NAMES}
    for entry in entries:
        by_db[entry.db].append(entry)
    message = RemoveData(
        points=[entry.time_ms for entry in by_db[keys.TIMELINE]],
        attributes=job.input["attributes"],
        commands=[entry.key for entry in by_db[keys.COMMANDS]],
        logs=[entry.key for entry in by_db[keys.LOGS]],
    )

    def note(answers: list[Any]) -> Doc:
        _check(answers)
        before = job.note["removed"]
        removed = {name: before[name] + len(by_db[db]) for db, name in _NAMES.items()}
        job.completed = sum(removed.values())
        known = {number for _, number in job.note["lost"]}
        lost = [[device.hex(), number] for number in answers[0] if number not in known]
        return {**job.note, "removed": removed, "lost": job.note["lost"] + lost}

    await job.do_part([(Ref("device", job.application, device), message)], note)


async def _restore_newest(job: Job) -> None:
    """Give the attributes that lost their newest value the newest one that is left."""
    while lost := job.note["lost"]:
        device = bytes.fromhex(lost[0][0])
        numbers = {number for _, number in lost}
        message = await job.read(partial(newest_left, device=device, numbers=numbers))

        def note(answers: list[Any]) -> Doc:
            if not isinstance(answers[0], NotFound):  # deleted meanwhile
                _check(answers)
            is_done = answers[0] is not False
            return {**job.note, "lost": [] if is_done else job.note["lost"]}

        await job.do_part([(Ref("device", job.application, device), message)], note)


def _check(answers: list[Any]) -> None:
    if isinstance(answers[0], DomainError):
        raise answers[0]


def _entries(snapshot: Snapshot, job: Job, device: bytes, after: Entry | None) -> Iterator[Entry]:
    """Yield what is to be removed of a device, behind `after`. Raises NotFound if there is no such device."""
    options = job.input
    declared = open_declared(snapshot, job.application, device).attributes
    numbers = None
    if options["attributes"] is not None:
        numbers = {number for name in options["attributes"] if (number := declared.number(name)) is not None}
    chosen = {
        keys.TIMELINE: numbers is None or bool(numbers),
        keys.COMMANDS: options["commands"],
        keys.LOGS: options["logs"],
    }
    if options["start"] > options["end"]:
        return
    passed = after is not None
    for db, is_chosen in chosen.items():
        start_ms, low = options["start"], _log_key(device, options["start"])
        if after is not None and after.db == db:
            start_ms, low, passed = after.time_ms + 1, after.key + b"\x00", False
        if passed or not is_chosen:
            continue
        if db == keys.TIMELINE:
            for time_ms, _ in points(snapshot, device, (start_ms, options["end"]), numbers=numbers):
                yield Entry(db, b"", time_ms)
        else:
            for key in snapshot.keys(db, low, _log_key(device, options["end"] + 1)):
                yield Entry(db, bytes(key))


def _log_key(device: bytes, time_ms: int) -> bytes:
    return keys.command_key(device, time_ms, 0)


def newest_left(snapshot: Snapshot, device: bytes, numbers: set[int]) -> RestoreNewest:
    """Return the message with the newest points of these attributes that are left."""
    values: list[tuple[int, int]] = []
    newest_ms, wanted = -1, set(numbers)
    for time_ms, point in points(snapshot, device, (0, keys.TIME_MS_MAX - 1), reverse=True):
        newest_ms = max(newest_ms, time_ms)
        values += [(number, time_ms) for number in wanted & point.keys()]
        wanted -= point.keys()
        if not wanted:
            break
    return RestoreNewest(values=values, newest_ms=newest_ms)


def check_device(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise NotFound for an unknown device."""
    open_declared(snapshot, application, message.resource)


def check_query(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise `QueryError` for an invalid query."""
    device_filter(snapshot, application, message.input["query"])


REMOVE_DEVICE_DATA: Final = JobKind(
    operation="device.removeData", resource_type="device", run=remove_device_data, check=check_device
)
REMOVE_DEVICES_DATA: Final = JobKind(
    operation="devices.removeData", resource_type="device", run=remove_devices_data, check=check_query
)
