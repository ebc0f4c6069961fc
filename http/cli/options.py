"""What commands on a data directory share: their options, and the effective settings."""

from __future__ import annotations

import dataclasses
import logging
import os
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import CONFIG_VARIABLE, Settings, load_settings
from trunkline.limits.table import Limits

DataOption = Annotated[
    str | None, typer.Option("--data", metavar="DIR", help="The data directory (default: ./trunkline-data).")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE.toml", help="A configuration file.")
]

PASSWORD_VARIABLE = "TRUNKLINE_PASSWORD_FOR_USER"  # noqa: S105 - the name of a variable
"""The password for `user add` and `user passwd`: an argument of these commands, not a setting."""


def effective_settings(config: Path | None, limits: str | None = None, **overrides: object) -> Settings:
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


def log_errors_only() -> None:
    """Of what a server would log, a command shows errors only: it says what it has done."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


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


def no_server_at(directory: Path) -> SettingsError:
    """The failure of a command that a running server has to answer."""
    return SettingsError(
        str(directory), "is served by no server that answers", "start the server, and repeat the command"
    )


def usable(settings: Settings, *, writes: bool = False) -> Settings:
    """The same settings, for a command that may make the data directory.

    Raises `StoreError` if this user may not read it, or if a command that `writes` there finds the data of another one.
    """
    from trunkline.actors.core.values.store_directory import check_access, check_owner

    check_access(Path(settings.data_dir))
    if writes:
        check_owner(Path(settings.data_dir))
    return settings


def existing_directory(data: str | None, config: Path | None, *, writes: bool = False) -> Settings:
    """The settings, for a command on an existing data directory, one that `writes` to it or not.

    Raises `SettingsError` if there is none, and `StoreError` for another user's.
    """
    settings = usable(effective_settings(config, data_dir=data), writes=writes)
    if not Path(settings.data_dir).is_dir():
        raise SettingsError(settings.data_dir, "is not a data directory", "name the right one with --data")
    return settings


def directory_with_data(data: str | None, config: Path | None, *, writes: bool = True) -> Settings:
    """The same, for a command that reads or changes what the directory holds. Raises `StoreError` if that is lost."""
    from trunkline.actors.core.values.store_directory import check_not_lost, has_data

    settings = existing_directory(data, config, writes=writes)
    if not has_data(Path(settings.data_dir)):
        check_not_lost(Path(settings.data_dir))
        raise SettingsError(settings.data_dir, "holds no data", "name the right one with --data")
    return settings
