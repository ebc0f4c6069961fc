"""A node that waits to own a partition: it follows the log, and claims the partition when no owner is heard.

Owns when a node claims, and whether it may follow an owner at all: all nodes have the same secret and encryption keys,
and a copy begins with all that was there when the log began.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import trio

from trunkline.store import codec
from trunkline.store.directory import SECRET, read_private
from trunkline.store.errors import LogBroken, SecretMissing
from trunkline.store.follower import Follower, followed
from trunkline.store.keyring import Keyring
from trunkline.store.log import Chain, Entry, Log
from trunkline.store.log_nodes import Nodes, Word
from trunkline.store.log_owner import LogOwner
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.replicated_journal import LEASE_S

LOOK_S: Final = 0.1
"""How often it is looked whether the owner is heard."""
FOLLOW_S: Final = 0.5
"""Before a claim the log is followed for so long at least, and for a random while more, so that two nodes seldom claim
at once."""
FINGERPRINT_BYTES: Final = 16

_RESTORE: Final = "Restore a backup of {} in its place that was made since the log began."
_CHANCE: Final = secrets.SystemRandom()
_log = structlog.get_logger("trunkline.store")


class Claim(NamedTuple):
    """What is in the body of a claim: the fingerprint of the secrets, and whether the store was empty at the first."""

    fingerprint: bytes
    was_empty: bool

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
    try:
        secret = read_private(directory / SECRET, 4 * 32)
    except FileNotFoundError:
        raise SecretMissing(f"{directory / SECRET} is missing. Copy it from the other node.") from None
    keys = b"".join(sorted(Keyring.read(keys_file).ids))
    return hashlib.blake2b(keys, key=hashlib.blake2b(secret).digest(), digest_size=FINGERPRINT_BYTES).digest()


class Standby:
    """The node `name` with a data directory that `Store.open` has made. `url` is where clients reach it."""

    def __init__(self, log: Log, connection: NatsConnection, subject: str, name: str, url: str) -> None:
        self.name = name
        self.nodes = Nodes(connection, subject, name, self._say)
        self.owner: LogOwner | None = None
        self._log = log
        self._url = url
        self._chain = Chain(0)

    def _say(self) -> Word:
        chain = self._chain
        return Word(self.name, chain.epoch, chain.place, self.owner is not None, self._url)

    async def own(self, directory: Path, fingerprint: bytes, *, is_empty: bool) -> LogOwner:
        """Follow until no owner is heard, then claim the partition, and return when nobody reads from the one before.

        `nodes` must run meanwhile. Raises LogBroken, Trimmed, SecretMissing and StoreError.
        """

        def check(entry: Entry) -> None:
            if entry.kind == "group" and has_other_data:
                raise LogBroken(f"{directory} was written without the log. {_RESTORE.format(entry.owner)}")
            if entry.kind != "claim":
                return
            claim = Claim.of(entry)
            if claim.fingerprint != fingerprint:
                raise SecretMissing(
                    f"The node {entry.owner} has another secret or other encryption keys than {directory}. All nodes "
                    "of a log need the same: copy both files from it."
                )
            if entry.epoch == 1 and entry.owner != self.name and not (claim.was_empty and is_empty):
                raise LogBroken(
                    f"The log began with the data of {entry.owner}, and {directory} is not a copy of them. "
                    f"{_RESTORE.format(entry.owner)}"
                )

        with followed(directory) as memory_map:
            follower = Follower(self._log, memory_map, 0, check)
            self._chain = follower.chain
            has_other_data = not is_empty and not follower.chain.place
            while True:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(follower.run)
                    await trio.sleep(FOLLOW_S + _CHANCE.uniform(0, FOLLOW_S))
                    while not self.nodes.owner_is_silent():  # noqa: ASYNC110 - silence is no event
                        await trio.sleep(LOOK_S)
                    nursery.cancel_scope.cancel()
                owner = LogOwner(self._log, follower.chain, self.name)
                if await owner.claim(codec.encode([fingerprint, is_empty])):
                    break
        self.owner = owner
        _log.info("this node owns the data now", node=self.name, epoch=owner.chain.epoch)
        await trio.sleep(2 * LEASE_S)
        return owner
