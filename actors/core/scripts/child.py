"""The program that runs scripts, one after the other, each in a context of its own.

Owns what one process does: it reads a call, runs it, and writes the answer. Does not own its life, which is
`process.py`. A script is hostile until proven otherwise, so the process has bounds: memory of the scripts, address
space, CPU of each call; it can neither open nor write a file. It ends when its standard input does. A process whose
server was killed while a script ran ends as well, because the system ends it after the CPU of one call.

The next context is prepared after an answer was written, so no call waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import BinaryIO, Final

# The module around it, `quickjs`, starts a thread when it is imported.
import _quickjs
import msgspec

from trunkline.actors.core.scripts.errors import TIMEOUT, TOO_LARGE, TYPE_ERROR
from trunkline.actors.core.scripts.protocol import Bounds, frame, read_frame


def library(name: str) -> str:
    """A file of JavaScript as one line without comments; see `prelude.js`."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return " ".join(line.strip() for line in lines if not line.lstrip().startswith("//"))


_PRELUDE: Final = library("prelude.js")
_LIBRARIES: Final = {"console": library("console.js"), "Buffer": library("buffer.js")}
"""By the names under which scripts know them. Compiling both takes more than running most scripts."""

_STACK_BYTES: Final = 512 * 1024
_CPU_RESERVE_S: Final = 2
"""CPU beside that of a script until the system ends the process: reading, writing, preparing a context."""
_NICE: Final = 10
"""Priority that the processes give away: a tenth of a core is left to them beside a server that needs all."""
_INTERRUPTED: Final = "InternalError: interrupted"
"""What the engine says when a script has used its time. No script can throw it past the prelude, which catches."""

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')
_ESCAPES: Final = re.compile(rb"\\(?:u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL)


class Sandbox:
    """A new context of JavaScript with what scripts find there, for one call."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._context = _quickjs.Context()
        self._context.set_memory_limit(bounds.memory_bytes)
        self._context.set_max_stack_size(_STACK_BYTES)
        self._context.set_time_limit(bounds.cpu_s)
        self._part = self._context.eval(_PRELUDE)(bounds.payload_bytes_max, bounds.log_bytes_max)

    def run(self, call: str) -> bytes:
        """Run a `Call` and return its `Answer`, both as JSON."""
        began_s = time.process_time()
        outcome = self._outcome(call)
        if time.process_time() - began_s >= self._bounds.cpu_s:
            # A promise makes a rejection of the interruption, so an outcome says nothing.
            stack = json.loads(outcome)["error"]["stack"] if outcome.startswith(b'{"error"') else ""
            outcome = self._used_up(stack)
        try:
            logs: bytes = self._part("logs")().encode()
        except (_quickjs.JSException, MemoryError):
            logs = b"[]"
        return _ESCAPES.sub(_well_formed, outcome[:-1] + b',"logs":' + logs + b"}")

    def _used_up(self, stack: str) -> bytes:
        return _failure(TIMEOUT, f"The script used {self._bounds.cpu_s:g} s of CPU time.", stack)

    def _outcome(self, call: str) -> bytes:
        """The answer without the logs."""
        try:
            for name, source in _LIBRARIES.items():
                if name in call:
                    self._context.eval(source)(self._part("kit"))
            outcome: bytes = self._part("call")(call).encode()
        except _quickjs.JSException as error:
            # The prelude catches what a script throws. What comes here cannot be caught there, or memory is lacking.
            head, _, stack = str(error).partition("\n")
            if head == _INTERRUPTED:
                # Told by the engine, which has its own clock: ours may show a little less than the bound.
                return self._used_up(stack)
            name, _, message = head.partition(": ")
            return _failure(name, message, stack)
        except MemoryError:
            return _failure("InternalError", "out of memory")
        except UnicodeDecodeError:
            return _failure(TYPE_ERROR, "The result has text that is not valid Unicode.")
        if outcome.startswith(b'{"error"'):
            return outcome
        if len(outcome) - len('{"value":}') > self._bounds.payload_bytes_max:
            return _failure(TOO_LARGE, f"The result is larger than {self._bounds.payload_bytes_max} bytes.")
        levels = self._bounds.nesting_max
        if _nests_deeper(outcome, levels + 1):
            return _failure(TYPE_ERROR, f"The result nests deeper than {levels} levels; make it flatter.")
        return outcome


def _failure(name: str, message: str, stack: str = "") -> bytes:
    error = {"name": name, "message": message, "stack": stack}
    return b'{"error":' + json.dumps(error, ensure_ascii=False).encode() + b"}"


def _nests_deeper(text: bytes, levels: int) -> bool:
    """Whether a JSON text has more levels of arrays and objects, found without recursion."""
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    depth = 0
    for found in _BRACKETS.finditer(text):
        first = found[0][0]
        depth += (first in b"[{") - (first in b"]}")
        if depth > levels:
            return True
    return False


def _well_formed(escape: re.Match[bytes]) -> bytes:
    """A replacement character for half of a pair, which JavaScript allows in a text and Unicode does not.

    JavaScript writes whole pairs as they are, so an escaped one is a half.
    """
    return rb"\ufffd" if len(escape[0]) > 2 else escape[0]


def main(arguments: list[str]) -> None:
    """Answer calls until the standard input ends. An empty answer comes first. The argument is the `Bounds`."""
    bounds = msgspec.json.decode(arguments[0], type=Bounds)
    _leave_cores_to_server()
    _bound_process(bounds)
    calls, answers = sys.stdin.buffer, sys.stdout.buffer
    sandbox = Sandbox(bounds)
    _write(answers, b"")
    while (call := read_frame(calls)) is not None:
        _limit(resource.RLIMIT_CPU, int(time.process_time() + bounds.cpu_s) + _CPU_RESERVE_S)
        _write(answers, sandbox.run(call.decode()))
        del call, sandbox
        sandbox = Sandbox(bounds)


def _write(answers: BinaryIO, text: bytes) -> None:
    answers.write(frame(text))
    answers.flush()


def _leave_cores_to_server() -> None:
    """Take a core only while the server does not need it: a script may compute as long as it is allowed to."""
    os.nice(_NICE)
    # Where the system shares the cores by session first, the session needs the value as well.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:  # noqa: PTH123 - it is no file
        group.write(str(_NICE))


def _bound_process(bounds: Bounds) -> None:
    _limit(resource.RLIMIT_AS, bounds.address_space_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, 3)


def _limit(kind: int, soft: int) -> None:
    """Set a limit of the system, or leave a stricter one."""
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


if __name__ == "__main__":
    main(sys.argv[1:])
