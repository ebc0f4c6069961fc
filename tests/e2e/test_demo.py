"""`serve --demo` shows a newcomer something at once, and the lines that it prints work as they stand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, ServerProcess, environment, started, trunkline
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

LINE = re.compile(r"^  (export .*|curl .*)$", re.MULTILINE)

# For a machine without curl: the few options that the printed lines use, in their meaning.
STAND_IN = f"""#!{sys.executable}
import argparse, sys, urllib.request
parser = argparse.ArgumentParser()
parser.add_argument("-s", action="store_true")
parser.add_argument("-N", action="store_true")
parser.add_argument("-H", action="append", default=[])
parser.add_argument("-d")
parser.add_argument("url")
given = parser.parse_args()
headers = dict(header.split(": ", 1) for header in given.H)
body = None if given.d is None else given.d.encode()
with urllib.request.urlopen(urllib.request.Request(given.url, body, headers)) as answer:
    while piece := answer.read1():
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
"""


def path_with_curl(tmp_path: Path) -> str:
    """The search path of the shell, with a stand-in where there is no curl."""
    path = os.environ["PATH"]
    if shutil.which("curl") is not None:
        return path
    stand_in = tmp_path / "bin" / "curl"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    return f"{stand_in.parent}{os.pathsep}{path}"


async def pasted(lines: list[str], path: str, until: bytes | None = None, shell_name: str = "sh") -> bytes:
    """What a shell prints for these lines: all of it, or as much as has `until` in it."""
    shell = await trio.lowlevel.open_process(
        [shell_name, "-e"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment({"PATH": path, "no_proxy": "*"}),
        start_new_session=True,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    said = b""
    with trio.fail_after(PATIENCE_S):
        await shell.stdin.send_all("\n".join(lines).encode() + b"\n")
        await shell.stdin.aclose()
        async for piece in shell.stdout:
            said += piece
            if until is not None and until in said:
                os.killpg(shell.pid, 15)
                until = None
        await shell.wait()
    return said


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
            assert await server.terminate() == 0
            assert "Traceback" not in server.log


def readme_calls(checkout: Path, url: str) -> list[str]:
    """The lines of the README that are to be pasted, for this server and its owner."""
    section = (checkout / "README.md").read_text("utf-8").partition("\n## Three calls to try\n")[2]
    lines = "".join(re.findall(r"^```console\n(.*?)^```$", section.partition("\n## ")[0], re.M | re.S))
    for shown, here in (
        ("http://127.0.0.1:8080", url),
        ("admin@localhost", OWNER["TRUNKLINE_ADMIN_EMAIL"]),
        ("PASSWORD", OWNER["TRUNKLINE_ADMIN_PASSWORD"]),
    ):
        assert lines.count(shown) == 1
        lines = lines.replace(shown, here)
    return lines.splitlines()


async def test_the_calls_of_the_readme_work_in_every_shell(tmp_path: Path, checkout: Path) -> None:
    """Also when the demo is not the first application of the user, and in zsh, which expands a bare `?`."""
    path = path_with_curl(tmp_path)
    shells = [name for name in ("sh", "bash", "zsh") if shutil.which(name) is not None]
    async with started(tmp_path / "data", "--demo") as server:
        await demo_lines(server)
        assert await server.listens()
        server.token = await server.log_in()
        await server.call("POST", "/applications", {"name": "A house of one's own"})
        *calls, watch = readme_calls(checkout, server.url)
        for shell in shells:
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
        await server.call("GET", "/readyz", token="")
        assert await server.terminate() == 0
