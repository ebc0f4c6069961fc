"""The command that measures a quiet tenant beside a greedy one."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from trunkline.bench.cli_run import DIFFERENT, run_command, write_report
from trunkline.bench.errors import BenchError
from trunkline.bench.neighbours.attacks import ATTACKS, Attack
from trunkline.bench.neighbours.cell import MANY, SPREADS, Spread, measure
from trunkline.bench.neighbours.report import Report, described, outcome, print_report
from trunkline.bench.neighbours.server import Installation
from trunkline.bench.options import JsonFile
from trunkline.bench.progress import ProgressBar
from trunkline.bench.report import output
from trunkline.bench.result import machine


def neighbours(
    attack: Annotated[
        list[str] | None,
        typer.Option(help="The name of an attack; may be given several times [default: each]."),
    ] = None,
    spread: Annotated[
        list[str] | None,
        typer.Option(
            help="From where: one application, thirty of one owner, or owners for one of each of thirty; may be given "
            "several times [default: one, thirty]."
        ),
    ] = None,
    duration: Annotated[
        float, typer.Option(help="Seconds alone, and beside each attack.", min=1, max=600)
    ] = 10.0,
    python: Annotated[
        str | None, typer.Option(help="The Python of another installation, whose server is measured instead.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(help="A directory for the data, on the disk to be measured; else a temporary one."),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the attacks, and end.")] = False,
    json: JsonFile = None,
) -> None:
    """A quiet tenant beside one that does its worst: its p99 by kind of call, alone and beside each attack."""
    if show:
        typer.echo(described())
        return
    run_command(lambda: _neighbours(attack, spread, duration, python or sys.executable, work, json))


def _attacks(names: Sequence[str] | None) -> list[Attack]:
    known = {attack.name: attack for attack in ATTACKS}
    if unknown := sorted(set(names or ()) - known.keys()):
        raise BenchError(f"--attack {unknown[0]} is none of {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names or known)]


def _spreads(names: Sequence[str] | None) -> list[Spread]:
    if unknown := sorted(set(names or ()) - set(SPREADS)):
        raise BenchError(f"--spread {unknown[0]} is none of {', '.join(SPREADS)}.")
    return [spread for spread in SPREADS if spread in (names or SPREADS[:2])]


async def _neighbours(
    attack: Sequence[str] | None,
    spread: Sequence[str] | None,
    duration_s: float,
    python: str,
    work: Path | None,
    json: Path | None,
) -> int:
    attacks, spreads, console = _attacks(attack), _spreads(spread), output()
    report = Report(
        begun=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        machine=machine(),
        server=python,
        seconds=duration_s,
        measured=[],
    )
    bar = ProgressBar()
    with tempfile.TemporaryDirectory(prefix="trunkline-neighbours-", dir=work) as directory:
        installation = Installation(python, Path(directory))
        quiet, *greedy = await installation.add_users(1 + (MANY if "owners" in spreads else 1))
        for each in attacks:
            for way in spreads:
                bar.begin(f"{each.name}, {way}")
                async with installation.server() as url:
                    found = await measure(url, quiet, greedy, each, way, duration_s)
                report.measured.append(found)
                bar.end(outcome(found))
                if (
                    json is not None
                ):  # each time: some attacks on some servers take long, and one may want to end
                    write_report(json, msgspec.json.format(msgspec.json.encode(report)).decode())
    print_report(console, report)
    return 0 if report.passed else DIFFERENT
