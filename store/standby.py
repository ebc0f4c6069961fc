"""A node that waits to own a partition: it follows the log, and claims the partition when no owner is heard.

Owns when a node claims, and whether it may follow an owner at all: all nodes have the same secret and encryption keys,
and a copy begins with all that was there when the log began.

A claim is taken only behind the last entry. An owner reads for a lease after it began to append that one, at most, and
a node claims when it has read no further entry for `silence_s`, which is longer. So nobody reads from the owner before.

Where the data have several partitions, a process of each node follows or owns each of them, whoever owns the others. A
process reads the stores of all partitions of its node, so it serves when all of them are fresh (`leases.py`).
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import trio

from trunkline.store import codec
from trunkline.store.directory import SECRET, read_private
from trunkline.store.errors import (
    CopyNeeded,
    LogBroken,
    SecretMissing,
    StoreError,
    first_of,
)
from trunkline.store.follower import Follower, followed
from trunkline.store.keyring import Keyring
from trunkline.store.leases import HELD_S, PROVED_S, Leases
from trunkline.store.log import BEGINNING, Chain, Entry, Log
from trunkline.store.log_nodes import COPIES, Nodes, Word
from trunkline.store.log_owner import LogOwner
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.overlay import Overlay
from trunkline.store.partition_copy import PartitionCopy
from trunkline.store.partitions import partition_directory
from trunkline.store.release import Release
from trunkline.store.store_copy import take_copy

LOOK_S: Final = 0.1
"""How often it is looked whether the owner is heard."""
FOLLOW_S: Final = 0.5
"""Before a claim the log is followed for so long at least, and for a random while more, so that two nodes seldom claim
at once."""
START_S: Final = 10.0
"""So long a node may say nothing after its claim, while its server starts."""
HEIR_S: Final = 5.0
"""So long others leave a partition to the node to which its owner has released it."""
FIRST_S: Final = 1.0
"""So long others leave a free partition to the node that should own it."""
FINGERPRINT_BYTES: Final = 16

_RESTORE: Final = "Restore a backup of {} in its place that was made since the log began."
_CHANCE: Final = secrets.SystemRandom()
_log = structlog.get_logger("trunkline.store")


class Claim(NamedTuple):
    """What is in the body of a claim: the fingerprint of the secrets, and whether the store was empty at the first.

    `process` is a number of the process that claims. Without it a process could take the claim of an earlier one of its
    node for its own, and the mark behind it as well, although other nodes have owned the partition since.
    """

    fingerprint: bytes
    was_empty: bool
    process: int = 0

    def encoded(self) -> bytes:
        """The body."""
        return codec.encode(list(self))

    @classmethod
    def of(cls, entry: Entry) -> Claim:
        """The claim in an entry. Raises LogBroken."""
        try:
            return cls(*codec.decode(entry.body))
        except (ValueError, TypeError) as error:
            raise LogBroken("A claim of the log cannot be read by this version.") from error


def fingerprint_of(directory: Path, keys_file: Path) -> bytes:
    """The fingerprint of the secret and of the encryption keys, from which neither can be found.

    Raises SecretMissing and SecretExposed.
    """
    return Keyring.read(keys_file).hash(shared_key(directory, b"fingerprint"), FINGERPRINT_BYTES)


def shared_key(directory: Path, purpose: bytes) -> bytes:
    """32 bytes that all nodes with the same secret find, and nobody else; `purpose` has up to 16 bytes.

    Raises SecretMissing and SecretExposed.
    """
    try:
        secret = read_private(directory / SECRET, 4 * 32)
    except FileNotFoundError:
        raise SecretMissing(f"{directory / SECRET} is missing. Copy it from the other node.") from None
    return hashlib.blake2b(secret, digest_size=32, person=purpose).digest()


class Standby:
    """The node `name` with a data directory that `Store.open` has made, or the process of it that follows a partition.

    Others reach it at `address`.
    """

    def __init__(
        self,
        log: Log,
        connection: NatsConnection,
        subject: str,
        name: str,
        address: str,
        silence_s: float,
        *,
        copy: PartitionCopy | None = None,
    ) -> None:
        """An owner that was not heard for `silence_s` is taken for dead. `copy` is the store of one of several
        partitions."""
        self.name = name
        self.partition = 0 if copy is None else copy.number
        self.copy = copy
        self.nodes = Nodes(connection, subject, self.say, silence_s, self._hear)
        self.owner: LogOwner | None = None
        self.follows = trio.Event()
        """It follows the log, and has found nothing in it that keeps it from doing so."""
        self._log = log
        self._address = address
        self._process = _CHANCE.getrandbits(48)
        self._chain = Chain(self.partition)
        self._copies = False
        """It gets a copy of the data."""
        self._leases_until_s = math.inf
        """Until then others may hold leases that earlier owners have granted."""
        self._released: Release | None = None
        """The last entry, if it says that no node owns the partition."""
        self._free_s = math.inf
        """Since when no node owns the partition."""
        self._gone_s = -math.inf
        """An owner of which nothing else is heard is taken for dead from then on."""
        self._has_other_data = False
        """The store was written without the log."""

    def say(self) -> Word:
        """What this node says of itself."""
        chain = self._chain
        place = COPIES if self._copies else chain.place
        word = Word(self.name, self._process, chain.epoch, place, self.owner is not None, self._address)
        if self.copy is None:
            return word
        if self.copy.leases is None:
            return word._replace(said_s=self.copy.said_s)
        return word._replace(leases=self.copy.leases.told())

    def _hear(self, word: Word) -> None:
        """Another node has said something: grant a lease, or take one that was granted."""
        copy = self.copy
        if copy is None:
            return
        if copy.leases is not None:
            if copy.leases.hear(word):
                self.nodes.hurry()
        elif word.is_owner and word.epoch == self._chain.epoch and not self._copies:
            said_s = word.leases.get(self._process)
            if said_s is not None:
                copy.granted(said_s)

    def _took(self, overlay: Overlay | None) -> None:
        if self.copy is not None and self.copy.took(self._chain.place, overlay) and self.copy.said_s:
            self.nodes.hurry()

    async def own(
        self, directory: Path, fingerprint: bytes, fetch: Callable[[], Awaitable[None]], *, is_empty: bool
    ) -> LogOwner:
        """Follow until there is no owner, then claim the partition. Nobody reads from the one before any more.

        `nodes` must run meanwhile. `fetch` gets a copy of the store of the owner into `store_copy.new_file`, if this
        node lacks what is not in the log. Raises LogBroken, SecretMissing and StoreError.
        """
        while True:
            if self.copy is not None:
                self.copy.begin()
            try:
                return await self._own(directory, fingerprint, is_empty=is_empty)
            except* CopyNeeded as need:
                problem = first_of(need)
                if self._has_other_data:
                    raise LogBroken(f"{problem} {_RESTORE.format('another node')}") from None
                _log.warning("this node needs a copy of the data", reason=str(problem))
            self.follows.set()
            self._copies = True
            if self.copy is not None:
                self.copy.freshness.end(self.partition)
            await fetch()
            take_copy(partition_directory(directory, self.partition), directory)
            self._copies = is_empty = False

    async def _own(self, directory: Path, fingerprint: bytes, *, is_empty: bool) -> LogOwner:
        """The same, without a copy. Raises CopyNeeded."""

        def check(entry: Entry) -> None:
            now_s = trio.current_time()
            self._released = Release.of(entry) if entry.kind == "release" else None
            self._free_s = math.inf
            self._leases_until_s = now_s + PROVED_S + HELD_S
            if self._released is not None:
                self._leases_until_s = now_s + self._released.leases_s
            silence_s = START_S if entry.kind == "claim" else self.nodes.silence_max_s
            self._gone_s = now_s + silence_s
            if entry.kind == "group" and self._has_other_data:
                raise LogBroken(f"{directory} was written without the log. {_RESTORE.format(entry.owner)}")
            if entry.kind != "claim":
                return
            claim = Claim.of(entry)
            if claim.fingerprint != fingerprint:
                raise SecretMissing(
                    f"The node {entry.owner} has another secret or other encryption keys than {directory}. All nodes "
                    "of a log need the same: copy both files from it."
                )
            # Where this node began the log, and has lost its store since, it is empty.
            has_its_data = entry.owner == self.name and not is_empty
            if entry.previous == BEGINNING and not has_its_data and not (claim.was_empty and is_empty):
                problem = (
                    f"The log began with the data of {entry.owner}, and {directory} is not a copy of them."
                )
                if is_empty:
                    raise CopyNeeded(problem)
                raise LogBroken(f"{problem} {_RESTORE.format(entry.owner)}")

        with followed(partition_directory(directory, self.partition), directory) as memory_map:
            follower = Follower(self._log, memory_map, self.partition, check, self._took)
            chain = self._chain = follower.chain
            self._leases_until_s = trio.current_time() + PROVED_S + HELD_S
            self._has_other_data = not is_empty and not chain.place
            while True:
                await self._follow(follower)
                if not self._may_claim():
                    continue  # what says so was read while this node stopped to follow
                is_new, owner = not chain.place, LogOwner(self._log, chain, self.name)
                if await owner.claim(Claim(fingerprint, is_empty, self._process).encoded()):
                    break
        if self.copy is not None:
            self.copy.leases = Leases(chain.place, -math.inf if is_new else self._leases_until_s)
            self.copy.leases.is_sure = partial(self.copy.freshness.is_own, self.partition)
        self.owner = owner
        if self.copy is not None:
            await self._read_all(self.copy, owner)
        _log.info(
            "this node owns the data now", node=self.name, epoch=owner.chain.epoch, partition=self.partition
        )
        return owner

    async def _read_all(self, copy: PartitionCopy, owner: LogOwner) -> None:
        """Wait until the stores of all partitions are fresh, that of this one as well: it lacks nothing of its log.

        Raises Fenced and LogBroken.
        """
        while True:
            began_s = copy.freshness.clock_s()
            await owner.append(b"", "mark")
            copy.proved(began_s)
            self.nodes.hurry()
            if copy.others_are_fresh:
                return
            await trio.sleep(LOOK_S)

    def _owner_is_gone(self) -> bool:
        """Whether neither the owner nor an entry of it was heard for so long that it is taken for dead."""
        return self.nodes.owner_is_silent() and trio.current_time() > self._gone_s

    @property
    def _is_free(self) -> bool:
        """Whether no process owns the partition: nobody has claimed it, its owner has released it, or it was an earlier
        process of this node, whose data directory this one has."""
        return self._released is not None or self._chain.owner in ("", self.name)

    def _may_claim(self) -> bool:
        now_s = trio.current_time()
        if self._released is None and self._chain.owner == self.name:
            return True
        if not self._is_free and not self._owner_is_gone():
            self._free_s = math.inf
            return False
        self._free_s = min(self._free_s, now_s)
        heir = "" if self._released is None else self._released.heir
        if heir:
            return heir == self.name or now_s - self._free_s > HEIR_S
        return self.copy is None or self._is_first or now_s - self._free_s > FIRST_S

    @property
    def _is_first(self) -> bool:
        """Whether this node is the one, of those that are heard, that should own the partition."""
        return self.heir(self.name) == self.name

    def heir(self, own: str = "") -> str:
        """The node that should own the partition, of those that follow it and of `own`; none if there is none.

        Each node owns as many as others where all do so.
        """
        names = sorted(filter(None, {own, *(each for each in self.nodes.others if self.nodes.follows(each))}))
        return names[self.partition % len(names)] if names else ""

    async def _follow(self, follower: Follower) -> None:
        """Follow for `FOLLOW_S` at least, and then until the partition is free, or its owner is not heard."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower.run)
            await trio.sleep(FOLLOW_S + _CHANCE.uniform(0, FOLLOW_S))
            while self.nodes.may_have_namesake:  # noqa: ASYNC110 - silence is no event
                await trio.sleep(LOOK_S)
            if self.nodes.has_namesake:
                raise StoreError(
                    f"Another machine with this log is named {self.name} as well. Give each one a cluster_node of its "
                    "own."
                )
            self.follows.set()
            while not self._may_claim():  # noqa: ASYNC110 - silence is no event
                await trio.sleep(LOOK_S)
            nursery.cancel_scope.cancel()
