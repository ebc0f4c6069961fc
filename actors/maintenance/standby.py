"""A server on several machines: one serves a partition, the others follow its log, and one of them serves it when the
first one is silent.

Owns what a machine needs before it may follow: the log, the secrets, a store that is a copy. Does not own when it
claims the data (`store/standby.py`).

The log is made with the first start of the first machine. Later it is never made again by itself: a log that is lost
may have had what no machine has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio

from trunkline.actors.maintenance.data_directory import keys_file_of
from trunkline.actors.maintenance.foreign import is_settled, settle_with_log
from trunkline.actors.maintenance.invited import shared_by
from trunkline.actors.maintenance.log_connection import AGAIN_S, answered, log_of, opened_to_follow
from trunkline.actors.maintenance.machine import Machine
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store import keys
from trunkline.store.arrived_copies import arrived
from trunkline.store.directory import KEYS_FILE, SECRET, check_not_lost, has_data
from trunkline.store.errors import LogBroken, LogUnreachable, SecretMissing
from trunkline.store.follower import chain_of
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import Log
from trunkline.store.log_nodes import Nodes
from trunkline.store.log_owner import SHORTER_S
from trunkline.store.partition_copy import PartitionCopy
from trunkline.store.partitions import partition_count, partition_directory
from trunkline.store.standby import Standby, fingerprint_of
from trunkline.store.store_files import opened_read_only

TRIM_S: Final = 60.0
KEPT_S: Final = 3600.0
"""So much of the log is kept, and more for a machine that was heard in that time and is further behind."""

_log = structlog.get_logger("trunkline.serve")


@asynccontextmanager
async def owned(
    settings: Settings,
    address: str,
    stand_by: Callable[[Machine], Awaitable[None]],
    fetch: Callable[[Machine], Awaitable[None]],
    partition: int = 0,
) -> AsyncIterator[Machine]:
    """Wait until this machine owns a partition of the data, and own it during the body. `stand_by` runs until then.

    `fetch` gets a copy of the store of another machine into `Machine.new_file`, if this one needs it. Other machines
    reach this one at `address`. Raises `StoreError` and `SettingsError`, with sentences for the operator.
    """
    directory, name = Path(settings.data_dir), settings.cluster_node
    assert name is not None
    async with log_of(settings, partition) as place, trio.open_nursery() as nursery:
        log, connection = place.log, place.connection
        fingerprint, is_empty = await _prepared(settings, directory, log)
        silence_s = settings.cluster_silence_ms / 1000
        count = partition_count(directory)
        copy = PartitionCopy(directory, partition, count) if count > 1 else None
        others = [
            Nodes(connection, place.nodes(number), None, silence_s)
            for number in range(1, count if partition == 0 else 1)
        ]
        standby = Standby(log, connection, place.nodes(partition), name, address, silence_s, copy=copy)
        machine = Machine(standby, others, log, directory, partial(shared_by, settings))
        for nodes in (standby.nodes, *others):
            nursery.start_soon(nodes.run)
        nursery.start_soon(machine.watch_log)
        async with trio.open_nursery() as waiting:
            waiting.start_soon(stand_by, machine)
            await standby.own(directory, fingerprint, partial(fetch, machine), is_empty=is_empty)
            waiting.cancel_scope.cancel()
        if copy is not None:
            await _settle(settings, machine, copy, log)
        if not partition:
            nursery.start_soon(_trim, log, standby, others)
        yield machine
        await machine.release()
        nursery.cancel_scope.cancel()


async def _prepared(settings: Settings, directory: Path, log: JetStreamLog) -> tuple[bytes, bool]:
    """Make the store and the log, if both are new. Returns the fingerprint of the secrets, and whether the store is
    empty."""
    stream, count = await answered(log.look), partition_count(directory)
    if stream is not None and stream.partitions != count:
        raise SettingsError(
            settings.data_dir,
            f"has {_partitions(count)}, and the log {log.name} {_partitions(stream.partitions)}",
            "begin with an empty directory, or make a new log",
        )
    if stream is not None and not (directory / SECRET).exists():
        raise SecretMissing(
            f"{directory / SECRET} is missing, and the log {log.name} is there already. Copy the files {SECRET} and "
            f"{KEYS_FILE} of the machine that began it to {directory} first."
        )
    if stream is None and not has_data(directory):
        check_not_lost(directory)
    with opened_to_follow(settings, log.partition) as store:
        store.directory.keep()
        chain = chain_of(store.memory_map, log.partition)
        with store.snapshot() as snapshot:
            is_empty = not snapshot.count(keys.RECORDS, b"", None)
    if stream is None and chain.place:
        raise LogBroken(
            f"The log {log.name} does not exist, and {directory} was written with it. It is never made again by "
            "itself: `trunkline cluster new-log` does, on the machine that has everything."
        )
    if stream is None:
        await answered(partial(log.create, settings.cluster_replicas, count))
    elif chain.log == stream.identity:
        await check_end(log, directory, chain.place)
    return fingerprint_of(directory, keys_file_of(settings) or directory / KEYS_FILE), is_empty


def _partitions(count: int) -> str:
    return "one partition" if count == 1 else f"{count} partitions"


async def _settle(settings: Settings, machine: Machine, copy: PartitionCopy, log: JetStreamLog) -> None:
    """Decide which applications belong to a partition, before anything looks at its store (`foreign.py`)."""
    with opened_read_only(partition_directory(Path(settings.data_dir), copy.number)) as memory_map:
        if is_settled(memory_map):
            return
    with opened_to_follow(settings, copy.number, journal=machine.journal) as store:
        assert store.partitions is not None
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            with store.snapshot(own=True) as snapshot:
                sources = {source for _, source in arrived(snapshot)}
            for source in sources:
                await _has_given(copy, log, source)
            await settle_with_log(store, store.partitions, store.own_results)
            nursery.cancel_scope.cancel()


async def _has_given(copy: PartitionCopy, log: JetStreamLog, source: int) -> None:
    """Wait until the copy of a partition has all that its owner has given to this one before this machine claimed it.

    Another machine gives nothing to this one after that. What it has given before is in the entry that was under way
    then, or in the next one.
    """
    place = (await answered(log.state)).last
    for _ in range(2):
        while copy.freshness.place(source) <= place and not copy.freshness.is_own(source):  # noqa: ASYNC110
            await trio.sleep(AGAIN_S)
        place = copy.freshness.place(source)


async def check_end(log: Log, directory: Path, place: int) -> None:
    """Raise LogBroken if the log ends before the place up to which a directory has it: it has lost entries."""
    shorter_s = None
    while (last := (await answered(log.state)).last) < place:
        shorter_s = shorter_s or trio.current_time()
        if trio.current_time() - shorter_s > SHORTER_S:
            break
        await trio.sleep(AGAIN_S)
    else:
        return
    raise LogBroken(
        f"The log ends at {last}, and {directory} has it up to {place}: it has lost entries. `trunkline cluster "
        "new-log` on the machine that has everything begins another one."
    )


async def _trim(log: JetStreamLog, standby: Standby, others: Sequence[Nodes]) -> None:
    """Remove what no machine needs any more from the log. Nothing while a partition of it is followed by nobody."""
    owner = standby.owner
    assert owner is not None
    places: deque[tuple[float, int]] = deque()
    while True:
        now_s = trio.current_time()
        places.append((now_s, owner.chain.place))
        while len(places) > 1 and places[1][0] <= now_s - KEPT_S:
            places.popleft()
        if places[0][0] <= now_s - KEPT_S:
            heard = [
                word.place
                for nodes in (standby.nodes, *others)
                for word, heard_s in nodes.others.values()
                if heard_s > now_s - KEPT_S
            ]
            try:
                if all(each.others for each in others):
                    await log.trim(min([places[0][1], *heard]))
            except LogUnreachable as problem:
                _log.warning("the log cannot be trimmed", problem=str(problem))
        await trio.sleep(TRIM_S)
