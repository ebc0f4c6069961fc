"""The outcome of every command that a load sent, and its audit at the streams and in the history.

Owns the ledgers of one load and the comparison. The payload of a command carries its number, which identifies
it when it arrives. An acknowledged command must arrive exactly once at each of its devices and be in the history
of each; a refused one must not arrive and must not be in a history.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.history import to_ms
from trunkline.bench.ledger import ACKNOWLEDGED, REFUSED, UNKNOWN, Audit
from trunkline.bench.session import Session, device_path

COMMAND = "bench"
"""The name of every command of a load."""

ENTRIES_PER_CALL = 1000


class _Payload(msgspec.Struct, frozen=True):
    sequence: int


class _Command(msgspec.Struct, frozen=True):
    payload: _Payload
    time: str | float | dict[str, str] = ""


_ARRIVED = msgspec.json.Decoder(_Command)
_ENTRIES = msgspec.json.Decoder(list[_Command])


class CommandLedger:
    """The commands sent to the same devices: by number the outcome of each, and when it was sent and acknowledged.

    Times are seconds of the load's clock; 0 means not acknowledged.
    """

    __slots__ = ("acknowledged_s", "device_ids", "outcomes", "sent_s")

    def __init__(self, device_ids: Sequence[str]) -> None:
        self.device_ids = device_ids
        self.outcomes = bytearray()
        self.sent_s = array("d")
        self.acknowledged_s = array("d")

    def begin(self, now_s: float) -> int:
        """Add a command with the outcome UNKNOWN; return its number."""
        self.outcomes.append(UNKNOWN)
        self.sent_s.append(now_s)
        self.acknowledged_s.append(0.0)
        return len(self.outcomes) - 1


class Arrivals:
    """The number of times that each command of a ledger arrived at one device."""

    __slots__ = ("counts", "device_id", "ledger")

    def __init__(self, device_id: str, ledger: CommandLedger) -> None:
        self.device_id = device_id
        self.ledger = ledger
        self.counts = bytearray()

    def take(self, data: str) -> int | None:
        """Count an arrival; return the number of the command, or None if it is a repetition or not of this load."""
        try:
            number = _ARRIVED.decode(data).payload.sequence
        except msgspec.DecodeError:
            return None
        return number if 0 <= number < len(self.ledger.outcomes) and self.add(number) else None

    def add(self, number: int) -> bool:
        """Count an arrival of a command of this load; whether it is the first."""
        if number >= len(self.counts):
            self.counts += bytes(number + 1 - len(self.counts))
        self.counts[number] = min(self.counts[number] + 1, 255)
        return self.counts[number] == 1

    def missing(self) -> Iterator[int]:
        """The numbers of acknowledged commands that have not arrived."""
        for number, outcome in enumerate(self.ledger.outcomes):
            if outcome == ACKNOWLEDGED and not (number < len(self.counts) and self.counts[number]):
                yield number

    def audit(self, found: Audit) -> None:
        """Compare the arrivals with the ledger."""
        for number in self.missing():
            found.missing += 1
            found.note(
                f"missing: device {self.device_id}: command {number} was acknowledged and never arrived"
            )
        for number, count in enumerate(self.counts):
            if count > 1 or (count and self.ledger.outcomes[number] == REFUSED):
                found.unexpected += 1
                found.note(f"unexpected: device {self.device_id}: command {number} arrived {count} times")


async def audit_history(
    session: Session, application_id: str, ledgers: Sequence[CommandLedger], found: Audit
) -> None:
    """Read the command history of every device of the ledgers and compare it, a few devices at a time."""
    waiting = iter([(one, ledger) for ledger in ledgers for one in ledger.device_ids])

    async def work() -> None:
        for device_id, ledger in waiting:
            await _audit_device(session, application_id, device_id, ledger, found)

    async with trio.open_nursery() as nursery:
        for _ in range(session.connections_max):
            nursery.start_soon(work)


async def _audit_device(
    session: Session, application_id: str, device_id: str, ledger: CommandLedger, found: Audit
) -> None:
    found.acknowledged += ledger.outcomes.count(ACKNOWLEDGED)
    found.unknown += ledger.outcomes.count(UNKNOWN)
    if not ledger.outcomes:
        return
    stored = await _stored(session, device_path(application_id, device_id, "/command"))
    found.read += len(stored)
    for number, outcome in enumerate(ledger.outcomes):
        if outcome == ACKNOWLEDGED and number not in stored:
            found.missing += 1
            found.note(f"missing: device {device_id}: command {number} was acknowledged and is in no history")
        elif outcome == REFUSED and number in stored:
            found.unexpected += 1
            found.note(f"unexpected: device {device_id}: command {number} was refused and is in the history")
        elif outcome == UNKNOWN and number in stored:
            found.unknown_found += 1


async def _stored(session: Session, path: str) -> set[int]:
    """The numbers of all commands in a history, page by page from the oldest."""
    numbers: set[int] = set()
    start_ms = 1
    while True:
        query: dict[str, Any] = {"start": start_ms, "limit": ENTRIES_PER_CALL, "sortDirection": "asc"}
        response = await session.fetch("GET", path, query=query)
        try:
            entries = _ENTRIES.decode(response.body)
        except msgspec.DecodeError as problem:
            raise BenchError(
                f"The server's history of {path} is not a list of commands: {problem}."
            ) from None
        known = len(numbers)
        numbers.update(entry.payload.sequence for entry in entries)
        if len(entries) < ENTRIES_PER_CALL:
            return numbers
        if len(numbers) == known:
            raise BenchError(f"The server's history of {path} does not advance past {start_ms}.")
        # Several commands may share a millisecond, so the last one is asked for again.
        start_ms = to_ms(entries[-1].time) - 1
