"""Integrations on real sockets: MQTT brokers and WebSocket servers, their messages, and what ends a connection."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from paho.mqtt import publish
from paho.mqtt.enums import MQTTProtocolVersion

from tests.brokers import PASSWORD, Ports, running_broker
from tests.e2e.conftest import Server
from tests.e2e.sse_client import until
from tests.patience import PATIENCE_S
from trunkline.actors.connections.integrations.connections import Connections

QUICK = {"integration_pause_s": 0.02, "integration_pause_max_s": 0.05}
Start = Callable[..., Any]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Ports]:
    with running_broker(tmp_path) as ports:
        yield ports


async def send(port: int, topic: str, *messages: str | bytes) -> None:
    """Publish messages as somebody else."""
    sent: list[Any] = [(topic, message, 1, False) for message in messages]
    publishing = partial(publish.multiple, sent, hostname="127.0.0.1", port=port)
    await trio.to_thread.run_sync(partial(publishing, protocol=MQTTProtocolVersion.MQTTv311))


async def mqtt(
    server: Server, application: str, port: int, *topics: str, enabled: bool = True, **config: Any
) -> str:
    """A new integration; returns its path."""
    made = await server.call(
        "POST",
        f"{application}/integrations",
        {
            "name": "broker",
            "integrationType": "mqtt",
            "topics": list(topics),
            "enabled": enabled,
            "mqttConfig": {"protocol": "mqtt", "host": "127.0.0.1", "port": port, **config},
        },
        status=201,
    )
    return f"{application}/integrations/{made['id']}"


async def state(server: Server, path: str, is_wanted: Callable[[Any], bool]) -> Any:
    """Wait until the state of the connection is as it is wanted."""
    with trio.fail_after(PATIENCE_S):
        while True:
            shown = (await server.call("GET", path)).get("status")
            if is_wanted(shown):
                return shown
            await trio.sleep(0.005)


async def connected(server: Server, *paths: str) -> None:
    for path in paths:
        await state(server, path, lambda shown: shown and shown["connectInfo"]["ts"] is not None)


async def failure(server: Server, path: str) -> str:
    """Why the connection could not be opened."""
    # The error is still shown when the next attempt has connected.
    shown = await state(
        server, path, lambda it: it and "error" in it["disconnectInfo"] and not it["connectInfo"]["ts"]
    )
    return str(shown["disconnectInfo"]["error"])


def arrived(server: Server) -> int:
    return server.system.component(Connections).counts["messages"]


# MQTT.


async def test_messages_of_a_broker_arrive_by_every_protocol(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        make = partial(mqtt, server, application)
        paths = [
            await make(broker.v3, "barn/+", "yard/#", clientId="three"),
            await make(broker.v5, "barn/+", protocolVersion="5", clean=False),
            await make(broker.websocket, "barn/+", protocol="ws"),
            await make(broker.guarded, "barn/+", username="ada", password=PASSWORD),
        ]
        await connected(server, *paths)
        await send(broker.v3, "barn/door", "open")
        await until(lambda: arrived(server) >= 4)
        counts = await server.call("GET", f"{application}/payloadCounts")
        assert counts["integration"] == {"total": 4}
        shown = (await server.call("GET", f"{application}/integrations"))["items"]
        assert all(each["status"]["lastKeepAlive"] >= each["status"]["connectInfo"]["ts"] for each in shown)
        assert PASSWORD not in str(shown)


async def test_a_change_of_the_record_takes_effect_at_once(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        path = await mqtt(server, await server.application(), broker.v3, "a")
        await connected(server, path)
        began = (await server.call("GET", path))["status"]["connectInfo"]["ts"]
        await server.call("PATCH", path, {"name": "renamed"})
        assert (await server.call("GET", path))["status"]["connectInfo"]["ts"] == began
        await server.call("PATCH", path, {"topics": ["b"]})
        await until(lambda: server.system.component(Connections).counts["ended"] == 1)
        await connected(server, path)
        await send(broker.v3, "a", "unheard")
        await send(broker.v3, "b", "heard")
        await until(lambda: arrived(server) == 1)
        await server.call("PATCH", path, {"enabled": False})
        await state(server, path, lambda shown: shown is None)
        await server.call("PATCH", path, {"enabled": True})
        await connected(server, path)
        await server.call("DELETE", path)
        await until(lambda: server.system.component(Connections).connected == 0)


async def test_a_connection_of_a_deleted_application_is_closed(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        await connected(server, await mqtt(server, application, broker.v3, "a"))
        await server.call("DELETE", application)
        await until(lambda: server.system.component(Connections).connected == 0)


async def test_the_integrations_of_a_clone_are_connected(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        await connected(server, await mqtt(server, application, broker.v3, "a"))
        made = await server.call("POST", f"{application}/clone", {}, status=201)
        clone = f"/applications/{made['application']['id']}"
        (copied,) = (await server.call("GET", f"{clone}/integrations"))["items"]
        await connected(server, f"{clone}/integrations/{copied['id']}")


async def test_a_broker_that_comes_back_is_connected_and_subscribed_again(
    start_server: Start, tmp_path: Path
) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        with running_broker(tmp_path) as ports:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            port = listeners[0].socket.getsockname()[1]
            async with relay(listeners, ports.v3):
                path = await mqtt(server, application, port, "a")
                await connected(server, path)
            await state(
                server, path, lambda shown: "cannot be reached" in shown["disconnectInfo"].get("error", "")
            )
            async with relay(await trio.open_tcp_listeners(port, host="127.0.0.1"), ports.v3):
                await connected(server, path)
                await send(ports.v3, "a", "back")
                await until(lambda: arrived(server) == 1)


@asynccontextmanager
async def relay(
    listeners: list[trio.SocketListener], port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Connect who connects to these listeners to a port of this machine; with TLS on our side."""

    async def pump(source: trio.abc.Stream, target: trio.abc.Stream, scope: trio.CancelScope) -> None:
        try:
            while data := await source.receive_some(65_536):
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()

    async def serve(stream: trio.abc.Stream) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", port) as behind, trio.open_nursery() as nursery:
            nursery.start_soon(pump, stream, behind, nursery.cancel_scope)
            nursery.start_soon(pump, behind, stream, nursery.cancel_scope)

    async with trio.open_nursery() as nursery:
        over: list[Any] = listeners
        if context is not None:
            over = [trio.SSLListener(each, context, https_compatible=True) for each in listeners]
        nursery.start_soon(trio.serve_listeners, serve, over)
        yield
        nursery.cancel_scope.cancel()


