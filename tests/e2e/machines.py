"""Machines of one server, with a real log. Owns no test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.e2e.server_process import OWNER, ServerProcess, processes, serving, started, trunkline
from tests.nats_servers import NatsServer, Way, nats_servers
from tests.patience import PATIENCE_S
from tests.s3_service import Service, s3_service


class Machines:
    """Machines that share a log and a bucket. Each has a directory with its name."""

    def __init__(
        self, folder: Path, servers: Sequence[NatsServer], service: Service, silence_ms: int
    ) -> None:
        self.folder = folder
        self.silence_ms = silence_ms
        self.nats_of: dict[str, str] = {}
        """By machine, the addresses of the log, if they are others."""
        self.addresses: dict[str, str] = {}
        """By machine, its address for other machines, if it is not any."""
        self.ports: dict[str, int] = {}
        """By machine, its port for HTTP, if it always has the same."""
        self.pythons: dict[str, str] = {}
        """By machine, the interpreter with the version of the program that it runs, if that is another one."""
        self.joined: dict[str, Path] = {}
        """By machine, its configuration, if it was invited."""
        self.mqtt_ports: dict[str, int] = {}
        """By machine, its port for MQTT, if it has one."""
        self.urls: dict[str, str] = {}
        """By machine, where clients reach it, if they are told."""
        self.servers = servers
        """Those that keep the log."""
        self.nats = servers[0]
        self._service = service

    def env(self, name: str) -> dict[str, str]:
        """The variables of a machine."""
        if name in self.joined:
            return {**OWNER, "TRUNKLINE_CONFIG": str(self.joined[name])}
        address = self.addresses.get(name)
        return {
            **OWNER,
            **({} if address is None else {"TRUNKLINE_CLUSTER_ADDRESS": address}),
            **({"TRUNKLINE_CLUSTER_URL": self.urls[name]} if name in self.urls else {}),
            "TRUNKLINE_CLUSTER_NATS": self.nats_of.get(
                name, " ".join(str(each.address) for each in self.servers)
            ),
            "TRUNKLINE_CLUSTER_NODE": name,
            "TRUNKLINE_CLUSTER_SILENCE_MS": str(self.silence_ms),
            "TRUNKLINE_CLUSTER_REPLICAS": str(len(self.servers)),
            "TRUNKLINE_BLOBS": self._service.bucket().location,
            "TRUNKLINE_S3_ENDPOINT": self._service.url,
            "TRUNKLINE_BLOBS_REGION": "us-east-1",
            "TRUNKLINE_BLOBS_ACCESS_KEY": "key",
            "TRUNKLINE_BLOBS_SECRET_KEY": "secret",
        }

    def serving(self, name: str) -> AbstractAsyncContextManager[ServerProcess]:
        """A machine that serves."""
        return serving(self.folder / name, *self._arguments(name), env=self.env(name))

    def started(self, name: str, *arguments: str) -> AbstractAsyncContextManager[ServerProcess]:
        """A machine that has just been started."""
        python = self.pythons.get(name)
        options: dict[str, Any] = {} if python is None else {"cold": True, "python": python}
        return started(self.folder / name, *self._arguments(name), *arguments, env=self.env(name), **options)

    def _arguments(self, name: str) -> tuple[str, ...]:
        mqtt = ("--mqtt-port", str(self.mqtt_ports[name])) if name in self.mqtt_ports else ()
        return "--limits", "off", "--port", str(self.ports.get(name, 0)), *mqtt

    @asynccontextmanager
    async def standing_by(
        self, name: str, owner: ServerProcess, *arguments: str
    ) -> AsyncIterator[ServerProcess]:
        """A machine that passes on its clients to the owner. The owner is logged in."""
        async with self.started(name, *arguments) as server:
            server.url = (await server.prints(rf"Standby {name}: (\S+) leads"))[1]
            server.token = owner.token  # of the same secret
            yield server

    async def command(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine."""
        return await trunkline(*arguments, "--data", str(self.folder / name), env=self.env(name))

    async def refused(self, name: str, node: str = "") -> str:
        """The sentence with which a machine does not start; `node` is another name for it."""
        data = str(self.folder / name)
        done = await trunkline("serve", "--port", "0", "--data", data, env=self.env(node or name))
        *_, last = done.stderr.strip().splitlines()
        assert done.returncode == 1, done.stderr
        assert last.startswith("trunkline: "), done.stderr
        return last

    def copy_secrets(self, source: str, target: str) -> None:
        """Copy the secret and the encryption keys."""
        (self.folder / target).mkdir(mode=0o700, exist_ok=True)
        for name in ("secret", "encryption-keys"):
            shutil.copy(self.folder / source / name, self.folder / target / name)


@asynccontextmanager
async def machines_in(
    folder: Path, silence_ms: int, servers: int = 1, way: Way | None = None
) -> AsyncIterator[Machines]:
    """Machines in a folder, with so many NATS servers. A machine that is silent for longer is replaced."""
    (folder / "nats").mkdir()
    with s3_service() as service:
        async with nats_servers(folder / "nats", servers, way=way) as started_servers:
            yield Machines(folder, started_servers, service, silence_ms)


def send(server: ServerProcess, number: signal.Signals) -> None:
    """Send a signal to all processes of a machine at once."""
    ids = [server.process.pid, *processes(server).values()]
    for each in ids:
        os.kill(each, number)


async def kill(server: ServerProcess) -> None:
    """Let a machine be gone."""
    send(server, signal.SIGKILL)
    await server.ended()


async def read(server: ServerProcess, path: str) -> Any:
    """What a machine answers, as soon as the one that owns the data is reached."""
    with trio.fail_after(PATIENCE_S):
        async with server.client() as client:
            while (answer := await client.get(path)).status_code != 200:
                assert answer.status_code == 503, answer.text
                await trio.lowlevel.checkpoint()
    return answer.json()


async def states(server: ServerProcess, device: str) -> list[int]:
    """The values of all states of a device, the oldest first."""
    found = await read(server, f"{device}/state?limit=1000&sortDirection=asc")
    return [each["data"]["n"] for each in found]


async def report(server: ServerProcess, device: str, *values: int) -> None:
    for value in values:
        await server.call("POST", f"{device}/state", {"data": {"n": value}})


async def copied(server: ServerProcess, partitions: int = 1) -> None:
    """Wait until a machine has a copy of the data of so many partitions."""
    with trio.fail_after(PATIENCE_S):
        while server.log.count("the data are copied  ") < partitions:
            await trio.lowlevel.checkpoint()


async def made(server: ServerProcess) -> tuple[str, str]:
    """An application and a device of it."""
    application = await server.application("house")
    return application, await server.device(application, attributes=[{"name": "n", "dataType": "number"}])
