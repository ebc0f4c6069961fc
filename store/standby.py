"""A node that waits to own a partition: it follows the log, and claims the partition when no owner is heard.

Owns when a node claims, and whether it may follow an owner at all: all nodes have the same secret and encryption keys,
and a copy begins with all that was there when the log began.

A claim is taken only behind the last entry. An owner reads for a lease after it began to append that one, at most, and
a node claims when it has read no further entry for `silence_s`, which is longer. So nobody reads from the owner before.

Where the data have several partitions, a process of each node follows each of them, and that of the first one claims
all at once (`log_owner.py`). Each other process claims its own behind that, when whoever owned it before reads no more.
A process reads the stores of all partitions of its node, so none serves before all of them were claimed.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import trio

from trunkline.store import codec, keys
from trunkline.store.directory import SECRET, read_private
from trunkline.store.errors import (
    CopyNeeded,
    LogBroken,
    LogUnreachable,
    SecretMissing,
    StoreError,
    first_of,
)
from trunkline.store.follower import Follower, chain_of, followed
from trunkline.store.keyring import Keyring
from trunkline.store.log import (
    BEGINNING,
    Chain,
    Entry,
    Log,
    Placed,
    decoded,
    epoch_name,
    era_of,
    is_first_of_era,
)
from trunkline.store.log_nodes import COPIES, Nodes, Word
from trunkline.store.log_owner import LogOwner
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.partitions import partition_count, partition_directory
from trunkline.store.store_copy import take_copy
from trunkline.store.store_files import opened_read_only, snapshot_of_partition

LOOK_S: Final = 0.1
"""How often it is looked whether the owner is heard."""
FOLLOW_S: Final = 0.5
"""Before a claim the log is followed for so long at least, and for a random while more, so that two nodes seldom claim
at once."""
START_S: Final = 10.0
"""So long a node may say nothing after its claim, while its server starts."""
QUIET_S: Final = 0.5
"""An owner that appends nothing for longer may be gone: it appends a mark more often."""
FINGERPRINT_BYTES: Final = 16

Tips = dict[int, Placed | None]
"""By partition, its last entry; None if it has none."""

_RESTORE: Final = "Restore a backup of {} in its place that was made since the log began."
_CHANCE: Final = secrets.SystemRandom()
_log = structlog.get_logger("trunkline.store")


class Claim(NamedTuple):
    """What is in the body of a claim: the fingerprint of the secrets, and whether the store was empty at the first.

    `process` is a number of the process that claims. Without it a process could take the claim of an earlier one of its
    node for its own, and the mark behind it as well, although other nodes have owned the partition since.

    `read_s`: behind a claim of all partitions, for so long processes of the node before may read.
    """

    fingerprint: bytes
    was_empty: bool
    process: int = 0
    read_s: float = 0.0

    def encoded(self) -> bytes:
        """The body. Programs that know one partition only read three values."""
        return codec.encode(list(self if self.read_s else self[:3]))

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
        partition: int = 0,
        others: Sequence[Nodes] = (),
    ) -> None:
        """An owner that was not heard for `silence_s` is taken for dead. `others` are those who follow the other
        partitions, for the process of the first one."""
        self.name = name
        self.partition = partition
        self.others = others
        self.nodes = Nodes(connection, subject, self.say, silence_s)
        self.owner: LogOwner | None = None
        self.follows = trio.Event()
        """It follows the log, and has found nothing in it that keeps it from doing so."""
        self._log = log
        self._address = address
        self._process = _CHANCE.getrandbits(48)
        self._chain = Chain(partition)
        self._copies = False
        """It gets a copy of the data."""
        self._read_s = -math.inf
        """Until then processes of the node before may read."""
        self._heard_s = -math.inf
        """When an entry was read last."""
        self._seen: tuple[float, Tips] = -math.inf, {}
        """When the last entries of the other partitions were looked at, and which they were."""
        self._is_released = False
        """The last entry says that no node owns the partition."""
        self._gone_s = -math.inf
        """An owner of which nothing else is heard is taken for dead from then on."""
        self._has_other_data = False
        """The store was written without the log."""
        self._directory = Path()

    @property
    def _is_free(self) -> bool:
        """Whether no process owns the partition: nobody has claimed it, its owner has released it, or it was an earlier
        process of this node, whose data directory this one has."""
        return self._is_released or self._chain.owner in ("", self.name)

    def say(self) -> Word:
        """What this node says of itself."""
        chain = self._chain
        place = COPIES if self._copies else chain.place
        return Word(self.name, self._process, chain.epoch, place, self.owner is not None, self._address)

    async def own(
        self, directory: Path, fingerprint: bytes, fetch: Callable[[], Awaitable[None]], *, is_empty: bool
    ) -> LogOwner:
        """Follow until there is no owner, then claim the partition. Nobody reads from the one before any more.

        `nodes` must run meanwhile. `fetch` gets a copy of the store of the owner into `store_copy.new_file`, if this
        node lacks what is not in the log. Raises LogBroken, SecretMissing and StoreError.
        """
        self._directory = directory
        while True:
            try:
                return await self._own(directory, fingerprint, is_empty=is_empty)
            except* CopyNeeded as need:
                problem = first_of(need)
                if self._has_other_data:
                    raise LogBroken(f"{problem} {_RESTORE.format('another node')}") from None
                _log.warning("this node needs a copy of the data", reason=str(problem))
            self.follows.set()
            self._copies = True
            await fetch()
            take_copy(partition_directory(directory, self.partition), directory)
            self._copies = is_empty = False

    async def _own(self, directory: Path, fingerprint: bytes, *, is_empty: bool) -> LogOwner:
        """The same, without a copy. Raises CopyNeeded."""

        def check(entry: Entry) -> None:
            self._is_released = entry.kind == "release"
            silence_s = START_S if entry.kind == "claim" else self.nodes.silence_max_s
            self._heard_s = trio.current_time()
            self._gone_s = self._heard_s + silence_s
            if entry.kind == "group" and self._has_other_data:
                raise LogBroken(f"{directory} was written without the log. {_RESTORE.format(entry.owner)}")
            if entry.kind != "claim":
                return
            claim = Claim.of(entry)
            self._read_s = trio.current_time() + claim.read_s
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
            follower = Follower(self._log, memory_map, self.partition, check)
            chain = self._chain = follower.chain
            if is_first_of_era(chain.epoch):
                self._read_s = trio.current_time() + self.nodes.silence_max_s
            self._has_other_data = not is_empty and not chain.place
            follow_s = LOOK_S if self.partition else FOLLOW_S
            while True:
                await self._follow(follower, follow_s)
                if not self._may_claim():
                    continue  # what says so was read while this node stopped to follow
                owner = LogOwner(self._log, chain, self.name)
                if await self._claimed(owner, Claim(fingerprint, is_empty, self._process)):
                    break
                follow_s = FOLLOW_S  # the end may not be reached in less
            if self._is_divided:
                follower.note()
        self.owner = owner
        if self._is_divided:
            await self._all_claimed(directory, owner)
        _log.info("this node owns the data now", node=self.name, epoch=epoch_name(owner.chain.epoch))
        return owner

    async def _claimed(self, owner: LogOwner, claim: Claim) -> bool:
        """Claim, and with the first partition all others that another node owns."""
        if not self.others or owner.chain.owner == self.name:
            return await owner.claim(claim.encoded())
        while True:
            with suppress(LogUnreachable):
                last = await self._log.tip(self.partition)
                if last is not None and last.place > owner.chain.place:
                    return False
                tips = await self._tips()
                if all(tip is None or decoded(tip.data).kind == "release" for tip in tips.values()):
                    read_s = 0.0
                    break
                if self._owner_is_gone():
                    read_s = self._longest_read_s(tips)
                    break
            await trio.sleep(LOOK_S)  # other processes of that node end just now
        bodies = {0: claim.encoded()}
        for number, tip in tips.items():
            was_empty = tip is None and self._is_empty(number)
            bodies[number] = claim._replace(was_empty=was_empty, read_s=read_s).encoded()
        return await owner.claim_all(bodies, tips)

    def _is_empty(self, number: int) -> bool:
        """Whether this node has no record of a partition."""
        with snapshot_of_partition(self._directory, number) as snapshot:
            return not snapshot.count(keys.RECORDS, b"", None)

    async def _tips(self) -> Tips:
        """The last entries of the other partitions."""
        return {number: await self._log.tip(number) for number in range(1, len(self.others) + 1)}

    async def _look_at_others(self) -> None:
        """Look at the last entries of the other partitions when no entry of the own one comes, until cancelled."""
        while True:
            await trio.sleep(LOOK_S)
            if trio.current_time() - self._heard_s > QUIET_S and self._seen[0] < self._heard_s:
                with suppress(LogUnreachable):
                    tips = await self._tips()
                    self._seen = trio.current_time(), tips

    def _longest_read_s(self, tips: Tips) -> float:
        """For how long others may read who have appended none of the entries behind `tips`."""
        seen_s, seen = self._seen
        waited_s = trio.current_time() - seen_s if seen == tips else 0.0
        return max(0.0, self.nodes.silence_max_s - waited_s)

    async def _all_claimed(self, directory: Path, owner: LogOwner) -> None:
        """Wait until the processes of this node have claimed all partitions, and so have all that was in the logs.

        Raises Fenced if another node has meanwhile, and LogBroken.
        """
        era = era_of(self._chain.epoch)
        for number in range(partition_count(directory)):
            while True:
                with opened_read_only(partition_directory(directory, number)) as memory_map:
                    chain = chain_of(memory_map, number)
                is_own = number == 0 or not is_first_of_era(chain.epoch)
                if chain.owner == self.name and era_of(chain.epoch) >= era and is_own:
                    break
                await owner.append(b"", "mark")
                await trio.sleep(LOOK_S)

    @property
    def _is_divided(self) -> bool:
        """Whether there are several partitions."""
        return bool(self.partition or self.others)

    def _owner_is_gone(self) -> bool:
        """Whether neither the owner nor an entry of it was heard for so long that it is taken for dead."""
        return self.nodes.owner_is_silent() and trio.current_time() > self._gone_s

    def _may_claim(self) -> bool:
        if self.partition:
            return self._chain.owner == self.name and trio.current_time() > self._read_s
        if self._chain.owner != self.name and not all(each.follows(self.name) for each in self.others):
            return False
        return self._is_free or self._owner_is_gone()

    async def _follow(self, follower: Follower, follow_s: float) -> None:
        """Follow for `follow_s` at least, and then until the partition is free, or its owner is not heard."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower.run)
            if self.others:
                nursery.start_soon(self._look_at_others)
            await trio.sleep(follow_s + _CHANCE.uniform(0, follow_s))
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