async def test_a_broker_behind_tls_is_verified(start_server: Start, broker: Ports) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    client = authority.issue_cert("trunkline")
    pair: dict[str, Any] = {
        "certificate": client.cert_chain_pems[0].bytes().decode(),
        "privateKey": client.private_key_pem.bytes().decode(),
    }
    trusted = authority.cert_pem.bytes().decode()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with (
        relay(listeners, broker.v3, context),
        start_server(callback_private_networks=True, limits=QUICK) as server,
    ):
        make = partial(mqtt, server, await server.application(), port, "a", protocol="mqtts")
        good = await make(host="localhost", caCertificate=trusted, **pair)
        await connected(server, good)
        await connected(server, await make(host="127.0.0.1", disableSSLVerification=True, **pair))
        assert "certificate is not valid" in await failure(server, await make(host="localhost", **pair))
        assert "certificate is not valid" in await failure(server, await make(caCertificate=trusted, **pair))
        alone = await make(host="localhost", caCertificate=trusted)
        await failure(server, alone)
        odd = await make(host="localhost", caCertificate=trusted, **weak_pair())
        assert (await failure(server, odd)).startswith("certificate and privateKey cannot be used together")


def weak_pair() -> dict[str, Any]:
    """A certificate and its key, of a size that TLS does not take."""
    key = rsa.generate_private_key(65537, 1024)
    name, now = x509.Name([]), datetime.now(UTC)
    begun = x509.CertificateBuilder().subject_name(name).issuer_name(name).not_valid_before(now)
    rest = begun.not_valid_after(now + timedelta(days=1)).serial_number(1).public_key(key.public_key())
    return {
        "certificate": rest.sign(key, SHA256()).public_bytes(Encoding.PEM).decode(),
        "privateKey": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
    }


