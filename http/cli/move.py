"""`trunkline partition move`: the move of an application to another partition of a server that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trunkline.http.cli.options import ConfigOption, DataOption, existing_directory, no_server_at


def move_command(
    application: Annotated[str, typer.Argument(help="The id of the application.", metavar="APPLICATION")],
    partition: Annotated[
        str, typer.Argument(help="The number of the partition where it will be.", metavar="PARTITION")
    ],
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Move an application to another partition while the server runs.

    It is copied while it is served. Only at the end its calls are refused for a moment (503 with Retry-After), and its
    devices connect again. If that is interrupted, the server goes on; the list of partitions tells where it is.
    """
    import trio

    from trunkline.http.control_client import ask_server

    directory = Path(existing_directory(data, config).data_dir)
    arguments = {"application": application, "partition": partition}
    moved = trio.run(ask_server, directory, "partition.move", arguments, no_server_at(directory))
    typer.echo(
        f"Moved application {application} from partition {moved['before']} to {partition}: "
        f"{moved['copied_bytes']} bytes were copied. Its calls were refused for {moved['pause_s']} s."
    )
