"""The command that compares Trunkline with peers. It is no part of the installation, because it installs them.

.venv/bin/python -m tests.bench.peers --work DIR
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tests.bench.peers.comparison import Comparison, compare, select_peers
from tests.bench.peers.report import page_of_comparison, print_comparison
from trunkline.bench.cli_run import run_command, write_report
from trunkline.bench.cores import Cores
from trunkline.bench.options import HtmlFile, JsonFile
from trunkline.bench.progress import ProgressBar
from trunkline.bench.report import output
from trunkline.bench.stage import Plan


def peers(
    work: Annotated[
        Path,
        typer.Option(
            help="A directory for their environments and data, on the disk to be measured; "
            "programs in its `bin` are preferred."
        ),
    ],
    only: Annotated[
        list[str] | None, typer.Option(help="Part of a peer's name; may be given several times.")
    ] = None,
    connections: Annotated[int, typer.Option(help="Connections to each.", min=1, max=10_000)] = 64,
    duration: Annotated[float, typer.Option(help="Seconds of each load.", min=0.1, max=3600)] = 10.0,
    warmup: Annotated[float, typer.Option(help="Seconds before them, not counted.", min=0, max=600)] = 1.0,
    devices: Annotated[int, typer.Option(help="Devices that send.", min=1, max=100_000)] = 1000,
    rounds: Annotated[int, typer.Option(help="Rounds; medians are reported.", min=1, max=99)] = 1,
    server_cores: Annotated[
        int, typer.Option(help="Cores for each server with all its programs; 0: no pinning.", min=0)
    ] = 1,
    json: JsonFile = None,
    html: HtmlFile = None,
) -> None:
    """Compare with alternatives: the same load for each, on this machine, in one run."""
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
    comparison = Comparison(
        work=work,
        peers=select_peers(only),
        plan=plan,
        devices=devices,
        rounds=rounds,
        cores=Cores.split(server_cores),
    )
    result = await compare(comparison, ProgressBar())
    print_comparison(output(), result)
    if json is not None:
        write_report(json, msgspec.json.format(msgspec.json.encode(result)).decode())
    if html is not None:
        write_report(html, page_of_comparison(result))
    return 0


if __name__ == "__main__":
    typer.run(peers)
