"""The command line: `trunkline serve` and all other commands.

The entry point of the program. It and `demo.py` are the only modules of `http` that import the bench. Imports
that only one command needs are in that command: `trunkline user list` does not load a web framework.

It is long because each command is a function with its options and its help.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import structlog
import trio
import typer
from rich.table import Table

from trunkline.actors import boot
from trunkline.actors.values.errors import DomainError
from trunkline.bench.cli import bench_app
from trunkline.bench.cli import demo as bench_demo
from trunkline.bench.cli import link as bench_link
from trunkline.http import control_socket
from trunkline.http.cli.archive import archive_app
from trunkline.http.cli.demo import demo_settings, log_in_hint, run_demo_on
from trunkline.http.cli.flow import flow_app
from trunkline.http.cli.template import template_app
from trunkline.http.terminal import ERR, OUT, announce, failure_message, warn
from trunkline.http.version import VERSION
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import CONFIG_VARIABLE, Settings, load_settings, service_variables
from trunkline.limits.table import Limits

if TYPE_CHECKING:
    from trunkline.http.serve import RunningServer

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
user_app = typer.Typer(help="The users of a data directory.", no_args_is_help=True)
secret_app = typer.Typer(help="The secret of tokens, and the keys of stored secrets.", no_args_is_help=True)
app.add_typer(user_app, name="user")
app.add_typer(secret_app, name="secret")
app.add_typer(archive_app, name="archive")
app.add_typer(flow_app, name="flow")
app.add_typer(template_app, name="template")
app.add_typer(bench_app, name="bench")

DataOption = Annotated[
    str | None, typer.Option("--data", metavar="DIR", help="The data directory (default: ./trunkline-data).")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE.toml", help="A configuration file.")
]


PASSWORD_VARIABLE = "TRUNKLINE_PASSWORD_FOR_USER"  # noqa: S105 - the name of a variable
"""The password for `user add` and `user passwd`: an argument of these commands, not a setting."""

EXPECTED_FAILURES = (SettingsError, DomainError, boot.StoreError, OSError)
"""Failures that are reported to the operator as a sentence; all others are bugs and show a traceback."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def program(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """An application platform for connected devices."""


def main() -> None:
    """The entry point: every expected failure is one sentence and exit code 1."""
    try:
        app()
    except EXPECTED_FAILURES as failure:
        _fail(failure_message(failure))
    except BaseExceptionGroup as group:
        # Nurseries wrap their exceptions in groups; expected failures in a group are also reported as one sentence.
        expected, other = group.split(EXPECTED_FAILURES)
        if expected is None or other is not None:
            raise
        _fail(failure_message(expected))


def _fail(message: str) -> NoReturn:
    ERR.print(f"trunkline: {message}")
    sys.exit(1)


def _settings(config: Path | None, limits: str | None = None, **overrides: object) -> Settings:
    """The effective settings, by precedence: command line, environment, file, default."""
    file = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    if limits == "off":
        overrides["throttles"] = False
    environ = {name: value for name, value in os.environ.items() if name != PASSWORD_VARIABLE}
    try:
        text = None if file is None else _read_text(file)
        settings = load_settings(toml_text=text, environ=environ, overrides=overrides)
    except SettingsError as error:
        raise error.under(f"{file}: ") if file is not None else error from None
    if limits is not None and limits != "off":
        settings = dataclasses.replace(settings, limits=_override_limits(settings.limits, Path(limits)))
    return settings


def _override_limits(limits: Limits, file: Path) -> Limits:
    """The limits, overridden with those of a file. Raises `SettingsError`."""
    try:
        return limits.override(tomllib.loads(_read_text(file)))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(file), f"is not TOML: {error}", "correct it there") from None
    except SettingsError as error:
        raise error.under(f"{file}: ") from None


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        raise SettingsError(str(file), "is not text in UTF-8", "name a TOML file") from None


# Serving.


@app.command("serve")
def serve_command(
    data: DataOption = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on (default: 127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on, 0 for any (default: 8080).")
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(metavar="off|FILE.toml", help="Disable the throttles, or override single limits."),
    ] = None,
    certfile: Annotated[
        str | None,
        typer.Option(metavar="FILE.pem", help="The certificate chain; with --keyfile, serves TLS."),
    ] = None,
    keyfile: Annotated[
        str | None, typer.Option(metavar="FILE.pem", help="The private key of the certificate.")
    ] = None,
    ca_certs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.pem",
            help="The authorities of client certificates; clients are then asked for one.",
        ),
    ] = None,
    blobs: Annotated[
        str | None,
        typer.Option(
            metavar="s3://BUCKET/PREFIX",
            help="Where the contents of files are kept (default: in the data directory).",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="fast|stock", help="The HTTP engine (default: fast); stock is for comparisons."),
    ] = None,
    config: ConfigOption = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Also run an application with simulated devices.")
    ] = False,
) -> None:
    """Serve a data directory until SIGTERM. On a first start the first user is created."""
    from trunkline.http.serve import configure_logging, serve

    more = {"certfile": certfile, "keyfile": keyfile, "ca_certs": ca_certs, "engine": engine, "blobs": blobs}
    settings = _settings(config, limits, data_dir=data, host=host, port=port, **more)
    if demo:
        settings = demo_settings(settings)
    configure_logging(settings)
    if ignored := service_variables(os.environ):
        structlog.get_logger("trunkline.serve").warning(
            "ignored variables with which a container platform announces services", variables=ignored
        )
    if limits == "off":
        warn("THE THROTTLES ARE OFF. This is for load tests; never serve devices like this.")
    trio.run(partial(serve, settings, ready=partial(_announce_start, settings=settings, demo=demo)))


async def _announce_start(server: RunningServer, *, settings: Settings, demo: bool) -> None:
    """Print the URL of the server and the first user, if one was created; then run the demo if requested."""
    announce(f"The console: {server.url}/console")
    first = server.first_user
    if first is not None and first.password is not None:
        announce(f"First user: {first.email}  password: {first.password}  (shown only now)")
    elif demo:
        announce(log_in_hint(server))
    announce(f"Trunkline serves {settings.data_dir} at {server.url} (the API: {server.url}/docs)")
    if demo:
        await run_demo_on(server)


app.command("demo")(bench_demo)
app.command("link")(bench_link)


# Users.


def _run_on_directory(settings: Settings, command: str, **arguments: str) -> Any:
    """Run a command on the data directory, or through the server that holds it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))

    async def run() -> Any:
        try:
            with boot.opened(settings) as system:
                async with boot.running(system):
                    return await control_socket.run_command(system, command, arguments)
        except boot.DirectoryInUse as in_use:
            return await control_socket.ask_server(Path(settings.data_dir), command, arguments, in_use)

    return trio.run(run)


