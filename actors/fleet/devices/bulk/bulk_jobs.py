"""Changes of many devices: by one call if there are few, by a job in parts if there are many.

A part is one batch, during which the event loop does nothing else, so it is small. In a job it also contains the
progress of the job, so a job that is restarted after an interruption repeats no part and skips none. It changes the
devices that existed when it began and that match when their part is processed. A device that refuses the change does
not stop the others: it is counted, and the first reasons are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.bulk.bulk_messages import (
    ChangeDevice,
    DeviceChange,
    DeviceChoice,
    RestoreDevice,
)
from trunkline.actors.fleet.devices.bulk.bulk_selection import devices_of, newest_id
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.fleet.devices.record.messages import DeleteDevice
from trunkline.actors.platform.jobs.job import Job, JobKind

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

PART_DEVICES_MAX: Final = 20
PART_BYTES_MAX: Final = 65_536
"""A part of small devices, and of what is stored of larger ones with their change: each 2 to 5 ms, measured."""


def tallied(
    limits: Limits, done: str, ids: list[bytes], answers: list[Any], before: Doc | None = None
) -> Doc:
    """Return what became of the devices, added to `before`: numbers by name, and the first errors.

    `done` names the number of changed devices. A change that changed nothing counts as skipped.
    """
    tally: Doc = {done: 0, "failed": 0, "skipped": 0, "errors": []} if before is None else dict(before)
    errors = list(tally["errors"])
    for id, answer in zip(ids, answers, strict=True):
        if isinstance(answer, DomainError):
            tally["failed"] += 1
            if len(errors) < limits.bulk_errors_max:
                errors.append({"deviceId": id.hex(), "message": answer.message})
        else:
            tally["skipped" if answer is False else done] += 1
    return tally | {"errors": errors}


def shown_tally(tally: Doc) -> Doc:
    """Return a tally as it is shown: without what is always zero or empty."""
    names = ("skipped", "errors") if "updated" not in tally else ("errors",)
    return {name: value for name, value in tally.items() if name not in names or value}


async def change_at_once(
    system: System, application: bytes, ids: list[bytes], message: Message, done: str
) -> Doc:
    """Send the message to a few devices, part by part, and return what became of them.

    If the server is too busy for the first part, that is raised, and nothing is stored; devices of a later part that
    find it so have failed.
    """
    answers: list[Any] = []
    for part in _parts(system, application, ids, message):
        await trio.lowlevel.checkpoint()  # a part that changes nothing waits for no commit
        try:
            answers += await system.ask_each(_asks(application, part, message))
        except DomainError as refusal:
            if not answers:
                raise
            answers += [refusal] * len(part)
    return shown_tally(tallied(system.limits, done, ids, answers))


def _asks(application: bytes, ids: list[bytes], message: Message) -> list[tuple[Ref, Message]]:
    return [(Ref("device", application, id), message) for id in ids]


def _parts(system: System, application: bytes, ids: list[bytes], message: Message) -> Iterator[list[bytes]]:
    """Divide devices, so that each part writes a few, or few bytes."""
    kind = DELETED_DEVICE if isinstance(message, RestoreDevice) else DEVICE
    changed = len(msgspec.msgpack.encode(message))
    with system.store.snapshot() as snapshot:
        sizes = [records.stored_bytes(snapshot, kind, application, id) + changed for id in ids]
    part: list[bytes] = []
    size = 0
    for id, more in zip(ids, sizes, strict=True):
        if part and (len(part) == PART_DEVICES_MAX or size + more > PART_BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(id)
        size += more
    if part:
        yield part


async def patch_devices(job: Job) -> Doc:
    """Change the devices. Input: `choice` and `change`, as plain values."""
    change = msgspec.convert(job.input["change"], DeviceChange)
    return await _process(job, ChangeDevice(change=change), "updated")


async def delete_devices(job: Job) -> Doc:
    """Delete the devices. Input: `choice`."""
    return await _process(job, DeleteDevice(), "removed")


async def restore_devices(job: Job) -> Doc:
    """Restore the devices. Input: `choice`."""
    return await _process(job, RestoreDevice(), "restored")


async def _process(job: Job, message: Message, done: str) -> Doc:
    """Send the message to the devices of the choice, part by part, and return what became of them."""
    choice, limits = msgspec.convert(job.input["choice"], DeviceChoice), job.system.limits
    most = limits.changed_devices_max
    if not job.note:
        end = await job.read(partial(newest_id, application=job.application, choice=choice))
        await job.save({"last": "", "end": end.hex(), "tally": tallied(limits, done, [], [])})
    end = bytes.fromhex(job.note["end"])

    def left(snapshot: Snapshot, most: int | None) -> list[bytes]:
        after = bytes.fromhex(job.note["last"])
        now_ms = job.system.clock.wall_ms()
        found = devices_of(snapshot, job.application, choice, limits, now_ms, after=after, end=end)
        return list(islice(found, most))

    def note(ids: list[bytes], answers: list[Any]) -> Doc:
        tally = tallied(limits, done, ids, answers, job.note["tally"])
        job.completed = sum(tally[name] for name in (done, "failed", "skipped"))
        return {**job.note, "last": ids[-1].hex(), "tally": tally}

    if job.total is None:
        job.total = len(await job.read(lambda snapshot: left(snapshot, None)))
    while ids := await job.read(lambda snapshot: left(snapshot, most)):
        for part in _parts(job.system, job.application, ids, message):
            await trio.lowlevel.checkpoint()
            await job.do_part(_asks(job.application, part, message), partial(note, part))
    return shown_tally(job.note["tally"])


PATCH_DEVICES = JobKind(operation="devices.patch", resource_type="device", run=patch_devices)
DELETE_DEVICES = JobKind(operation="devices.delete", resource_type="device", run=delete_devices)
RESTORE_DEVICES = JobKind(operation="devices.restore", resource_type="device", run=restore_devices)
