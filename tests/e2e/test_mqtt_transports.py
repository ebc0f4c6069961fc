"""MQTT over TLS, with client certificates, and over WebSocket; and a client that others have written (paho)."""

from __future__ import annotations

import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, open_websocket_url

from tests.certificates import issue
from tests.e2e.conftest import Server, running_server
from tests.e2e.mqtt_client import MqttClient
from tests.e2e.mqtt_house import House, house
from tests.patience import PATIENCE_S
from trunkline.http.mqtt import packets

__all__ = ["house"]  # the fixture
CA = issue("authority of the operator", ca=True)
PUMP = issue("pump", CA)


async def secured(server: Server, certificate: bool) -> MqttClient:
    """A client on the port for TLS, with or without a certificate."""
    context = ssl.create_default_context(cadata=CA.pem)
    if certificate:
        path = Path(server.settings.data_dir) / "client.pem"
        path.write_text(PUMP.pem + PUMP.key_pem)
        context.load_cert_chain(path)
    context.check_hostname = False
    stream = await trio.open_tcp_stream("127.0.0.1", server.mqtt_ports[0])
    return MqttClient(trio.SSLStream(stream, context, server_hostname="localhost", https_compatible=True))


async def test_a_device_connects_over_tls_with_a_key_or_its_certificate_alone(tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text((own := issue("localhost", CA)).pem + own.key_pem)
    (tmp_path / "ca.pem").write_text(CA.pem)
    files = {name: str(tmp_path / "server.pem") for name in ("certfile", "keyfile")}
    async with running_server(
        tmp_path / "data",
        engine="fast",
        mqtt_tls_port=0,
        ca_certs=str(tmp_path / "ca.pem"),
        client_certificates="optional",
        **files,
    ) as server:
        application = await server.application()
        device = await server.device(application)
        id = device.rpartition("/")[2]
        key = await server.call("POST", f"{application}/keys", {})
        body = {"certificate": PUMP.pem, "deviceIds": [id], "subTopics": ["allowed"]}
        stored = await server.call("POST", f"{application}/certificates", body)
        async with await secured(server, certificate=False) as client:
            answer = await client.connect(id, username=key["key"], password=key["secret"].encode())
            assert answer.code == packets.SUCCESS
        async with await secured(server, certificate=False) as client:
            assert (await client.connect(id)).code == packets.NOT_AUTHORIZED
        async with await secured(server, certificate=True) as client:
            assert (await client.connect("somebody")).code == packets.NOT_AUTHORIZED
        async with await secured(server, certificate=True) as client:
            assert (await client.connect(id)).code == packets.SUCCESS
            assert await client.subscribe("allowed", "else") == (1, packets.NOT_AUTHORIZED)
            answer = await client.publish(f"losant/{id}/state", b'{"data": {"temp": 1}}', 1)
            assert answer.code == packets.SUCCESS
            await server.call("DELETE", f"{application}/certificates/{stored['id']}")
            assert await client.farewell() == packets.NOT_AUTHORIZED
        await server.call("POST", f"{application}/certificates", body)
        left_s = (PUMP.certificate.not_valid_after_utc - datetime.now(UTC)).total_seconds()
        server.move_clock(left_s - 3)
        async with await secured(server, certificate=True) as client:
            assert (await client.connect(id)).code == packets.SUCCESS
            assert await client.farewell() == packets.NOT_AUTHORIZED, "it ends with the certificate"


class _WebSocketStream(trio.abc.Stream):
    """A WebSocket as a stream of bytes."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self._socket = socket

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        whole = bytes(data)
        for start in range(0, len(whole), 7):  # messages end anywhere
            await self._socket.send_message(whole[start : start + 7])

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            message = await self._socket.get_message()
        except ConnectionClosed:
            return b""
        assert isinstance(message, bytes)
        return message

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await self._socket.aclose()


async def test_mqtt_over_websocket_on_the_port_of_http(house: House) -> None:
    url = f"ws{house.server.url.removeprefix('http')}/mqtt"
    async with open_websocket_url(url, subprotocols=["mqtt"]) as socket:
        assert socket.subprotocol == "mqtt"
        client = MqttClient(_WebSocketStream(socket))
        assert (await client.connect("desk", **house.credentials)).code == packets.SUCCESS
        await client.subscribe("a")
        for number in range(200):
            await client.publish("a", b"%d" % number, number % 3)
        got = [await client.message() for _ in range(200)]
        assert [each.payload for each in got] == [b"%d" % number for number in range(200)]
        await client.goodbye()
        assert await client.next() is None
    async with open_websocket_url(url, subprotocols=["mqtt"]) as socket:
        await socket.send_message("text")
        with pytest.raises(ConnectionClosed):
            await socket.get_message()
        assert socket.closed is not None
        assert socket.closed.code == 1003
    with pytest.raises(ConnectionRejected) as rejected:
        async with open_websocket_url(url, subprotocols=["other"]):
            pass
    assert rejected.value.status_code == 400


@pytest.mark.parametrize("version", [MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5])
async def test_the_client_of_paho(house: House, version: MQTTProtocolVersion) -> None:
    """In a thread, with the loop of the library: connect, subscribe, publish with each QoS, receive."""
    got: list[tuple[str, bytes, int]] = []
    id, key, secret, port = house.id, house.key, house.secret, house.server.mqtt_ports[0]

    def run() -> None:
        client = paho.Client(CallbackAPIVersion.VERSION2, client_id=id, protocol=version)
        client.username_pw_set(key, secret)
        all_sent, all_got = threading.Event(), threading.Event()

        def received(_client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
            got.append((message.topic, bytes(message.payload), message.qos))
            if len(got) == 3:
                all_got.set()

        client.on_message = received
        client.on_connect = lambda client, *_: client.subscribe([("barn/#", 2), (f"losant/{id}/command", 1)])
        sent: list[paho.MQTTMessageInfo] = []

        def subscribed(client: paho.Client, *_: Any) -> None:
            state = msgspec.json.encode({"data": {"temp": 21.5}})
            sent.append(client.publish(f"losant/{id}/state", state, qos=1))
            sent.extend(client.publish("barn/door", b"%d" % qos, qos=qos) for qos in (0, 1, 2))
            all_sent.set()

        client.on_subscribe = subscribed
        client.connect("127.0.0.1", port, keepalive=30)
        client.loop_start()
        try:
            assert all_sent.wait(PATIENCE_S)
            for each in sent:
                each.wait_for_publish(PATIENCE_S)
            assert all_got.wait(PATIENCE_S)
        finally:
            client.disconnect()
            client.loop_stop()

    with trio.fail_after(PATIENCE_S):
        await trio.to_thread.run_sync(run)
    assert sorted(got) == [("barn/door", b"0", 0), ("barn/door", b"1", 1), ("barn/door", b"2", 2)]
    assert await house.states() == [{"temp": 21.5}]
