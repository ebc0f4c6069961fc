"""A child process that runs scripts, as the server sees it.

Owns the start, the exchange of a call for its answer, and the end. Does not own whose call it is, nor how long it may
take: whoever gives up an exchange has to kill the process, because the answer of the old call would come first.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import Final

import msgspec
import trio

from trunkline.actors.core.scripts.errors import CRASHED, ScriptError
from trunkline.actors.core.scripts.protocol import HEADER, Bounds, Failure, frame

_PROGRAM: Final = "trunkline.actors.core.scripts.child"
_READ_BYTES: Final = 64 * 1024
_START_S: Final = 30.0
"""For the start, which takes a tenth of a second on a machine that has nothing else to do."""
_END_S: Final = 5.0
"""Until a killed process is given up. It ends at once unless the system is in trouble."""


class ScriptProcess:
    """One child process. It has nothing of the server but two pipes, the path of its packages, and its bounds."""

    def __init__(self, process: trio.Process, answer_bytes_max: int) -> None:
        assert isinstance(process.stdin, trio.lowlevel.FdStream)
        assert isinstance(process.stdout, trio.lowlevel.FdStream)
        self.calls = 0
        """Those that it has answered."""
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._answer_bytes_max = answer_bytes_max

    @classmethod
    async def start(cls, bounds: Bounds, answer_bytes_max: int) -> ScriptProcess:
        """Start a process and wait until it is ready. Raises ScriptError if there is none."""
        # -P: the working directory is no place for modules. -s: nor is the home directory.
        command = [sys.executable, "-P", "-s", "-m", _PROGRAM, msgspec.json.encode(bounds).decode()]
        environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        if "LD_LIBRARY_PATH" in os.environ:  # without which some interpreters do not start
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        try:
            process = await trio.lowlevel.open_process(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise ScriptError(Failure(CRASHED, f"No process for scripts can be started: {error}.")) from None
        started = cls(process, answer_bytes_max)
        ready = False
        try:
            with trio.move_on_after(_START_S), contextlib.suppress(trio.BrokenResourceError):
                await started.receive()
                ready = True
        finally:
            code = None if ready else await started.end()
        if not ready:
            raise ScriptError(Failure(CRASHED, f"A process for scripts did not start (exit code {code})."))
        return started

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.returncode is not None

    async def exchange(self, call: bytes) -> bytes:
        """Send a call and return its answer, both JSON. Raises `trio.BrokenResourceError` if the process ends."""
        await self._send(frame(call))
        answer = await self.receive()
        self.calls += 1
        return answer

    # The methods of the streams would go through the loop of the scheduler three times for a call. These do it once.

    async def _send(self, text: bytes) -> None:
        rest = memoryview(text)
        try:
            while rest:
                try:
                    rest = rest[os.write(self._stdin.fileno(), rest) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._stdin.fileno())
        except (OSError, trio.ClosedResourceError):
            raise trio.BrokenResourceError("it ended") from None

    async def receive(self) -> bytes:
        """What the process writes next."""
        received = bytearray()
        wanted = HEADER.size
        while len(received) < wanted:
            try:
                await trio.lowlevel.wait_readable(self._stdout.fileno())
                part = os.read(self._stdout.fileno(), _READ_BYTES)
            except (OSError, trio.ClosedResourceError):
                part = b""
            if not part:
                raise trio.BrokenResourceError("it ended")
            received += part
            if wanted == HEADER.size <= len(received):
                wanted += HEADER.unpack_from(received)[0]
                if wanted > self._answer_bytes_max:
                    raise trio.BrokenResourceError(f"it announced an answer of {wanted} bytes")
        return bytes(memoryview(received)[HEADER.size :])

    async def end(self) -> int | None:
        """Kill the process, whatever it does, and return its exit code: -9, unless it had ended before."""
        with trio.move_on_after(_END_S, shield=True):
            self._process.kill()
            await self._process.wait()
            await trio.aclose_forcefully(self._stdin)
            await trio.aclose_forcefully(self._stdout)
        return self._process.returncode
