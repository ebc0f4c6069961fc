"""The log of a partition: what is appended to it is on a majority of machines before anybody hears of it.

Owns the interface of a log, the form of its entries and the chain that they are. Does not own how a log is kept
(`jetstream.py`) nor what is in the body of an entry.

An entry is CBOR: `[version, partition, epoch, owner, previous, kind, body]`. `previous` is the hash of the entry before
it, so a log that lacks an entry, or has another one in its place, is noticed by the next reader. Where an entry stands
in the log is its place: a number that grows, not always by one.

One log may have several partitions. Each has a chain of entries of its own, and each may have another owner.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Final, Literal, NamedTuple, Protocol, get_args

from trunkline.store import codec
from trunkline.store.errors import LogBroken

VERSION: Final = 1
"""Of the form of entries. A reader that does not know it stops."""
HASH_BYTES: Final = 16
NOWHERE: Final = 2**62
"""A place that no log has."""
BEGINNING: Final = bytes(HASH_BYTES)
"""What stands for the hash of an entry before the first one."""

Kind = Literal["claim", "group", "mark", "release"]
"""`claim`: from here on another node owns the partition. `group`: what one commit writes. `mark`: its owner is still
there. `release`: the owner has ended, and nobody reads from it any more."""


class Entry(NamedTuple):
    """An entry. `owner` is the name of the node that appended it, in its `epoch`, which each claim makes one higher."""

    partition: int
    epoch: int
    owner: str
    previous: bytes
    kind: Kind
    body: bytes


class Placed(NamedTuple):
    """An entry as it stands in the log."""

    place: int
    data: bytes


class LogState(NamedTuple):
    """The places of the first entry that is kept and of the last one, and the bytes of all. An empty log has `first`
    one higher than `last`."""

    first: int
    last: int
    size_bytes: int


class LogServer(NamedTuple):
    """A server that keeps a log: whether it leads it, and whether it has all of it and is heard."""

    name: str
    leads: bool
    is_current: bool


class NotNext(Exception):
    """Nothing was appended: the log ends at `last`, not where the caller thinks. What is there may be the caller's."""

    def __init__(self, last: int) -> None:
        super().__init__(f"the log ends at {last}")
        self.last = last


class Trimmed(Exception):
    """What a reader wants is not in the log any more, which begins at `first`: it needs a copy of what came before."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the log begins at {first}")
        self.first = first


class Log(Protocol):
    """A log. Methods that wait raise LogUnreachable, and LogBroken if what is stored is not what was appended."""

    async def identity(self) -> str:
        """What tells this log from one that is made again in its place."""
        ...

    def length(self, data: bytes) -> int:
        """By how much the place of an entry is higher than that of the one before it."""
        ...

    async def append(self, data: bytes, after: int) -> int:
        """Append an entry if the last one is at the place `after`, and return its place: it is on a majority then.

        Raises NotNext, then this call has appended nothing. With LogUnreachable nobody knows: the entry may be there
        now, or come to be there as long as the log ends at `after`. Several may be under way, each behind the one
        before it.
        """
        ...

    def follow(self, after: int) -> AbstractAsyncContextManager[AsyncGenerator[Placed, None]]:
        """All entries behind the place `after`, in order, and those that come later as they come.

        It may be behind what was appended, and never shows what a majority does not have. The generator raises Trimmed
        if entries behind `after` were removed, and LogUnreachable when the connection breaks.
        """
        ...

    async def entry(self, place: int) -> bytes | None:
        """The entry at a place at which one has ended; None if there is none."""
        ...

    async def trim(self, before: int) -> None:
        """Remove all entries before a place; of several partitions the caller leaves the last entry of each."""
        ...

    async def state(self) -> LogState:
        """What the log has. It may be behind what was appended."""
        ...


async def end_of(log: Log) -> int:
    """The place of the last entry, as an append compares it: it is told one that expects the log to be longer.

    0 without an entry. Raises as `Log.append`.
    """
    try:
        await log.append(b"", NOWHERE)
    except NotNext as refusal:
        return refusal.last
    raise LogBroken("The log has taken an entry behind a place that it does not have.")


def encoded(entry: Entry) -> bytes:
    """An entry as it is appended."""
    return codec.encode([VERSION, *entry])


def decoded(data: bytes) -> Entry:
    """The entry of these bytes. Raises LogBroken if it is none that this version can read."""
    try:
        version, *fields = codec.decode(data)
    except (ValueError, TypeError) as error:
        raise LogBroken("An entry of the log is not CBOR, or no array.") from error
    if version != VERSION:
        raise LogBroken(f"An entry of the log has version {version}; this program reads version {VERSION}.")
    kinds = (int, int, str, bytes, str, bytes)
    if len(fields) != len(kinds) or any(
        type(field) is not kind for field, kind in zip(fields, kinds, strict=True)
    ):
        raise LogBroken("An entry of the log has not the fields of an entry.")
    entry = Entry(*fields)
    if entry.kind not in get_args(Kind) or len(entry.previous) != HASH_BYTES:
        raise LogBroken(
            f"An entry of the log has the kind {entry.kind!r}, or no hash of the entry before it."
        )
    return entry


def hash_of(data: bytes) -> bytes:
    """The hash of an entry, which the next one names."""
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


class Chain:
    """Where a reader or an owner stands in the log of a partition: each entry has to follow from the one before it."""

    __slots__ = ("epoch", "log", "owner", "partition", "place", "tip")

    def __init__(
        self,
        partition: int,
        place: int = 0,
        tip: bytes = BEGINNING,
        epoch: int = 0,
        owner: str = "",
        log: str = "",
    ) -> None:
        self.partition = partition
        self.place = place
        """That of the last entry; 0 before the first."""
        self.tip = tip
        """The hash of the last entry."""
        self.epoch = epoch
        self.owner = owner
        self.log = log
        """The identity of the log."""

    def add(self, placed: Placed) -> Entry:
        """The next entry. Raises LogBroken if it does not follow, and nothing is changed then.

        An epoch begins with a claim, follows the one before, and all its entries are of one owner.
        """
        entry, number, place = decoded(placed.data), self.partition, placed.place
        if entry.partition != number:
            raise LogBroken(
                f"The log of partition {number} has an entry of partition {entry.partition} at {place}."
            )
        if place <= self.place or entry.previous != self.tip:
            raise LogBroken(
                f"The log of partition {number} is broken at {place}: the entry there does not follow the one at "
                f"{self.place}. An entry is missing, or the log was made again."
            )
        if entry.kind == "claim":
            is_right = entry.epoch == self.epoch + 1
        else:
            is_right = (entry.epoch, entry.owner) == (self.epoch, self.owner)
        if not is_right:
            raise LogBroken(
                f"The log of partition {number} has an entry of {entry.owner} in epoch {entry.epoch} at "
                f"{place}, where {self.owner or 'nobody'} owns epoch {self.epoch}."
            )
        self.place, self.tip = place, hash_of(placed.data)
        self.epoch, self.owner = entry.epoch, entry.owner
        return entry
