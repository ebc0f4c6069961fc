"""Clients that connect and never say who they are: each is closed by the deadline, and others are served meanwhile.

`pytest -m load tests/e2e/test_mqtt_silent.py` runs the long form: ten thousand of them, with the memory of the server.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest
import trio

from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.mqtt_house import house_in
from tests.e2e.server_process import serving
from tests.e2e.sse_client import until
from tests.e2e.test_mqtt_crash import OPTIONS, port_of
from tests.patience import PATIENCE_S
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import Connect
from trunkline.http.mqtt.service import MqttService
from trunkline.http.wire.descriptors import allow_descriptors

CONNECT = writer.connect(Connect(packets.V5, "silent", username="key", password=b"x" * 100))
LARGEST = b"\x10\xff\xff\x0f" + CONNECT[2:]
"""The beginning of a CONNECT of 256 KiB, which is allowed."""
BEGINNINGS = (b"", CONNECT[:1], CONNECT[:2], CONNECT[:-1], LARGEST)
CONNECTION_BYTES_MAX = 8_000


async def opened(port: int, number: int) -> list[trio.SocketStream]:
    """Connections of which none says all of its CONNECT."""
    streams = []
    for each in range(number):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(BEGINNINGS[each % len(BEGINNINGS)])
        streams.append(stream)
    return streams


async def closed(stream: trio.SocketStream) -> None:
    """Wait until the server has closed a connection, without a word."""
    async with stream:
        assert await stream.receive_some() == b""


@pytest.mark.slow
async def test_who_never_says_who_it_is_is_closed_and_stops_nobody(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", limits={"mqtt_connect_s": 1}) as house:
        service = house.server.system.component(MqttService)
        async with house.client("served") as client:
            streams = await opened(house.server.mqtt_ports[0], 100)
            await client.subscribe("a")
            await client.publish("a", b"x", 1)
            assert (await client.message()).payload == b"x"
            with trio.fail_after(PATIENCE_S):
                async with trio.open_nursery() as nursery:
                    for stream in streams:
                        nursery.start_soon(closed, stream)
            await until(lambda: len(service.sessions) == 1)
            await client.publish("a", b"y", 1)
            assert (await client.message()).payload == b"y"


@pytest.mark.load
@pytest.mark.timeout(600)
async def test_ten_thousand_that_never_say_who_they_are_take_little_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = 10_000
    assert allow_descriptors(number) >= number + 100
    async with serving(tmp_path / "data", *OPTIONS) as server:
        port, process = await port_of(server), psutil.Process(server.process.pid)
        before = process.memory_info().rss
        streams = await opened(port, number)
        taken = process.memory_info().rss - before
        with trio.fail_after(PATIENCE_S):
            async with mqtt_client(port) as client:
                answer = await client.connect("stranger")
                assert answer.code == packets.NOT_AUTHORIZED
            async with trio.open_nursery() as nursery:
                for stream in streams:
                    nursery.start_soon(closed, stream)
        assert await server.terminate() == 0
        assert "Traceback" not in server.log
    with capsys.disabled():
        sys.stdout.write(f"\n{taken / number:,.0f} bytes of memory for each of {number:,} connections\n")
    assert taken / number < CONNECTION_BYTES_MAX
