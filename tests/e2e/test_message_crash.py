"""kill -9 while a broker delivers messages: each starts its workflow at least once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from tests.brokers import running_broker
from tests.e2e.conftest import Server
from tests.e2e.server_process import OWNER, serving
from tests.e2e.sse_client import until
from tests.e2e.test_integrations import connected, mqtt, send
from tests.e2e.test_message_triggers import flow

pytestmark = pytest.mark.disk

KILLS, MESSAGES = 4, 200


@contextmanager
def collector(port: int, topic: str) -> Iterator[list[str]]:
    """What is published to a topic of the broker while the body runs."""
    found: list[str] = []
    client = Client(CallbackAPIVersion.VERSION2, client_id="collector")

    def take(_client: object, _data: object, message: MQTTMessage) -> None:
        found.append(message.payload.decode())

    def subscribe(*_: object) -> None:
        client.subscribe(topic, 1)

    client.on_message = take
    client.on_connect = subscribe
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        yield found
    finally:
        client.disconnect()
        client.loop_stop()


@pytest.mark.slow
async def test_each_message_is_handled_at_least_once_across_kills(tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("integration_pause_s = 0.05\nintegration_pause_max_s = 0.2\n")
    env = {**OWNER, "TRUNKLINE_CALLBACK_PRIVATE_NETWORKS": "true"}
    start = partial(serving, tmp_path / "data", "--limits", str(limits), env=env)
    with running_broker(tmp_path) as broker, collector(broker.v3, "out") as handled:
        async with start() as server:
            path = await forwarder(server, broker.v3)
        for round in range(KILLS):
            async with start() as server:
                await connected(server, path)
                messages = [f"{round}.{each}" for each in range(MESSAGES)]
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(send, broker.v3, "in", *messages)
                    await until(partial(longer, handled, len(handled) + MESSAGES // 4))
                    await server.kill()
        expected = {f"{number}.{each}" for number in range(KILLS) for each in range(MESSAGES)}
        async with start():
            await until(lambda: expected <= set(handled))
    assert set(handled) == expected


async def forwarder(server: Server, port: int) -> str:
    """An integration whose messages on `in` a workflow publishes on `out`; returns its path."""
    application = await server.application()
    path = await mqtt(server, application, port, "in", clean=False, clientId="kept")
    id = path.rpartition("/")[2]
    trigger = {"type": "integration", "key": id, "config": {"message": True}}
    node = {"integrationId": id, "topicTemplate": "out", "messageTemplate": "{{data.message}}"}
    await flow(server, application, trigger, **node)
    return path


def longer(list: list[str], length: int) -> bool:
    return len(list) > length
