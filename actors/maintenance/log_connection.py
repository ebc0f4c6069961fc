"""The log of a server as its settings name it: the connection to its NATS servers, its stream, and its subjects; and
the store of a machine that follows it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import trio

from trunkline.actors.maintenance.data_directory import contents_place_of, keys_file_of
from trunkline.limits.settings import Settings
from trunkline.store.env import Store
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.nats_address import Address
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.nats_login import Login


class LogPlace(NamedTuple):
    """The log, the connection to it, and the subject on which its nodes speak."""

    log: JetStreamLog
    connection: NatsConnection
    nodes: str


def opened_to_follow(settings: Settings, *, ends_log: bool = False) -> Store:
    """Open the store of this machine, or make it, as one that is written by a log; it is verified first.

    Raises StoreError, also for one of an older format, unless the caller `ends_log`.
    """
    return Store.open(
        Path(settings.data_dir),
        encryption_keys=keys_file_of(settings),
        contents_place=contents_place_of(settings),
        map_size_bytes=settings.map_size_bytes,
        start_check_s=settings.limits.start_check_s,
        keeps_log=True,
        ends_log=ends_log,
    )


@asynccontextmanager
async def log_of(settings: Settings) -> AsyncIterator[LogPlace]:
    """The log that the settings name, while the body runs. They name one."""
    subject = f"tl.{settings.cluster_name}.0"
    connection = NatsConnection(
        [Address.of(each) for each in (settings.cluster_nats or "").split()],
        Login(settings.cluster_user or "", settings.cluster_password or "", seed=settings.cluster_seed or ""),
        context=None
        if settings.cluster_ca_certs is None
        else ssl.create_default_context(cafile=settings.cluster_ca_certs),
        name=settings.cluster_node or "trunkline",
    )
    log = JetStreamLog(connection, f"tl-{settings.cluster_name}-0", f"{subject}.entries")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        yield LogPlace(log, connection, f"{subject}.nodes")
        nursery.cancel_scope.cancel()
