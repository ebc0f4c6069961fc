"""The outcome of every state that a load sent, and the audit that compares it with the history on the server.

Owns the ledgers of one load, one byte per state, and the comparison with the history read back through the API.
Does not own sending.

A state is a function of its number: number ``n`` of a device has the data ``state_of(n)`` and the unique time
``first_ms + n``. So a ledger stores only the outcome of each state, and a load spends no time on creating states.
A state without an answer is unknown: it may be stored or not, but if it is stored it must be complete.
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
"""Outcomes of a call; unknown until its answer is read."""

DAY_MS = 86_400_000
"""Milliseconds: the API accepts no state further in the future, so an audit up to there reads everything."""

EXAMPLES_MAX = 20
"""Findings: an audit lists at most this many and counts the rest."""

BODIES_MAX = 256
"""Cached request bodies: devices advance together, so the same body is soon needed for the next device."""

ATTRIBUTES: list[Json] = [
    {"name": "sequence", "dataType": "number"},
    {"name": "temperature", "dataType": "number"},
    {"name": "running", "dataType": "boolean"},
]
"""The attributes of a device of a load."""


def state_of(number: int) -> dict[str, Any]:
    """The data of the state with this number."""
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


class StateLedger:
    """The states sent to one device, in the order of their numbers and times."""

    __slots__ = ("device_id", "first_ms", "outcomes")

    def __init__(self, device_id: str, first_ms: int) -> None:
        self.device_id = device_id
        self.first_ms = first_ms
        self.outcomes = bytearray()

    def begin(self, count: int = 1) -> int:
        """Add states with the outcome UNKNOWN; return the number of the first."""
        number = len(self.outcomes)
        self.outcomes += bytes(count)
        return number

    def settle(self, number: int, count: int, outcome: int) -> None:
        """Set the outcome of the states of one call."""
        self.outcomes[number : number + count] = bytes((outcome,)) * count

    def number_at(self, time_ms: int) -> int | None:
        """The number of the state with that time, or None."""
        number = time_ms - self.first_ms
        return number if 0 <= number < len(self.outcomes) else None


@dataclass(slots=True)
class Audit:
    """The result of reading back; ``clean`` if exactly the acknowledged data is stored, complete."""

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
        """Whether no difference was found."""
        return not (self.missing or self.different or self.unexpected)

    def note(self, finding: str) -> None:
        """Keep a finding as an example, up to EXAMPLES_MAX."""
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(finding)


async def audit(
    session: Session,
    application_id: str,
    ledgers: Sequence[StateLedger],
    result: Audit,
    on_progress: Callable[[int], object],
) -> None:
    """Read the whole history of every device and compare it with its ledger, a few devices at a time."""
    waiting = iter(ledgers)
    done = 0

    async def work() -> None:
        nonlocal done
        for ledger in waiting:
            await _audit_device(session, application_id, ledger, result)
            done += 1
            on_progress(done)

    async with trio.open_nursery() as nursery:
        for _ in range(min(session.connections_max, max(1, len(ledgers)))):
            nursery.start_soon(work)


async def _audit_device(session: Session, application_id: str, ledger: StateLedger, result: Audit) -> None:
    result.acknowledged += ledger.outcomes.count(ACKNOWLEDGED)
    result.unknown += ledger.outcomes.count(UNKNOWN)
    if not ledger.outcomes:
        return
    found = bytearray(len(ledger.outcomes))
    last_ms = ledger.first_ms + len(ledger.outcomes) + 2 * DAY_MS
    history = History(session, application_id, ledger.device_id, first_ms=2, last_ms=last_ms)
    async for page in history:
        result.read += len(page)
        for time_ms, data in page:
            number = ledger.number_at(time_ms)
            if number is None:
                result.unexpected += 1
                result.note(f"unexpected: {_where(ledger, time_ms)}: never sent: {data}")
                continue
            found[number] = 1
            if ledger.outcomes[number] == REFUSED:
                result.unexpected += 1
                result.note(f"unexpected: {_where(ledger, time_ms)}: was refused and is stored")
            elif not same_data(state_of(number), data):
                result.different += 1
                result.note(f"different: {_where(ledger, time_ms)}: sent {state_of(number)}, read {data}")
            elif ledger.outcomes[number] == UNKNOWN:
                result.unknown_found += 1
    for number, outcome in enumerate(ledger.outcomes):
        if outcome == ACKNOWLEDGED and not found[number]:
            result.missing += 1
            where = _where(ledger, ledger.first_ms + number)
            result.note(f"missing: {where}: acknowledged {state_of(number)}")


def _where(ledger: StateLedger, time_ms: int) -> str:
    return f"device {ledger.device_id} at {to_iso(time_ms)}"


def same_data(sent: dict[str, Any], read: dict[str, Any]) -> bool:
    """Whether data is equal in values and types: 5 and 5.0 are the same number, true and 1 are not."""
    return sent.keys() == read.keys() and all(same_value(sent[name], read[name]) for name in sent)


def same_value(sent: object, read: object) -> bool:
    """Whether two JSON scalars have the same value and the same type."""
    return sent == read and isinstance(sent, bool) == isinstance(read, bool)
