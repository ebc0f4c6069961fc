"""The commands `trunkline bench ...`, `trunkline demo` and `trunkline link`.

Owns the list of commands and their exit codes: 0 if everything acknowledged was read back (`neighbours`: if the quiet
tenant was neither refused nor slowed down), 1 if not, 2 if the command could not do its work, 3 if the load generator
was the bottleneck. The main command line mounts ``bench_app``, ``demo`` and ``link``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trunkline.bench.cli_run import DIFFERENT, run_command, write_result
from trunkline.bench.demo import CURL_VARIABLE, DemoReady, curl_lines, run_demo
from trunkline.bench.errors import BenchError
from trunkline.bench.link_terminal import run_terminal
from trunkline.bench.load_cli import load_commands
from trunkline.bench.measurements import read_measurements
from trunkline.bench.neighbours.cli import neighbours
from trunkline.bench.options import (
    DEFAULT_URL,
    Email,
    HtmlFile,
    JsonFile,
    Password,
    Token,
    Url,
    sign_in,
)
from trunkline.bench.replay import STATES_PER_CALL, Replay
from trunkline.bench.replay_result import Look, replay_result
from trunkline.bench.report import output, print_measurements, print_replay
from trunkline.bench.server_monitor import find_server

bench_app = typer.Typer(
    name="bench", help="Load a running server over the wire and check what it kept.", no_args_is_help=True
)
for _command in load_commands():
    bench_app.command(_command.__name__)(_command)
bench_app.command("neighbours")(neighbours)


@bench_app.command("replay")
def replay_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE.csv...", help="CSV files with a header line, in UTF-8.")
    ],
    time_column: Annotated[str, typer.Option("--time", help="The column with the time.")],
    device_column: Annotated[
        str | None,
        typer.Option("--device", help="The column that names the device; without it each file is one."),
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="Keep the original pace, N-fold; without it as fast as is allowed.")
    ] = None,
    application: Annotated[
        str | None, typer.Option(help="Id of an application to use; else a new one.")
    ] = None,
    batch: Annotated[int, typer.Option(help="States a call.", min=1, max=10_000)] = STATES_PER_CALL,
    time_format: Annotated[str | None, typer.Option(help="How times are written, as in strptime.")] = None,
    url: Url = DEFAULT_URL,
    email: Email = "",
    password: Password = "",
    token: Token = "",
    json: JsonFile = None,
    html: HtmlFile = None,
) -> None:
    """Replay real measurements from CSV through the API, read them all back and compare value by value."""
    run_command(
        lambda: _replay(
            files,
            time_column,
            device_column,
            time_format,
            speed,
            application,
            batch,
            url,
            email,
            password,
            token,
            json,
            html,
        )
    )


@bench_app.command("files")
def files_command(
    size: Annotated[int, typer.Option(help="Bytes of the file.", min=1)] = 2_000_000_000,
    range_bytes: Annotated[int, typer.Option(help="Bytes that one download asks for.", min=1)] = 64_000_000,
    pid: Annotated[int | None, typer.Option(help="The server's process; else found by its port.")] = None,
    url: Url = DEFAULT_URL,
    email: Email = "",
    password: Password = "",
    token: Token = "",
) -> None:
    """Upload a large file by its signed form, download it in ranges, and compare the hashes."""
    run_command(lambda: _files(size, range_bytes, pid, url, email, password, token))


def link(
    application: Annotated[str, typer.Argument(metavar="APP", help="Id of the application.")],
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="Id of the device.")],
    url: Url = DEFAULT_URL,
    email: Email = "",
    password: Password = "",
    token: Token = "",
) -> None:
    """Be a device: each line such as `temp=21.5 on=true` is sent as a state; commands are shown and acknowledged."""
    run_command(lambda: _link(application, device, url, email, password, token))


def demo(
    url: Annotated[str, typer.Argument(help="The server's address.")] = DEFAULT_URL,
    email: Email = "",
    password: Password = "",
    token: Token = "",
    application: Annotated[
        str | None, typer.Option(help="Id of an application to use; else the one named Trunkline demo.")
    ] = None,
) -> None:
    """Run life-like devices on a server: they send state about once a second and obey commands."""
    run_command(lambda: _demo(url, email, password, token, application))


async def _replay(
    files: list[Path],
    time_column: str,
    device_column: str | None,
    time_format: str | None,
    speed: float | None,
    application: str | None,
    batch: int,
    url: str,
    email: str,
    password: str,
    token: str,
    json: Path | None,
    html: Path | None,
) -> int:
    console = output()
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    found = read_measurements(
        files,
        time_column=time_column,
        device_column=device_column,
        time_format=time_format,
        now_ms=time.time_ns() // 1_000_000,
    )
    print_measurements(console, found)
    session = await sign_in(url, email, password, token)
    replay = Replay(session, found, states_per_call=batch)
    await replay.prepare(application_id=application, name=f"replay {files[0].name} {_stamp()}")
    monitor = find_server(session.origin, None)

    def look() -> Look:
        return Look(time.process_time(), monitor.usage() if monitor else None)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        sending = progress.add_task("sending", total=found.rows)
        before = look()
        await replay.send(
            speed=speed, on_progress=lambda counts: progress.update(sending, completed=counts.sent)
        )
        after = look()
        reading = progress.add_task("reading back", total=len(found.series))
        await replay.compare(on_progress=lambda _counts: progress.advance(reading))
    counts = replay.counts
    print_replay(console, counts, found, application_id=replay.application_id, created=replay.devices_created)
    settings: dict[str, object] = {
        "files": ", ".join(file.name for file in files),
        "states a call": batch,
        "speed": speed,
    }
    result = replay_result(
        replay, found, begun=begun, settings=settings, monitor=monitor, before=before, after=after
    )
    write_result(result, json, html)
    return 0 if counts.equal and counts.acknowledged and not counts.refused else DIFFERENT


async def _files(
    size: int, range_bytes: int, pid: int | None, url: str, email: str, password: str, token: str
) -> int:
    import httpx

    from trunkline.bench.files import FileTransfer

    console = output()
    session = await sign_in(url, email, password, token)
    monitor = find_server(session.origin, pid)
    try:
        done = await FileTransfer(session, size, range_bytes).run(monitor)
    except httpx.HTTPError as problem:
        raise BenchError(f"A transfer broke off: {type(problem).__name__}.") from None
    mb = 1_000_000
    console.print(
        f"uploaded   {size / mb:,.0f} MB in {done.upload_s:.1f} s: {size / mb / done.upload_s:,.0f} MB/s"
    )
    console.print(
        f"downloaded {size / mb:,.0f} MB in {done.download_s:.1f} s: {size / mb / done.download_s:,.0f} MB/s"
    )
    console.print(f"hashes     {'equal' if done.equal else 'DIFFERENT'}")
    if monitor is not None:
        console.print(
            f"memory     {done.before_bytes / mb:,.0f} MB before, {done.upload_peak_bytes / mb:,.0f} MB at most in the "
            f"upload, {done.download_peak_bytes / mb:,.0f} MB in the download, {done.after_bytes / mb:,.0f} MB after"
        )
    return 0 if done.equal else DIFFERENT


async def _link(application: str, device: str, url: str, email: str, password: str, token: str) -> int:
    console = output()
    session = await sign_in(url, email, password, token)
    await run_terminal(session, application, device, lambda line: console.print(line, markup=False))
    return 0


async def _demo(url: str, email: str, password: str, token: str, application: str | None) -> int:
    console = output()
    session = await sign_in(url, email, password, token)
    signed_in = session.token or ""

    def ready(demo: DemoReady) -> None:
        console.print(
            f"The demo runs: application {demo.application_id}, {len(demo.device_ids)} devices. Try:"
        )
        console.print(f"  export {CURL_VARIABLE}={signed_in}", soft_wrap=True, highlight=False)
        for line in curl_lines(demo):
            console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)

    await run_demo(
        url,
        signed_in,
        application,
        on_ready=ready,
        on_event=lambda line: console.print(line, markup=False, highlight=False),
    )
    console.print("All devices of the demo are gone.")
    return 0


def _stamp() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
