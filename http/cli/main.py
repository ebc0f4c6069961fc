"""The command line: the list of all commands, and how their failures are shown.

The entry point of the program. It imports no command: each is imported when it runs (`late.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Final, NoReturn

import typer

from trunkline.http.cli.late import late_command

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

COMMANDS: Final = {
    "serve": (
        "trunkline.http.cli.serve:serve_command",
        "Serve a data directory until SIGTERM. On a first start the first user is created.",
    ),
    "demo": (
        "trunkline.bench.cli:demo",
        "Run life-like devices on a server: they send state about once a second and obey commands.",
    ),
    "link": (
        "trunkline.bench.cli:link",
        "Be a device: each line such as `temp=21.5 on=true` is sent as a state; commands are shown and acknowledged.",
    ),
    "user": ("trunkline.http.cli.user:user_app", "The users of a data directory."),
    "secret": (
        "trunkline.http.cli.maintenance:secret_app",
        "The secret of tokens, and the keys of stored secrets.",
    ),
    "backup": (
        "trunkline.http.cli.maintenance:backup_command",
        "Copy a consistent snapshot of a data directory, also while a server runs.",
    ),
    "check": (
        "trunkline.http.cli.maintenance:check_command",
        "Read a whole data directory or backup and verify its contents, also while a server runs.",
    ),
    "partition": (
        "trunkline.http.cli.partition:partition_app",
        "Divide a data directory into partitions, or list them. To divide it, the server must be stopped.",
    ),
    "cluster": ("trunkline.http.cli.cluster:cluster_app", "The machines of a server that has a log."),
    "archive": (
        "trunkline.http.cli.archive:archive_app",
        "Archives in a folder: verify them, read them back.",
    ),
    "flow": ("trunkline.http.cli.flow:flow_app", "Workflows in files: test and convert them."),
    "template": (
        "trunkline.http.cli.template:template_app",
        "Template folders: convert them to bundles.",
    ),
    "bench": (
        "trunkline.bench.cli:bench_app",
        "Load a running server over the wire and check what it kept.",
    ),
    "routes": (
        "trunkline.http.cli.api:routes_command",
        "Print the route table: method, path, operation and scopes, of which a token needs one.",
    ),
    "openapi": ("trunkline.http.cli.api:openapi_command", "Print the OpenAPI 3.1 document."),
    "version": (
        "trunkline.http.cli.main:version_command",
        "Print the version, as `trunkline --version` does.",
    ),
}
"""Of each command or group its place, and the sentence of the list of commands."""

for _name, (_place, _help) in COMMANDS.items():
    late_command(app, _name, _place, _help)


def _print_version(wanted: bool) -> None:
    if wanted:
        version_command()
        raise typer.Exit


@app.callback()
def program(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """An application platform for connected devices."""


def version_command() -> None:
    """Print the version, as `trunkline --version` does."""
    from trunkline.http.version import VERSION

    typer.echo(VERSION)


def main(program: Callable[[], object] | None = None) -> None:
    """The entry point: an expected failure is one sentence and exit code 1. `program` is run instead of the command."""
    try:
        (program or app)()
    except SystemExit:
        raise
    except _expected_failures() as failure:
        _fail(failure)
    except BaseExceptionGroup as group:
        # Nurseries wrap their exceptions in groups; expected failures in a group are also reported as one sentence.
        expected, other = group.split(_expected_failures())
        if expected is None or other is not None:
            raise
        _fail(expected)
    except Exception as failure:
        lack = _lack_of_memory(failure)
        if lack is None:
            raise
        _fail(lack)


def _lack_of_memory(failure: BaseException) -> BaseException | None:
    """The MemoryError that has caused a failure, or a group with it: the event loop fails with an error of its own."""
    cause = failure.__cause__
    if isinstance(cause, BaseExceptionGroup):
        return cause.subgroup(MemoryError)
    return cause if isinstance(cause, MemoryError) else None


def _expected_failures() -> tuple[type[Exception], ...]:
    """Failures that are reported to the operator as a sentence; all others are bugs and show a traceback."""
    from trunkline.actors.core.runtime.thread_start import ThreadNotStarted
    from trunkline.actors.core.values.errors import DomainError
    from trunkline.actors.core.values.store_errors import StoreError
    from trunkline.limits.errors import SettingsError

    return SettingsError, DomainError, StoreError, OSError, MemoryError, ThreadNotStarted


def _fail(failure: BaseException) -> NoReturn:
    from trunkline.http.hosting.terminal import failure_message

    typer.echo(f"trunkline: {failure_message(failure)}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