async def test_a_broker_that_refuses_is_shown_and_tried_again(start_server: Start, broker: Ports) -> None:
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        path = await mqtt(
            server, await server.application(), broker.guarded, username="ada", password="wrong"
        )
        assert await failure(server, path)
        await until(lambda: server.system.component(Connections).counts["failed"] > 2)
        await server.call("PATCH", path, {"mqttConfig": {"password": PASSWORD}})
        await connected(server, path)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(80), "Protocol error"),
        (b"\x30\xff\xff\xff\x7f", "The broker sent a packet of more than"),
        (b"\x20\x02\x00\x05", "Not authorized"),
        (b"\x20\x02\x00\x00\x90\x03\x00\x01\x80", "The broker refuses the topic a"),
        (
            b"\x20\x02\x00\x00\x90\x03\x00\x01\x01\x34\x05\x00\x01a\x00\x01",
            "The broker sent a message with QoS 2",
        ),
        (b"\x20\x02\x00\x00\x90\x03\x00\x01\x01\x30\x03\x00\x09a", "Protocol error"),
        (b"\xff\xff\xff\xff\xff\xff", "The broker sent a packet without an end"),
        (b"", "Connection Lost"),
    ],
)
async def test_what_is_no_broker_is_told_so(start_server: Start, answer: bytes, said: str) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):  # the server may stop at any time
            await stream.receive_some()
            await stream.send_all(answer)
            await stream.send_eof()
            await stream.receive_some()  # what comes after the end of a connection would reset it

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        async with start_server(callback_private_networks=True, limits=QUICK) as server:
            port = listeners[0].socket.getsockname()[1]
            path = await mqtt(server, await server.application(), port, "a")
            assert (await failure(server, path)).startswith(said)
        nursery.cancel_scope.cancel()


async def test_messages_of_a_deleted_integration_end_its_connection(
    start_server: Start, broker: Ports
) -> None:
    """Also if they arrive while it is deleted."""
    async with start_server(callback_private_networks=True, limits=QUICK) as server:
        application = await server.application()
        paths = [await mqtt(server, application, broker.v3, "a") for _ in range(3)]
        await connected(server, *paths)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, broker.v3, "a", *(["x"] * 500))
            for path in paths:
                nursery.start_soon(server.call, "DELETE", path)
        await until(lambda: server.system.component(Connections).connected == 0)
        await connected(server, await mqtt(server, application, broker.v3, "a"))


async def test_a_message_is_acknowledged_when_it_is_on_disk(start_server: Start) -> None:
    """The disk refuses three times; meanwhile nothing is acknowledged, and then the message is."""
    refusals: list[int] = []
    left_at_ack: list[int] = []
    acknowledged = trio.Event()

    def disk() -> float:
        if len(refusals) < 3:
            refusals.append(0)
            raise OSError(5, "broken on purpose")
        return 0

    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"\x20\x02\x00\x00")
        await stream.receive_some()
        server.system.journal._sync_delay_s = disk
        await stream.send_all(b"\x90\x03\x00\x01\x01" + b"\x32\x06\x00\x01a\x00\x07x")
        assert await stream.receive_some() == b"\x40\x02\x00\x07"
        left_at_ack.append(3 - len(refusals))
        acknowledged.set()
        await trio.sleep_forever()

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        async with start_server(callback_private_networks=True, limits=QUICK) as server:
            nursery.start_soon(trio.serve_listeners, serve, listeners)
            application = await server.application()
            await mqtt(server, application, listeners[0].socket.getsockname()[1], "a")
            with trio.fail_after(PATIENCE_S):
                await acknowledged.wait()
            assert left_at_ack == [0]
            counts = await server.call("GET", f"{application}/payloadCounts")
            assert counts["integration"] == {"total": 1}
        nursery.cancel_scope.cancel()


# What is refused.


async def test_a_connection_goes_only_to_public_addresses(start_server: Start, broker: Ports) -> None:
    async with start_server(limits=QUICK) as server:
        application = await server.application()
        for host in ("127.0.0.1", "localhost"):
            path = await mqtt(server, application, broker.v3, "a", host=host)
            assert "not public" in await failure(server, path)


@pytest.mark.parametrize("type", ["azureEventHub", "googlePubSub", "particle", "sqs"])
async def test_other_types_cannot_be_enabled(server: Server, type: str) -> None:
    configs = {
        "azureEventHub": {"hubName": "h", "consumerGroup": "g", "connectionString": "c"},
        "googlePubSub": {},
        "particle": {"accessToken": "t"},
        "sqs": {"queueUrl": "https://q"},
    }
    path = f"{await server.application()}/integrations"
    body = {"name": type, "integrationType": type, f"{type}Config": configs[type]}
    refusal = await server.call("POST", path, {**body, "enabled": True}, status=400)
    assert refusal["message"] == (
        f"enabled: this server connects to mqtt and websocket; store the type {type} with enabled false."
    )
    made = await server.call("POST", path, body, status=201)
    assert made["enabled"] is False
    refusal = await server.call("PATCH", f"{path}/{made['id']}", {"enabled": True}, status=400)
    assert refusal["message"].startswith("enabled: this server connects to")
    assert (await server.call("GET", f"{path}/{made['id']}"))["enabled"] is False
