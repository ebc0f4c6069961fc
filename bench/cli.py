"""The commands `trunkline bench ...` and `trunkline demo`.

Owns which commands there are and their exit codes: 0 when everything acknowledged was read back, 1 when not,
2 when the command could not do its work, 3 when the load generator was the bottleneck. The main command line
mounts ``bench_app`` and ``demo``.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import msgspec
import trio
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trunkline.bench.cores import Cores
from trunkline.bench.demo import CURL_VARIABLE, DemoReady, curl_lines, run_demo
from trunkline.bench.errors import BenchError
from trunkline.bench.measurements import read_measurements
from trunkline.bench.options import (
    DEFAULT_URL,
    Common,
    Devices,
    Email,
    HtmlFile,
    JsonFile,
    Password,
    Token,
    Url,
    sign_in,
    with_common,
)
from trunkline.bench.page import page_of
from trunkline.bench.peers.contest import Contest, chosen, compare
from trunkline.bench.peers.report import page_of_outcome, print_outcome
from trunkline.bench.progress import Bar
from trunkline.bench.replay import STATES_PER_CALL, Replay
from trunkline.bench.report import print_account, print_measurements, print_result
from trunkline.bench.result import Verdict
from trunkline.bench.run import Scenario, run_scenario
from trunkline.bench.scenarios.arrays import ArraysScenario
from trunkline.bench.scenarios.commands import CommandsScenario
from trunkline.bench.scenarios.mixed import MixedScenario
from trunkline.bench.scenarios.queries import QueriesScenario
from trunkline.bench.scenarios.state import StateScenario
from trunkline.bench.scenarios.storm import StormScenario
from trunkline.bench.stage import Plan

DIFFERENT, UNABLE, GENERATOR_BOUND = 1, 2, 3
"""Exit codes: something acknowledged is missing or different; the command could not be carried out; the load
generator was the bottleneck."""

EXIT_CODES: dict[Verdict, int] = {"sound": 0, "loss": DIFFERENT, "generatorBound": GENERATOR_BOUND}

bench_app = typer.Typer(
    name="bench", help="Load a running server over the wire and check what it kept.", no_args_is_help=True
)

Scenarios = Callable[..., Scenario]


def scenario(name: str) -> Callable[[Scenarios], Scenarios]:
    """Make a command of a function from a scenario's own options to the scenario."""

    def mount(make: Scenarios) -> Scenarios:
        bench_app.command(name)(with_common(make, lambda options, made: _run(lambda: _load(options, made))))
        return make

    return mount


@scenario("state")
def state_scenario(devices: Devices = 1000) -> Scenario:
    """Single state posts: how many a second are acknowledged; everything is read back."""
    return StateScenario(devices=devices)


@scenario("arrays")
def arrays_scenario(
    devices: Devices = 1000,
    per_call: Annotated[
        list[int] | None,
        typer.Option(help="States a call; may be given several times [default: 10, 100, 1000]."),
    ] = None,
) -> Scenario:
    """Arrays of states, a stage for each size: acknowledged states a second; everything is read back."""
    return ArraysScenario(devices=devices, per_call=per_call or [10, 100, 1000])


@scenario("commands")
def commands_scenario(
    devices: Annotated[int, typer.Option(help="Devices, each with an open command stream.", min=1)] = 1000,
    per_call: Annotated[
        int, typer.Option(help="Devices that one call commands; with 1 by the device's own route.")
    ] = 1000,
) -> Scenario:
    """Commands to many open streams: deliveries a second and the time until arrival; all have to arrive once."""
    return CommandsScenario(devices=devices, per_call=per_call)


@scenario("mixed")
def mixed_scenario(devices: Devices = 1000) -> Scenario:
    """Of 25 calls 20 post a state; the others read values, histories and lists, and send commands."""
    return MixedScenario(devices=devices)


@scenario("storm")
def storm_scenario(
    devices: Annotated[int, typer.Option(help="Devices, each with two connections.", min=1)] = 2000,
) -> Scenario:
    """A fleet drops and comes back at once: time until all are served, and nothing lost."""
    return StormScenario(devices=devices)


@scenario("queries")
def queries_scenario(
    devices: Devices = 100,
    states: Annotated[int, typer.Option(help="States stored of each device.", min=1, max=1_000_000)] = 2000,
) -> Scenario:
    """History and list queries, a stage for each kind; every answer is compared."""
    return QueriesScenario(devices=devices, states=states)


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


@bench_app.command("peers")
def peers_command(
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
    _run(lambda: _peers(work.absolute(), only or [], plan, devices, rounds, server_cores, json, html))


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


async def _load(options: Common, scenario: Scenario) -> int:
    console = Console()
    session = await sign_in(options.url, options.email, options.password, options.token)
    result = await run_scenario(scenario, session, options.plan, Bar())
    print_result(console, result)
    if options.json is not None:
        write(options.json, msgspec.json.format(msgspec.json.encode(result)).decode())
    if options.html is not None:
        write(options.html, page_of(result))
    return EXIT_CODES[result.verdict]


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
    print_outcome(Console(), outcome)
    if json is not None:
        write(json, msgspec.json.format(msgspec.json.encode(outcome)).decode())
    if html is not None:
        write(html, page_of_outcome(outcome))
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
    session = await sign_in(url, email, password, token)
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


def _run(work: Callable[[], Awaitable[int]]) -> None:
    """Run a command to its exit code; what it cannot do is a sentence, not a traceback."""
    code = UNABLE
    if threading.current_thread() is threading.main_thread():
        # Programs that a command has started are to be stopped also where it is told to end.
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        code = trio.run(work)
    except* BenchError as group:
        Console(stderr=True).print(_first(group), style="red", markup=False, soft_wrap=True)
    except* KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def write(file: Path, text: str) -> None:
    """Write a report; raises BenchError."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise BenchError(f"{file} cannot be written: {problem.strerror}.") from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _stamp() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
