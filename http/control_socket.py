"""The control socket: commands of the command line to a running server.

A data directory has one writer. While a server holds it, the commands of `trunkline user` cannot open it themselves;
they send the server one line of JSON through a Unix socket in the data directory, which only its owner can access
(mode 0600 in a directory of mode 0700), and read one line back. Does not own the client's end (`control_client.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog
import trio

from trunkline.actors import boot, server_users
from trunkline.actors.core.runtime.machines import ClusterStatus, Machines
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import DomainError, Invalid
from trunkline.actors.maintenance import moves, owner_traffic
from trunkline.http.control_client import ANSWER_S, LINE_BYTES_MAX, LONG_ANSWERS_S, SOCKET_NAME, read_line
from trunkline.http.hosting.unix_sockets import bound_in
from trunkline.http.wire.accepting import Listener

_log = structlog.get_logger("trunkline.control")


async def _add_user(system: System, email: str, password: str) -> str:
    return await server_users.add_user(system, email, password)


async def _set_password(system: System, email: str, password: str) -> str:
    await server_users.set_password(system, email, password)
    return email


async def _delete_user(system: System, email: str, applications: str) -> int:
    return await server_users.delete_user(system, email, with_applications=applications == "delete")


async def _reset_two_factor(system: System, email: str) -> str:
    await server_users.reset_two_factor(system, email)
    return email


async def _verify_email(system: System, email: str) -> str:
    await server_users.verify_email(system, email)
    return email


async def _set_operator(system: System, email: str, role: str) -> str:
    await server_users.set_operator(system, email, is_operator=role == "operator")
    return email


async def _list_users(system: System) -> list[server_users.UserLine]:
    return server_users.users(system)


async def _traffic(system: System) -> dict[str, owner_traffic.OwnerTraffic | None]:
    """By the number of each partition."""
    told = await owner_traffic.all_traffic(system)
    return {str(number): each for number, each in told.items()}


async def _flush(system: System) -> None:
    """For load tests: bring everything that has arrived into its final place now."""
    await boot.flush_reports(system)


async def _move(system: System, application: str, partition: str) -> dict[str, Any]:
    return await moves.move(system, application, partition)


async def _cluster_status(system: System) -> ClusterStatus | None:
    """What this machine knows of all machines; None if it is the only one."""
    status = system.component(Machines).status
    return None if status is None else status()


async def _cluster_give(system: System, node: str) -> bool | None:
    """Begin to give the partition to another machine; None if this is the only one."""
    give = system.component(Machines).give
    if give is None:
        return None
    give(node)
    return True


async def _cluster_invite(system: System) -> str | None:
    """An invitation for another machine; None if this is the only one."""
    invite = system.component(Machines).invite
    return None if invite is None else invite()


Run = Callable[[str, dict[str, str]], Awaitable[Any]]
"""Runs a command with its arguments. Raises `DomainError`."""

_HANDLERS: dict[str, Callable[..., Awaitable[Any]]] = {
    "cluster.give": _cluster_give,
    "cluster.invite": _cluster_invite,
    "cluster.status": _cluster_status,
    "flush": _flush,
    "partition.move": _move,
    "partition.traffic": _traffic,
    "user.add": _add_user,
    "user.passwd": _set_password,
    "user.delete": _delete_user,
    "user.list": _list_users,
    "user.reset-two-factor": _reset_two_factor,
    "user.verify-email": _verify_email,
    "user.operator": _set_operator,
}


async def run_command(system: System, command: str, arguments: dict[str, str]) -> Any:
    """Run a command on a system that this process has opened. Raises `Invalid` for an unknown command."""
    handler = _HANDLERS.get(command)
    if handler is None:
        raise Invalid(f"{command}: there is no such command.")
    return await handler(system, **arguments)


async def run_standby_command(
    status: Callable[[], ClusterStatus], owner: Callable[[], str], command: str, _arguments: Any
) -> Any:
    """Run a command on a machine that stands by. Raises `Invalid` for one that needs the data, which `owner` has."""
    if command == "cluster.status":
        return status()
    raise Invalid(
        f"This machine stands by: run the command on the machine that serves the data, which is {owner()}."
    )


async def serve_control(
    directory: Path, run: Run, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer commands on the socket in a data directory until cancelled."""
    with bound_in(directory, SOCKET_NAME) as listening:
        listener = Listener(listening, tls=False)
        listener.listen(8)
        task_status.started()
        async with trio.open_nursery() as nursery:
            await listener.accept(partial(_take, nursery, run))


def _take(nursery: trio.Nursery, run: Run, sock: socket.socket, _address: object, _: Listener) -> None:
    nursery.start_soon(_answer, run, trio.SocketStream(trio.socket.from_stdlib_socket(sock)))


async def _answer(run: Run, stream: trio.SocketStream) -> None:
    """Answer one command. No error of the command or of its sender stops the server."""
    try:
        with trio.move_on_after(ANSWER_S) as time:
            async with stream:
                answer = await _run_line(run, await read_line(stream, LINE_BYTES_MAX), time)
                await stream.send_all(msgspec.json.encode(answer) + b"\n")
    except (trio.BrokenResourceError, OSError, ValueError):
        _log.debug("a command was not received completely")


async def _run_line(run: Run, line: bytes, time: trio.CancelScope) -> dict[str, Any]:
    try:
        commands = msgspec.json.decode(line, type=dict[str, dict[str, str]])
        ((command, arguments),) = commands.items()
        time.deadline += LONG_ANSWERS_S.get(command, 0)
        return {"ok": await run(command, arguments)}
    except DomainError as refusal:
        return {"error": refusal.message}
    except (ValueError, TypeError):
        return {"error": "The command cannot be read."}
    except Exception as bug:  # noqa: BLE001 - a bug in a command must not stop the server
        _log.error("a command failed", exc_info=bug)
        return {"error": "The server failed to run this command; the reason is in its log."}
