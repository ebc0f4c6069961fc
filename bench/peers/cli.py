"""The command that compares with peers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from trunkline.bench.command import run_command, write_report
from trunkline.bench.cores import Cores
from trunkline.bench.options import HtmlFile, JsonFile
from trunkline.bench.peers.contest import Contest, chosen, compare
from trunkline.bench.peers.report import page_of_outcome, print_outcome
from trunkline.bench.progress import Bar
from trunkline.bench.report import output
from trunkline.bench.stage import Plan


def peers(
    work: Annotated[
        Path,
        typer.Option(
            help="A directory for their environments and data, on the disk that is to be compared; "
            "programs in its `bin` are taken first."
        ),
    ],
    only: Annotated[
        list[str] | None, typer.Option(help="Part of a peer's name; may be given several times.")
    ] = None,
    connections: Annotated[int, typer.Option(help="Connections to each.", min=1, max=10_000)] = 64,
    duration: Annotated[float, typer.Option(help="Seconds of each work.", min=0.1, max=3600)] = 10.0,
    warmup: Annotated[float, typer.Option(help="Seconds before them, not counted.", min=0, max=600)] = 1.0,
    devices: Annotated[int, typer.Option(help="Devices that send.", min=1, max=100_000)] = 1000,
    rounds: Annotated[int, typer.Option(help="Rounds; medians are told.", min=1, max=99)] = 1,
    server_cores: Annotated[
        int, typer.Option(help="Cores for each server with all its programs; 0: no pinning.", min=0)
    ] = 1,
    json: JsonFile = None,
    html: HtmlFile = None,
) -> None:
    """Give the same durable work to what a user would pick instead, on this machine, in this run."""
    plan = Plan(connections=connections, duration_s=duration, warmup_s=warmup)
    run_command(lambda: _peers(work.absolute(), only or [], plan, devices, rounds, server_cores, json, html))


async def _peers(
    work: Path,
    only: list[str],
    plan: Plan,
    devices: int,
    rounds: int,
    server_cores: int,
    json: Path | None,
    html: Path | None,
) -> int:
    contest = Contest(
        work=work,
        peers=chosen(only),
        plan=plan,
        devices=devices,
        rounds=rounds,
        cores=Cores.split(server_cores),
    )
    outcome = await compare(contest, Bar())
    print_outcome(output(), outcome)
    if json is not None:
        write_report(json, msgspec.json.format(msgspec.json.encode(outcome)).decode())
    if html is not None:
        write_report(html, page_of_outcome(outcome))
    return 0
