"""A real server that is stopped for a while (SIGSTOP), as a machine that is suspended or moved: it goes on as it was.

Its throttles are exact, and who spoke to it in time meanwhile is not taken for dead.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest
import trio
import trio.testing

from tests.e2e.link_peer import linked
from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.server_process import ServerProcess
from tests.e2e.sse_client import opened_stream
from tests.faults.plan import COMPILER
from tests.faults.sweep import Disk
from tests.patience import PATIENCE_S
from trunkline.http.mqtt import packets, writer

FIRST_MS: Final = 1_700_000_000_000
STOP_S: Final = 2.0
"""Longer than every time after which a silent client is taken for dead here."""
QUICK: Final = """
websocket_ping_interval_s = 0.5
websocket_pong_timeout_s = 0.5
send_state = { calls = 10, window_s = 3600 }
actor_idle_s = 3600
"""
SCRIPT: Final = {"id": "n", "type": "RawFunctionNode", "config": {"script": "payload.data.a = 1"}}
BUTTON: Final = {"type": "virtualButton", "key": "go", "meta": {"id": "go"}, "outputIds": [["n"]]}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


def limited(disk: Disk, limits: str, *arguments: str) -> None:
    """Start servers with these limits from now on."""
    file = disk.data.with_name("quick.toml")
    file.write_text(limits)
    disk.arguments = ("--limits", str(file), *arguments)


@asynccontextmanager
async def stopped(process: psutil.Process) -> AsyncIterator[None]:
    """A process that does nothing for a while."""
    process.send_signal(signal.SIGSTOP)
    try:
        with trio.fail_after(PATIENCE_S):
            while process.status() != psutil.STATUS_STOPPED:
                await trio.lowlevel.checkpoint()
        yield
    finally:
        process.send_signal(signal.SIGCONT)


async def test_a_throttle_is_exact_over_a_stop(disk: Disk) -> None:
    """Ten calls an hour: four before, and of twenty that came meanwhile six."""
    limited(disk, QUICK)
    codes: list[int] = []

    async def send(server: ServerProcess, number: int) -> None:
        async with server.client() as client:
            state = {"time": FIRST_MS + number, "data": {"temp": number}}
            codes.append((await client.post(f"{disk.ledger.device}/state", json=state)).status_code)

    async with disk.server() as server:
        for number in range(4):
            await send(server, number)
        async with trio.open_nursery() as nursery, stopped(psutil.Process(server.process.pid)):
            for number in range(4, 24):
                nursery.start_soon(send, server, number)
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert (codes.count(200), codes.count(429)) == (10, 14), codes


async def test_clients_that_spoke_during_a_stop_stay_connected(disk: Disk) -> None:
    limited(disk, QUICK, "--mqtt-port", "0")
    async with disk.server() as server:
        port = int((await server.prints(r"MQTT: \S+ port (\d+)"))[1])
        device = disk.ledger.device
        key = await server.call("POST", f"{disk.ledger.application}/keys", {})
        token, _ = await server.device_token(device)
        credentials = {"username": key["key"], "password": key["secret"].encode(), "keep_alive_s": 1}
        other = await server.device(disk.ledger.application, "other")
        async with (
            mqtt_client(port) as client,
            linked(server, device, token) as (peer, _),
            opened_stream(server, other) as stream,
        ):
            await client.connect(other.rpartition("/")[2], **credentials)
            async with stopped(psutil.Process(server.process.pid)):
                with trio.move_on_after(STOP_S):
                    while True:
                        await client.send(writer.PINGREQ)
                        await trio.sleep(0.2)
            await peer.send(1, 1, FIRST_MS, {"temp": 1})
            assert await peer.until_stored(1) == []
            await server.call("POST", f"{other}/command", {"name": "after"})
            assert await stream.names(1) == ["after"]
            topic = f"losant/{other.rpartition('/')[2]}/state"
            await client.send(
                writer.publish(5, packets.Publish(topic, b'{"data": {"temp": 2}}', 1, packet_id=9))
            )
            while not isinstance(answer := await client.next(), packets.Ack):
                assert answer is not None, "it was disconnected"
            assert answer.packet_id == 9


async def test_a_process_for_scripts_that_is_stopped_is_told_and_replaced(disk: Disk) -> None:
    limited(disk, "script_wall_s = 0.5")
    async with disk.server() as server:
        flows = f"{disk.ledger.application}/flows"
        flow = (await server.call("POST", flows, {"name": "f", "triggers": [BUTTON], "nodes": [SCRIPT]}))[
            "id"
        ]
        assert "error" not in await server.call("POST", f"{flows}/{flow}/test", {"data": {}})
        (child, *_) = psutil.Process(server.process.pid).children()
        child.send_signal(signal.SIGSTOP)
        tried = await server.call("POST", f"{flows}/{flow}/test", {"data": {}})
        assert "did not end within" in tried["error"]["message"]
        assert "error" not in await server.call("POST", f"{flows}/{flow}/test", {"data": {}})
        assert not child.is_running()
