"""What a command imports before it does anything. Counts of modules and names of libraries, no times."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from tests.bench.start import environment, imported_modules, libraries, modules_of_serve
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


SERVER = COMMAND_LINE | frozenset(
    {
        "_argon2_cffi_bindings",
        "_cffi_backend",
        "_openssl",
        "aiofiles",
        "argon2",
        "attr",
        "attrs",
        "babel",
        "blinker",
        "cbor2",
        "certifi",
        "cronsim",
        "cryptography",
        "cssselect",
        "flask",
        "flask_swagger_ui",
        "h11",
        "h2",
        "hpack",
        "httptools",
        "httpx",
        "hypercorn",
        "hyperframe",
        "idna",
        "itsdangerous",
        "jinja2",
        "jwt",
        "lmdb",
        "markupsafe",
        "msgspec",
        "outcome",
        "priority",
        "pyotp",
        "quart",
        "quart_trio",
        "re2",
        "sniffio",
        "sortedcontainers",
        "structlog",
        "trio",
        "typing_extensions",
        "websockets",
        "werkzeug",
        "wsproto",
        "zstandard",
    }
)
"""What a server imports until it is ready. A library that only some servers use is imported by them when they use it
(`actors/core/runtime/late_imports.py`), so a name that is added here needs a reason."""


def test_a_server_imports_no_further_library(compiled: dict[str, str], tmp_path: Path) -> None:
    """Nor does a command that opens its directory when it has stopped."""
    data = tmp_path / "data"
    for modules in (
        modules_of_serve(data, compiled),
        imported_modules(["user", "list", "--data", str(data)], compiled),
    ):
        assert libraries(modules) - SERVER == set(), "import it when it is used: docs/architecture.md"
