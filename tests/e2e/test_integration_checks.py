"""Integrations that the server could not connect are refused when they are enabled, and imported disabled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.certificates import issue
from tests.e2e.conftest import Server
from tests.e2e.test_imports import bundle_of, imported, old

ISSUED = issue("trunkline")
OTHER = issue("other")
BROKER = {"protocol": "mqtt", "host": "broker.example.com", "port": 1883}
NO_CERTIFICATE = "is not a whole certificate; give PEM text"
HOST = "must be the name or the address of a host"
HANDSHAKE = "belongs to the handshake, which has its own; leave it out."


def mqtt(topics: list[str] | None = None, **config: Any) -> dict[str, Any]:
    """The body of an integration."""
    given = {"name": "i", "integrationType": "mqtt", "mqttConfig": {**BROKER, **config}}
    return given if topics is None else {**given, "topics": topics}


def websocket(url: str = "ws://h", **config: Any) -> dict[str, Any]:
    return {"name": "i", "integrationType": "websocket", "websocketConfig": {"url": url, **config}}


def header(key: str, value: str = "x", **config: Any) -> dict[str, Any]:
    return websocket(
        headers=[{"headerKey": "X-A", "headerValue": "a"}, {"headerKey": key, "headerValue": value}], **config
    )


WRONG: list[tuple[dict[str, Any], str]] = [
    (mqtt(["a", "{{globals.x}}/a"]), "topics[1]: is a template"),
    (mqtt(host="{{globals.host}}"), "mqttConfig.host: is a template"),
    *(
        (mqtt(host=host), f"mqttConfig.host: {HOST}")
        for host in (
            "http://x",
            "a b",
            "a..b",
            "127.0.0.1:18151",
            "[::1]",
            "fe80::1%x",
            "x" * 300,
            "-a",
            "127.0.0.1/pa th",
            "127.0.0.1/ü",
            "127.0.0.1/x\r\nX: y",
            "/mqtt",
        )
    ),
    (mqtt(clientId="a\0b"), "mqttConfig.clientId: has the character U+0000"),
    (mqtt(username="a\0b"), "mqttConfig.username: has the character U+0000"),
    (mqtt(caCertificate="nope"), f"mqttConfig.caCertificate: {NO_CERTIFICATE}"),
    (mqtt(certificate="nope"), "mqttConfig: give certificate and privateKey together"),
    (mqtt(privateKey=ISSUED.key_pem), "mqttConfig: give certificate and privateKey together"),
    (mqtt(certificate="nope", privateKey=ISSUED.key_pem), f"mqttConfig.certificate: {NO_CERTIFICATE}"),
    (
        mqtt(certificate=ISSUED.pem, privateKey="nope"),
        "mqttConfig.privateKey: cannot be read as a private key",
    ),
    (
        mqtt(certificate=ISSUED.pem, privateKey=OTHER.key_pem),
        "mqttConfig.privateKey: is not the key of the certificate",
    ),
    *(
        (websocket(url), "websocketConfig.url: must")
        for url in (
            "http://h",
            "ws://",
            "ws://u:p@h",
            "ws://h:99999",
            "broker",
            "ws://h/a b",
            "ws://a..b",
            f"ws://{'x' * 300}",
        )
    ),
    (websocket(caCertificate="nope"), f"websocketConfig.caCertificate: {NO_CERTIFICATE}"),
    (header("a b"), "websocketConfig.headers[1].headerKey: is not a valid name"),
    (header("a", "b\r\nc: d"), "websocketConfig.headers[1].headerValue: has characters"),
    (header("a", "{{globals.x}}"), "websocketConfig.headers[1].headerValue: is a template"),
    *(
        (header(name), f"websocketConfig.headers[1].headerKey: {name} {HANDSHAKE}")
        for name in ("Host", "connection", "UPGRADE", "Sec-WebSocket-Key", "Sec-WebSocket-Version")
    ),
    *(
        (header(name, "1"), f"websocketConfig.headers[1].headerKey: {name} {HANDSHAKE}")
        for name in ("Content-Length", "Transfer-Encoding")
    ),
    (
        header("Authorization", username="ada"),
        "websocketConfig.headers[1].headerKey: Authorization is made of",
    ),
]


@pytest.mark.parametrize(("body", "said"), WRONG, ids=range(len(WRONG)))
async def test_what_cannot_be_connected_is_400_when_it_is_enabled(
    server: Server, body: dict[str, Any], said: str
) -> None:
    path = f"{await server.application()}/integrations"
    refusal = await server.call("POST", path, body, status=400)
    assert refusal["message"].startswith(said)
    assert (await server.call("GET", path))["totalCount"] == 0
    made = await server.call("POST", path, {**body, "enabled": False}, status=201)
    refusal = await server.call("PATCH", f"{path}/{made['id']}", {"enabled": True}, status=400)
    assert refusal["message"].startswith(said), "secrets that are stored are checked, too"


@pytest.mark.parametrize(
    "body",
    [
        mqtt(["{a}"], host="::1", clientId="é"),
        mqtt(host="broker_1.local.", caCertificate=ISSUED.pem + OTHER.pem),
        mqtt(host="bücher.example/a%20b?c=d", protocol="wss"),
        mqtt(certificate=ISSUED.pem, privateKey=ISSUED.key_pem),
        websocket("wss://[::1]:8443/a?b=%20"),
        header("Authorization", "Bearer {x}"),
        header("Sec-WebSocket-Protocol"),
    ],
)
async def test_what_can_be_connected_is_taken(server: Server, body: dict[str, Any]) -> None:
    path = f"{await server.application()}/integrations"
    made = await server.call("POST", path, body, status=201)
    assert made["enabled"] is True


async def test_a_pair_is_changed_as_one(server: Server) -> None:
    path = f"{await server.application()}/integrations"
    made = await server.call(
        "POST", path, mqtt(certificate=ISSUED.pem, privateKey=ISSUED.key_pem), status=201
    )
    for certificate, said in (
        (OTHER.pem, "mqttConfig.privateKey: is not the key of the certificate"),
        (None, "mqttConfig: give certificate and privateKey together"),
    ):
        change = {"mqttConfig": {"certificate": certificate}}
        refusal = await server.call("PATCH", f"{path}/{made['id']}", change, status=400)
        assert refusal["message"].startswith(said)
    pair = {"certificate": OTHER.pem, "privateKey": OTHER.key_pem}
    changed = await server.call("PATCH", f"{path}/{made['id']}", {"mqttConfig": pair})
    assert changed["mqttConfig"]["certificate"] == OTHER.pem


async def test_what_cannot_be_connected_is_imported_disabled(server: Server) -> None:
    bodies = [{**body, "enabled": True} for body, _ in WRONG] + [{**mqtt(["a"]), "enabled": True}]
    lines = [{"id": old(number), "body": body} for number, body in enumerate(bodies, 1)]
    path = await imported(server, bundle_of({"Integration": lines}))
    listed = (await server.call("GET", f"{path}/integrations?perPage=1000"))["items"]
    assert len(listed) == len(bodies)
    assert [each.get("topics") for each in listed if each["enabled"]] == [["a"]]
