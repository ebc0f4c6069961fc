"""The commands `trunkline bench state`, `trunkline bench replay` and `trunkline demo`.

Owns options, progress and exit codes: 0 when everything acknowledged was read back, 1 when not, 2 when the
command could not do its work. The main command line mounts ``bench_app`` and ``demo``.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import trio
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trunkline.bench.demo import CURL_VARIABLE, DemoReady, curl_lines, run_demo
from trunkline.bench.errors import BenchError
from trunkline.bench.measurements import read_measurements
from trunkline.bench.replay import STATES_PER_CALL, Replay
from trunkline.bench.report import print_account, print_figures, print_loss, print_measurements
from trunkline.bench.session import Session
from trunkline.bench.state import StateLoad

DIFFERENT, UNABLE = 1, 2
"""Exit codes: something acknowledged is missing or different; the command could not be carried out."""

bench_app = typer.Typer(
    name="bench", help="Load a running server over the wire and check what it kept.", no_args_is_help=True
)

Url = Annotated[str, typer.Option("--url", help="The server's address.")]
Email = Annotated[str, typer.Option("--email", help="Whom to sign in as.", envvar="TRUNKLINE_ADMIN_EMAIL")]
Password = Annotated[
    str,
    typer.Option(
        "--password", help="The password; better given by the environment.", envvar="TRUNKLINE_ADMIN_PASSWORD"
    ),
]
Token = Annotated[str, typer.Option("--token", help="A token instead of e-mail and password.")]
DEFAULT_URL = "http://127.0.0.1:8080"


@bench_app.command("state")
def state_command(
    url: Url = DEFAULT_URL,
    email: Email = "",
    password: Password = "",
    token: Token = "",
    devices: Annotated[int, typer.Option(help="Devices to create and post to.", min=1)] = 1000,
    connections: Annotated[int, typer.Option(help="Keep-alive connections.", min=1, max=10_000)] = 64,
    duration: Annotated[float, typer.Option(help="Seconds to post.", min=0.1, max=86_400)] = 10.0,
) -> None:
    """Measure acknowledged state posts a second and read everything back; no rate if anything is lost."""
    _run(lambda: _state(url, email, password, token, devices, connections, duration))


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
) -> None:
    """Replay real measurements from CSV through the API, read them all back and compare value by value."""
    _run(
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
        )
    )


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
    _run(lambda: _demo(url, email, password, token, application))


async def _state(
    url: str, email: str, password: str, token: str, devices: int, connections: int, duration_s: float
) -> int:
    console = Console()
    session = await _sign_in(url, email, password, token)
    load = StateLoad(session, devices=devices, connections=connections)
    with console.status(f"Creating {devices:,} devices ..."):
        await load.prepare(f"bench state {_stamp()}")
    # rich's own refresh thread would take the GIL from the loop that is measured, so it is refreshed by hand.
    with Progress(
        TextColumn("posting"),
        BarColumn(),
        TextColumn("{task.fields[seen]}"),
        console=console,
        auto_refresh=False,
    ) as progress:
        task = progress.add_task("posting", total=duration_s, seen="")

        def tick(running: StateLoad) -> None:
            seen = f"{running.acknowledged:,} acknowledged, {sum(running.refused.values()):,} refused"
            progress.update(task, advance=0.5, seen=seen, refresh=True)

        await load.drive(duration_s, on_tick=tick)
    with console.status("Reading everything back ..."):
        found = await load.audit()
    figures = load.figures()
    if not found.clean:
        print_loss(console, found)
        return DIFFERENT
    if not figures.acknowledged:
        raise BenchError(f"The server acknowledged nothing. {load.first_refusal}".strip())
    print_figures(console, figures, found)
    return 0


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
) -> int:
    console = Console()
    found = read_measurements(
        files,
        time_column=time_column,
        device_column=device_column,
        time_format=time_format,
        now_ms=time.time_ns() // 1_000_000,
    )
    print_measurements(console, found)
    session = await _sign_in(url, email, password, token)
    replay = Replay(session, found, states_per_call=batch)
    await replay.prepare(application_id=application, name=f"replay {files[0].name} {_stamp()}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        sending = progress.add_task("sending", total=found.rows)
        await replay.send(
            speed=speed, on_progress=lambda account: progress.update(sending, completed=account.sent)
        )
        reading = progress.add_task("reading back", total=len(found.series))
        await replay.compare(on_progress=lambda _account: progress.advance(reading))
    account = replay.account
    print_account(
        console, account, found, application_id=replay.application_id, created=replay.devices_created
    )
    return 0 if account.equal and account.acknowledged and not account.refused else DIFFERENT


async def _demo(url: str, email: str, password: str, token: str, application: str | None) -> int:
    console = Console()
    session = await _sign_in(url, email, password, token)
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


async def _sign_in(url: str, email: str, password: str, token: str) -> Session:
    session = Session(url, token=token or None)
    if not token:
        if not (email and password):
            raise BenchError(
                "Give --email and --password, or set TRUNKLINE_ADMIN_EMAIL and TRUNKLINE_ADMIN_PASSWORD, "
                "or give --token."
            )
        await session.login(email, password)
    return session


def _run(work: Callable[[], Awaitable[int]]) -> None:
    """Run a command to its exit code; what it cannot do is a sentence, not a traceback."""
    code = UNABLE
    try:
        code = trio.run(work)
    except* BenchError as group:
        Console(stderr=True).print(_first(group), style="red", markup=False, soft_wrap=True)
    except* KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _stamp() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
