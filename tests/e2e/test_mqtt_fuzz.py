"""Whatever bytes come behind a valid CONNECT, the server goes on, logs no fault, and keeps nothing of the connections.

`pytest -m load tests/e2e/test_mqtt_fuzz.py` runs the long form.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
import structlog
import trio

from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.mqtt_house import House, house_in
from tests.e2e.sse_client import until
from tests.http.mqtt.mutation import mutated
from tests.patience import PATIENCE_S
from trunkline.actors.data.topics.broker import Broker
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V3_1_1, V5, Connect, Filter, Publish, Subscribe, Unsubscribe, Will
from trunkline.http.mqtt.service import MqttService

AT_ONCE = 8
GROWN_BYTES_MAX = 64 * 2**20
LENGTHS = (b"\x30\xff\xff\xff\x7f", b"\x30\xff\xff\xff\xff\x7f", b"\x30\x80\x80\x01", b"\x82\xff\xff\x03")
"""Heads of packets that are too long, or never end."""


def packets_of(house: House, version: int, random: Random) -> list[bytes]:
    """Some valid packets of a client."""
    state = b'{"data": {"temp": 1}}'
    number = random.randint(1, 5)
    choices = [
        writer.publish(version, Publish(f"losant/{house.id}/state", state, 1, packet_id=number)),
        writer.publish(version, Publish("a/b", b"x" * random.choice((0, 10, 300)), 2, packet_id=number)),
        writer.publish(version, Publish("a/kept", b"x", retain=True)),
        writer.subscribe(version, Subscribe(number, (Filter("a/#", 2), Filter("$share/g/a/+", 1)))),
        writer.subscribe(version, Subscribe(number, (Filter(f"losant/{house.id}/command", 1),))),
        writer.unsubscribe(version, Unsubscribe(number, ("a/#",))),
        *(writer.ack(version, kind, number) for kind in (packets.PUBACK, packets.PUBREC, packets.PUBREL)),
        writer.ack(version, packets.PUBCOMP, number),
        writer.PINGREQ,
        writer.disconnect(version, packets.SUCCESS),
    ]
    if version == V5:
        properties = {"topic_alias": number, "user_property": [("a", "b")], "message_expiry_interval": 9}
        choices.append(writer.publish(V5, Publish("a/c", b"x", 1, packet_id=number, properties=properties)))
    return random.choices(choices, k=random.randint(1, 8))


def stream_of(house: House, random: Random) -> tuple[int, bytes]:
    """A version, and what a client sends: most of it valid."""
    version = random.choice((V3_1_1, V5))
    clean = random.random() < 0.5
    properties = {"session_expiry_interval": 100} if version == V5 and not clean else {}
    will = random.choice((None, Will("a/will", b"gone", 1)))
    client_id = random.choice((house.id, *(f"client {number}" for number in range(AT_ONCE))))
    connect = writer.connect(
        Connect(version, client_id, clean, will=will, properties=properties, **house.credentials)
    )
    sent = packets_of(house, version, random)
    kind = random.randrange(6)
    if kind == 0:
        return version, mutated(connect, random) + b"".join(sent)
    if kind == 1:
        sent.insert(random.randint(0, len(sent)), random.choice(LENGTHS))
    elif kind < 5:
        place = random.randrange(len(sent))
        sent[place] = mutated(sent[place], random)
    stream = connect + b"".join(sent)
    if random.random() < 0.3:
        stream = stream[: random.randint(1, len(stream))]
    return version, stream


async def play(house: House, random: Random) -> None:
    """One connection: send a stream in pieces, read or not, and leave."""
    version, stream = stream_of(house, random)
    async with mqtt_client(house.server.mqtt_ports[0], version) as client:
        try:
            while stream:
                cut = random.choice((1, 7, len(stream), len(stream)))
                await client.send(stream[:cut])
                stream = stream[cut:]
            if random.random() < 0.7:
                await client.stream.send_eof()  # type: ignore[attr-defined] # a socket has it
                while await client.stream.receive_some(65_536):
                    pass
        except trio.BrokenResourceError:
            return


async def fuzzed(data_dir: Path, streams: int, seed: int) -> int:
    """Play streams, some at once, beside a client that is served all the time.

    Returns by how many bytes the process has grown from the second fifth on.
    """
    random, process, before = Random(seed), psutil.Process(), 0
    async with house_in(data_dir) as house:
        service = house.server.system.component(MqttService)
        with structlog.testing.capture_logs() as logged, trio.fail_after(PATIENCE_S * max(1, streams // 300)):
            async with house.client("watcher") as watcher, house.client("sender") as sender:
                await watcher.subscribe("served", qos=1)
                for number in range(streams // AT_ONCE):
                    if number == streams // AT_ONCE // 5:
                        before = process.memory_info().rss
                    async with trio.open_nursery() as nursery:
                        for _ in range(AT_ONCE):
                            nursery.start_soon(play, house, Random(random.random()))
                    await sender.publish("served", str(number).encode(), 2)
                    assert (await watcher.message()).payload == str(number).encode()
                await until(lambda: len(service.sessions) == 2)
            await until(lambda: not service.sessions)
        assert len(house.server.system.component(Broker)) == 0
        assert [each for each in logged if _is_fault(each)] == []
    return process.memory_info().rss - before


def _is_fault(event: Any) -> bool:
    return event["log_level"] in ("error", "critical") or "exc_info" in event


@pytest.mark.slow
async def test_broken_streams_harm_nobody(tmp_path: Path) -> None:
    await fuzzed(tmp_path / "data", 304, seed=30)


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_many_broken_streams_harm_nobody(tmp_path: Path) -> None:
    assert await fuzzed(tmp_path / "data", 100_000, seed=31) < GROWN_BYTES_MAX
