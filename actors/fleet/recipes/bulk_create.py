"""Creating the devices of a recipe: few at once, many by a job in parts.

The id of each device follows from the job and the line, and a part is one batch with the progress of the job. So after
an interruption no device is created twice, and the result is written from the lines and the progress alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import CreateRecords, Creator
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.csv_text import CSV, CsvLines
from trunkline.actors.core.values.errors import DomainError, Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.messages import CreateDevice, DevicePost
from trunkline.actors.fleet.recipes.messages import BulkCreate, OpenRecipe
from trunkline.actors.fleet.recipes.resource import RECIPES
from trunkline.actors.fleet.recipes.rows import Rows
from trunkline.actors.platform.applications.keys import KEYS, KeyPost
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.structs import Message
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.store.snapshot import Snapshot

_KEY_COLUMNS: Final = ("accessKey", "accessSecret")


def open_recipe(reading: Reading, message: OpenRecipe) -> Doc:
    """Return the stored record of a recipe. Raises NotFound if there is none."""
    found = records.find(reading.snapshot, RECIPES.kind, message.application, message.device_recipe)
    if found is None:
        raise missing(RECIPES.kind, message.device_recipe)
    return found.doc


async def create_at_once(
    system: System, application: bytes, rows: Rows, by: Creator | None
) -> tuple[int, int, bytes]:
    """Create few devices in one batch; return how many were created, how many were not, and the result as CSV.

    With `by`, each device gets an access key of its own in the same batch, created by it; the secrets are in the
    result and nowhere else.
    """
    now_ms = system.clock.wall_ms()
    ids = [system.ids.new(now_ms) for _ in rows.lines]
    posts, errors = _built(rows, range(len(rows)))
    asks = [
        (Ref("device", application, ids[row]), CreateDevice(body=post, is_bulk=True))
        for row, post in posts.items()
    ]

    def keys_of(answers: list[Any]) -> tuple[Ref, Message]:
        bodies = [
            KeyPost(name=post.name, device_ids=[ids[row].hex()])
            for (row, post), answer in zip(posts.items(), answers, strict=True)
            if not isinstance(answer, DomainError)
        ]
        assert by is not None
        return Ref("application", ROOT, application), CreateRecords(resource=KEYS.name, bodies=bodies, by=by)

    answers = await system.ask_each(asks, None if by is None else keys_of)
    secrets = [] if by is None else answers.pop()
    for row, answer in zip(list(posts), answers, strict=True):
        if isinstance(answer, DomainError):
            errors[row] = answer.message
    created = [row for row in range(len(rows)) if row not in errors]
    more = {
        row: ((application + made.id).hex(), made.shown_once["secret"])
        for row, made in zip(created, secrets, strict=by is not None)
    }
    columns = _KEY_COLUMNS if by is not None else ()
    lines = b"".join(_result(rows, ids.__getitem__, errors.get, columns, more))
    return len(created), len(errors), lines


async def create_devices(job: Job) -> Doc:
    """Create many devices. The data of the job: `recipe`, the stored record as it was, and `body`, that of the call."""
    data = decode(await job.read_data())
    limits = job.system.limits
    rows = Rows(data["recipe"], msgspec.convert(data["body"], BulkCreate), limits)
    id_of = partial(_id_of, job.id)
    if not job.note:
        job.note = {"next": 0, "created": 0, "failed": 0, "refused": {}}
    job.total = len(rows)
    while (first := job.note["next"]) < len(rows):
        part = range(first, min(first + limits.changed_devices_max, len(rows)))
        posts, errors = _built(rows, part)
        asks = [
            (Ref("device", job.application, id_of(row)), CreateDevice(body=post, is_bulk=True))
            for row, post in posts.items()
        ]
        await job.do_part(asks, partial(_noted, job, part, list(posts), len(errors)))
    refused: dict[int, str] = {
        row: message for message, lines in job.note["refused"].items() for row in lines
    }

    def error_of(row: int) -> str | None:
        if row in refused:
            return refused[row]
        try:
            rows.device(row)
        except Invalid as refusal:
            return refusal.message
        return None

    def fill(_snapshot: Snapshot, write: Write) -> None:
        for line in _result(rows, id_of, error_of):
            write(line)

    name = f"created-devices-{job.resource.hex()}.csv"
    file = await job.write_file(name, CSV, fill)
    return {"created": job.note["created"], "failed": job.note["failed"], "file": file}


def _noted(job: Job, part: range, asked: list[int], invalid: int, answers: list[Any]) -> Doc:
    """The progress after a part: counts, and the refused lines by the reason, of which only so many are kept."""
    note = job.note
    refused: dict[str, list[int]] = {message: list(lines) for message, lines in note["refused"].items()}
    failed = invalid
    for row, answer in zip(asked, answers, strict=True):
        if isinstance(answer, DomainError):
            failed += 1
            is_full = len(refused) >= job.system.limits.bulk_errors_max and answer.message not in refused
            message = (
                "The device was refused, for another reason than the lines before."
                if is_full
                else answer.message
            )
            refused.setdefault(message, []).append(row)
    job.completed = part.stop
    created = note["created"] + len(part) - failed
    return {"next": part.stop, "created": created, "failed": note["failed"] + failed, "refused": refused}


def _built(rows: Rows, part: range) -> tuple[dict[int, DevicePost], dict[int, str]]:
    """Return the devices of these lines, and what is wrong with the other lines."""
    posts: dict[int, DevicePost] = {}
    errors: dict[int, str] = {}
    for row in part:
        try:
            posts[row] = rows.device(row)
        except Invalid as refusal:
            errors[row] = refusal.message
    return posts, errors


def _id_of(job: bytes, row: int) -> bytes:
    """The id of the device of a line: the second of the job, as in all ids, and eight bytes that no other has."""
    return job[:4] + hashlib.sha256(b"%b %d" % (job, row)).digest()[:8]


def _result(
    rows: Rows,
    id_of: Callable[[int], bytes],
    error_of: Callable[[int], str | None],
    columns: tuple[str, ...] = (),
    more: Mapping[int, tuple[str, ...]] | None = None,
) -> Iterator[bytes]:
    """Yield the lines of the result: those that were sent, each with the id of its device or the reason for none.

    Of a line with too many fields the last column that was sent has the rest, with commas between.
    """
    lines = CsvLines()
    yield lines.line([*rows.header, "deviceId", *columns, "error"])
    width = len(rows.header)
    for row, line in enumerate(rows.lines):
        error = error_of(row)
        sent = line if len(line) <= width else [*line[: width - 1], ",".join(line[width - 1 :])]
        sent = [*sent, *[""] * (width - len(sent))]
        extra = (more or {}).get(row, ("",) * len(columns))
        id = "" if error is not None else id_of(row).hex()
        yield lines.line(text or None for text in [*sent, id, *extra, error])


def data_of(recipe: Doc, body: BulkCreate) -> bytes:
    """The data of a job that creates the devices."""
    return encode({"recipe": recipe, "body": msgspec.to_builtins(body)})


BULK_CREATE: Final = JobKind(
    operation="deviceRecipe.bulkCreate", resource_type="deviceRecipe", run=create_devices
)
