"""`trunkline flow`: run the cases of workflows in files. Needs no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import trio
import typer

from trunkline.actors.engine.case_files import Cases, Outcome, case_files, load_cases, run_cases
from trunkline.actors.scripts.pool import ScriptPool
from trunkline.actors.values.errors import Invalid
from trunkline.http.terminal import OUT
from trunkline.limits.table import Limits

flow_app = typer.Typer(help="Workflows in files: test them.", no_args_is_help=True)


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
            OUT.print(f"ok      {each.file}: {each.case}", soft_wrap=True, highlight=False, markup=False)
        else:
            OUT.print(
                f"FAILED  {each.file}: {each.case}: {each.problem}",
                style="red",
                soft_wrap=True,
                highlight=False,
                markup=False,
            )
    if failed:
        raise Invalid(f"{directory}: {len(failed)} of {len(outcomes)} cases failed.")
    OUT.print(f"All {len(outcomes)} cases passed.")


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
