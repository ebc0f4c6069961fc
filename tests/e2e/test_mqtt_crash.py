"""kill -9 under the load of MQTT clients: what was acknowledged is there, and QoS 2 is exactly once.

`pytest -m load tests/e2e/test_mqtt_crash.py` runs the long form: fifty kills, and prints the counts.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from tests.e2e.crash_load import read_states
from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.mqtt_crash_clients import FIRST_MS, Gone, Publisher, Subscriber, lasting
from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.e2e.sse_client import until
from tests.e2e.test_link_crash import FAULTY, SYNC_S
from tests.patience import PATIENCE_S
from trunkline.bench.history import to_iso
from trunkline.bench.session import Session
from trunkline.http.mqtt.packets import V3_1_1, V5, Publish, Will

pytestmark = pytest.mark.disk

PORT = r"MQTT: \S+ port (\d+)"
OPTIONS = ("--limits", "off", "--mqtt-port", "0")


async def port_of(server: ServerProcess) -> int:
    """The port for MQTT."""
    return int((await server.prints(PORT))[1])


class Load:
    """All clients, and what was promised to them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.publishers: list[Publisher] = []
        self.devices: list[tuple[str, Publisher]] = []
        self.subscribers: list[Subscriber] = []
        self.wills: list[str] = []
        """Those of clients that were connected at a kill."""
        self._credentials: dict[str, Any] = {}

    async def prepare(self, server: ServerProcess, port: int) -> None:
        """Make all clients; the subscribers subscribe."""
        application = await server.application()
        made = await server.call("POST", f"{application}/keys", {})
        self._credentials = {"username": made["key"], "password": made["secret"].encode()}
        for version in (V3_1_1, V5):
            for number in range(2):
                self.publishers.append(self._publisher(f"publisher-{version}-{number}", version))
            path = await server.device(application, f"device {version}")
            device = self._publisher(path.rpartition("/")[2], version, is_device=True)
            self.devices.append((path, device))
            for qos in (1, 2):
                random = Random(self.random.random())
                subscriber = Subscriber(
                    f"subscriber-{version}-{qos}", version, self._credentials, random, qos
                )
                self.subscribers.append(subscriber)
                await subscriber.subscribe(port)

    def _publisher(self, client_id: str, version: int, *, is_device: bool = False) -> Publisher:
        random = Random(self.random.random())
        return Publisher(client_id, version, self._credentials, random, is_device=is_device)

    @property
    def senders(self) -> list[Publisher]:
        """All who publish."""
        return [*self.publishers, *(device for _, device in self.devices)]

    async def killed(self, server: ServerProcess, number: int) -> None:
        """Publish, subscribe, come and go, and kill the server at a random moment."""
        port = await port_of(server)
        if not self.publishers:
            await self.prepare(server, port)
        await self.check_retained(port)
        most = self._acknowledged() + self.random.randint(20, 800)
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for version in (V3_1_1, V5):
                    await nursery.start(self._leave_will, port, version, number)
                for publisher in self.senders:
                    nursery.start_soon(self._until_gone, publisher.run, port)
                for subscriber in self.subscribers:
                    nursery.start_soon(self._until_gone, subscriber.run, port)
                # Not in each pass of the loop: that would take a core from the server.
                await until(lambda: self._acknowledged() >= most)
                await trio.sleep(self.random.uniform(0, 0.02))
                await server.kill()

    def _acknowledged(self) -> int:
        return sum(each.acknowledged for each in self.senders)

    async def _until_gone(self, run: Callable[[int], Awaitable[None]], port: int) -> None:
        with suppress(Gone):
            await run(port)

    async def _leave_will(
        self, port: int, version: int, number: int, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Connect with a will, and stay until the server is gone."""
        text = f"{version} {number}"
        will = Will(f"wills/{version}", text.encode(), 2)
        with suppress(Gone):
            fields = (port, version, f"leaver-{version}", self._credentials)
            async with lasting(*fields, will=will) as (client, _):
                self.wills.append(text)
                task_status.started()
                assert await client.next() is None

    async def check_retained(self, port: int) -> None:
        """The retained message of each publisher is the last acknowledged one, or one that was sent behind it."""
        for publisher in self.publishers:
            if publisher.retained < 0:
                continue
            async with mqtt_client(port, V5) as client:
                await client.connect("reader", **self._credentials)
                await client.subscribe(f"kept/{publisher.client_id}", qos=0)
                message = await client.expect(Publish)
                assert message.retain
                number = int(message.payload.split()[0])
                assert publisher.retained <= number <= publisher.last_retained

    async def audit(self, server: ServerProcess) -> None:
        """Let the clients finish, and compare what they know with what has come and what is stored."""
        port = await port_of(server)
        await self.check_retained(port)
        with trio.fail_after(PATIENCE_S):
            for publisher in self.senders:
                await publisher.run(port, is_last=True)
            for publisher in self.publishers:
                assert publisher.retained == publisher.last_retained
            await self.check_retained(port)
            for subscriber in self.subscribers:
                await subscriber.finish(port, partial(self._has_all, subscriber))
                self._check(subscriber)
        session = Session(server.url, token=server.token, timeout_s=PATIENCE_S)
        for path, device in self.devices:
            numbers = range(len(device.sent))
            assert await read_states(session, path) == [
                (to_iso(FIRST_MS + each), f'{{"temp": {float(each)}}}') for each in numbers
            ]
        session.close()

    def _has_all(self, subscriber: Subscriber) -> bool:
        return set(self.wills) <= set(subscriber.wills) and subscriber.has_all(self.publishers)

    def _check(self, subscriber: Subscriber) -> None:
        """All has come in order, and what has QoS 2 once."""
        if subscriber.qos == 2:
            assert sorted(subscriber.wills) == sorted(self.wills)
        subscriber.check(self.publishers)


async def rounds(data_dir: Path, kills: int, seed: int) -> str:
    """Kill again and again on one data directory; the counts."""
    load = Load(seed)
    for number in range(kills):
        env = {**OWNER, "CRASH_SYNC_S": SYNC_S[number % 2]}
        async with serving(data_dir, *OPTIONS, program=FAULTY, env=env) as server:
            await load.killed(server, number)
    async with serving(data_dir, *OPTIONS) as server:
        await load.audit(server)
        assert await server.terminate() == 0
        assert "Traceback" not in server.log
    senders, subscribers = load.senders, load.subscribers
    return (
        f"{kills} kills: {sum(len(each.sent) for each in senders)} messages acknowledged, "
        f"{sum(each.repeated for each in senders)} sent again, "
        f"{sum(len(got) for each in subscribers for got in each.got.values())} received over "
        f"{sum(each.connections for each in subscribers)} connections, {len(load.wills)} wills"
    )


@pytest.mark.slow
async def test_a_kill_loses_nothing_and_repeats_nothing_with_qos_2(tmp_path: Path) -> None:
    await rounds(tmp_path / "data", 2, seed=30)


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_fifty_kills_lose_nothing_and_repeat_nothing_with_qos_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = await rounds(tmp_path / "data", 50, seed=50)
    with capsys.disabled():
        sys.stdout.write(f"\n{counted}\n")
