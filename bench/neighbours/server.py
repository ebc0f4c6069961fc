"""The server that is measured: started with its defaults for each measurement, on a copy of a directory with the users.

Owns its processes and directories. A server still has runs and jobs of an attack when it is over, so each measurement
begins with a new one. `python` chooses the installation, so that another version can be measured by the same tool.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.bench.neighbours.tenant import Account
from trunkline.bench.programs import Workspace, free_port

_MAIN = "from trunkline.http.cli.main import main; main()"
_ADD = """\
import sys
from trunkline.http.cli.main import main

data, *emails = sys.argv[1:]
for email in emails:
    sys.argv[1:] = ["user", "add", email, "--data", data]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""
_PASSWORD_VARIABLE = "TRUNKLINE_PASSWORD_FOR_USER"  # noqa: S105 - the name of a variable


class Installation:
    """Servers of one installation, each with the same users."""

    def __init__(self, python: str, work: Path) -> None:
        self._python = python
        self._work = work
        self._users = work / "users"
        self._servers = 0

    async def add_users(self, count: int) -> list[Account]:
        """Make the directory that has so many users."""
        password = f"Bench-{secrets.token_hex(12)}"
        accounts = [Account(f"bench{number}@localhost.localdomain", password) for number in range(count)]
        workspace = Workspace(self._work / "adding", [], None)
        try:
            self._users.mkdir()
            env = {**self._env(), _PASSWORD_VARIABLE: password}
            emails = [account.email for account in accounts]
            await workspace.run([self._python, "-c", _ADD, str(self._users), *emails], env=env)
        finally:
            workspace.close()
        return accounts

    @asynccontextmanager
    async def server(self) -> AsyncIterator[str]:
        """A new server; its address."""
        self._servers += 1
        workspace = Workspace(self._work / f"server{self._servers}", [], None)
        try:
            data, port = workspace.directory / "data", free_port()
            shutil.copytree(self._users, data)
            workspace.start(
                [self._python, "-c", _MAIN, "serve", "--data", str(data), "--port", str(port)],
                env={**self._env(), "TRUNKLINE_TRUST_FORWARDED_FOR": "true"},
            )
            await workspace.listens(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            workspace.close()

    @staticmethod
    def _env() -> dict[str, str]:
        return {name: text for name, text in os.environ.items() if not name.startswith("TRUNKLINE_")}
