"""The log of a server as its settings name it: the connection to its NATS servers, its stream, and its subjects; and
the store of a machine that follows it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import structlog
import trio

from trunkline.actors.maintenance.data_directory import contents_place_of, keys_file_of
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store.env import Store
from trunkline.store.errors import LogUnreachable
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.journal import Journal
from trunkline.store.nats_address import Address
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.nats_login import Login, signed

AGAIN_S: Final = 1.0
"""How often a log is asked for that cannot be reached."""

T = TypeVar("T")

_log = structlog.get_logger("trunkline.serve")


class LogPlace(NamedTuple):
    """The log as one partition is written to it, and the connection to it."""

    log: JetStreamLog
    connection: NatsConnection
    name: str

    def nodes(self, partition: int) -> str:
        """The subject on which those speak who follow a partition."""
        return f"tl.{self.name}.{partition}.nodes"


def opened_to_follow(
    settings: Settings,
    partition: int = 0,
    *,
    ends_log: bool = False,
    journal: Callable[..., Journal] | None = None,
) -> Store:
    """Open a store of this machine, or make it, as one that is written by a log; it is verified first, unless there is
    a `journal` that writes it.

    Raises StoreError, also for one of an older format, unless the caller `ends_log`.
    """
    return Store.open(
        Path(settings.data_dir),
        partition=partition,
        encryption_keys=keys_file_of(settings),
        contents_place=contents_place_of(settings),
        map_size_bytes=settings.map_size_bytes,
        start_check_s=settings.limits.start_check_s if journal is None else 0,
        journal=journal,
        keeps_log=True,
        ends_log=ends_log,
    )


@asynccontextmanager
async def log_of(settings: Settings, partition: int = 0) -> AsyncIterator[LogPlace]:
    """The log that the settings name, while the body runs. They name one. Raises SettingsError."""
    name = settings.cluster_name
    connection = NatsConnection(
        [Address.of(each) for each in (settings.cluster_nats or "").split()],
        _login(settings),
        context=None if settings.cluster_ca_certs is None else _context(settings.cluster_ca_certs),
        name=settings.cluster_node or "trunkline",
    )
    log = JetStreamLog(connection, f"tl-{name}-0", f"tl.{name}.0.entries", partition=partition)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        yield LogPlace(log, connection, name)
        nursery.cancel_scope.cancel()


def _login(settings: Settings) -> Login:
    """Who logs in to the NATS servers. Raises SettingsError for what is no seed."""
    seed = settings.cluster_seed or ""
    try:
        if seed:
            signed(seed, b"")
    except ValueError:
        raise SettingsError(
            "cluster_seed",
            "is not the seed of an nkey of a user",
            "give 58 letters and digits that begin with SU",
        ) from None
    return Login(settings.cluster_user or "", settings.cluster_password or "", seed=seed)


def _context(ca_certs: str) -> ssl.SSLContext:
    """What trusts the authorities in a file. Raises SettingsError."""
    try:
        return ssl.create_default_context(cafile=ca_certs)
    except OSError as error:
        has_none = isinstance(error, ssl.SSLError)
        problem = "has no certificate" if has_none else f"cannot be read: {error.strerror}"
        raise SettingsError(
            "cluster_ca_certs",
            f"is {ca_certs}, which {problem}",
            "name a PEM file with the authorities of the NATS servers",
        ) from None


async def answered_within(wait_s: float, ask: Callable[[], Awaitable[T]]) -> T:
    """What the log answers, which is asked again for so long. Raises LogUnreachable behind that, and as `ask`."""
    until_s = trio.current_time() + wait_s
    while True:
        try:
            return await ask()
        except LogUnreachable:
            if trio.current_time() > until_s:
                raise
            await trio.sleep(AGAIN_S)


async def answered(ask: Callable[[], Any]) -> Any:
    """What the log answers, which is asked until it does."""
    told = ""
    while True:
        try:
            return await ask()
        except LogUnreachable as problem:
            if str(problem) != told:
                told = str(problem)
                _log.warning("the log is waited for", problem=told)
            await trio.sleep(AGAIN_S)
