"""`trunkline archive`: verify an archive, and read what a device reported from it. Needs no server."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.timestamps import TIMESTAMP_MS_MAX, parse_iso
from trunkline.actors.portability.archives.reading import check_archive, in_batches, read_device
from trunkline.limits.table import Limits

archive_app = typer.Typer(help="Archives in a folder: verify them, read them back.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder with an archive, or with several.")]


class What(StrEnum):
    """What of a device is read."""

    STATES = "states"
    COMMANDS = "commands"
    CONNECTIONS = "connections"


@archive_app.command("check")
def archive_check(folder: Folder) -> None:
    """Verify that every file that the manifests list is there and has the hash of what was written."""
    problems: list[str] = []

    def report(problem: str) -> None:
        problems.append(problem)
        typer.secho(problem, fg="red")

    found = check_archive(folder, report)
    if problems:
        raise Invalid(f"{folder}: problems found: {len(problems)}.")
    typer.echo(f"No problem found. Manifests: {found.manifests}, files: {found.files}, bytes: {found.bytes}.")


@archive_app.command("read")
def archive_read(
    folder: Folder,
    device: Annotated[str, typer.Option(metavar="ID", help="The id of the device.")],
    start: Annotated[
        str | None, typer.Option(metavar="TIME", help="The first time, ISO 8601 (default: all).")
    ] = None,
    end: Annotated[
        str | None, typer.Option(metavar="TIME", help="The last time, ISO 8601 (default: all).")
    ] = None,
    what: Annotated[What, typer.Option(help="What is read.")] = What.STATES,
    batch: Annotated[
        int,
        typer.Option(
            min=0, max=10_000, help="States in a line: a JSON array as a body for the API; 0: no arrays."
        ),
    ] = 0,
) -> None:
    """Print what a device reported, as a line of JSON for each entry, in the order of time.

    With --batch each line is a body for `POST .../devices/ID/state`, which puts the states back.
    """
    if not is_id(device):
        raise Invalid(f"--device: {device!r} is not a valid id; give 24 hexadecimal digits.")
    start_ms = 0 if start is None else parse_iso(start, field="--start")
    end_ms = TIMESTAMP_MS_MAX if end is None else parse_iso(end, field="--end")
    entries = read_device(folder, device.lower(), what.value, start_ms, end_ms)
    limits = Limits()
    lines = (
        in_batches(entries, batch, limits.body_bytes_max // 2) if batch else map(msgspec.json.encode, entries)
    )
    for line in lines:
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
