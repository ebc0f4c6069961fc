"""The options that all loads share.

Owns making a command out of a function that creates a scenario: the command has the options of the function and
the common ones (the server, the load, the reports).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from trunkline.bench.errors import BenchError
from trunkline.bench.run import Scenario
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan

DEFAULT_URL = "http://127.0.0.1:8080"

Url = Annotated[str, typer.Option("--url", help="The server's address.")]
Email = Annotated[str, typer.Option("--email", help="The user to log in as.", envvar="TRUNKLINE_ADMIN_EMAIL")]
Password = Annotated[
    str,
    typer.Option(
        "--password", help="The password; better set by the variable.", envvar="TRUNKLINE_ADMIN_PASSWORD"
    ),
]
Token = Annotated[str, typer.Option("--token", help="A token instead of e-mail and password.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a report with charts, in one HTML file.")
]
Devices = Annotated[int, typer.Option(help="Devices to create.", min=1, max=1_000_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The common options: the server, the load, and the files for the report."""

    url: str
    email: str
    password: str
    token: str
    plan: Plan
    json: Path | None
    html: Path | None


def common(
    url: Url = DEFAULT_URL,
    email: Email = "",
    password: Password = "",
    token: Token = "",
    connections: Annotated[int, typer.Option(help="Keep-alive connections.", min=1, max=50_000)] = 64,
    duration: Annotated[float, typer.Option(help="Seconds of each stage.", min=0.1, max=86_400)] = 10.0,
    warmup: Annotated[float, typer.Option(help="Seconds before them, not counted.", min=0, max=600)] = 1.0,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Calls a second, whatever the server does (open loop); without it as fast as answers come.",
            min=0.1,
        ),
    ] = None,
    ceiling: Annotated[
        bool, typer.Option(help="Measure the generator against a server that does nothing.")
    ] = True,
    server_pid: Annotated[
        int | None,
        typer.Option(help="The server's process id; by default the process that listens on the port."),
    ] = None,
    json: JsonFile = None,
    html: HtmlFile = None,
) -> Common:
    """The options of every load."""
    plan = Plan(
        connections=connections,
        duration_s=duration,
        warmup_s=warmup,
        rate=rate,
        ceiling=ceiling,
        server_pid=server_pid,
    )
    return Common(url=url, email=email, password=password, token=token, plan=plan, json=json, html=html)


def with_common(
    make: Callable[..., Scenario], run: Callable[[Common, Scenario], None], *, without: Collection[str] = ()
) -> Callable[..., None]:
    """Return a command with the options of ``make`` and the common ones, which runs the scenario made.

    ``without`` names the common options that do not apply to this scenario.
    """
    own = _parameters(make)
    shared = {name: one for name, one in _parameters(common).items() if name not in without}

    @functools.wraps(make)
    def command(**given: Any) -> None:
        options = common(**{name: given[name] for name in shared})
        try:
            scenario = make(**{name: given[name] for name in own})
        except BenchError as problem:
            raise typer.BadParameter(str(problem)) from None
        run(options, scenario)

    command.__signature__ = inspect.Signature([*own.values(), *shared.values()])  # type: ignore[attr-defined]
    return command


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters of a function, with their annotations resolved to types."""
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters
    return {name: one.replace(annotation=hints[name]) for name, one in found.items()}


async def sign_in(url: str, email: str, password: str, token: str) -> Session:
    """Return a signed-in session. Raises BenchError if no credentials are given or they are refused."""
    session = Session(url, token=token or None)
    if not token:
        if not (email and password):
            raise BenchError(
                "Give --email and --password, or set TRUNKLINE_ADMIN_EMAIL and TRUNKLINE_ADMIN_PASSWORD, "
                "or give --token."
            )
        await session.login(email, password)
    return session
