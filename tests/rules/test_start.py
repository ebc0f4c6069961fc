"""What a command imports before it does anything. Counts of modules and names of libraries, no times."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from tests.bench.start import environment, imported_modules, libraries
from trunkline.http.cli.late import loaded
from trunkline.http.cli.main import COMMANDS, app

COMMAND_LINE = frozenset({"annotated_doc", "click", "shellingham", "typer"})
"""The library of the command line and what it imports itself; older versions of it import Click."""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables for a process whose compiled modules are kept for the next one."""
    return environment(tmp_path_factory.mktemp("compiled"))


def test_the_version_imports_only_the_command_line(compiled: dict[str, str]) -> None:
    modules = imported_modules(["--version"], compiled)
    assert libraries(modules) - COMMAND_LINE == set()
    ours = {name for name in modules if name.startswith("trunkline.")}
    assert ours <= {
        "trunkline.http",
        "trunkline.http.cli",
        "trunkline.http.cli.late",
        "trunkline.http.version",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_says(name: str) -> None:
    """The sentence is kept with the name, so that the list imports no command."""
    group = typer.main.get_command(app)
    command = loaded(group.commands[name])  # type: ignore[attr-defined]
    assert (command.help or "").split("\n\n")[0].replace("\n", " ") == COMMANDS[name][1]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["user", "--help"], ["serve", "--help"], ["check", "--help"]]
)
def test_help_imports_no_server(arguments: list[str], compiled: dict[str, str], tmp_path: Path) -> None:
    modules = imported_modules(arguments, compiled)
    assert {
        name for name in modules if name.startswith(("trunkline.actors", "trunkline.store", "quart"))
    } == set()
