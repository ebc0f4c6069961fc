"""Python programs that tests start, forked from a process that has imported the server (`tests/fork_server.py`).

Owns the fork server of this process, and the handle of a forked program, which has what tests use of `trio.Process`.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

import trio

from tests import costs
from tests.fork_server import MESSAGE_BYTES, STANDARD

CHECKOUT = Path(__file__).resolve().parent.parent


class ForkedProcess:
    """A running program, which is no child of this process."""

    def __init__(
        self, id: int, descriptor: int, answers: socket.socket, pipes: Mapping[int, trio.lowlevel.FdStream]
    ) -> None:
        self.pid = id
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = (pipes.get(number) for number in range(STANDARD))
        self._descriptor = descriptor
        self._answers = answers

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it may have just ended
                signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        """Send it SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        """The exit code, as that of `subprocess.Popen`; None while it runs."""
        if self.returncode is None:
            try:
                said = self._answers.recv(MESSAGE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            if not said:
                raise RuntimeError("the fork server has ended")
            end = json.loads(said)
            self.returncode = end["code"]
            costs.add_child(end["cpu_s"])
            self._answers.close()
            os.close(self._descriptor)
        return self.returncode

    async def wait(self) -> int:
        """Wait until it has ended; returns the exit code."""
        while (code := self.poll()) is None:
            await trio.lowlevel.wait_readable(self._answers)
        return code


class ForkServer:
    """The fork server of this process, which ends with it."""

    def __init__(self, preload: str = "") -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())]
        # Numpy's threads would not live on in a fork.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        if preload:
            environment["LD_PRELOAD"] = preload
        with theirs:
            self._process = subprocess.Popen(
                command,
                cwd=CHECKOUT,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def start(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        streams: Sequence[int],
    ) -> tuple[int, int, socket.socket]:
        """Start a program; returns its id, a descriptor of its process, and the socket that tells its end."""
        ours, theirs = socket.socketpair()
        program = json.dumps({"arguments": arguments, "env": dict(env), "cwd": str(cwd)}).encode()
        said = b""
        descriptors: list[int] = []
        with theirs, suppress(BrokenPipeError):
            socket.send_fds(self._control, [program], [*streams, theirs.fileno()])
        with suppress(ConnectionResetError):
            said, descriptors, _, _ = socket.recv_fds(ours, MESSAGE_BYTES, 1)
        if not said:
            ours.close()
            raise RuntimeError("The fork server has ended; its standard error says why.")
        return int(said), descriptors[0], ours

    def end(self) -> None:
        """Let it end, and with it all programs that still run."""
        self._control.close()
        self._process.wait()


@cache
def fork_server(preload: str = "") -> ForkServer:
    """That of this process with a library preloaded, or without one; started when it is needed first."""
    server = ForkServer(preload)
    atexit.register(server.end)
    return server


def open_forked(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    cwd: Path | None = None,
    preload: str = "",
) -> ForkedProcess:
    """Start `python ARGUMENTS`: `-m MODULE`, `-c CODE` or a file first. The streams are as of `subprocess.Popen`.

    `preload` is a library between the program and the system.
    """
    costs.count_process([sys.executable, *arguments])
    streams, pipes = [], {}
    with ExitStack() as after_start:
        for number, given in enumerate((stdin, stdout, stderr)):
            if given == subprocess.PIPE:
                ends = os.pipe()
                ours, theirs = ends if number else reversed(ends)
                after_start.callback(os.close, theirs)
                pipes[number] = trio.lowlevel.FdStream(ours)
            else:
                theirs = number if given is None else given
            streams.append(theirs)
        id, descriptor, answers = fork_server(preload).start(arguments, env, cwd or Path.cwd(), streams)
    return ForkedProcess(id, descriptor, answers, pipes)


async def run_forked(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: bytes = b"",
    cwd: Path | None = None,
    preload: str = "",
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, as `trio.run_process` with captured output does."""
    pipe = subprocess.PIPE
    process = open_forked(arguments, env=env, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, preload=preload)
    printed: dict[int, bytes] = {}

    async def feed() -> None:
        assert process.stdin is not None
        async with process.stdin as stream:
            with suppress(trio.BrokenResourceError):  # it need not read all
                await stream.send_all(stdin)

    async def collect(number: int, stream: trio.lowlevel.FdStream | None) -> None:
        assert stream is not None
        async with stream:
            printed[number] = b"".join([piece async for piece in stream])

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(feed)
            nursery.start_soon(collect, 1, process.stdout)
            nursery.start_soon(collect, 2, process.stderr)
            code = await process.wait()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
    return subprocess.CompletedProcess([*arguments], code, printed[1], printed[2])
