"""A server on several machines: one serves, the others follow its log, and one of them serves when it is silent.

Owns what a machine needs before it may follow: the log, the secrets, a store that is a copy. Does not own when it
claims the data (`store/standby.py`).

The log is made with the first start of the first machine. Later it is never made again by itself: a log that is lost
may have had what no machine has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from trunkline.actors.maintenance.data_directory import keys_file_of
from trunkline.actors.maintenance.log_connection import log_of, opened_to_follow
from trunkline.actors.maintenance.machine import Machine
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store import keys
from trunkline.store.directory import KEYS_FILE, SECRET
from trunkline.store.errors import LogBroken, LogUnreachable, SecretMissing
from trunkline.store.follower import chain_of
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import Log
from trunkline.store.log_owner import SHORTER_S
from trunkline.store.partitions import partition_count
from trunkline.store.standby import Standby, fingerprint_of

AGAIN_S: Final = 1.0
"""How often a log is asked for that cannot be reached."""
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
) -> AsyncIterator[Machine]:
    """Wait until this machine owns the data, and own them during the body. `stand_by` runs until then.

    `fetch` gets a copy of the store of another machine into `Machine.new_file`, if this one needs it. Other machines
    reach this one at `address`. Raises `StoreError` and `SettingsError`, with sentences for the operator.
    """
    directory, name = Path(settings.data_dir), settings.cluster_node
    assert name is not None
    if partition_count(directory) > 1:
        raise SettingsError(
            "cluster_nats", "is set although the data have several partitions", "leave it out"
        )
    async with log_of(settings) as place, trio.open_nursery() as nursery:
        log, connection = place.log, place.connection
        fingerprint, is_empty = await _prepared(settings, directory, log)
        standby = Standby(log, connection, place.nodes, name, address, settings.cluster_silence_ms / 1000)
        machine = Machine(standby, log, directory)
        nursery.start_soon(standby.nodes.run)
        nursery.start_soon(machine.watch_log)
        async with trio.open_nursery() as waiting:
            waiting.start_soon(stand_by, machine)
            await standby.own(directory, fingerprint, partial(fetch, machine), is_empty=is_empty)
            waiting.cancel_scope.cancel()
        nursery.start_soon(_trim, log, standby)
        yield machine
        await machine.release()
        nursery.cancel_scope.cancel()


async def _prepared(settings: Settings, directory: Path, log: JetStreamLog) -> tuple[bytes, bool]:
    """Make the store and the log, if both are new. Returns the fingerprint of the secrets, and whether the store is
    empty."""
    exists = await _answered(log.exists)
    if exists and not (directory / SECRET).exists():
        raise SecretMissing(
            f"{directory / SECRET} is missing, and the log {log.name} is there already. Copy the files {SECRET} and "
            f"{KEYS_FILE} of the machine that began it to {directory} first."
        )
    with opened_to_follow(settings) as store:
        store.directory.keep()
        chain = chain_of(store.memory_map, 0)
        with store.snapshot() as snapshot:
            is_empty = not snapshot.count(keys.RECORDS, b"", None)
    if not exists and chain.place:
        raise LogBroken(
            f"The log {log.name} does not exist, and {directory} was written with it. It is never made again by "
            "itself: `trunkline cluster new-log` does, on the machine that has everything."
        )
    if exists and chain.log == await _answered(log.identity):
        await check_end(log, directory, chain.place)
    elif not exists:
        await _answered(partial(log.create, settings.cluster_replicas))
    return fingerprint_of(directory, keys_file_of(settings) or directory / KEYS_FILE), is_empty


async def check_end(log: Log, directory: Path, place: int) -> None:
    """Raise LogBroken if the log ends before the place up to which a directory has it: it has lost entries."""
    shorter_s = None
    while (last := (await _answered(log.state)).last) < place:
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


async def _answered(ask: Callable[[], Any]) -> Any:
    """Ask the log until it answers."""
    told = ""
    while True:
        try:
            return await ask()
        except LogUnreachable as problem:
            if str(problem) != told:
                told = str(problem)
                _log.warning("the log is waited for", problem=told)
            await trio.sleep(AGAIN_S)


async def _trim(log: JetStreamLog, standby: Standby) -> None:
    """Remove what no machine needs any more from the log."""
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
                word.place for word, heard_s in standby.nodes.others.values() if heard_s > now_s - KEPT_S
            ]
            try:
                await log.trim(min([places[0][1], *heard]))
            except LogUnreachable as problem:
                _log.warning("the log cannot be trimmed", problem=str(problem))
        await trio.sleep(TRIM_S)
