"""WebSocket connections of webhooks on real sockets: who may connect, what workflows are told and send, and the end."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from trio_websocket import ConnectionClosed, HandshakeError

from tests.e2e.conftest import ENGINE, Server
from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.e2e.sse_client import until
from tests.e2e.test_webhook_workflows import each_cast, told, watch
from tests.e2e.test_webhooks import CODE, counted, send, webhook
from tests.e2e.webhook_clients import closing, connected, data_of, echo, open_connections, refused, url_of
from tests.http.tls_client import trusting, write_certificate
from tests.http.websocket_peer import talk
from tests.patience import PATIENCE_S
from trunkline.store import keys

pytestmark = pytest.mark.skipif(ENGINE == "stock", reason="only the other engine takes WebSockets")
StartServer = Callable[..., Any]
CLIENTS = 30


async def all_ends_told(server: Server) -> None:
    """Wait until workflows were told of all ends of connections."""
    prefix = keys.WEBHOOK_CONNECTION_PREFIX
    end = keys.prefix_end(prefix)
    assert end is not None
    await until(lambda: not list(server.system.journal.range(keys.META, prefix, end)))


@pytest.fixture
def start_server(start_server: StartServer) -> StartServer:
    """Servers that keep the records of all runs."""

    def start(limits: dict[str, Any] | None = None, **settings: Any) -> Any:
        return start_server(limits={"kept_runs_max": 100, **(limits or {})}, **settings)

    return start


@pytest.fixture
async def server(start_server: StartServer) -> AsyncIterator[Server]:
    async with start_server() as running:
        yield running


async def test_workflows_are_told_of_a_connection_from_its_beginning_to_its_end(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True, basicAuthUsername="u", basicAuthPassword=CODE)
    flow = await watch(server, hook)
    secret = base64.b64encode(f"u:{CODE}".encode())
    headers = [(b"Authorization", b"Basic " + secret), (b"X-Kind", b"Tank"), (b"Cookie", b"c=1")]
    async with connected(server, hook, "?a=1&a=2", extra_headers=headers) as socket:
        await socket.send_message("Grüße")
        await socket.send_message(b"\xff\x00")
        await socket.send_message("")
        await socket.aclose(4123, "enough")
    data = await data_of(server, flow, 5)
    assert [each["type"] for each in data] == ["connect", "message", "message", "message", "disconnect"]
    assert [each["message"] for each in data] == [
        {},
        {"data": "Grüße", "length": 7},
        {"data": "\ufffd\x00", "length": 2},
        {"data": "", "length": 0},
        {"statusCode": 4123, "reason": "enough"},
    ]
    assert {each["replyId"] for each in data} == {data[0]["replyId"]}
    assert data[0]["replyId"].startswith(hook["id"])
    for each in data:
        assert each["headers"]["x-kind"] == "Tank"
        assert "cookie" not in each["headers"]
        assert each["headers"]["authorization"].startswith("Basic ")
        assert each["query"] == {"a": ["1", "2"]}
    payloads = await told(server, flow)
    assert {(each["triggerId"], each["triggerType"]) for each in payloads} == {(hook["id"], "webhook")}
    assert await counted(server, hook) == 4
    assert open_connections(server, hook) == 0


async def test_runs_of_one_connection_are_in_order(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True)
    delayed = [
        {"id": "d", "type": "DelayNode", "config": {"delay": "0.05"}, "outputIds": [["s"]]},
        {"id": "s", "type": "DebugNode", "config": {}},
    ]
    flow = await watch(server, hook, nodes=delayed)
    async with connected(server, hook) as socket:
        for number in range(5):
            await socket.send_message(str(number))
    data = await data_of(server, flow, 7)
    assert [each["message"].get("data", each["type"]) for each in data] == [
        "connect", "0", "1", "2", "3", "4", "disconnect",
    ]  # fmt: skip


@each_cast
async def test_bytes_are_told_as_the_webhook_says(server: Server, cast: str, shown: Any) -> None:
    hook = await webhook(server, isWebsocket=True, castBuffersAs=cast)
    flow = await watch(server, hook)
    async with connected(server, hook) as socket:
        await socket.send_message(b"\xff\x00")
        await socket.send_message("text")
    data = await data_of(server, flow, 4)
    assert [each["message"].get("data") for each in data] == [None, shown, "text", None]


async def test_a_workflow_sends_to_the_client(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True)
    flow = await watch(server, hook, **echo(bodyTemplate="data", bodyTemplateType="path"))
    async with connected(server, hook) as socket, connected(server, hook) as other:
        first = json.loads(await socket.get_message())
        assert (first["type"], first["message"]) == ("connect", {})
        await socket.send_message("one")
        assert json.loads(await socket.get_message())["message"] == {"data": "one", "length": 3}
        second = json.loads(await other.get_message())
        assert second["replyId"] != first["replyId"]
    await data_of(server, flow, 5)
    await until(lambda: open_connections(server, hook) == 0)


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({"bodyTemplate": "it is {{data.type}}"}, "it is connect"),
        ({"bodyTemplate": "/wA=", "encodingTemplate": "base64"}, b"\xff\x00"),
        ({"bodyTemplate": "6{{data.message.length}}1", "encodingTemplate": "hex"}, b"\x61"),
        ({"bodyTemplate": "Grüße", "encodingTemplate": "utf8"}, "Grüße"),
        ({"bodyTemplate": '{"a": {{jsonEncode data.type}}}', "bodyTemplateType": "json"}, '{"a":"connect"}'),
        ({"bodyTemplate": "data.gone", "bodyTemplateType": "path"}, ""),
    ],
)
async def test_a_message_is_a_text_or_bytes(server: Server, config: dict[str, Any], sent: Any) -> None:
    hook = await webhook(server, isWebsocket=True)
    await watch(server, hook, **echo(**config))
    async with connected(server, hook) as socket:
        assert await socket.get_message() == sent


async def test_a_reply_has_to_be_of_the_kind_of_the_webhook(server: Server) -> None:
    hook = await webhook(server, waitForReply=True)
    await watch(server, hook, **echo(bodyTemplate="x"))
    assert (await send(server, hook["address"])).status_code == 500
    sockets = await webhook(server, isWebsocket=True)
    flow = await watch(server, sockets, **echo(bodyTemplate="x", isWebsocketMessage=False))
    async with connected(server, sockets):
        path = f"/applications/{sockets['applicationId']}/flows/{flow['id']}/errors"
        with trio.fail_after(PATIENCE_S):
            while not (errors := (await server.call("GET", path))["errors"]):
                await trio.lowlevel.checkpoint()
    assert errors[0]["error"]["message"].startswith("config.isWebsocketMessage: is not set")


async def test_who_may_connect(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True, basicAuthUsername="u", basicAuthPassword=CODE)
    status, sentence = await refused(server, hook)
    assert (status, sentence[:30]) == (401, "This webhook needs the right u")
    assert CODE not in sentence
    assert await refused(server, {"token": "x"}) == (404, "There is no webhook at this address.")
    await server.call("PATCH", hook["path"], {"enabled": False})
    assert await refused(server, hook) == (403, "This webhook is disabled; it takes no connections.")
    assert (await send(server, hook["address"])).status_code == 200
    plain = await webhook(server)
    status, sentence = await refused(server, plain)
    assert (status, sentence[:51]) == (400, "Upgrade: this webhook takes HTTP requests; WebSocke")
    assert open_connections(server, hook) == open_connections(server, plain) == 0
    assert await counted(server, hook) == await counted(server, plain) == 0


async def test_a_plain_request_is_told_to_upgrade(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True)
    for method in ("GET", "POST"):
        answer = await send(server, hook["address"], method)
        assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
        assert answer.json()["message"].startswith("Upgrade: ")
    assert await counted(server, hook) == 0


async def test_alexa_opens_no_connections(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True)
    refusal = await server.call("PATCH", hook["path"], {"verificationType": "alexa"}, status=400)
    assert refusal["message"].startswith("verificationType: Alexa opens no WebSocket connections")


async def test_twilio_signs_the_handshake(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True, verificationType="twilio", verificationCode=CODE)
    signature = base64.b64encode(hmac.digest(CODE.encode(), url_of(server, hook).encode(), "sha1"))
    async with connected(server, hook, extra_headers=[(b"X-Twilio-Signature", signature)]):
        assert open_connections(server, hook) == 1
    status, sentence = await refused(server, hook)
    assert (status, sentence[:19]) == (403, "X-Twilio-Signature:")


async def test_the_first_protocol_of_the_client_is_agreed(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True)
    async with connected(server, hook, subprotocols=["ocpp1.6", "b"]) as socket:
        assert socket.subprotocol == "ocpp1.6"


async def test_an_application_has_few_connections(start_server: StartServer) -> None:
    async with start_server(limits={"webhook_connections_max": 2}) as server:
        hook = await webhook(server, isWebsocket=True)
        async with connected(server, hook):
            async with connected(server, hook):
                status, sentence = await refused(server, hook)
                assert (status, sentence[:23]) == (503, "2 WebSocket connections")
            await until(lambda: open_connections(server, hook) == 1)
            async with connected(server, hook), connected(server, await webhook(server, isWebsocket=True)):
                pass


async def test_messages_count_as_calls(start_server: StartServer) -> None:
    limits = {"webhook_call": {"calls": 3, "window_s": 3600}, "actor_idle_s": 3600}
    async with start_server(limits=limits) as server:
        hook = await webhook(server, isWebsocket=True)
        flow = await watch(server, hook)
        async with connected(server, hook) as socket:
            for _ in range(3):
                await socket.send_message("x")
            code, sentence = await closing(socket)
            assert (code, str(sentence)[:35]) == (1008, "This webhook takes 3 calls of webho")
        data = await data_of(server, flow, 4)
        assert [each["type"] for each in data] == ["connect", "message", "message", "disconnect"]
        assert data[-1]["message"] == {"statusCode": 1008, "reason": sentence}
        assert (await refused(server, hook))[0] == 429


async def test_a_message_has_a_bound(start_server: StartServer) -> None:
    async with start_server(limits={"webhook_body_bytes_max": 1000}) as server:
        hook = await webhook(server, isWebsocket=True)
        flow = await watch(server, hook)
        async with connected(server, hook) as socket:
            await socket.send_message("x" * 1000)
            await socket.send_message("x" * 1001)
            assert await closing(socket) == (1009, "a message has more than 1000 bytes")
        data = await data_of(server, flow, 3)
        assert data[1]["message"]["length"] == 1000
        assert data[2]["message"]["statusCode"] == 1009


@pytest.mark.parametrize(
    "change", [{"enabled": False}, {"isWebsocket": False}, {"basicAuthPassword": "new"}, None]
)
async def test_a_webhook_that_changes_closes_its_connections(server: Server, change: Any) -> None:
    hook = await webhook(server, isWebsocket=True, basicAuthPassword="old")
    other = await server.call(
        "POST", f"/applications/{hook['applicationId']}/webhooks", {"name": "o", "isWebsocket": True}
    )
    flow = await watch(server, hook)
    headers = [(b"Authorization", b"Basic " + base64.b64encode(b":old"))]
    async with connected(server, other) as stays:
        async with connected(server, hook, extra_headers=headers) as socket:
            await server.call("PATCH", hook["path"], {"name": "renamed"})
            await socket.send_message("still there")
            if change is None:
                await server.call("DELETE", hook["path"])
            else:
                await server.call("PATCH", hook["path"], change)
            code, sentence = await closing(socket)
        assert (code, str(sentence).split(";")[0]) == (
            1001,
            "The webhook was deleted." if change is None else "The webhook was changed",
        )
        data = await data_of(server, flow, 3)
        assert [each["type"] for each in data] == ["connect", "message", "disconnect"]
        assert data[-1]["message"] == {"statusCode": 1001, "reason": sentence}
        assert stays.closed is None


async def test_a_deleted_application_closes_its_connections(server: Server) -> None:
    hook = await webhook(server, isWebsocket=True)
    path = f"/applications/{hook['applicationId']}"
    async with connected(server, hook) as socket:
        await server.call("PATCH", path, {"name": "renamed"})
        assert socket.closed is None
        await server.call("DELETE", path)
        assert (await closing(socket))[0] == 1001
    assert open_connections(server, hook) == 0


async def test_a_client_that_does_not_read_is_given_up(start_server: StartServer) -> None:
    async with start_server(limits={"websocket_buffer_bytes_max": 100_000}) as server:
        hook = await webhook(server, isWebsocket=True)
        big = {"bodyTemplate": "data.message.data", "bodyTemplateType": "path"}
        nodes = [{"id": f"r{n}", "type": "WebhookReplyNode", "config": {"isWebsocketMessage": True, **big}}
                 for n in range(80)]  # fmt: skip
        trigger = {"type": "webhook", "key": hook["id"], "outputIds": [[each["id"] for each in nodes]]}
        await watch(server, hook, triggers=[trigger], nodes=nodes)
        shown = {"id": "d", "type": "DebugNode", "config": {"property": "data.message.statusCode"}}
        shows = await watch(server, hook, nodes=[shown])
        async with connected(server, hook, message_queue_size=1) as socket:
            await socket.send_message("x" * 250_000)
            with trio.fail_after(PATIENCE_S):
                while (await told(server, shows))[-1:] != [4409]:
                    await trio.lowlevel.checkpoint()


async def test_a_server_that_stops_closes_with_a_code_and_tells_it_later(start_server: StartServer) -> None:
    async with start_server() as server:
        hook = await webhook(server, isWebsocket=True)
        flow = await watch(server, hook)
        async with connected(server, hook) as socket, trio.open_nursery() as nursery:
            nursery.start_soon(server.stop)
            code, sentence = await closing(socket)
        assert (code, sentence) == (1012, "The server is stopping; connect again in a moment.")
    async with start_server() as server:
        data = await data_of(server, flow, 2)
        assert [each["type"] for each in data] == ["connect", "disconnect"]
        assert data[-1]["message"] == {"statusCode": 1012, "reason": sentence}


@pytest.mark.slow
async def test_each_connection_has_a_beginning_and_one_end_after_a_kill(
    tmp_path: Path, start_server: StartServer
) -> None:
    accepted: set[str] = set()

    async def client(server: ServerProcess, hook: Any, number: int) -> None:
        with suppress(HandshakeError, ConnectionClosed, OSError):
            async with connected(server, hook, f"?n={number}") as socket:
                accepted.add(str(number))
                if len(accepted) == CLIENTS // 2:
                    server.process.kill()
                await (socket.aclose() if number % 2 else socket.get_message())

    limits = tmp_path / "limits.toml"
    limits.write_text("kept_runs_max = 1000")
    async with serving(tmp_path / "data", "--limits", str(limits), env=OWNER) as server:
        hook = await webhook(server, isWebsocket=True)
        flow = await watch(server, hook)
        async with trio.open_nursery() as clients:
            for number in range(CLIENTS):
                clients.start_soon(client, server, hook, number)
            assert await server.ended() < 0
            clients.cancel_scope.cancel()  # a handshake that gets no answer would wait
    for _ in range(2):
        async with start_server() as server:
            await all_ends_told(server)
            data = await data_of(server, flow, 2 * len(accepted))
            begun, ended = (
                [each["query"]["n"] for each in data if each["type"] == type]
                for type in ("connect", "disconnect")
            )
            assert sorted(begun) == sorted(ended) == sorted(set(begun))
            assert accepted <= set(begun)


async def test_clients_of_others_over_tls(start_server: StartServer, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = trusting(authority)
    async with start_server(**write_certificate(authority, tmp_path)) as server:
        server.url = server.url.replace("127.0.0.1", "localhost")

        hook = await webhook(server, isWebsocket=True)
        await watch(server, hook, **echo(bodyTemplate="{{data.type}} {{data.message.data}}"))
        async with connected(server, hook, ssl_context=context) as socket:
            assert await socket.get_message() == "connect "

        answered = await talk(url_of(server, hook), context, ["in ", "pieces"], answers=2)
        assert answered == ["connect ", "message in pieces"]
