"""`trunkline partition`: how many stores a data directory has, which application is in which, and what each costs.

The store is imported when it runs, so that its help is shown at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trunkline.http.cli.balance import balance_command
from trunkline.http.cli.move import move_command
from trunkline.http.cli.options import ConfigOption, DataOption, directory_with_data
from trunkline.limits.errors import SettingsError

if TYPE_CHECKING:
    from trunkline.actors.maintenance.division import Partition
    from trunkline.actors.maintenance.owner_traffic import OwnerTraffic

partition_app = typer.Typer(invoke_without_command=True)
partition_app.command("balance")(balance_command)
partition_app.command("move")(move_command)


@partition_app.callback()
def partition_command(
    context: typer.Context,
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", min=1, help="Divide the data into so many partitions."),
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Divide a data directory into partitions, or list them. To divide it, the server must be stopped.

    While a server runs, the list also has the traffic of the last hour.
    """
    if context.invoked_subcommand is not None:
        if count is not None or data is not None or config is not None:
            raise SettingsError(
                "partition",
                f"has options before {context.invoked_subcommand}",
                f"write them behind it: trunkline partition {context.invoked_subcommand} --data DIR",
            )
        return
    from trunkline.actors.maintenance import division
    from trunkline.http.cli.partition_traffic import asked_traffic

    settings = directory_with_data(data, config, writes=count is not None)
    directory = Path(settings.data_dir)
    if count is not None:
        division.divide(settings, count, typer.echo)
        return
    told = asked_traffic(directory)
    for partition in division.partitions_of(directory):
        _list(partition, None if told is None else told.get(partition.number), is_served=told is not None)


def _list(partition: Partition, told: OwnerTraffic | None, *, is_served: bool) -> None:
    """Print a partition and its applications, with what its owner has told of the last hour."""
    from trunkline.http.cli.partition_traffic import busy_text

    figures = [f"{partition.size_bytes} bytes", f"applications: {len(partition.applications)}"]
    if told is not None:
        figures += [busy_text(told), f"states: {told.states}"]
    elif is_served:
        figures.append("its process does not answer")
    typer.echo(f"Partition {partition.number}: {', '.join(figures)}")
    hours = {} if told is None else {each.id: each for each in told.applications}
    for id, name in partition.applications.items():
        hour = hours.get(id)
        if told is None or hour is None:
            typer.echo(f"  {id}  {name}")
        else:
            typer.echo(f"  {id}  {name}  busy {hour.busy_s / told.counted_s:.1%}, states: {hour.states}")
