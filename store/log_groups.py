"""What is in the entries of a log: what one commit writes, and in the store up to where all of it is written.

Owns both forms. A group is CBOR: `[number, chunk, moves_counts, removals, writes, increments]`; `number` and `chunk`
are what devices reported as it is stored (`arrival_chunks.py`), or null; `writes` and `increments` are those of the
overlay. Whoever writes it into the same data as others gets the same data as they.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import lmdb
import structlog

from trunkline.store import codec, keys, migrations
from trunkline.store.arrival_chunks import Chunk
from trunkline.store.errors import FormatUnsupported, LogBroken
from trunkline.store.log import Chain
from trunkline.store.memory_map import MemoryMap
from trunkline.store.migrations import stored_format
from trunkline.store.overlay import Overlay

_log = structlog.get_logger("trunkline.store")


KEPT_S: Final = 60.0
"""Without a group a store gets its mark so often all the same: entries before it may be removed from the log."""


class Mark(NamedTuple):
    """Where a store stands in the log: the place and the hash of the last entry that is written, whose it was, and the
    identity of the log."""

    place: int
    tip: bytes
    epoch: int
    owner: str
    log: str = ""

    @classmethod
    def decoded(cls, raw: bytes) -> Mark:
        """The mark of `encoded`."""
        return cls(*codec.decode(raw))

    @classmethod
    def of(cls, chain: Chain) -> Mark:
        """The mark of a chain."""
        return cls(chain.place, chain.tip, chain.epoch, chain.owner, chain.log)

    def encoded(self) -> bytes:
        """The mark as it is stored."""
        return codec.encode(list(self))

    def chain(self, partition: int) -> Chain:
        """The chain up to here."""
        return Chain(partition, *self)


def encoded_group(overlay: Overlay, chunk: Chunk | None) -> bytes:
    """The group of an overlay whose reports are `chunk`."""
    number, value = chunk or (None, None)
    return codec.encode(
        [number, value, overlay.moves_counts, overlay.removals, overlay.writes, overlay.increments]
    )


def decoded_group(body: bytes) -> tuple[Overlay, Chunk | None]:
    """The overlay of a group, without reports, and its chunk. Raises LogBroken for what is no group."""
    overlay = Overlay()
    try:
        number, value, overlay.moves_counts, overlay.removals, overlay.writes, overlay.increments = (
            codec.decode(body)
        )
    except (ValueError, TypeError) as error:
        raise LogBroken("An entry of the log has no group that this version can read.") from error
    overlay.deletes = any(None in writes.values() for writes in overlay.writes.values())
    overlay.batches = 1
    return overlay, None if value is None else Chunk(number, value)


def check_kept_format(memory_map: MemoryMap, path: object) -> None:
    """Raise FormatUnsupported for a store of an older format that follows a log, in which is what others write."""
    number = stored_format(memory_map)
    if number is None or number >= migrations.FORMAT or _raw_mark(memory_map) is None:
        return
    raise FormatUnsupported(
        f"{path} is in format {number} and follows a log, and this program needs format {migrations.FORMAT}. Stop all "
        "machines, install this program on them, and run `trunkline cluster new-log` on the one that served last."
    )


def _raw_mark(memory_map: MemoryMap) -> bytes | None:
    with memory_map.env.begin() as transaction:
        return transaction.get(keys.LOG_KEY, db=memory_map.handles[keys.META])


def forget_log(memory_map: MemoryMap) -> None:
    """Remove the mark of a store that is written without its log from now on, so that it is no copy any more.

    On disk when this returns. Raises StoreError.
    """
    try:
        if _raw_mark(memory_map) is None:
            return
        with memory_map.env.begin(write=True) as transaction:
            transaction.delete(keys.LOG_KEY, db=memory_map.handles[keys.META])
    except lmdb.Error as error:
        raise memory_map.commit_error(error, 0, f"writing of {memory_map.path}") from error
    _log.warning("the store is written without its log from now on", path=str(memory_map.path))
