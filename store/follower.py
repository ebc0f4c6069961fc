"""A follower: it writes the log of a partition into a store of its own, so that this node can own it at once.

Owns the store while it follows. No actor uses it meanwhile, and nobody reads it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import lmdb
import structlog
import trio

from trunkline.store import keys
from trunkline.store.arrival_chunks import Chunk
from trunkline.store.directory import STORE, DataDirectory
from trunkline.store.errors import CopyNeeded, LogBroken, LogUnreachable, translate
from trunkline.store.log import Chain, Entry, Log, Placed, Trimmed
from trunkline.store.log_groups import KEPT_S, Mark, decoded_group
from trunkline.store.memory_map import MemoryMap
from trunkline.store.overlay import Overlay

MAP_BYTES: Final = 64 * 2**30
"""The map at the start: only address space. It grows by itself."""
CLOSE_WAIT_S: Final = 5.0
RENEW_S: Final = 5.0
"""Without an entry for so long the log is read anew: an owner that is there appends a mark more often, and the server
that was asked may lack what the others have."""
AGAIN_S: Final = 0.2
"""After a connection that broke, so long until the next one."""

_log = structlog.get_logger("trunkline.store")


@contextmanager
def followed(directory: Path, common: Path | None = None) -> Iterator[MemoryMap]:
    """The store of a data directory that no server has open, for a follower. `Store.open` has made and checked it.

    That of a partition is in a directory of its own; `common` is that of all of them. Raises DirectoryInUse, and
    StoreBroken if it cannot be opened.
    """
    with DataDirectory.open(directory, common=common):
        memory_map = MemoryMap(directory / STORE, size_bytes=MAP_BYTES, size_max_bytes=None, read_only=False)
        try:
            yield memory_map
        finally:
            memory_map.close(CLOSE_WAIT_S)


def chain_of(memory_map: MemoryMap, partition: int) -> Chain:
    """Where a store stands in the log of its partition. Raises StoreError."""
    try:
        with memory_map.env.begin() as transaction:
            raw = memory_map.read(transaction, keys.META, keys.LOG_KEY)
    except lmdb.Error as error:
        raise translate(error, "read") from error
    return Chain(partition) if raw is None else Mark.decoded(raw).chain(partition)


async def _next_of(entries: AsyncGenerator[Placed, None]) -> Placed | None:
    """The next entry; None if none comes for a while, or the reading has ended."""
    with trio.move_on_after(RENEW_S):
        return await anext(entries, None)
    return None


class Follower:
    """Writes the log of a partition into a store. `run` it in a nursery."""

    def __init__(
        self,
        log: Log,
        memory_map: MemoryMap,
        partition: int,
        check: Callable[[Entry], None] = lambda _entry: None,
        took: Callable[[Overlay | None], None] = lambda _overlay: None,
    ) -> None:
        """`check` is called with each entry, and raises if this node cannot follow its owner. `took` is called when
        the store has it, with what was written."""
        self.chain = chain_of(memory_map, partition)
        """Up to the last entry that is written."""
        self.moved = trio.Event()
        """Set, and replaced, with each entry."""
        self._marked_s = trio.current_time()
        self._check = check
        self._took = took
        self._log = log
        self._map = memory_map

    async def run(self) -> None:
        """Follow until cancelled.

        Raises LogBroken, CopyNeeded if the log does not have any more what comes next, and StoreError if it cannot be
        written.
        """
        while True:
            try:
                await self._check_identity()
                async with self._log.follow(self.chain.place) as entries:
                    while (placed := await _next_of(entries)) is not None:
                        self._take(placed)
            except Trimmed as trimmed:
                raise CopyNeeded(
                    f"{self._map.path.parent} has the log up to {self.chain.place}, and {trimmed}."
                ) from None
            except LogUnreachable as problem:
                _log.debug("the log is not followed", problem=str(problem))
            await trio.sleep(AGAIN_S)

    async def _check_identity(self) -> None:
        chain, identity = self.chain, await self._log.identity()
        if not chain.place:
            chain.log = identity
        if chain.log != identity:
            raise LogBroken(
                f"The log was made again, and {self._map.path.parent} was written with the one before. If the machine "
                f"that serves has everything, `trunkline cluster rejoin` gets a copy of its data."
            )

    def _take(self, placed: Placed) -> None:
        chain = self.chain
        entry = chain.add(placed)
        self._check(entry)
        overlay = None
        if entry.kind == "group" or trio.current_time() - self._marked_s > KEPT_S:
            overlay, chunk = decoded_group(entry.body) if entry.kind == "group" else (Overlay(), None)
            self._write(overlay, chunk, len(entry.body))
        self._took(overlay)
        moved, self.moved = self.moved, trio.Event()
        moved.set()

    def _write(self, overlay: Overlay, chunk: Chunk | None, size_bytes: int) -> None:
        mark, self._marked_s = Mark.of(self.chain).encoded(), trio.current_time()
        while True:
            try:
                with self._map.env.begin(write=True) as transaction:
                    overlay.write(transaction, self._map.handles, chunk, mark)
                return
            except lmdb.MapFullError:
                self._map.resize(self._map.larger_size())
            except (lmdb.Error, OSError) as error:
                raise self._map.commit_error(error, size_bytes) from error
