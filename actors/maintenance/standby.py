"""A server on several machines: one serves, the others follow its log, and one of them serves when it is silent.

Owns what a machine needs before it may follow: the log, the secrets, a store that is a copy. Does not own when it
claims the data (`store/standby.py`).

The log is made with the first start of the first machine. Later it is never made again by itself: a log that is lost
may have had what no machine has.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from trunkline.actors.maintenance.data_directory import contents_place_of, keys_file_of
from trunkline.actors.maintenance.machine import Machine
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store import keys
from trunkline.store.directory import KEYS_FILE, SECRET
from trunkline.store.env import Store
from trunkline.store.errors import LogBroken, LogUnreachable, SecretMissing
from trunkline.store.follower import chain_of
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.nats_address import Address
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.nats_login import Login
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
    subject = f"tl.{settings.cluster_name}.0"
    connection = NatsConnection(
        [Address.of(each) for each in (settings.cluster_nats or "").split()],
        Login(settings.cluster_user or "", settings.cluster_password or "", seed=settings.cluster_seed or ""),
        context=None
        if settings.cluster_ca_certs is None
        else ssl.create_default_context(cafile=settings.cluster_ca_certs),
        name=name,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        log = JetStreamLog(connection, f"tl-{settings.cluster_name}-0", f"{subject}.entries")
        fingerprint, is_empty = await _prepared(settings, directory, log)
        standby = Standby(
            log, connection, f"{subject}.nodes", name, address, settings.cluster_silence_ms / 1000
        )
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
    keys_file = keys_file_of(settings)
    with Store.open(
        directory,
        encryption_keys=keys_file,
        contents_place=contents_place_of(settings),
        map_size_bytes=settings.map_size_bytes,
        start_check_s=settings.limits.start_check_s,
        keeps_log=True,
    ) as store:
        store.directory.keep()
        place = chain_of(store.memory_map, 0).place
        with store.snapshot() as snapshot:
            is_empty = not snapshot.count(keys.RECORDS, b"", None)
    if not exists and place:
        raise LogBroken(
            f"The log {log.name} does not exist, and {directory} was written with it. It is never made again by itself."
        )
    if not exists:
        await _answered(partial(log.create, settings.cluster_replicas))
    return fingerprint_of(directory, keys_file or directory / KEYS_FILE), is_empty


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
