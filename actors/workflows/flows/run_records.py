"""What is kept of runs: a record of each failed one and of a sample of the others, and sums of minutes of all.

Owns the form of both. Writing them is up to the runner (`actors/engine/ends.py`), showing them to
`workflows/flows/runs.py` and `workflows/triggers/shown_runs.py`.
"""

from __future__ import annotations

import zlib
from typing import Any, Final, Literal

import msgspec

from trunkline.actors.core.values.structs import Message
from trunkline.store import keys
from trunkline.store.codec import decode, encode

RUN_TOPIC: Final = "runs"
"""The topic of the streams of a workflow that show its runs."""

Outcome = Literal["completed", "failed", "dropped", "abandoned"]
"""Dropped: the queue was full. Abandoned: the server has crashed too often during the run."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended. Times in ms, `took_us` in microseconds.

    `nodes` are id, type and label of each visited node, and `path` has three numbers for each of the first steps: the
    position in `nodes`, the output, and the time in us. `debug` has position, level, message and value of each message,
    and `notes` position, message and count of what nodes ignored. `error` is the position of the node (-1 for none),
    name and message. `trigger` is the compressed record of the trigger, with which the run can be repeated. `dropped`
    counts triggers that were not run.
    """

    outcome: Outcome
    version: str
    version_id: bytes
    trigger_type: str = ""
    trigger_key: str = ""
    trigger_id: str = ""
    queued_ms: int = 0
    began_ms: int = 0
    ended_ms: int
    took_us: int = 0
    steps: int = 0
    nodes: list[list[str]] = []
    path: list[int] = []
    debug: list[list[Any]] = []
    notes: list[list[Any]] = []
    error: list[Any] | None = None
    device: bytes | None = None
    replays: int | None = None
    dropped: int = 0
    trigger: bytes | None = None

    def encoded(self) -> bytes:
        """The stored bytes."""
        return encode({name: value for name, value in msgspec.structs.asdict(self).items() if value})


class ExpireRuns(Message, frozen=True):
    """Remove run records and sums of minutes, by their keys. The answer are their numbers, in a list."""

    runs: list[bytes]
    minutes: list[bytes]

    @property
    def entries(self) -> int:
        """The number of entries of the store to remove."""
        return len(self.runs) + len(self.minutes)


def decode_run(raw: bytes) -> RunRecord:
    """The record of which `raw` are the stored bytes."""
    return RunRecord(**{"version": "", "version_id": b"", **decode(raw)})


def packed(trigger: bytes) -> bytes:
    """The record of a trigger as run records keep it."""
    return zlib.compress(trigger, 1)


def unpacked(packed: bytes) -> bytes:
    """The record of the trigger again."""
    return zlib.decompress(packed)


def run_id(number: int) -> str:
    """The id of a run, as callers know it: 24 hexadecimal digits, as all ids."""
    return f"{number:024x}"


def position_of_key(key: bytes) -> int:
    """The position of a run record in the order of ends."""
    return int.from_bytes(key[-16:-8], "big")


def number_of_key(key: bytes) -> int:
    """The number of the run of a record."""
    return int.from_bytes(key[-8:], "big")


def ended_ms_of_key(key: bytes) -> int:
    """When the run of a record has ended: positions begin with the time."""
    return position_of_key(key) >> 20


def minute_of_key(key: bytes) -> int:
    """The minute, since the epoch, of the sums with this key."""
    return int.from_bytes(key[-16:-12], "big")


def position_at(time_ms: int) -> int:
    """The first position at a time: positions begin with the time, as numbers of triggers do
    (`workflows/triggers/queue.py`)."""
    return min(max(time_ms, 0) << 20, keys.NUMBER_MAX)
