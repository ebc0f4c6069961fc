"""The traffic of the last hour, as the commands of `trunkline partition` ask a running server for it and show it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import trio

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.maintenance.owner_traffic import OwnerTraffic
from trunkline.http.control_client import ask_server
from trunkline.limits.errors import SettingsError

HOUR_S: Final = 3300.0
"""So long an owner counts before the figures are those of the last hour."""


def asked_traffic(directory: Path) -> dict[int, OwnerTraffic | None] | None:
    """What each owner tells, by partition: None for one that does not answer.

    None in all if no server answers, or one of an earlier version, which counts no traffic.
    """
    nobody = SettingsError(str(directory), "is not served", "start the server")
    try:
        answer = trio.run(ask_server, directory, "partition.traffic", {}, nobody)
    except (SettingsError, Invalid):
        return None
    found = msgspec.convert(answer, dict[str, OwnerTraffic | None])
    return {int(number): told for number, told in found.items()}


def busy_share(told: OwnerTraffic) -> float:
    """The share of the counted time in which the owner has worked."""
    return told.busy_s / told.counted_s


def busy_text(told: OwnerTraffic) -> str:
    """How busy an owner was, and of which time."""
    return f"busy {busy_share(told):.1%} of the last {counted_text(told)}"


def counted_text(told: OwnerTraffic) -> str:
    """The time that an owner has counted: it may have been started less than an hour ago."""
    if told.counted_s >= HOUR_S:
        return "hour"
    if told.counted_s >= 120:
        return f"{told.counted_s / 60:.0f} minutes, since it was started"
    return f"{told.counted_s:.0f} seconds, since it was started"
