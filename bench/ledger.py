"""What became of every state that a load sent, and the audit that compares it with what the server kept.

Owns the books of one load, a byte a state, and the comparison with the history read back through the API.
Does not own sending.

A state is a function of its number: number ``n`` of a device carries ``state_of(n)`` under the time
``first_ms + n``, which no other state of that device has, so that the books keep nothing but its fate and a
load spends no time on making states. One whose answer never came counts as unknown: it may be there or not,
but if it is there it must be whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import trio

from trunkline.bench.history import History, to_iso
from trunkline.bench.session import Json, Session

UNKNOWN, ACKNOWLEDGED, REFUSED = 0, 1, 2
"""Fates of what was sent; everything is unknown until its answer is read."""

DAY_MS = 86_400_000
"""Milliseconds: the API takes no state further ahead, so an audit that reads so far has read everything."""

EXAMPLES_MAX = 20
"""Findings: an audit lists so many and counts the rest."""

BODIES_MAX = 256
"""Bodies kept for sending: devices advance together, so that one body soon serves the next device too."""

ATTRIBUTES: list[Json] = [
    {"name": "sequence", "dataType": "number"},
    {"name": "temperature", "dataType": "number"},
    {"name": "running", "dataType": "boolean"},
]
"""What a device of a load must declare."""


def state_of(number: int) -> dict[str, Any]:
    """The data of a device's state of that number."""
    return {"sequence": number, "temperature": number * 37 % 1000 / 10, "running": number % 2 == 0}


@lru_cache(maxsize=BODIES_MAX)
def body_of(number: int, count: int, first_ms: int) -> bytes:
    """The request body that sends ``count`` states from ``number`` on: an object, or an array of several."""
    states = [
        b'{"time":%d,"data":{"sequence":%d,"temperature":%d.%d,"running":%s}}'
        % (first_ms + n, n, *divmod(n * 37 % 1000, 10), b"false" if n % 2 else b"true")
        for n in range(number, number + count)
    ]
    return states[0] if count == 1 else b"[" + b",".join(states) + b"]"


class StateBook:
    """The states sent to one device, in the order of their numbers and times."""

    __slots__ = ("device_id", "fates", "first_ms")

    def __init__(self, device_id: str, first_ms: int) -> None:
        self.device_id = device_id
        self.first_ms = first_ms
        self.fates = bytearray()

    def begin(self, count: int = 1) -> int:
        """Enter some more states, as unknown; the number of the first."""
        number = len(self.fates)
        self.fates += bytes(count)
        return number

    def settle(self, number: int, count: int, fate: int) -> None:
        """Learn the fate of states that one call carried."""
        self.fates[number : number + count] = bytes((fate,)) * count

    def number_at(self, time_ms: int) -> int | None:
        """The number of the state with that time, or None."""
        number = time_ms - self.first_ms
        return number if 0 <= number < len(self.fates) else None


@dataclass(slots=True)
class Audit:
    """What the read-back found; ``clean`` where everything acknowledged is there, whole, and nothing else."""

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


async def audit(
    session: Session,
    application_id: str,
    books: Sequence[StateBook],
    result: Audit,
    on_progress: Callable[[int], object],
) -> None:
    """Read every device's whole history back and compare it with its book, a few devices at a time."""
    waiting = iter(books)
    done = 0

    async def work() -> None:
        nonlocal done
        for book in waiting:
            await _audit_device(session, application_id, book, result)
            done += 1
            on_progress(done)

    async with trio.open_nursery() as nursery:
        for _ in range(min(session.connections_max, max(1, len(books)))):
            nursery.start_soon(work)


async def _audit_device(session: Session, application_id: str, book: StateBook, result: Audit) -> None:
    result.acknowledged += book.fates.count(ACKNOWLEDGED)
    result.unknown += book.fates.count(UNKNOWN)
    if not book.fates:
        return
    found = bytearray(len(book.fates))
    last_ms = book.first_ms + len(book.fates) + 2 * DAY_MS
    history = History(session, application_id, book.device_id, first_ms=2, last_ms=last_ms)
    async for page in history:
        result.read += len(page)
        for time_ms, data in page:
            number = book.number_at(time_ms)
            if number is None:
                result.unexpected += 1
                result.note(f"unexpected: {_where(book, time_ms)}: never sent: {data}")
                continue
            found[number] = 1
            if book.fates[number] == REFUSED:
                result.unexpected += 1
                result.note(f"unexpected: {_where(book, time_ms)}: was refused and is stored")
            elif not same_data(state_of(number), data):
                result.different += 1
                result.note(f"different: {_where(book, time_ms)}: sent {state_of(number)}, read {data}")
            elif book.fates[number] == UNKNOWN:
                result.unknown_found += 1
    for number, fate in enumerate(book.fates):
        if fate == ACKNOWLEDGED and not found[number]:
            result.missing += 1
            where = _where(book, book.first_ms + number)
            result.note(f"missing: {where}: acknowledged {state_of(number)}")


def _where(book: StateBook, time_ms: int) -> str:
    return f"device {book.device_id} at {to_iso(time_ms)}"


def same_data(sent: dict[str, Any], read: dict[str, Any]) -> bool:
    """Equal by value and kind: 5 and 5.0 are the same number, true and 1 are not."""
    return sent.keys() == read.keys() and all(same_value(sent[name], read[name]) for name in sent)


def same_value(sent: object, read: object) -> bool:
    """Whether two JSON scalars are the same value of the same kind."""
    return sent == read and isinstance(sent, bool) == isinstance(read, bool)
