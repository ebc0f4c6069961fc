"""A node of a cluster as its store knows it: a data directory that follows the log of a partition, or owns it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from tests.patience import PATIENCE_S
from trunkline.store import keys
from trunkline.store.env import Store
from trunkline.store.follower import Follower, followed
from trunkline.store.log import Log
from trunkline.store.log_owner import LogOwner
from trunkline.store.replicated_journal import ReplicatedJournal

MAP_BYTES: Final = 2**20
Content = dict[str, list[tuple[bytes, bytes]]]


class Node:
    """A data directory, with the keys of all nodes."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.directory = folder / name
        self._keys = folder / "keys"
        with self.store():
            pass

    def store(self, **options: Any) -> Store:
        """Open the store."""
        settings: dict[str, Any] = {
            "encryption_keys": self._keys,
            "map_size_bytes": MAP_BYTES,
            "keeps_log": True,
            **options,
        }
        return Store.open(self.directory, **settings)

    async def followed_to(self, log: Log, place: int) -> None:
        """Follow until the entry at a place is written."""
        with followed(self.directory) as memory_map, trio.fail_after(PATIENCE_S):
            follower = Follower(log, memory_map, 0)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follower.run)
                while follower.chain.place < place:
                    await follower.moved.wait()
                nursery.cancel_scope.cancel()

    async def claimed(self, log: Log) -> LogOwner:
        """Follow the log to its end, and claim it."""
        with followed(self.directory) as memory_map, trio.fail_after(PATIENCE_S):
            follower = Follower(log, memory_map, 0)
            while True:
                with trio.move_on_after(0.3):
                    await follower.run()
                owner = LogOwner(log, follower.chain, self.name)
                if await owner.claim():
                    return owner

    @asynccontextmanager
    async def owning(self, log: Log, **options: Any) -> AsyncIterator[Store]:
        """Own the partition until the end of the body."""
        owner = await self.claimed(log)
        with self.store(journal=partial(ReplicatedJournal, owner=owner), **options) as store:
            async with trio.open_nursery() as running:
                await running.start(store.journal.run)
                yield store
                running.cancel_scope.cancel()

    def content(self) -> Content:
        """All that is in the store, byte for byte, but where it stands in the log."""
        with followed(self.directory) as memory_map, memory_map.env.begin() as transaction:
            found: Content = {}
            for db, handle in memory_map.handles.items():
                with transaction.cursor(handle) as cursor:
                    found[db] = [
                        (key, value)
                        for key, value in cursor
                        if key != keys.LOG_KEY and not (db == keys.ARRIVALS and key >= keys.ARRIVALS_END)
                    ]
            return found
