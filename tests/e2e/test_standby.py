"""A server on two machines, with a real log: one serves, and the other one has all of it when that is gone.

A machine that is not heard for 1.5 s is replaced, so all of it is a load: other tests would hold it up.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import PASSWORD
from tests.e2e.server_process import OWNER, ServerProcess, serving, started, trunkline
from tests.nats_servers import NatsServer, nats_servers
from tests.patience import PATIENCE_S
from tests.s3_service import Service, s3_service

pytestmark = [pytest.mark.slow, pytest.mark.load]


class Machines:
    """Machines that share a log and a bucket. Each has a directory with its name."""

    def __init__(self, folder: Path, nats: NatsServer, service: Service) -> None:
        self.folder = folder
        self.nats = nats
        self._service = service

    def env(self, name: str) -> dict[str, str]:
        """The variables of a machine."""
        return {
            **OWNER,
            "TRUNKLINE_CLUSTER_NATS": str(self.nats.address),
            "TRUNKLINE_CLUSTER_NODE": name,
            "TRUNKLINE_CLUSTER_REPLICAS": "1",
            "TRUNKLINE_BLOBS": self._service.bucket().location,
            "TRUNKLINE_S3_ENDPOINT": self._service.url,
            "TRUNKLINE_BLOBS_REGION": "us-east-1",
            "TRUNKLINE_BLOBS_ACCESS_KEY": "key",
            "TRUNKLINE_BLOBS_SECRET_KEY": "secret",
        }

    def serving(self, name: str) -> AbstractAsyncContextManager[ServerProcess]:
        """A machine that serves."""
        return serving(self.folder / name, "--limits", "off", env=self.env(name))

    def started(self, name: str) -> AbstractAsyncContextManager[ServerProcess]:
        """A machine that has just been started."""
        return started(self.folder / name, "--limits", "off", env=self.env(name))

    async def refused(self, name: str) -> str:
        """The sentence with which a machine does not start."""
        data = str(self.folder / name)
        done = await trunkline("serve", "--port", "0", "--data", data, env=self.env(name))
        *_, last = done.stderr.strip().splitlines()
        assert done.returncode == 1, done.stderr
        assert last.startswith("trunkline: "), done.stderr
        return last

    def copy_secrets(self, source: str, target: str) -> None:
        """Copy the secret and the encryption keys."""
        (self.folder / target).mkdir(mode=0o700, exist_ok=True)
        for name in ("secret", "encryption-keys"):
            shutil.copy(self.folder / source / name, self.folder / target / name)


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    (tmp_path / "nats").mkdir()
    with s3_service() as service:
        async with nats_servers(tmp_path / "nats") as (nats,):
            yield Machines(tmp_path, nats, service)


async def states(server: ServerProcess, device: str) -> list[int]:
    """The values of all states of a device, the oldest first."""
    found = await server.call("GET", f"{device}/state?limit=1000&sortDirection=asc")
    return [each["data"]["n"] for each in found]


async def report(server: ServerProcess, device: str, *values: int) -> None:
    for value in values:
        await server.call("POST", f"{device}/state", {"data": {"n": value}})


async def made(server: ServerProcess) -> tuple[str, str]:
    """An application and a device of it."""
    application = await server.application("house")
    return application, await server.device(application, attributes=[{"name": "n", "dataType": "number"}])


async def test_the_other_machine_has_everything_when_one_is_killed(machines: Machines) -> None:
    async with machines.serving("a") as one:
        application, device = await made(one)
        machines.copy_secrets("a", "b")
        async with machines.started("b") as two:
            await report(one, device, 1, 2, 3)
            table = await one.call("POST", f"{application}/data-tables", {"name": "t", "columns": []})
            await one.kill()
            assert await two.listens()
            two.token = one.token  # of the same secret
            assert await states(two, device) == [1, 2, 3]
            assert (await two.call("GET", f"{application}/data-tables/{table['id']}"))["name"] == "t"
            await report(two, device, 4)
            async with machines.started("a") as again:
                assert await two.terminate() == 0
                assert await again.listens()
                again.token = one.token
                assert await states(again, device) == [1, 2, 3, 4]
                await report(again, device, 5)
                assert await again.terminate() == 0


async def test_a_machine_that_was_stopped_answers_nothing_that_is_old(machines: Machines) -> None:
    async with machines.serving("a") as one:
        _, device = await made(one)
        await report(one, device, 1)
        machines.copy_secrets("a", "b")
        async with machines.started("b") as two:
            one.send_signal(signal.SIGSTOP)
            assert await two.listens()
            two.token = one.token
            await report(two, device, 2)
            one.send_signal(signal.SIGCONT)
            said = await answers_until_the_end(one, device)
            assert await one.ended() == 1
            assert "b owns partition 0 in epoch 2" in one.log.splitlines()[-1]
            assert {status for status, _ in said} <= {503}, said
            assert await states(two, device) == [1, 2]
            assert await two.terminate() == 0


async def answers_until_the_end(server: ServerProcess, device: str) -> list[tuple[int, Any]]:
    """What a server answers to reads until it ends."""
    found: list[tuple[int, Any]] = []

    async def ask() -> None:
        async with server.client() as client:
            while True:
                try:
                    answer = await client.get(f"{device}/state?limit=10")
                    found.append((answer.status_code, answer.text))
                except (httpx.TransportError, OSError):
                    await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await server.ended()
        nursery.cancel_scope.cancel()
    return found


async def test_while_the_log_is_away_nothing_is_acknowledged_and_nothing_lost(machines: Machines) -> None:
    async with machines.serving("a") as server, trio.open_nursery() as nursery:
        _, device = await made(server)
        await report(server, device, 1)
        await machines.nats.kill()
        nursery.start_soon(report, server, device, 2)
        async with server.client() as client:
            with trio.fail_after(PATIENCE_S):
                while (answer := await client.get(device)).status_code == 200:
                    pass
            assert answer.status_code == 503
            assert "another machine may own the data" in answer.json()["message"]
        await machines.nats.start(nursery)
        with trio.fail_after(PATIENCE_S):
            async with server.client() as client:
                while (await client.get(device)).status_code != 200:
                    await trio.lowlevel.checkpoint()
        await report(server, device, 3)
        assert sorted(await states(server, device)) == [1, 2, 3]
        assert await server.terminate() == 0
        nursery.cancel_scope.cancel()


async def test_a_machine_without_the_secret_of_the_log_is_refused(machines: Machines) -> None:
    async with machines.serving("a") as one:
        await made(one)
        assert await one.terminate() == 0
    assert "secret is missing, and the log tl-trunkline-0 is there already" in await machines.refused("b")
    machines.copy_secrets("a", "b")
    (machines.folder / "b" / "secret").write_text("0" * 64 + "\n")
    assert "The node a has another secret or other encryption keys than" in await machines.refused("b")


async def test_a_log_that_is_lost_is_not_made_again(machines: Machines) -> None:
    async with machines.serving("a") as one:
        await made(one)
        assert await one.terminate() == 0
    await machines.nats.kill()
    shutil.rmtree(machines.folder / "nats" / "a")
    async with trio.open_nursery() as nursery:
        await machines.nats.start(nursery)
        said = await machines.refused("a")
        nursery.cancel_scope.cancel()
    assert "The log tl-trunkline-0 does not exist" in said
    assert said.endswith("It is never made again by itself.")


async def test_a_server_with_data_gets_a_log_and_the_other_machine_a_backup(machines: Machines) -> None:
    async with serving(machines.folder / "a", "--limits", "off") as server:
        _, device = await made(server)
        await report(server, device, 1)
        token = server.token
        assert await server.terminate() == 0
    async with machines.serving("a") as one:
        machines.copy_secrets("a", "b")
        assert "The log began with the data of a, and" in await machines.refused("b")
        shutil.rmtree(machines.folder / "b")
        done = await trunkline(
            "backup", "--data", str(machines.folder / "a"), str(machines.folder / "b"), env=machines.env("a")
        )
        assert done.returncode == 0, done.stderr
        one.token = token
        await report(one, device, 2)
        machines.copy_secrets("a", "b")
        async with machines.started("b") as two:
            await one.kill()
            assert await two.listens()
            two.token = token
            assert await states(two, device) == [1, 2]
            assert await two.terminate() == 0


async def test_a_machine_that_was_written_without_the_log_is_no_copy(machines: Machines) -> None:
    """As by a command while no server runs."""
    data = machines.folder / "a"
    async with machines.serving("a") as one:
        await made(one)
        assert await one.terminate() == 0
    added = await trunkline(
        "user", "add", "ann@example.com", "--password", PASSWORD, "--data", str(data), env=machines.env("a")
    )
    assert added.returncode == 0, added.stderr
    assert (
        f"{data} was written without the log. Restore a backup of a in its place"
        in await machines.refused("a")
    )
