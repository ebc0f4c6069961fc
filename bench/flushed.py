"""Makes a server flush everything: all states are then in blocks, and none waits in order of arrival.

Owns the command for it, on the control socket in the data directory of a server on this machine: a load test does not
want to wait for an hour until a server flushes a few states by itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.server_monitor import ServerMonitor

FLUSHING_TIMEOUT_S = 600.0
"""Seconds: in which a server flushes everything after a load."""

_SOCKET = "control.sock"
_COMMAND = b'{"flush": {}}\n'
_ANSWER_BYTES_MAX = 65_536


async def flush(directory: Path) -> None:
    """Return when everything is flushed; raises BenchError if the server refuses, or after FLUSHING_TIMEOUT_S."""
    with trio.move_on_after(FLUSHING_TIMEOUT_S):
        while True:
            # The server gives a command some time and then closes the connection; what it flushed stays flushed.
            with suppress(trio.BrokenResourceError, msgspec.DecodeError):
                answer = msgspec.json.decode(await _ask(directory))
                if "ok" in answer:
                    return
                raise BenchError(f"The server did not flush its states: {answer.get('error')}")
    raise BenchError(f"The server did not flush its states in {FLUSHING_TIMEOUT_S:g} s.")


async def _ask(directory: Path) -> bytes:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Short, because the path of a Unix socket has at most 107 bytes.
        async with await trio.open_unix_socket(f"/proc/self/fd/{descriptor}/{_SOCKET}") as stream:
            await stream.send_all(_COMMAND)
            answer = b""
            while len(answer) < _ANSWER_BYTES_MAX and (piece := await stream.receive_some()):
                answer += piece
            return answer
    except OSError as problem:
        raise BenchError(f"The control socket in {directory} cannot be used: {problem.strerror}.") from None
    finally:
        os.close(descriptor)


def file_of(monitor: ServerMonitor | None) -> Path:
    """The largest file of a server on this machine; raises BenchError, with the reason, if it cannot be seen."""
    if monitor is None:
        raise BenchError("the server's process was not found on this machine")
    file = monitor.data_file()
    if file is None:
        raise BenchError("this user may not see which files the server has open")
    return file


def data_directory(file: Path) -> Path:
    """The data directory of a server, from its largest file; raises BenchError if there is no control socket."""
    for directory in file.parents[:2]:
        if (directory / _SOCKET).exists():
            return directory
    raise BenchError(f"{file} does not belong to a data directory of a running server")
