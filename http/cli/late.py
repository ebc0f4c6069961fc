"""Commands that are imported when they run.

A command is registered by its name, the sentence that lists of commands show of it, and the place of its function or of
its group. So `trunkline --version` and `trunkline --help` import no command, and each command only what it uses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand


class LateCommand(TyperCommand):
    """Stands for a command until it runs."""

    place = ""
    """`module:name` of a function or of a `typer.Typer`."""

    def load(self) -> Any:
        """The command itself, or the group."""
        module, _, name = self.place.partition(":")
        found = getattr(import_module(module), name)
        if isinstance(found, typer.Typer):
            command: Any = typer.main.get_group(found)
        else:
            alone = typer.Typer(add_completion=False)
            alone.command()(found)
            command = typer.main.get_command(alone)
        command.name = self.name
        return command

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Parse the arguments of the command itself, which then runs."""
        return self.load().make_context(*arguments, **named)


def loaded(command: Any) -> Any:
    """The command itself, if `command` stands for one."""
    return command.load() if isinstance(command, LateCommand) else command


def prepare_server_imports() -> None:
    """What comes before the server is imported: its largest libraries wait, or are imported without what it never uses.

    The collector of cycles rests until the server configures it.
    """
    from trunkline.http.wire.garbage_collection import pause

    pause()
    with _without("click", "rich"):
        # The one would make a command line of its own, the other print tracebacks with the values of variables, such
        # as passwords, which this server never does.
        import httpx  # noqa: F401
        import structlog  # noqa: F401

    from trunkline.actors.core.runtime.late_imports import put_off

    put_off("numpy")


@contextmanager
def _without(*libraries: str) -> Iterator[None]:
    """Hide libraries that are not imported yet from others, which would import them only because they are installed."""
    hidden: dict[str, Any] = dict.fromkeys(name for name in libraries if name not in sys.modules)
    sys.modules.update(hidden)  # what the import system takes for libraries that are not installed
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def late_command(app: typer.Typer, name: str, place: str, help: str) -> None:
    """Register the command or the group `name`, which is imported from `place` when it runs."""
    late = type("Late", (LateCommand,), {"place": place})
    app.command(name, cls=late, help=help)(_nothing)


def _nothing() -> None:
    """What a late command is made of until it is loaded."""
