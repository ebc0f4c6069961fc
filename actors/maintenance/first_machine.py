"""The first machine of a server with a log: whether its NATS servers can keep one, and its configuration."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from trunkline.actors.maintenance.invited import SHARED, config_text, put, set_of
from trunkline.actors.maintenance.log_connection import LogPlace, answered_within, log_of
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store.errors import LogUnreachable, StoreBroken, translate
from trunkline.store.jetstream import JetStreamLog

REACH_S: Final = 10.0
"""How long NATS servers may take to answer: after their start they look for each other first."""
ASKED: Final = (
    "give its address and, by variables such as TRUNKLINE_CLUSTER_USER, what it asks of its clients: cluster_user and "
    "cluster_password, or cluster_seed; with tls:// cluster_ca_certs, if its authority is not one of the system"
)
"""What may be wrong where a NATS server cannot be reached."""
OWN: Final = ("data_dir", "cluster_node", "cluster_address", "cluster_replicas", "cluster_ca_certs")
FILES: Final = ("data_dir", "cluster_ca_certs")
"""Settings that name a file or a folder: the machine may be started in another folder."""


def write_config(settings: Settings, config: Path) -> None:
    """Write the settings that a first machine has, and those that all will share. On disk when this returns.

    A folder for contents is made. Raises SettingsError and StoreError.
    """
    assert settings.blobs is not None
    try:
        if "://" not in settings.blobs:
            Path(settings.blobs).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise SettingsError(
            "blobs",
            f"is {settings.blobs}, which cannot be made: {problem.strerror}",
            "give a folder that can",
        ) from None
    given = set_of(settings, (*OWN, *SHARED))
    given |= {name: str(Path(given[name]).absolute()) for name in FILES if name in given}
    text = config_text(given)
    try:
        put(config, text)
    except OSError as error:
        raise translate(error, f"writing of {config}") from error


async def check_log(settings: Settings) -> None:
    """Raise SettingsError unless each NATS server of these settings answers, and they can keep a log, which is new.

    For that a log is made under another name, and removed again.
    """
    for address in (settings.cluster_nats or "").split():
        async with log_of(dataclasses.replace(settings, cluster_nats=address)) as place:
            await _check_server(place, address)
    async with log_of(settings) as place:
        trial = JetStreamLog(place.connection, f"{place.log.name}-trial", f"tl.{place.name}.trial")
        replicas = settings.cluster_replicas
        try:
            await answered_within(REACH_S, lambda: trial.create(replicas))
            await trial.remove()
        except (LogUnreachable, StoreBroken) as problem:
            reason = str(problem).rstrip(".")
            raise SettingsError(
                "cluster_nats",
                f"names servers that cannot keep {replicas} copies of a log: {reason}",
                "run as many that are a cluster with JetStream, or set cluster_replicas",
            ) from None


async def _check_server(place: LogPlace, address: str) -> None:
    try:
        found = await answered_within(REACH_S, place.log.look)
    except LogUnreachable as problem:
        if place.connection.server is None:
            reason, advice = place.connection.problem, ASKED
        else:
            reason, advice = str(problem).rstrip("."), "start all of them, with JetStream"
        raise SettingsError(
            "cluster_nats", f"names {address}, which keeps no log: {reason}", advice
        ) from None
    if found is not None:
        raise SettingsError(
            "cluster_name",
            f"is {place.name}, and its log is there already",
            "let a machine that serves invite this one (`trunkline cluster invite`), or give another name",
        )
