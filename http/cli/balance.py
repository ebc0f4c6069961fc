"""`trunkline partition balance`: which applications to move so that the owners of partitions are about equally busy.

It moves nothing: it prints the commands that do. What it asks the server for is the traffic of the last hour; the bytes
of the applications it reads from the stores, and only if something is to be moved.
"""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from trunkline.http.cli.options import ConfigOption, DataOption, existing_directory
from trunkline.limits.errors import SettingsError

if TYPE_CHECKING:
    from trunkline.actors.maintenance.balance import Application, Partition, Plan
    from trunkline.actors.maintenance.owner_traffic import OwnerTraffic


def balance_command(data: DataOption = None, config: ConfigOption = None) -> None:
    """Propose moves of applications that make the partitions of a running server about equally busy.

    The traffic of the last hour decides. Nothing is moved: the commands that do are printed.
    """
    from trunkline.actors.maintenance import balance
    from trunkline.actors.maintenance.division import partitions_of
    from trunkline.http.cli.partition_traffic import asked_traffic, busy_text

    directory = Path(existing_directory(data, config).data_dir)
    held = partitions_of(directory)
    if len(held) == 1:
        typer.echo(f"{directory} has one partition: there is nothing to balance.")
        return
    told = _complete(directory, len(held), asked_traffic(directory))
    for partition in held:
        typer.echo(f"Partition {partition.number}: {busy_text(told[partition.number])}")
    names = {id: name for partition in held for id, name in partition.applications.items()}
    where = {id: partition.number for partition in held for id in partition.applications}
    applications = _applications(told, where)
    partitions = _partitions(directory, told, applications)
    plan = balance.plan(partitions, applications)
    if plan.moves:
        sizes = _sizes(directory, len(held))
        movable = {id: each for id, each in applications.items() if id in sizes}
        sized = {id: each._replace(size_bytes=sizes[id]) for id, each in movable.items()}
        plan = balance.plan(partitions, sized)
    _tell(directory, partitions, plan, names, applications)


def _complete(
    directory: Path, count: int, told: Mapping[int, OwnerTraffic | None] | None
) -> dict[int, OwnerTraffic]:
    """What all owners have told. Raises `SettingsError` unless all have."""
    if told is None:
        raise SettingsError(
            str(directory),
            "is served by no server that answers, so the traffic of its applications is not known",
            "start the server, and repeat this when it has had its usual traffic for an hour; to divide by size "
            f"instead, run trunkline partition --count N --data {directory} with the server stopped",
        )
    missing = [f"partition {number}" for number in range(count) if told.get(number) is None]
    if missing:
        raise SettingsError(
            str(directory),
            f"has partitions whose processes do not answer: {', '.join(missing)}",
            "repeat this when GET /readyz of the server answers 200",
        )
    return {number: each for number, each in told.items() if each is not None}


def _applications(told: Mapping[int, OwnerTraffic], where: Mapping[str, int]) -> dict[str, Application]:
    """What each application adds to the load of the partition that it is in, wherever it was in the last hour."""
    from trunkline.actors.maintenance.balance import Application

    loads = dict.fromkeys(where, 0.0)
    for traffic in told.values():
        for each in traffic.applications:
            if each.id in loads:
                loads[each.id] += each.busy_s / traffic.counted_s
    return {id: Application(where[id], load) for id, load in loads.items()}


def _partitions(
    directory: Path, told: Mapping[int, OwnerTraffic], applications: Mapping[str, Application]
) -> list[Partition]:
    """The partitions with their loads, as if each application had been all the time where it is now."""
    from trunkline.actors.core.values.store_partitions import partition_directory
    from trunkline.actors.maintenance.balance import DISK_LEFT_SHARE, Partition

    found: list[Partition] = []
    for number, traffic in sorted(told.items()):
        own = sum(each.busy_s for each in traffic.applications if each.id in applications)
        rest = max(0.0, traffic.busy_s - own) / traffic.counted_s
        moved = sum(each.load for each in applications.values() if each.partition == number)
        quota = math.inf if traffic.quota_bytes is None else traffic.quota_bytes - traffic.used_bytes
        place = partition_directory(directory, number)
        disk = shutil.disk_usage(place)
        room = disk.free - DISK_LEFT_SHARE * disk.total
        found.append(Partition(rest + moved, traffic.used_bytes, quota, place.stat().st_dev, room))
    return found


def _sizes(directory: Path, count: int) -> dict[str, int]:
    """The bytes of the applications that can be moved."""
    from trunkline.actors.core.values.store_partitions import partition_directory
    from trunkline.actors.maintenance.application_sizes import sizes_in

    found: dict[str, int] = {}
    for number in range(count):
        sizes = sizes_in(partition_directory(directory, number), number)
        found |= {
            id.hex(): size_bytes for id, size_bytes in sizes.applications.items() if id not in sizes.fixed
        }
    return found


def _tell(
    directory: Path,
    partitions: list[Partition],
    plan: Plan,
    names: Mapping[str, str],
    applications: Mapping[str, Application],
) -> None:
    """Print the commands, why, and what cannot be balanced."""
    from trunkline.actors.maintenance.balance import TOLERANCE, WORTH_SHARE, is_balanced, mean_of

    loads = [each.load for each in partitions]
    if max(loads) < WORTH_SHARE:
        typer.echo(
            f"There was no traffic to speak of: every process was busy for less than {WORTH_SHARE:.0%}. Nothing is "
            "worth moving."
        )
        return
    mean = mean_of(loads)
    if is_balanced(loads):
        typer.echo(
            f"Nothing is worth moving: no process is busier than the mean of {mean:.1%} by more than {TOLERANCE:.0%} "
            "of it."
        )
    for move in plan.moves:
        typer.echo(
            f"trunkline partition move {move.application} {move.target} --data {shlex.quote(str(directory))}"
        )
        typer.echo(
            f"  {names[move.application]}: busy {move.load:.1%}. "
            f"Partition {move.source}: {move.before[0]:.1%} before, {move.after[0]:.1%} after; "
            f"partition {move.target}: {move.before[1]:.1%} before, {move.after[1]:.1%} after."
        )
    for id in plan.too_large:
        typer.echo(
            f"Cannot be balanced: application {id}  {names[id]}: busy {applications[id].load:.1%}, which is more than "
            f"the mean of {mean:.1%}. An application is in one partition."
        )
    if not is_balanced(plan.loads):
        busiest = max(range(len(plan.loads)), key=lambda number: plan.loads[number])
        before = "After these moves partition" if plan.moves else "Nothing can be moved to any use: partition"
        typer.echo(
            f"{before} {busiest} is still busy for {plan.loads[busiest]:.1%}, and the mean is {mean:.1%}: "
            "what is left is not of applications, or of such as are too busy or too quiet to be moved, or have no room "
            "elsewhere."
        )
