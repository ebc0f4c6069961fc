"""`serve --demo` shows a newcomer something at once, and the lines that it prints work as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, ServerProcess, started, trunkline
from tests.e2e.shells import SHELLS, pasted, path_with_curl, with_owner
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

LINE = re.compile(r"^  (export .*|curl .*)$", re.MULTILINE)


async def demo_lines(server: ServerProcess) -> list[str]:
    """The lines that the demo prints to be tried."""
    await server.prints(r"The token is valid for a day")
    return [found[1] for found in LINE.finditer(server.printed)]


async def test_the_printed_lines_work_as_they_stand(tmp_path: Path) -> None:
    """On the first start, and on a later one that knows nobody's password."""
    path = path_with_curl(tmp_path)
    for start in range(2):
        async with started(tmp_path / "data", "--demo", env={}) as server:
            export, *calls = await demo_lines(server)
            assert export.startswith("export TOKEN=")
            assert len(calls) == 3
            read, command, watch = calls
            (state,) = json.loads(await pasted([export, read], path))
            assert state["data"]
            assert json.loads(await pasted([export, command], path)) == {"success": True}
            assert b"event: deviceState" in await pasted([export, watch], path, until=b"deviceState")
            assert ("First user" in server.printed) == (start == 0)
            console, person, *_ = server.printed.splitlines()
            assert await server.listens()
            assert console == f"The console: {server.url}/console"
            assert person.startswith("First user: " if start == 0 else "Log in as admin@localhost ")
            assert await server.terminate() == 0
            assert "Traceback" not in server.log


def readme_calls(checkout: Path, url: str) -> list[str]:
    """The lines of the README that are to be pasted, for this server and its owner."""
    section = (checkout / "README.md").read_text("utf-8").partition("\n## Three calls to try\n")[2]
    lines = "".join(re.findall(r"^```console\n(.*?)^```$", section.partition("\n## ")[0], re.M | re.S))
    return with_owner(lines, url).splitlines()


async def test_the_calls_of_the_readme_work_in_every_shell(tmp_path: Path, checkout: Path) -> None:
    """Also when the demo is not the first application of the user, and in zsh, which expands a bare `?`."""
    path = path_with_curl(tmp_path)
    async with started(tmp_path / "data", "--demo") as server:
        await demo_lines(server)
        assert await server.listens()
        server.token = await server.log_in()
        await server.call("POST", "/applications", {"name": "A house of one's own"})
        *calls, watch = readme_calls(checkout, server.url)
        for shell in SHELLS:
            state, answer = (await pasted(calls, path, shell_name=shell)).split(b"]", 1)
            assert json.loads(state + b"]")[0]["data"]["target"], shell
            assert json.loads(answer) == {"success": True}, shell
            shown = await pasted([*calls, watch], path, until=b"deviceState", shell_name=shell)
            assert b"event: deviceState" in shown, shell


async def test_the_printed_token_is_for_devices_only(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--demo") as server:
        export, *_ = await demo_lines(server)
        assert await server.listens()
        token = export.removeprefix("export TOKEN=")
        await server.call("GET", "/me", token=token, status=403)
        await server.call("POST", "/applications", {"name": "mine"}, token=token, status=403)


async def test_the_demo_outlives_a_new_password_and_its_application(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--demo") as server:
        await demo_lines(server)
        assert await server.listens()
        new = "Another-horse-8"
        changed = await trunkline(
            "user",
            "passwd",
            OWNER["TRUNKLINE_ADMIN_EMAIL"],
            "--password",
            new,
            "--data",
            str(tmp_path / "data"),
        )
        assert changed.returncode == 0, changed.stderr
        server.token = await server.log_in(password=new)
        (application,) = (await server.call("GET", "/applications"))["items"]
        place = f"/applications/{application['id']}"
        before = (await server.call("GET", f"{place}/payloadCounts"))["deviceState"]["total"]
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{place}/payloadCounts"))["deviceState"]["total"] < before + 12:
                await trio.lowlevel.checkpoint()
        await server.call("DELETE", place)
        await server.prints("All devices of the demo are deleted")
        await server.call("GET", "/readyz", token="")
        assert await server.terminate() == 0
