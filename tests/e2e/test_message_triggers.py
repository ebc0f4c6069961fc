"""Workflows that messages start: of topics of the application, of MQTT brokers and of WebSocket servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection

from tests.brokers import Ports, running_broker
from tests.e2e.conftest import Server
from tests.e2e.sse_client import until
from tests.e2e.test_integrations import QUICK, Start, arrived, connected, failure, mqtt, send
from tests.e2e.test_topics import heard, listening, publish
from tests.e2e.test_websocket_integrations import socket_server, websocket
from tests.patience import PATIENCE_S
from trunkline.actors.workflows.triggers.queue import TriggerQueue

ALL = {"connect": True, "message": True, "disconnect": True, "failure": True}
PAYLOAD = "{{jsonEncode data}} {{triggerType}} {{triggerId}} {{relayType}} {{relayId}}"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Ports]:
    with running_broker(tmp_path) as ports:
        yield ports


async def flow(server: Server, application: str, trigger: dict[str, Any], **config: Any) -> str:
    """A workflow that publishes what started it to the topic `out`, or as the configuration of the node says."""
    node = {"topicTemplate": "out", "messageTemplate": PAYLOAD, **config}
    return await flow_of(server, application, trigger, {"type": "MqttMessageNode", "config": node})


async def flow_of(server: Server, application: str, trigger: dict[str, Any], node: dict[str, Any]) -> str:
    """A workflow with one node."""
    body = {
        "name": "teller",
        "enabled": True,
        "triggers": [{**trigger, "outputIds": [["tell"]]}],
        "nodes": [{"id": "tell", **node}],
    }
    made = await server.call("POST", f"{application}/flows", body, status=201)
    return str(made["id"])


def topic_trigger(key: str, **config: Any) -> dict[str, Any]:
    return {"type": "mqttTopic", "key": key, "config": config}


async def test_a_message_starts_the_workflows_whose_filters_select_its_topic(server: Server) -> None:
    application = await server.application()
    me = (await server.call("GET", "/me"))["id"]
    await flow(server, application, topic_trigger("barn/+"), messageTemplate="one " + PAYLOAD)
    await flow(server, application, topic_trigger("barn/door", integrationId="losant"), messageTemplate="two")
    await flow(server, application, topic_trigger("yard/#"), messageTemplate="other")
    await flow(server, application, topic_trigger("#", integrationId="0" * 24), messageTemplate="broker")
    async with listening(server, application, "out") as stream:
        await publish(server, application, "barn/door", '{"a": 1}')
        said = {message for _, message in await heard(stream, 2)}
        assert said == {f"one {json.dumps(json.dumps({'a': 1}))} mqttTopic barn/door user {me}", "two"}


async def test_workflows_start_each_other_by_topics_and_stop_at_a_bound(server: Server) -> None:
    application = await server.application()
    await flow(server, application, topic_trigger("ping"), topicTemplate="ping", messageTemplate="{{data}}x")
    async with listening(server, application, "ping") as stream:
        await publish(server, application, "ping", "")
        said = [message for _, message in await heard(stream, 33)]
        assert said[-1] == "x" * 32
        queue = server.system.component(TriggerQueue)
        await until(lambda: queue.dropped_count == 1)


async def test_messages_of_a_broker_start_workflows(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        path = await mqtt(server, application, broker.v3, "in/#", enabled=False)
        id = path.rpartition("/")[2]
        await flow(server, application, {"type": "integration", "key": id, "config": ALL})
        await flow(
            server, application, topic_trigger("in/+", integrationId=id), messageTemplate="topic " + PAYLOAD
        )
        await flow(server, application, topic_trigger("in/#"), messageTemplate="own topic")
        async with listening(server, application, "out") as stream:
            await server.call("PATCH", path, {"enabled": True})
            about = f"integration {id} integration {id}"
            topics = json.dumps({"type": "connect", "topics": ["in/#"]}, separators=(",", ":"))
            assert await heard(stream, 1) == [("out", f"{topics} {about}")]
            await send(broker.v3, "in/a", b"caf\xe9")
            data = {"type": "message", "message": "caf\ufffd", "topic": "in/a"}
            text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
            said = {message for _, message in await heard(stream, 2)}
            assert said == {f"{text} {about}", f'topic "caf\ufffd" mqttTopic in/a integration {id}'}
            await server.call("PATCH", path, {"enabled": False})
            ((_, message),) = await heard(stream, 1)
            assert message == f'{{"type":"disconnect","disconnectReason":"Disabled"}} {about}'


async def test_a_failure_to_connect_starts_workflows(start_server: Start) -> None:
    async with start_server(limits={"integration_pause_s": 60}) as server:
        application = await server.application()
        path = await mqtt(server, application, 1, enabled=False)
        id = path.rpartition("/")[2]
        await flow(server, application, {"type": "integration", "key": id.upper(), "config": ALL})
        await flow(server, application, {"type": "integration", "key": id}, messageTemplate="by default")
        async with listening(server, application, "out") as stream:
            await server.call("PATCH", path, {"enabled": True})
            ((_, message),) = await heard(stream, 1)
            assert message.startswith('{"type":"failure","failureReason":"127.0.0.1 resolves to an address')


async def test_a_workflow_publishes_to_a_broker(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        source = await mqtt(server, application, broker.v5, "in", protocolVersion="5")
        target = await mqtt(server, application, broker.v3, "to/#")
        await connected(server, source, target)
        await flow(
            server,
            application,
            topic_trigger("start"),
            integrationId=source.rpartition("/")[2],
            topicTemplate="to/{{data}}",
            messageTemplate="got {{data}}",
        )
        key = target.rpartition("/")[2]
        await flow(server, application, {"type": "integration", "key": key, "config": ALL})
        async with listening(server, application, "out") as stream:
            await publish(server, application, "start", "there")
            ((_, message),) = await heard(stream, 1)
            assert message.startswith('{"type":"message","message":"got there","topic":"to/there"}')


@pytest.mark.parametrize(
    ("config", "got"),
    [
        ({"messageTemplate": "got {{data}}"}, "got there"),
        ({"messageTemplate": "/wA=", "encodingTemplate": "base64"}, b"\xff\x00"),
    ],
)
async def test_a_workflow_sends_to_a_websocket_server(
    start_server: Start, config: dict[str, Any], got: str | bytes
) -> None:
    received: list[str | bytes] = []

    async def handle(socket: WebSocketConnection) -> None:
        try:
            while True:
                received.append(await socket.get_message())
        except ConnectionClosed:
            return

    async with (
        socket_server(handle, []) as port,
        start_server(callback_private_networks=True, limits=QUICK) as server,
    ):
        application = await server.application()
        path = await websocket(server, application, f"ws://127.0.0.1:{port}")
        node = {"integrationId": path.rpartition("/")[2], **config}
        sends = {"type": "WebsocketMessageNode", "config": node}
        await flow_of(server, application, topic_trigger("start"), sends)
        await publish(server, application, "start", "there")
        await until(lambda: received == [got])


async def test_what_cannot_be_sent_fails_the_run(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        of_mqtt = await mqtt(server, application, broker.v3)
        ids = (of_mqtt.rpartition("/")[2], "ab" * 12)
        said = []
        for id in ids:
            node = {"integrationId": id, "messageTemplate": "x"}
            sends = {"type": "WebsocketMessageNode", "config": node}
            made = await flow_of(server, application, topic_trigger("start"), sends)
            await publish(server, application, "start", "there")
            errors: list[Any] = []
            with trio.fail_after(PATIENCE_S):
                while not errors:
                    await trio.lowlevel.checkpoint()
                    errors = (await server.call("GET", f"{application}/flows/{made}/errors"))["errors"]
            said.append(errors[0]["error"]["message"])
        assert said[0].startswith("The message was not sent: this integration is an MQTT broker;")
        assert said[1] == "The message was not sent: there is no enabled integration with this id."


async def test_messages_of_a_websocket_start_workflows(start_server: Start) -> None:
    async def handle(socket: WebSocketConnection) -> None:
        await socket.send_message("hi")
        try:
            await socket.get_message()
        except ConnectionClosed:
            return

    async with (
        socket_server(handle, []) as port,
        start_server(callback_private_networks=True, limits=QUICK) as server,
    ):
        application = await server.application()
        path = await websocket(server, application, f"ws://127.0.0.1:{port}", enabled=False)
        id = path.rpartition("/")[2]
        only = {"type": "integration", "key": id, "config": {**ALL, "connect": False}}
        await flow(server, application, only, messageTemplate="{{jsonEncode data}}")
        async with listening(server, application, "out") as stream:
            await server.call("PATCH", path, {"enabled": True})
            ((_, message),) = await heard(stream, 1)
            told = json.loads(message)
            assert (told["type"], told["message"]) == ("message", {"data": "hi", "length": 2})
            assert told["headers"]["x-server"] == "test"
            await server.call("PATCH", path, {"enabled": False})
            ((_, message),) = await heard(stream, 1)
            assert json.loads(message)["message"] == {"statusCode": 1000, "reason": "Disabled"}


async def test_messages_of_an_earlier_session_are_acknowledged_before_the_topics_are_confirmed(
    start_server: Start,
) -> None:
    """As a broker does it that has as many messages on their way as it may have."""
    acknowledged = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):  # the server may stop at any time
            await stream.receive_some()
            await stream.send_all(b"\x20\x02\x01\x00\x32\x06\x00\x01a\x00\x07x")
            received = b""
            while b"\x40\x02\x00\x07" not in received:
                part = await stream.receive_some()
                if not part:
                    return
                received += part
            acknowledged.set()
            await stream.send_all(b"\x90\x03\x00\x01\x80")
            await trio.sleep_forever()

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        async with start_server(callback_private_networks=True, limits=QUICK) as server:
            port = listeners[0].socket.getsockname()[1]
            path = await mqtt(server, await server.application(), port, "a", clean=False, clientId="kept")
            with trio.fail_after(PATIENCE_S):
                await acknowledged.wait()
            assert arrived(server) >= 1
            assert (await failure(server, path)) == "The broker refuses the topic a"
        nursery.cancel_scope.cancel()