def _existing_directory(data: str | None, config: Path | None) -> Settings:
    """The settings, for a command that needs an existing data directory. Raises `SettingsError` if there is none."""
    settings = _settings(config, data_dir=data)
    if not Path(settings.data_dir).is_dir():
        raise SettingsError(settings.data_dir, "is not a data directory", "name the right one with --data")
    return settings


Password = Annotated[
    str,
    typer.Option(
        envvar=PASSWORD_VARIABLE,
        prompt=True,
        hide_input=True,
        confirmation_prompt=True,
        help="Prompted for if omitted.",
    ),
]


@user_app.command("add")
def user_add(email: str, password: Password, data: DataOption = None, config: ConfigOption = None) -> None:
    """Add a user, also while a server runs."""
    id = _run_on_directory(_settings(config, data_dir=data), "user.add", email=email, password=password)
    OUT.print(f"{id}  {email}")


@user_app.command("passwd")
def user_passwd(email: str, password: Password, data: DataOption = None, config: ConfigOption = None) -> None:
    """Set a user's password and revoke the earlier tokens, also while a server runs."""
    _run_on_directory(_existing_directory(data, config), "user.passwd", email=email, password=password)
    OUT.print(f"The password of {email} is set; earlier tokens are no longer valid.")


@user_app.command("delete")
def user_delete(
    email: str,
    with_applications: Annotated[
        bool,
        typer.Option("--with-applications", help="Also delete the user's applications with all their data."),
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Delete a user and revoke all tokens of the user, also while a server runs."""
    applications = "delete" if with_applications else "keep"
    settings = _existing_directory(data, config)
    deleted = _run_on_directory(settings, "user.delete", email=email, applications=applications)
    OUT.print(f"{email} is deleted, and applications: {deleted}.")


@user_app.command("reset-two-factor")
def user_reset_two_factor(email: str, data: DataOption = None, config: ConfigOption = None) -> None:
    """Let a user who has lost the second factor log in with the password alone, also while a server runs."""
    _run_on_directory(_existing_directory(data, config), "user.reset-two-factor", email=email)
    OUT.print(f"{email} logs in with the password alone now.")


@user_app.command("verify-email")
def user_verify_email(email: str, data: DataOption = None, config: ConfigOption = None) -> None:
    """Mark a user's e-mail address as verified, also while a server runs."""
    _run_on_directory(_existing_directory(data, config), "user.verify-email", email=email)
    OUT.print(f"The address {email} is verified.")


@user_app.command("operator")
def user_operator(
    email: str,
    is_operator: Annotated[bool, typer.Option("--on/--off", help="Whether the user is one.")] = True,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Let a user read the figures of the whole server (/metrics), or end that, also while a server runs."""
    directory, role = _existing_directory(data, config), "operator" if is_operator else "none"
    _run_on_directory(directory, "user.operator", email=email, role=role)
    OUT.print(f"{email} is {'an' if is_operator else 'no'} operator.")


@user_app.command("list")
def user_list(data: DataOption = None, config: ConfigOption = None) -> None:
    """List the users, also while a server runs."""
    for id, email, created in _run_on_directory(_existing_directory(data, config), "user.list"):
        OUT.print(f"{id}  {created}  {email}")


# Maintenance of a data directory.


@secret_app.command("rotate")
def secret_rotate(data: DataOption = None, config: ConfigOption = None) -> None:
    """Replace the secret that signs tokens, which revokes every token. The server must be stopped."""
    path = _existing_directory(data, config).data_dir
    boot.rotate_secret(Path(path))
    OUT.print(f"The secret of {path} is replaced; every user and device must log in again.")


@secret_app.command("rekey")
def secret_rekey(
    discard: Annotated[
        bool,
        typer.Option("--discard", help="Remove stored secrets whose encryption key is lost."),
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Encrypt all stored secrets with a new key and remove the old one. The server must be stopped."""
    done = boot.rotate_encryption_key(_existing_directory(data, config), discard=discard)
    lost = f" Discarded, because their key is lost: {done.discarded}." if discard else ""
    OUT.print(f"Stored secrets encrypted with the new key {done.key}: {done.resealed}.{lost}")


@app.command("backup")
def backup_command(
    target: Annotated[Path, typer.Argument(help="A directory that does not exist or is empty.")],
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy a consistent snapshot of a data directory, also while a server runs."""
    path = _existing_directory(data, config).data_dir
    location = boot.back_up(Path(path), target)
    OUT.print(f"{path} is copied to {target}; `trunkline check --data {target}` verifies the copy.")
    if location != boot.FOLDER:
        OUT.print(f"The contents of files are in {location}; they are not in the copy.")


@app.command("check")
def check_command(data: DataOption = None, config: ConfigOption = None) -> None:
    """Read a whole data directory or backup and verify its contents, also while a server runs."""
    settings = _existing_directory(data, config)
    path, keys_file = settings.data_dir, settings.encryption_keys_file
    bucket = boot.bucket_of(settings)
    report = boot.check(Path(path), None if keys_file is None else Path(keys_file), bucket)
    table = Table("database", "entries", title=path)
    for name, count in report.counts.items():
        table.add_row(name, str(count))
    OUT.print(table)
    for problem in report.problems:
        OUT.print(problem, style="red")
    if not report.ok:
        shown = len(report.problems)
        more = f"; the first {shown} are shown" if report.problem_count > shown else ""
        _fail(f"{path}: problems found: {report.problem_count}{more}.")
    OUT.print("No problem found.")


# Descriptions of the API.


@app.command("routes")
def routes_command() -> None:
    """Print the route table: method, path, operation and scopes, of which a token needs one."""
    from trunkline.http.routes import TABLE

    path_width = max(len(route.path) for route in TABLE.routes) + 2
    name_width = max(len(route.operation) for route in TABLE.routes) + 2
    for route in sorted(TABLE.routes, key=lambda route: (route.path, route.method)):
        scopes = " ".join(sorted(route.scopes)) or "(no token)"
        typer.echo(f"{route.method:8}{route.path:{path_width}}{route.operation:{name_width}}{scopes}")


@app.command("openapi")
def openapi_command() -> None:
    """Print the OpenAPI 3.1 document."""
    from trunkline.http.pages.openapi import document
    from trunkline.http.routes import TABLE

    sys.stdout.write(json.dumps(document(TABLE, VERSION), indent=2) + "\n")


@app.command("version")
def version_command() -> None:
    """Print the version, as `trunkline --version` does."""
    typer.echo(VERSION)


if __name__ == "__main__":
    main()
