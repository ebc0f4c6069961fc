"""A server of several partitions with real processes, and connections of which it is known who has accepted them.

A client cannot choose the process that accepts its connection, so connections are opened until enough are where they
are wanted.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import trio

from tests.e2e.server_process import ServerProcess, processes, serving, trunkline
from tests.partitions import make_partitions
from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.framing import Body, Response
from trunkline.bench.transport import Origin, PlainTransport

ROOT, SECOND = "partition-0", "partition-1"
PARTITIONS = (ROOT, SECOND)


async def divide(data_dir: Path, count: int = 2) -> None:
    """Make a data directory, as a first start does, and divide it."""
    if not data_dir.exists():  # noqa: ASYNC240 - a look at a local disk
        async with serving(data_dir) as server:
            assert await server.terminate() == 0
    done = await trunkline("partition", "--count", str(count), "--data", str(data_dir))
    assert done.returncode == 0, done


@asynccontextmanager
async def divided(data_dir: Path, *arguments: str, **options: Any) -> AsyncIterator[ServerProcess]:
    """A server of a directory, which is given two partitions if it is new."""
    if not data_dir.exists():  # noqa: ASYNC240 - a look at a local disk
        make_partitions(data_dir, len(PARTITIONS))
    async with serving(data_dir, *arguments, **options) as server:
        yield server


def sockets_of(id: int) -> set[str]:
    """The inodes of the sockets of a process; none if it has ended."""
    found: set[str] = set()
    try:
        for each in Path(f"/proc/{id}/fd").iterdir():
            target = str(each.readlink())
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass
    return found


def inode_of(server: int, client: int) -> str:
    """The inode of the server's end of a connection between two ports of 127.0.0.1."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, *_, inode = line.split()[:10]
        if (int(local[-4:], 16), int(remote[-4:], 16)) == (server, client):
            return inode
    return ""


class At:
    """A keep-alive connection, and the process that has accepted it. A failure raises a WireError."""

    def __init__(self, connection: Connection, process: str, token: str) -> None:
        self.connection = connection
        self.process = process
        self.token = token

    async def __aenter__(self) -> At:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Make a call, and return its answer of whatever status. It never goes over another connection."""
        self.connection.token = self.token if token is None else token
        encoded = None if body is None else json.dumps(body).encode()
        before = self.connection.connects
        answer = await self.connection.request(method, path, encoded, headers)
        assert self.connection.connects == before, "it was closed, and opened again elsewhere"
        return answer

    async def call(
        self, method: str, path: str, body: Any = None, *, status: int | None = None, **kw: Any
    ) -> Any:
        """The same; asserts `status` if given (otherwise any success) and returns the decoded body."""
        answer = await self.send(method, path, body, **kw)
        expected = range(200, 300) if status is None else (status,)
        assert answer.status in expected, (self.process, method, path, answer.status, answer.body)
        return json.loads(answer.body) if answer.body else None


async def connected(server: ServerProcess) -> At:
    """A new connection, wherever it is accepted."""
    origin = Origin.parse(server.url)
    with trio.fail_after(PATIENCE_S):
        stream = await trio.open_tcp_stream("127.0.0.1", origin.port)
        client = stream.socket.getsockname()[1]
        transport = PlainTransport(socket.socket(fileno=stream.socket.detach()))
        connection = Connection(origin, timeout_s=PATIENCE_S, transport=transport)
        answer = await connection.request("GET", "/healthz")
    assert answer.status == 200
    connection.token = server.token
    inode = inode_of(origin.port, client)
    names = [name for name, id in processes(server).items() if inode in sockets_of(id)]
    return At(connection, names[0] if names else "", server.token)


@asynccontextmanager
async def connections(
    server: ServerProcess, each: int = 1, among: tuple[str, ...] = PARTITIONS
) -> AsyncIterator[dict[str, list[At]]]:
    """So many connections at each of these processes."""
    async with AsyncExitStack() as held:
        found: dict[str, list[At]] = {name: [] for name in among}
        with trio.fail_after(PATIENCE_S):
            while any(len(some) < each for some in found.values()):
                new = await held.enter_async_context(await connected(server))
                if new.process in found and len(found[new.process]) < each:
                    found[new.process].append(new)
        yield found


async def opened_streams(at: Sequence[At], path: str, token: str | None = None) -> list[Body]:
    """The bodies of event streams, one on each connection, each open."""
    bodies = []
    for each in at:
        each.connection.token = each.token if token is None else token
        raw = each.connection.encode("GET", f"{path}?keepAliveInterval=60")
        with trio.fail_after(PATIENCE_S):
            head, body = await each.connection.begin(raw)
            assert head.startswith(b"HTTP/1.1 200"), head
            await body.read_some()
        bodies.append(body)
    return bodies


class House:
    """An application, a device of it, and what it logs in with."""

    def __init__(self, application: str, device: str, token: str, key: str) -> None:
        self.application = application
        self.device = device
        self.id = device.rpartition("/")[2]
        self.token = token
        self.key = key


async def house_in(server: ServerProcess, partition: str, name: str) -> House:
    """An application in a partition. A new one goes to where there are the fewest."""
    number, elsewhere = PARTITIONS.index(partition), list[str]()
    while await partition_of(server, made := await server.application(name)) != number:
        elsewhere.append(made)
        assert len(elsewhere) < 10, "there are more in the other one"
    for other in elsewhere:
        await server.call("DELETE", other)
    device = await server.device(made)
    return House(made, device, *await server.device_token(device))


async def houses(server: ServerProcess) -> dict[str, House]:
    """One in each partition."""
    return {name: await house_in(server, name, f"house in {name}") for name in PARTITIONS}


async def partition_of(server: ServerProcess, application: str) -> int:
    """The number of the partition of an application, as the command says that lists them."""
    done = await trunkline("partition", "--data", str(server.data_dir))
    assert done.returncode == 0, done
    number = -1
    for line in done.stdout.splitlines():
        if line.startswith("Partition "):
            number = int(line.split()[1].rstrip(":"))
        elif line.split()[0] == application.rpartition("/")[2]:
            return number
    raise AssertionError((application, done.stdout))
