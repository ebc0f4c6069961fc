"""Every command works as the first thing that an interpreter does: it imports what it needs.

The other tests fork commands from a process in which everything is imported (`tests/forked.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.e2e.conftest import EMAIL, PASSWORD, running_server
from tests.e2e.server_process import serving, trunkline
from trunkline.http.cli.late import loaded
from trunkline.http.cli.main import app

OTHER = "ann@example.com"
ON_A_DIRECTORY = {
    "user add": (OTHER, "--password", PASSWORD),
    "user passwd": (EMAIL, "--password", PASSWORD),
    "user delete": (EMAIL,),
    "user reset-two-factor": (EMAIL,),
    "user verify-email": (EMAIL,),
    "user operator": (EMAIL,),
    "user list": (),
    "secret rotate": (),
    "secret rekey": (),
    "backup": ("copy",),
    "check": (),
    "cluster status": (),
    "cluster invite": (),
    "cluster give": ("b",),
    "cluster spread": (),
    "cluster init": (
        *("--node", "a", "--address", "127.0.0.1:8470", "--nats", "nats://127.0.0.1:1"),
        *("--blobs", "files", "--config", "missing/a.toml"),
    ),
    "cluster join": (
        *("127.0.0.1:1/none", "--node", "b", "--address", "127.0.0.1:8470"),
        *("--config", "b.toml"),
    ),
    "cluster new-log": (),
    "cluster rejoin": (),
    "partition": (),
    "partition balance": (),
    "partition move": ("0" * 24, "0"),
}
"""Commands with `--data`, and their arguments."""
NO_SERVER = "is served by no server that answers"
NO_LOG = "cluster_nats is not set"
REFUSED = {
    "user delete": "is the only user",
    "cluster status": NO_SERVER,
    "cluster invite": NO_SERVER,
    "cluster give": NO_SERVER,
    "cluster spread": NO_SERVER,
    "cluster init": "is in a folder that does not exist",
    "cluster join": "has data or a secret already",
    "cluster new-log": NO_LOG,
    "cluster rejoin": NO_LOG,
    "partition move": NO_SERVER,
}
ALONE = ("routes", "openapi", "version", "--version", "--help")
ON_FILES = {
    "archive check": ("none",),
    "archive read": ("none", "--device", "0" * 24),
    "flow test": ("none",),
    "flow convert": ("none",),
    "template convert": ("none",),
}
"""Commands that read files, of which there are none, and their arguments."""
TO_A_SERVER = {"demo": (), "link": ("0" * 24, "0" * 24), "bench state": ()}
"""Commands that call a server, for which they need to know who logs in, and their arguments."""


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all commands."""
    command = loaded(command)
    group = getattr(command, "commands", None)
    if group is None or (path and command.invoke_without_command):
        yield " ".join(path)
    if group is not None:
        for name, member in group.items():
            yield from commands(member, (*path, name))


def test_no_command_is_forgotten() -> None:
    """One of the bench stands for all of them: they are in one module."""
    known = {*ON_A_DIRECTORY, *ALONE, *ON_FILES, *TO_A_SERVER, "serve", "cluster try"}
    there = set(commands(typer.main.get_command(app)))
    assert {name for name in there - known if not name.startswith("bench ")} == set()
    assert {name for name in known - there if not name.startswith("--")} == set()


@pytest.mark.slow
@pytest.mark.parametrize("command", ON_A_DIRECTORY)
async def test_a_command_on_a_directory(tmp_path: Path, command: str) -> None:
    async with running_server(tmp_path / "data", partitions=1):
        pass
    arguments = (*command.split(), *ON_A_DIRECTORY[command], "--data", str(tmp_path / "data"))
    done = await trunkline(*arguments, cwd=tmp_path, cold=True)
    assert REFUSED.get(command, "") in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if command in REFUSED else 0), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ALONE)
async def test_a_command_that_prints(command: str) -> None:
    done = await trunkline(command, cold=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ON_FILES)
async def test_a_command_on_files(tmp_path: Path, command: str) -> None:
    done = await trunkline(*command.split(), *ON_FILES[command], cwd=tmp_path, cold=True)
    assert (done.returncode, "none" in done.stderr, "Traceback" in done.stderr) == (1, True, False), (
        done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", TO_A_SERVER)
async def test_a_command_to_a_server(command: str) -> None:
    done = await trunkline(*command.split(), *TO_A_SERVER[command], cold=True)
    assert (done.returncode, "Give --" in done.stderr, "Traceback" in done.stderr) == (2, True, False), (
        done.stderr
    )


@pytest.mark.slow
async def test_a_server_starts_serves_and_stops(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", cold=True) as server:
        assert (await server.call("GET", "/me"))["email"] == EMAIL
        assert await server.call("GET", "/openapi.json", token="")
        assert await server.terminate() == 0
