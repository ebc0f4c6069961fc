"""The control socket: what the command line asks of a server that runs.

A data directory has one writer. While a server holds it, `trunkline user add` and `passwd` can not open it
themselves; they send the server one line of JSON through a Unix socket in the data directory, which only
its owner can reach (mode 0600 in a directory of mode 0700), and read one line back.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog
import trio

from trunkline.actors import boot
from trunkline.actors.runtime.system import System
from trunkline.actors.values.errors import DomainError, Invalid

SOCKET_NAME = "control.sock"
LINE_BYTES_MAX = 64 * 1024
ANSWER_S = 30

_log = structlog.get_logger("trunkline.control")


async def _add_user(system: System, email: str, password: str) -> str:
    return await boot.add_user(system, email, password)


async def _set_password(system: System, email: str, password: str) -> str:
    await boot.set_password(system, email, password)
    return email


async def _list_users(system: System) -> list[boot.UserLine]:
    return boot.users(system)


_HANDLERS: dict[str, Callable[..., Awaitable[Any]]] = {
    "user.add": _add_user,
    "user.passwd": _set_password,
    "user.list": _list_users,
}


async def run_command(system: System, command: str, arguments: dict[str, str]) -> Any:
    """Run a command on a system that this process has opened."""
    handler = _HANDLERS.get(command)
    if handler is None:
        raise Invalid(f"{command}: there is no such command.")
    return await handler(system, **arguments)


async def serve_control(
    system: System, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer commands on the socket until cancelled."""
    directory = Path(system.store.directory.path)
    (directory / SOCKET_NAME).unlink(missing_ok=True)
    with _short_path(directory) as place, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(f"{place}/{SOCKET_NAME}")
        (directory / SOCKET_NAME).chmod(0o600)
        listening.listen(8)
        listening.setblocking(False)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        task_status.started()
        try:
            await trio.serve_listeners(partial(_answer, system), [listener])
        finally:
            (directory / SOCKET_NAME).unlink(missing_ok=True)


async def _answer(system: System, stream: trio.SocketStream) -> None:
    """Answer one command. Whatever is wrong with it, or with who asks, the server goes on."""
    try:
        with trio.move_on_after(ANSWER_S):
            async with stream:
                answer = await _run_line(system, await _read_line(stream))
                await stream.send_all(msgspec.json.encode(answer) + b"\n")
    except (trio.BrokenResourceError, OSError, ValueError):
        _log.debug("a command was not asked to its end")


async def _run_line(system: System, line: bytes) -> dict[str, Any]:
    try:
        asked = msgspec.json.decode(line, type=dict[str, dict[str, str]])
        ((command, arguments),) = asked.items()
        return {"ok": await run_command(system, command, arguments)}
    except DomainError as refusal:
        return {"error": refusal.message}
    except (ValueError, TypeError):
        return {"error": "The command can not be read."}
    except Exception as bug:  # noqa: BLE001 - the asker hears of it, the log has it, the server goes on
        _log.error("a command failed", exc_info=bug)
        return {"error": "The server failed at this command; its log says why."}


async def ask_server(
    directory: Path, command: str, arguments: dict[str, str], in_use: boot.DirectoryInUse
) -> Any:
    """Send a command to the server that holds `directory`.

    Raises `Invalid` with what it refuses, and `in_use` (how it is known that somebody holds the directory)
    where that is no server, or one that does not answer.
    """
    try:
        with trio.fail_after(ANSWER_S), _short_path(directory) as place:
            async with await trio.open_unix_socket(f"{place}/{SOCKET_NAME}") as stream:
                await stream.send_all(msgspec.json.encode({command: arguments}) + b"\n")
                answer = msgspec.json.decode(await _read_line(stream))
    except (OSError, ValueError, trio.BrokenResourceError, trio.TooSlowError):
        raise in_use from None
    if "error" in answer:
        raise Invalid(answer["error"])
    return answer["ok"]


async def _read_line(stream: trio.SocketStream) -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        piece = await stream.receive_some(LINE_BYTES_MAX)
        if not piece or len(received) + len(piece) > LINE_BYTES_MAX:
            raise ValueError("the line did not end")
        received += piece
    return received


@contextmanager
def _short_path(directory: Path) -> Iterator[str]:
    """A short name of the directory: the path of a Unix socket may have 107 bytes only."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
