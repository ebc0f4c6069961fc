"""What became of every state that a load sent, and the audit that compares it with what the server kept.

Owns the books of one load: per device, each state's time and fate in nine bytes, and the comparison with
the history read back through the API. Does not own sending.

The states are a function of their number, so that the books need not keep them: number ``n`` of a device
carries ``state_of(n)`` under a time that no other state of the device has. A state whose answer never came
counts as unknown: it may be there or not, but if it is there it must be whole.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from trunkline.bench.history import History, to_iso
from trunkline.bench.session import Json, Session

UNKNOWN, ACKNOWLEDGED, REFUSED = 0, 1, 2
"""Fates of a state; every state is unknown until its answer is read."""

DAY_MS = 86_400_000
"""Milliseconds: the API takes no state further ahead, so an audit that reads so far has read everything."""

EXAMPLES_MAX = 20
"""Findings: an audit lists so many and counts the rest."""

ATTRIBUTES: list[Json] = [
    {"name": "sequence", "dataType": "number"},
    {"name": "temperature", "dataType": "number"},
    {"name": "running", "dataType": "boolean"},
]
"""What a device of a load must declare."""


def state_of(number: int) -> dict[str, Any]:
    """The data of a device's state of that number."""
    return {"sequence": number, "temperature": number * 37 % 1000 / 10, "running": number % 2 == 0}


def body_of(number: int, time_ms: int) -> bytes:
    """The request body that sends ``state_of(number)``."""
    running = b"false" if number % 2 else b"true"
    return b'{"time":%d,"data":{"sequence":%d,"temperature":%d.%d,"running":%s}}' % (
        time_ms,
        number,
        *divmod(number * 37 % 1000, 10),
        running,
    )


class DeviceBook:
    """The states sent to one device, in the order of their times."""

    __slots__ = ("device_id", "fates", "times")

    def __init__(self, device_id: str) -> None:
        self.device_id = device_id
        self.times = array("q")
        self.fates = bytearray()

    def begin(self, now_ms: int) -> tuple[int, int]:
        """Enter one more state, as unknown; its number and its time, later than all before."""
        number = len(self.times)
        time_ms = max(now_ms, self.times[-1] + 1) if number else now_ms
        self.times.append(time_ms)
        self.fates.append(UNKNOWN)
        return number, time_ms

    def number_at(self, time_ms: int) -> int | None:
        """The number of the state with that time, or None."""
        index = bisect_left(self.times, time_ms)
        return index if index < len(self.times) and self.times[index] == time_ms else None


@dataclass(slots=True)
class Audit:
    """What the read-back found; ``clean`` where each acknowledged state is there, whole, and nothing else."""

    acknowledged: int = 0
    read: int = 0
    missing: int = 0
    different: int = 0
    unexpected: int = 0
    unknown: int = 0
    unknown_found: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.missing or self.different or self.unexpected)

    def note(self, finding: str) -> None:
        """Keep a finding as an example, up to EXAMPLES_MAX."""
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(finding)


async def audit(session: Session, application_id: str, books: Sequence[DeviceBook]) -> Audit:
    """Read every device's whole history back and compare it with its book, a few devices at a time."""
    result = Audit()
    waiting = iter(books)

    async def work() -> None:
        for book in waiting:
            await _audit_device(session, application_id, book, result)

    async with trio.open_nursery() as nursery:
        for _ in range(min(session.connections_max, max(1, len(books)))):
            nursery.start_soon(work)
    return result


async def _audit_device(session: Session, application_id: str, book: DeviceBook, result: Audit) -> None:
    result.acknowledged += book.fates.count(ACKNOWLEDGED)
    result.unknown += book.fates.count(UNKNOWN)
    if not book.times:
        return
    found = bytearray(len(book.times))
    last_ms = book.times[-1] + DAY_MS
    history = History(session, application_id, book.device_id, first_ms=2, last_ms=last_ms)
    async for page in history:
        result.read += len(page)
        for time_ms, data in page:
            number = book.number_at(time_ms)
            where = f"device {book.device_id} at {to_iso(time_ms)}"
            if number is None:
                result.unexpected += 1
                result.note(f"unexpected: {where}: never sent: {data}")
                continue
            found[number] = 1
            if book.fates[number] == REFUSED:
                result.unexpected += 1
                result.note(f"unexpected: {where}: was refused and is stored")
            elif not same_data(state_of(number), data):
                result.different += 1
                result.note(f"different: {where}: sent {state_of(number)}, read {data}")
            elif book.fates[number] == UNKNOWN:
                result.unknown_found += 1
    for number, fate in enumerate(book.fates):
        if fate == ACKNOWLEDGED and not found[number]:
            result.missing += 1
            where = f"device {book.device_id} at {to_iso(book.times[number])}"
            result.note(f"missing: {where}: acknowledged {state_of(number)}")


def same_data(sent: dict[str, Any], read: dict[str, Any]) -> bool:
    """Equal by value and kind: 5 and 5.0 are the same number, true and 1 are not."""
    return sent.keys() == read.keys() and all(same_value(sent[name], read[name]) for name in sent)


def same_value(sent: object, read: object) -> bool:
    """Whether two JSON scalars are the same value of the same kind."""
    return sent == read and isinstance(sent, bool) == isinstance(read, bool)
