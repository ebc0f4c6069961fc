"""What became of every command that a load sent, and the audit: at the streams, and in the history.

Owns the books of one load and the comparison. A command's payload carries its number, so that an arrival
says which one it is. An acknowledged command has to arrive once at each of its devices and to stand in each
one's history; a refused one must do neither.
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


class CommandBook:
    """The commands that go to the same devices; ``numbers`` says when each was sent and acknowledged."""

    __slots__ = ("acknowledged_s", "device_ids", "fates", "sent_s")

    def __init__(self, device_ids: Sequence[str]) -> None:
        self.device_ids = device_ids
        self.fates = bytearray()
        self.sent_s = array("d")
        self.acknowledged_s = array("d")

    def begin(self, now_s: float) -> int:
        """Enter one more command, as unknown; its number."""
        self.fates.append(UNKNOWN)
        self.sent_s.append(now_s)
        self.acknowledged_s.append(0.0)
        return len(self.fates) - 1


class Arrivals:
    """How often each command of a book arrived at one device."""

    __slots__ = ("book", "counts", "device_id")

    def __init__(self, device_id: str, book: CommandBook) -> None:
        self.device_id = device_id
        self.book = book
        self.counts = bytearray()

    def take(self, data: str) -> int | None:
        """Enter an arrival; the command's number, or None where it came before or is of no load."""
        try:
            number = _ARRIVED.decode(data).payload.sequence
        except msgspec.DecodeError:
            return None
        if not 0 <= number < len(self.book.fates):
            return None
        if number >= len(self.counts):
            self.counts += bytes(number + 1 - len(self.counts))
        self.counts[number] = min(self.counts[number] + 1, 255)
        return number if self.counts[number] == 1 else None

    def missing(self) -> Iterator[int]:
        """The numbers of acknowledged commands that have not arrived."""
        for number, fate in enumerate(self.book.fates):
            if fate == ACKNOWLEDGED and not (number < len(self.counts) and self.counts[number]):
                yield number

    def audit(self, found: Audit) -> None:
        """Compare what arrived with the book."""
        for number in self.missing():
            found.missing += 1
            found.note(
                f"missing: device {self.device_id}: command {number} was acknowledged and never arrived"
            )
        for number, count in enumerate(self.counts):
            if count > 1 or (count and self.book.fates[number] == REFUSED):
                found.unexpected += 1
                found.note(f"unexpected: device {self.device_id}: command {number} arrived {count} times")


async def audit_history(
    session: Session, application_id: str, books: Sequence[CommandBook], found: Audit
) -> None:
    """Read the command history of every device of the books and compare it, a few devices at a time."""
    waiting = iter([(one, book) for book in books for one in book.device_ids])

    async def work() -> None:
        for device_id, book in waiting:
            await _audit_device(session, application_id, device_id, book, found)

    async with trio.open_nursery() as nursery:
        for _ in range(session.connections_max):
            nursery.start_soon(work)


async def _audit_device(
    session: Session, application_id: str, device_id: str, book: CommandBook, found: Audit
) -> None:
    found.acknowledged += book.fates.count(ACKNOWLEDGED)
    found.unknown += book.fates.count(UNKNOWN)
    if not book.fates:
        return
    stored = await _stored(session, device_path(application_id, device_id, "/command"))
    found.read += len(stored)
    for number, fate in enumerate(book.fates):
        if fate == ACKNOWLEDGED and number not in stored:
            found.missing += 1
            found.note(f"missing: device {device_id}: command {number} was acknowledged and is in no history")
        elif fate == REFUSED and number in stored:
            found.unexpected += 1
            found.note(f"unexpected: device {device_id}: command {number} was refused and is in the history")
        elif fate == UNKNOWN and number in stored:
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
