"""`trunkline partition`: how many stores a data directory has, and which application is in which.

The store is imported when it runs, so that its help is shown at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trunkline.http.cli.options import ConfigOption, DataOption, existing_directory


def partition_command(
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", min=1, help="Divide the data into so many partitions."),
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Divide a data directory into partitions, or list them. To divide it, the server must be stopped."""
    from trunkline.actors.maintenance import division

    settings = existing_directory(data, config)
    if count is None:
        for partition in division.partitions_of(Path(settings.data_dir)):
            number = len(partition.applications)
            typer.echo(f"Partition {partition.number}: {partition.size_bytes} bytes, applications: {number}")
            for id, name in partition.applications.items():
                typer.echo(f"  {id}  {name}")
        return
    division.divide(settings, count, typer.echo)
