"""`trunkline flow`: run the cases of workflows in files, and convert exports. Needs no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import trio
import typer

from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.engine.case_files import Cases, Outcome, case_files, load_cases, run_cases
from trunkline.limits.table import Limits

flow_app = typer.Typer(help="Workflows in files: test and convert them.", no_args_is_help=True)


@flow_app.command("test")
def flow_test(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory with files NAME.test.json, also below it.")
    ],
) -> None:
    """Run workflows from files without effects, and compare the runs with what the files expect.

    A file NAME.test.json is {"flow": "FILE.json", "cases": [{"name": "...", "data": {...}, "stubs": {...},
    "expect": {"nodes": [...], "payload": {"data.path": 1}, "error": null}}]}.
    """
    outcomes = trio.run(_run, [load_cases(file) for file in case_files(directory)])
    failed = [each for each in outcomes if each.problem is not None]
    for each in outcomes:
        if each.problem is None:
            typer.echo(f"ok      {each.file}: {each.case}")
        else:
            typer.secho(f"FAILED  {each.file}: {each.case}: {each.problem}", fg="red")
    if failed:
        raise Invalid(f"{directory}: {len(failed)} of {len(outcomes)} cases failed.")
    typer.echo(f"All {len(outcomes)} cases passed.")


@flow_app.command("convert")
def flow_convert(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Exports as YAML.")],
    ids: Annotated[
        Path | None,
        typer.Option("--ids", metavar="FILE", help="JSON with the ids of placeholders: {PLACEHOLDER: ID}."),
    ] = None,
) -> None:
    """Print the body of flows.import for workflows that were exported as YAML.

    Files that belong together, such as a workflow and its versions, are given together. Placeholders of other things
    stay, unless --ids gives their ids.
    """
    from trunkline.actors.workflows.flows.yaml_exports import read_exports  # the reader of YAML is large

    try:
        given = {} if ids is None else msgspec.json.decode(ids.read_bytes(), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise Invalid(f"{ids}: {error}.") from None
    read = read_exports({str(file): file.read_bytes() for file in files}, given)
    typer.echo(msgspec.json.encode(read.body).decode())
    for placeholder, count in sorted(read.left.items()):
        typer.echo(f"{placeholder} has no id (it stands there {count} times).", err=True)


async def _run(files: list[Cases]) -> list[Outcome]:
    limits = Limits()
    pool = ScriptPool(limits)
    outcomes: list[Outcome] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(pool.run)
        for file in files:
            outcomes += await run_cases(file, pool, limits)
        nursery.cancel_scope.cancel()
    return outcomes
