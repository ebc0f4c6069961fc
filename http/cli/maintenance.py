"""`trunkline secret`, `trunkline backup` and `trunkline check`: maintenance of a data directory.

The store is imported when one of them runs, so that their help is shown at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from trunkline.http.cli.options import ConfigOption, DataOption, directory_with_data

secret_app = typer.Typer(help="The secret of tokens, and the keys of stored secrets.", no_args_is_help=True)


@secret_app.command("rotate")
def secret_rotate(data: DataOption = None, config: ConfigOption = None) -> None:
    """Replace the secret that signs tokens, which revokes every token. The server must be stopped."""
    from trunkline.actors.maintenance import data_directory

    path = directory_with_data(data, config).data_dir
    data_directory.rotate_secret(Path(path))
    typer.echo(f"The secret of {path} is replaced; every user and device must log in again.")


@secret_app.command("rekey")
def secret_rekey(
    discard: Annotated[
        bool,
        typer.Option("--discard", help="Remove stored secrets whose encryption key is lost."),
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Encrypt all stored secrets with a new key and remove the old one. The server must be stopped."""
    from trunkline.actors.maintenance import data_directory

    done = data_directory.rotate_encryption_key(directory_with_data(data, config), discard=discard)
    lost = f" Discarded, because their key is lost: {done.discarded}." if discard else ""
    typer.echo(f"Stored secrets encrypted with the new key {done.key}: {done.resealed}.{lost}")


def backup_command(
    target: Annotated[Path, typer.Argument(help="A directory that does not exist or is empty.")],
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy a consistent snapshot of a data directory, also while a server runs."""
    from trunkline.actors.maintenance import data_directory

    settings = directory_with_data(data, config)
    path, keys_file = Path(settings.data_dir), data_directory.keys_left_out(settings)
    location = data_directory.back_up(path, target)
    named = "" if config is None else f" --config {config}"
    typer.echo(f"{path} is copied to {target}; `trunkline check --data {target}{named}` verifies the copy.")
    if keys_file is not None:
        typer.echo(f"The encryption keys are in {keys_file}; they are not in the copy, which needs them.")
    if location != data_directory.FOLDER:
        typer.echo(f"The contents of files are in {location}; they are not in the copy.")


def check_command(data: DataOption = None, config: ConfigOption = None) -> None:
    """Read a whole data directory or backup and verify its contents, also while a server runs."""
    from rich.console import Console
    from rich.table import Table

    from trunkline.actors.maintenance import data_directory

    settings = directory_with_data(data, config, writes=False)
    path, keys_file = Path(settings.data_dir), data_directory.keys_file_of(settings)
    place = data_directory.contents_place_of(settings)
    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    found = shown = 0
    for partition in range(data_directory.partition_count(path)):
        report = data_directory.check(path, keys_file, place, partition)
        title = data_directory.partition_directory(path, partition)
        table = Table("database", "entries", title=str(title))
        for name, count in report.counts.items():
            table.add_row(name, str(count))
        console.print(table)
        for problem in report.problems:
            typer.secho(problem, fg="red")
        found, shown = found + report.problem_count, shown + len(report.problems)
    if found:
        more = f"; the first {shown} are shown" if found > shown else ""
        typer.echo(f"trunkline: {path}: problems found: {found}{more}.", err=True)
        sys.exit(1)
    typer.echo("No problem found.")
