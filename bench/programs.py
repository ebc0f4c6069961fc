"""The programs that a comparison starts: on free ports, with logs, and stopped by their process ids.

Owns processes and their directory. Does not own which programs they are. A program that refuses to run as root
runs as ``nobody`` if the bench runs as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import trio

from trunkline.bench.cores import on_cores
from trunkline.bench.errors import BenchError

READY_TIMEOUT_S = 60.0
"""Seconds: for a started program to listen on its port."""

STOP_TIMEOUT_S = 15.0
"""Seconds: for a program to end after its stop signal; then it is killed."""

COMMAND_TIMEOUT_S = 120.0
"""Seconds: for a command that prepares something, such as a new database cluster."""

UNPRIVILEGED = "nobody"
_POLL_S = 0.05
_LOG_LINE_MAX = 300
_SBIN = ("/usr/sbin", "/usr/local/sbin", "/sbin")


class ProgramUnavailable(BenchError):
    """A peer cannot take part; the message is the sentence for the report."""


class Workspace:
    """A directory for the data and logs of one peer, and its running programs."""

    def __init__(
        self, directory: Path, bin_directories: Sequence[Path], cores: frozenset[int] | None
    ) -> None:
        self.directory = directory
        self.pids: list[int] = []
        self._bin = bin_directories
        self._cores = cores
        self._running: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []
        directory.mkdir(parents=True)

    def find(self, program: str, package: str) -> str:
        """The path of a program; raises ProgramUnavailable, naming the Debian package that has it."""
        path = os.pathsep.join([*map(str, self._bin), os.environ.get("PATH", os.defpath), *_SBIN])
        found = shutil.which(program, path=path)
        if found is None:
            raise ProgramUnavailable(f"{program} is not installed (Debian: apt-get install {package}).")
        return found

    def make(self, name: str, *, unprivileged: bool = False) -> Path:
        """Create a directory for data; ``unprivileged``: for a program that runs as UNPRIVILEGED."""
        path = self.directory / name
        path.mkdir()
        user = _user(unprivileged)
        if user.name is not None:
            shutil.chown(path, user.name, user.group)
        return path

    @trio.lowlevel.enable_ki_protection
    def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        unprivileged: bool = False,
        stop: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start a program; ``stop`` is the signal for a clean end.

        Protected from KeyboardInterrupt: otherwise a program could run before ``close`` knows of it.
        """
        user = _user(unprivileged)
        with self._log(command[0]).open("wb") as log, on_cores(self._cores):
            process = subprocess.Popen(  # noqa: S603 - the programs that are compared
                command,
                cwd=self.directory,
                env=None if env is None else dict(env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user.name,
                group=user.group,
                extra_groups=user.groups,
            )
        self._running.append((process, stop))
        self.pids.append(process.pid)

    async def run(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        unprivileged: bool = False,
        timeout_s: float = COMMAND_TIMEOUT_S,
    ) -> str:
        """Run a command and return its output. Raises ProgramUnavailable if it fails."""
        user = _user(unprivileged)
        with trio.move_on_after(timeout_s):
            done = await trio.run_process(
                command,
                cwd=self.directory,
                env=None if env is None else dict(env),
                capture_stdout=True,
                stderr=subprocess.STDOUT,
                check=False,
                user=user.name,
                group=user.group,
                extra_groups=user.groups,
            )
            text: str = done.stdout.decode("utf-8", "replace").strip()
            if done.returncode == 0:
                return text
            raise ProgramUnavailable(f"{Path(command[0]).name} failed: {_last_line(text)}")
        raise ProgramUnavailable(f"{Path(command[0]).name} did not end in {timeout_s:g} s.")

    async def listens(self, port: int) -> None:
        """Wait until a program listens on the port; raises ProgramUnavailable if one ends or it takes too long."""
        await self.until(lambda: _listens(port))

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until ``ready`` is true; raises ProgramUnavailable if a program ends before, or it takes too long."""
        with trio.move_on_after(READY_TIMEOUT_S):
            while not ready():
                for process, _ in self._running:
                    if process.poll() is not None:
                        raise ProgramUnavailable(self._failure(process, f"ended with {process.returncode}"))
                await trio.sleep(_POLL_S)
            return
        raise ProgramUnavailable(
            self._failure(self._running[-1][0], f"was not ready after {READY_TIMEOUT_S:g} s")
        )

    @trio.lowlevel.enable_ki_protection
    def close(self) -> None:
        """Stop all programs that were started here, the last one first, and delete the directory.

        Protected from KeyboardInterrupt, so that a second signal does not leave a program running.
        """
        while self._running:
            process, stop = self._running.pop()
            _stop(process, stop)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _log(self, program: str) -> Path:
        return self.directory / f"{Path(program).name}.log"

    def _failure(self, process: subprocess.Popen[bytes], what: str) -> str:
        program = str(process.args[0]) if isinstance(process.args, list | tuple) else str(process.args)
        try:
            reason = _last_line(self._log(program).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            reason = ""
        return f"{Path(program).name} {what}{f': {reason}' if reason else '.'}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of 127.0.0.1 that is not in use now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _stop(process: subprocess.Popen[bytes], stop: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(stop)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # The program has a session of its own, so its child processes are killed too.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_TIMEOUT_S)


class _User(NamedTuple):
    """The user of a program, as parameters of ``subprocess``; None is the current user."""

    name: str | None
    group: int | None
    groups: list[str | int] | None


def _user(unprivileged: bool) -> _User:
    if unprivileged and os.geteuid() == 0:
        return _User(UNPRIVILEGED, pwd.getpwnam(UNPRIVILEGED).pw_gid, [])
    return _User(None, None, None)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LOG_LINE_MAX] if lines else "no output"
