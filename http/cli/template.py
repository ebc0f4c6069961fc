"""`trunkline template`: template folders become bundles. Needs no server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from trunkline.actors.core.values.errors import Invalid
from trunkline.limits.table import Limits

template_app = typer.Typer(help="Template folders: convert them to bundles.", no_args_is_help=True)


@template_app.command("convert")
def template_convert(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a template, with application.yaml.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="By default the name of DIR with .zip."),
    ] = None,
) -> None:
    """Make a bundle of a template folder, for applications.import and application.import.

    The folder has application.yaml and, as YAML with placeholders, devices, recipes, data tables, workflows, versions,
    experiences and dashboards; views, rows and files lie beside. These calls take a zip of the folder as well. What has
    no place in a bundle is told.
    """
    from trunkline.actors.portability.bundles.folder import convert_folder  # the reader of YAML is large
    from trunkline.actors.portability.bundles.folder_tree import DirectoryTree

    if not directory.is_dir():
        raise Invalid(f"{directory}: is not a directory.")
    limits = Limits()
    file = output or Path(f"{directory.resolve().name}.zip")
    draft = file.with_name(file.name + ".part")
    try:
        with draft.open("wb") as opened:

            def write(piece: bytes) -> None:
                opened.write(piece)

            tree, now_ms = DirectoryTree(directory, limits), time.time_ns() // 1_000_000
            converted = convert_folder(tree, limits, write, now_ms)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    for what, count in sorted(converted.left_out.items()):
        if count:
            typer.echo(f"Left out: {what} ({count})", err=True)
    made = ", ".join(f"{count} {name}" for name, count in converted.counts.items() if count)
    typer.echo(f"{file}: {made or 'only the application'}")
