"""`trunkline user`: the users of a data directory, also while a server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from trunkline.http.cli.late import prepare_server_imports
from trunkline.http.cli.options import (
    PASSWORD_VARIABLE,
    ConfigOption,
    DataOption,
    directory_with_data,
    effective_settings,
    log_errors_only,
    usable,
)
from trunkline.limits.settings import Settings

user_app = typer.Typer(help="The users of a data directory.", no_args_is_help=True)


def _run_on_directory(settings: Settings, command: str, **arguments: str) -> Any:
    """Run a command on the data directory, or through the server that holds it."""
    prepare_server_imports()
    import trio

    from trunkline.actors import boot
    from trunkline.actors.core.values.store_errors import DirectoryInUse
    from trunkline.http import control_socket
    from trunkline.http.control_client import ask_server

    log_errors_only()

    async def run() -> Any:
        try:
            with boot.opened(settings) as system:
                async with boot.running(system):
                    return await control_socket.run_command(system, command, arguments)
        except DirectoryInUse as in_use:
            return await ask_server(Path(settings.data_dir), command, arguments, in_use)

    return trio.run(run)


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
    id = _run_on_directory(
        usable(effective_settings(config, data_dir=data), writes=True),
        "user.add",
        email=email,
        password=password,
    )
    typer.echo(f"{id}  {email}")


@user_app.command("passwd")
def user_passwd(email: str, password: Password, data: DataOption = None, config: ConfigOption = None) -> None:
    """Set a user's password and revoke the earlier tokens, also while a server runs."""
    _run_on_directory(directory_with_data(data, config), "user.passwd", email=email, password=password)
    typer.echo(f"The password of {email} is set; earlier tokens are no longer valid.")


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
    settings = directory_with_data(data, config)
    deleted = _run_on_directory(settings, "user.delete", email=email, applications=applications)
    typer.echo(f"{email} is deleted, and applications: {deleted}.")


@user_app.command("reset-two-factor")
def user_reset_two_factor(email: str, data: DataOption = None, config: ConfigOption = None) -> None:
    """Let a user who has lost the second factor log in with the password alone, also while a server runs."""
    _run_on_directory(directory_with_data(data, config), "user.reset-two-factor", email=email)
    typer.echo(f"{email} logs in with the password alone now.")


@user_app.command("verify-email")
def user_verify_email(email: str, data: DataOption = None, config: ConfigOption = None) -> None:
    """Mark a user's e-mail address as verified, also while a server runs."""
    _run_on_directory(directory_with_data(data, config), "user.verify-email", email=email)
    typer.echo(f"The address {email} is verified.")


@user_app.command("operator")
def user_operator(
    email: str,
    is_operator: Annotated[bool, typer.Option("--on/--off", help="Whether the user is one.")] = True,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Let a user read the figures of the whole server (/metrics), or end that, also while a server runs."""
    directory, role = directory_with_data(data, config), "operator" if is_operator else "none"
    _run_on_directory(directory, "user.operator", email=email, role=role)
    typer.echo(f"{email} is {'an' if is_operator else 'no'} operator.")


@user_app.command("list")
def user_list(data: DataOption = None, config: ConfigOption = None) -> None:
    """List the users, also while a server runs."""
    for id, email, created in _run_on_directory(directory_with_data(data, config), "user.list"):
        typer.echo(f"{id}  {created}  {email}")
