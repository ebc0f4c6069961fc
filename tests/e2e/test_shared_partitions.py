"""Two machines, each of which serves a partition of the data, with a real log.

Where a machine is gone, the other one takes over what it has not heard for 1.5 s. Tests beside such ones would hold it
up: `pytest -m load tests/e2e/test_shared_partitions.py`. In the others both machines stay, and a call may be told 503
for a while, as one does not hear the other: then it is repeated.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.link_peer import connected, linked
from tests.e2e.machines import Machines, kill, machines_in, made, states
from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.server_process import ServerProcess, processes
from tests.e2e.sse_client import opened_stream
from tests.e2e.test_partitioned_standby import commanded, partition_of
from tests.partitions import make_partitions
from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.bench.link_client import LinkClient, running
from trunkline.http.mqtt.packets import USE_ANOTHER_SERVER

pytestmark = [pytest.mark.slow]


class Shared:
    """Machine a serves the root, machine b partition 1. Each partition has an application with a device."""

    def __init__(self, machines: Machines, one: ServerProcess, two: ServerProcess) -> None:
        self.machines = machines
        self.one = one
        self.two = two
        self.applications = ["", ""]
        """By partition."""
        self.devices = ["", ""]

    async def make(self) -> None:
        """Make applications until each partition has one."""
        while not all(self.applications):
            application, device = await made(self.one)
            told = await commanded(self.machines, "a", "partition")
            number = partition_of(told, application[-24:])
            self.applications[number], self.devices[number] = application, device


async def answer(
    door: ServerProcess, method: str, path: str, body: Any = None, token: str | None = None
) -> httpx.Response:
    """What a call is told, which is repeated while a machine does not hear the other one."""
    with trio.fail_after(PATIENCE_S):
        async with door.client(token) as client:
            client.event_hooks = {}  # 502 is documented for all operations together
            while (told := await client.request(method, path, json=body)).status_code in (502, 503):
                await trio.lowlevel.checkpoint()
    return told


async def call(
    door: ServerProcess, method: str, path: str, body: Any = None, token: str | None = None
) -> Any:
    """The body of such an answer."""
    told = await answer(door, method, path, body, token)
    assert told.is_success, told.text
    return told.json()


async def report(door: ServerProcess, device: str, value: int) -> None:
    await call(door, "POST", f"{device}/state", {"data": {"n": value}})


async def newest(door: ServerProcess, device: str) -> int:
    """The value that a device has reported last."""
    return int((await call(door, "GET", f"{device}/compositeState"))["n"]["value"])


async def is_said(machines: Machines, name: str, *words: str) -> None:
    """Wait until `cluster status` has these words in one line."""
    with trio.fail_after(PATIENCE_S):
        while True:
            done = await machines.command(name, "cluster", "status")
            if any(all(word in line for word in words) for line in done.stdout.splitlines()):
                return


@asynccontextmanager
async def sharing(folder: Path, silence_ms: int) -> AsyncIterator[Shared]:
    async with machines_in(folder, silence_ms) as machines, AsyncExitStack() as stack:
        machines.mqtt_ports = {name: stack.enter_context(reserved_port()) for name in ("a", "b")}
        machines.ports["b"] = stack.enter_context(reserved_port())
        machines.urls["b"] = f"http://localhost:{machines.ports['b']}"
        make_partitions(machines.folder / "a", 2)
        one = await stack.enter_async_context(machines.serving("a"))
        machines.copy_secrets("a", "b")
        two = await stack.enter_async_context(machines.standing_by("b", one))
        found = Shared(machines, one, two)
        await found.make()
        await is_said(machines, "a", "b at", "follows")
        told = await commanded(machines, "a", "cluster", "give", "b", "--partition", "1")
        assert told == "Partition 1 is given to b.\n"
        await is_said(machines, "a", "b at", "serves 1 of 2 partitions")
        yield found


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Shared]:
    async with sharing(tmp_path, silence_ms=60_000) as found:
        yield found


async def test_each_machine_serves_a_partition_and_leads_to_the_other(shared: Shared) -> None:
    doors = (shared.one, shared.two)
    for number, device in enumerate(shared.devices):
        for door in doors:
            await report(door, device, number)
            for other in doors:
                assert await newest(other, device) == number
    for door in doors:
        async with opened_stream(door, shared.devices[1]) as stream:
            for other in doors:
                await call(other, "POST", f"{shared.devices[1]}/command", {"name": "on"})
                assert await stream.names(1) == ["on"]
    # What a machine tells of records of the other has all that was acknowledged.
    for number in range(20):
        name = f"house {number}"
        await call(doors[number % 2], "PATCH", shared.applications[number // 2 % 2], {"name": name})
        for door in doors:
            found = await call(door, "GET", "/applications")
            assert sum(each["name"] == name for each in found["items"]) == 1
    application = (await call(shared.two, "POST", "/applications", {"name": "new"}))["id"]
    device = await call(shared.one, "POST", f"/applications/{application}/devices", {"name": "new"})
    assert (await call(shared.two, "GET", f"/applications/{application}/devices"))["items"][0][
        "id"
    ] == device["id"]
    moved = shared.applications[0][-24:]
    assert partition_of(await commanded(shared.machines, "a", "partition"), moved) == 0
    refused = await shared.machines.command("a", "partition", "move", moved, "1")
    assert refused.returncode == 1
    assert "which another machine serves" in refused.stderr
    told = await commanded(shared.machines, "a", "cluster", "spread")
    assert told == "This machine serves nothing that another one should.\n"


async def test_access_ends_at_once_on_both_machines(shared: Shared) -> None:
    for door, other in ((shared.one, shared.two), (shared.two, shared.one)):
        for application, device in zip(shared.applications, shared.devices, strict=True):
            key = await call(door, "POST", f"{application}/keys", {})
            path = f"{application}/keys/{key['applicationKeyId']}"
            log_in = {"key": key["key"], "secret": key["secret"], "deviceId": device[-24:]}
            token = (await call(door, "POST", "/auth/device", log_in))["token"]
            for each in (door, other):
                assert (await answer(each, "GET", device, token=token)).status_code == 200
            await call(other, "PATCH", path, {"status": "inactive"})
            for each in (door, other):
                assert (await answer(each, "GET", device, token=token)).status_code == 401
    token = await shared.one.log_in()
    for door in (shared.one, shared.two):
        for device in shared.devices:
            assert (await answer(door, "GET", device, token=token)).status_code == 200
    await call(shared.two, "POST", "/me/logout", token=token)
    for door in (shared.one, shared.two):
        for device in shared.devices:
            assert (await answer(door, "GET", device, token=token)).status_code == 401


async def test_links_and_mqtt_clients_that_ask_are_told_of_the_machine_that_serves(shared: Shared) -> None:
    """Of machine b only, as the address of machine a is not set."""
    url_of_b = shared.machines.urls["b"]
    ports = shared.machines.mqtt_ports
    for number, device in enumerate(shared.devices):
        key = await call(shared.one, "POST", f"{shared.applications[number]}/keys", {})
        log_in = {"key": key["key"], "secret": key["secret"], "deviceId": device[-24:]}
        token = (await call(shared.one, "POST", "/auth/device", log_in))["token"]
        for door, is_elsewhere in ((shared.one, number == 1), (shared.two, False)):
            async with connected(door, device, token) as peer:
                await peer.send(0, {"session": 7, "nearest": True})
                if is_elsewhere:
                    assert await peer.close_code() == (4301, url_of_b)
                else:
                    assert (await peer.next())[0] == 0
        async with linked(shared.one, device, token):
            pass  # it has not asked
        for name, is_elsewhere in (("a", number == 1), ("b", False)):
            asks = {"username": key["key"], "password": key["secret"].encode()}
            asks["properties"] = {"user_property": [("nearest", "true")]}
            async with mqtt_client(ports[name]) as client:
                answer = await client.connect(device[-24:], **asks)
            if is_elsewhere:
                assert answer.code == USE_ANOTHER_SERVER
                assert answer.properties["server_reference"] == f"localhost:{ports['b']}"
            else:
                assert answer.code == 0
        async with mqtt_client(ports["a"]) as client:
            assert (await client.connect(device[-24:], **{**asks, "properties": {}})).code == 0


async def test_a_link_goes_where_it_is_told(shared: Shared) -> None:
    """It does so by itself, and what it brings is stored."""
    device = shared.devices[1]
    key = await call(shared.one, "POST", f"{shared.applications[1]}/keys", {})
    log_in = {"key": key["key"], "secret": key["secret"], "deviceId": device[-24:]}
    token = (await call(shared.one, "POST", "/auth/device", log_in))["token"]
    async with running(LinkClient(shared.one.url, device, token)) as client:
        await client.send_state({"n": 41})
        with trio.fail_after(PATIENCE_S):
            await client.settled()
        assert client.url.startswith(shared.machines.urls["b"].replace("http", "ws"))
    assert await newest(shared.one, device) == 41


async def test_a_name_is_claimed_once(shared: Shared) -> None:
    """Slugs of experiences are unique in the server."""
    for number in range(6):
        told: list[int] = []

        async def claim(door: ServerProcess, application: str, slug: str, told: list[int] = told) -> None:
            told.append((await answer(door, "PATCH", application, {"endpointSlug": slug})).status_code)

        async with trio.open_nursery() as nursery:
            for door, application in zip((shared.one, shared.two), shared.applications, strict=True):
                nursery.start_soon(claim, door, application, f"plant-{number}")
        assert sorted(told) == [200, 400]


@pytest.mark.load
async def test_a_machine_is_lost_and_the_other_one_serves_all(tmp_path: Path) -> None:
    async with sharing(tmp_path, silence_ms=1500) as shared:
        for number, device in enumerate(shared.devices):
            await report(shared.two, device, number)
        await kill(shared.two)
        assert await newest(shared.one, shared.devices[1]) == 1
        await report(shared.one, shared.devices[1], 2)
        await call(shared.one, "PATCH", shared.applications[1], {"name": "again"})
        await is_said(shared.machines, "a", "serves all partitions")
        async with shared.machines.standing_by("b", shared.one) as two:
            assert await newest(two, shared.devices[1]) == 2
            await is_said(shared.machines, "b", "b at", "follows, 0 behind")
            await kill(shared.one)
            for number, device in enumerate(shared.devices):
                assert await newest(two, device) == 2 * number
                await report(two, device, 7)


@pytest.mark.load
async def test_a_process_that_hangs_is_killed_as_others_need_its_copy(tmp_path: Path) -> None:
    async with sharing(tmp_path, silence_ms=1500) as shared:
        await commanded(shared.machines, "a", "cluster", "give", "b", "--partition", "0")
        await is_said(shared.machines, "a", "b at", "serves all partitions")
        os.kill(processes(shared.two)["partition-0"], signal.SIGSTOP)
        await call(shared.one, "PATCH", shared.applications[0], {"name": "by machine a"})
        await call(shared.one, "PATCH", shared.applications[1], {"name": "by machine b"})
        assert "does not say that it is alive; it is killed" in shared.two.log


@pytest.mark.load
async def test_while_the_root_is_not_heard_devices_of_the_other_machine_go_on(tmp_path: Path) -> None:
    """Workflows wait, as they act in the name of a user, of whom the root knows what that user may do."""
    async with sharing(tmp_path, silence_ms=1500) as shared:
        application, device = shared.applications[1], shared.devices[1]
        event = {"levelTemplate": "info", "subjectTemplate": "{{data.n}}", "messageTemplate": "n"}
        event |= {"dataMethod": "individualFields", "resultPath": "working.event"}
        flow = {
            "name": "counts",
            "triggers": [{"type": "deviceId", "key": device[-24:], "config": {}, "outputIds": [["event"]]}],
            "nodes": [{"id": "event", "type": "CreateEventNode", "config": event, "outputIds": [[]]}],
        }
        await call(shared.two, "POST", f"{application}/flows", flow)
        key = await call(shared.two, "POST", f"{application}/keys", {})
        log_in = {"key": key["key"], "secret": key["secret"], "deviceId": device[-24:]}
        token = (await call(shared.two, "POST", "/auth/device", log_in))["token"]
        async with shared.two.client(token) as sender:
            await sender.post(f"{device}/state", json={"data": {"n": 1}})
            await kill(shared.one)
            number = 1
            while "partition=0" not in shared.two.log:
                number += 1
                told = await sender.post(f"{device}/state", json={"data": {"n": number}})
                assert told.status_code == 200, told.text
        assert number > 5
        assert await states(shared.two, device) == [*range(1, number + 1)]
        with trio.fail_after(PATIENCE_S):
            while (await call(shared.two, "GET", f"{application}/events"))["totalCount"] < number:
                pass
        assert (await call(shared.two, "GET", f"{application}/events"))["totalCount"] == number
