"""The server as a separate process, started as an operator starts it.

For tests of signals, crashes, exit codes, limits of the operating system and printed output, which cannot be tested
within the process of the tests.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import DOMAINS, EMAIL, ENGINE, PASSWORD, TOKEN_TTL_S, Server
from tests.forked import ForkedProcess, open_forked, run_forked
from tests.patience import PATIENCE_S
from trunkline.store.crash_record import RECORD

CLI = ("-m", "trunkline.http.cli.main")
OWNER = {"TRUNKLINE_ADMIN_EMAIL": EMAIL, "TRUNKLINE_ADMIN_PASSWORD": PASSWORD}
NOTE_CHARACTERS_MAX = 10_000
ABORT_S = 10
"""Enough for a server that can still take a signal."""
LISTENING = re.compile(r" at (https?://\S+) ")


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without the variables that configure the server, and `more`."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("TRUNKLINE_")}
    return {
        **inherited,
        "TRUNKLINE_ENGINE": ENGINE,
        "TRUNKLINE_EXPERIENCE_DOMAINS": DOMAINS,
        "TRUNKLINE_TOKEN_TTL_S": str(TOKEN_TTL_S),
        **more,
    }


class ServerProcess(Server):
    """A server in a separate process. It has no `system` to inspect: only its API, its output and its exit code."""

    def __init__(self, process: trio.Process | ForkedProcess, data_dir: Path, log: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self.url = ""
        self.token = ""
        self.printed = ""
        self._log = log
        self._changed = trio.Event()
        self._silent = False

    @property
    def log(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait until it has ended; returns its exit code (negative: the signal that killed it)."""
        with trio.fail_after(PATIENCE_S):
            code: int = await self.process.wait()
        return code

    async def kill(self) -> None:
        """Kill it with SIGKILL, and wait until it has ended."""
        self.process.kill()
        assert await self.ended() == -signal.SIGKILL

    async def terminate(self) -> int:
        """Ask it to drain, and return its exit code."""
        self.send_signal(signal.SIGTERM)
        return await self.ended()

    async def abort(self) -> str:
        """End it if it still runs. Returns the end of its log, and what its threads were doing."""
        if self.process.returncode is None:
            self.send_signal(signal.SIGABRT)
            self.send_signal(signal.SIGCONT)
            with trio.move_on_after(ABORT_S, shield=True):
                await self.process.wait()
        crash = self.data_dir / RECORD
        stacks = crash.read_text() if crash.exists() else ""
        return f"The end of the server's log:\n{self.log[-NOTE_CHARACTERS_MAX:]}\n{stacks}"

    async def listens(self) -> bool:
        """Wait until it has printed its URL. False if it ended without printing it."""
        found = await self._printed(LISTENING)
        if found is not None:
            self.url = found[1]
        return found is not None

    async def prints(self, pattern: str) -> re.Match[str]:
        """Wait until what it printed matches."""
        found = await self._printed(re.compile(pattern))
        assert found is not None, f"it ended without {pattern}:\n{self.printed}\n{self.log}"
        return found

    async def output(self) -> str:
        """Wait until it has ended; returns all that it printed."""
        with trio.fail_after(PATIENCE_S):
            while not self._silent:
                await self._changed.wait()
        return self.printed

    async def _printed(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        with trio.fail_after(PATIENCE_S):
            while True:
                found = pattern.search(self.printed)
                if found is not None or self._silent:
                    return found
                await self._changed.wait()

    async def collect(self) -> None:
        """Collect what it prints, until it ends."""
        assert self.process.stdout is not None
        received = b""
        async for piece in self.process.stdout:
            received += piece
            self.printed = received.decode("utf-8", "replace")
            self._wake()
        self._silent = True
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()


@asynccontextmanager
async def started(
    data_dir: Path,
    *arguments: str,
    program: Sequence[str] = CLI,
    env: Mapping[str, str] = OWNER,
    cold: bool = False,
    python: str = sys.executable,
    stdin: int | None = None,
    preload: str = "",
) -> AsyncIterator[ServerProcess]:
    """Start a server process on 127.0.0.1, port 0, without waiting; killed at the end if it still runs.

    It is forked from a process that has imported the server. One whose memory or start is measured has to be `cold`: an
    interpreter of its own, and so has one of another version, whose interpreter is `python`. One that is forked may
    have a library preloaded.
    """
    log = data_dir.with_name(f"{data_dir.name}.log")
    command = [*program, "serve", "--port", "0", "--data", str(data_dir), *arguments]
    with log.open("ab") as errors:
        output, variables = subprocess.PIPE, environment(env)
        process: trio.Process | ForkedProcess
        if cold:
            process = await trio.lowlevel.open_process(
                [python, *command], env=variables, stdin=stdin, stdout=output, stderr=errors
            )
        else:
            process = open_forked(
                command, env=variables, stdin=stdin, stdout=output, stderr=errors.fileno(), preload=preload
            )
    server = ServerProcess(process, data_dir, log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.collect)
        try:
            yield server
        except BaseException as problem:
            problem.add_note(await server.abort())
            raise
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await server.ended()


@asynccontextmanager
async def serving(data_dir: Path, *arguments: str, **options: Any) -> AsyncIterator[ServerProcess]:
    """A server process that listens. The owner is logged in."""
    async with started(data_dir, *arguments, **options) as server:
        assert await server.listens(), f"it ended at once:\n{server.log}"
        server.token = await server.log_in()
        yield server


def processes(server: ServerProcess) -> dict[str, int]:
    """The ids of the processes of a server, by what they are."""
    found: dict[str, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has just ended
        if parent == server.process.pid and b"trunkline.http.cli.process" in arguments:
            found[arguments[-2].decode()] = int(folder.name)
    return found


async def trunkline(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    cwd: Path | None = None,
    cold: bool = False,
    preload: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line to its end. Forked, as in `started`, unless it is to be `cold`."""
    command, variables = [*CLI, *arguments], environment(env or {})
    done: subprocess.CompletedProcess[bytes]
    with trio.fail_after(PATIENCE_S):
        if cold:
            done = await trio.run_process(
                [sys.executable, *command],
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                stdin=stdin,
                env=variables,
                cwd=cwd,
            )
        else:
            done = await run_forked(command, env=variables, stdin=stdin, cwd=cwd, preload=preload)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The error of a failed command: exit code 1, one line on standard error, and no traceback."""
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("trunkline: "), line
    return line.removeprefix("trunkline: ")
