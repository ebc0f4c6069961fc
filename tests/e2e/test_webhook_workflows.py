"""Calls of webhooks start workflows, and wait for their replies."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import trio

from tests.actors.engine.run_house import kept_runs, runs_end
from tests.actors.house import House, ManualClock
from tests.e2e.conftest import Server
from tests.e2e.test_webhooks import send, webhook
from tests.patience import PATIENCE_S
from trunkline.actors.connections.webhooks.messages import WebhookReply
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.workflows.triggers.replies import Replies
from trunkline.http.experiences.answers import NO_REPLY

StartServer = Callable[..., Any]


async def watch(server: Server, hook: Any, **fields: Any) -> Any:
    """A workflow that shows what it is told."""
    body = {
        "name": "teller",
        "triggers": [{"type": "webhook", "key": hook["id"], "outputIds": [["d"]]}],
        "nodes": [{"id": "d", "type": "DebugNode", "config": {}}],
        **fields,
    }
    return await server.call("POST", f"/applications/{hook['applicationId']}/flows", body, status=201)


each_cast = pytest.mark.parametrize(
    ("cast", "shown"),
    [
        ("base64", "/wA="),
        ("hex", "ff00"),
        ("binary", "\xff\x00"),
        ("array", [255, 0]),
        ("utf8", "\ufffd\x00"),
    ],
)
"""How the bytes ff 00 are told by each value of `castBuffersAs`."""


FORM = "application/x-www-form-urlencoded"


def in_charset(type: str, charset: str, text: str) -> Any:
    """A call whose body is a text in a charset."""
    return {
        "content": text.encode(charset.strip('"')),
        "headers": {"Content-Type": f"{type}; charset={charset}"},
    }


async def told(server: Server, flow: Any) -> list[Any]:
    """The payloads of the runs of a workflow."""
    application = bytes.fromhex(flow["applicationId"])
    house = House(server.system, ManualClock(), application)
    await runs_end(house)
    return [run.debug[0][3] for run in kept_runs(house, Ref("flow", application, bytes.fromhex(flow["id"])))]


async def test_a_call_is_told_without_its_cookies(server: Server) -> None:
    hook = await webhook(server, basicAuthUsername="u", basicAuthPassword="p")
    flow = await watch(server, hook)
    answer = await send(
        server,
        hook["address"] + "?a=1&a=2&b=%C3%A9",
        json={"level": 3},
        headers={"X-Kind": "Tank", "Cookie": "c=1"},
        auth=("u", "p"),
    )
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    (payload,) = await told(server, flow)
    data = payload["data"]
    assert (data["body"], data["method"], data["path"]) == ({"level": 3}, "post", "/")
    assert data["query"] == {"a": ["1", "2"], "b": "é"}
    assert data["headers"]["x-kind"] == "Tank"
    assert "cookie" not in data["headers"]
    assert "replyId" not in data
    assert (payload["triggerId"], payload["triggerType"]) == (hook["id"], "webhook")
    assert (payload["relayId"], payload["relayType"]) == ("0" * 24, "public")


@pytest.mark.parametrize(
    ("sent", "lets_in"), [("Bearer s3cret", True), ("Bearer guess", False), (None, False)]
)
async def test_a_workflow_may_check_the_authorization_of_a_call(
    server: Server, sent: str | None, lets_in: bool
) -> None:
    """As public guides have it: a condition compares the header with a global. Nobody reads it in the run's record."""
    hook = await webhook(server)
    flow = await watch(
        server,
        hook,
        triggers=[{"type": "webhook", "key": hook["id"], "outputIds": [["c"]]}],
        nodes=[
            {
                "id": "c",
                "type": "ConditionalNode",
                "config": {"expression": "{{data.headers.authorization}} === {{globals.allowed}}"},
                "outputIds": [["no"], ["yes"]],
            },
            {"id": "no", "type": "DebugNode", "config": {"message": "out"}},
            {"id": "yes", "type": "DebugNode", "config": {"message": "in"}},
        ],
        globals=[{"key": "allowed", "json": '"Bearer s3cret"'}],
    )
    headers = {} if sent is None else {"Authorization": sent}
    assert (await send(server, hook["address"], json={}, headers=headers)).status_code == 200
    await told(server, flow)
    runs = f"/applications/{hook['applicationId']}/flows/{flow['id']}/runs"
    (listed,) = (await server.call("GET", runs))["items"]
    shown = await server.call("GET", f"{runs}/{listed['id']}")
    (message,) = shown["debug"]
    assert message["message"] == ("in" if lets_in else "out")
    if sent is not None:
        assert message["value"]["data"]["headers"]["authorization"] == "(hidden)"
        assert shown["payload"]["data"]["headers"]["authorization"] == "(hidden)"
        assert sent not in str({**shown, "debug": [{**message, "value": {**message["value"], "globals": 0}}]})


@pytest.mark.parametrize(
    ("below", "path"),
    [("", "/"), ("/", "/"), ("/transition/up", "/transition/up"), ("/a%20b/", "/a b/"), ("//x", "//x")],
)
async def test_what_follows_the_token_is_the_path(server: Server, below: str, path: str) -> None:
    hook = await webhook(server)
    flow = await watch(server, hook)
    answer = await send(server, hook["address"] + below, json={})
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    (payload,) = await told(server, flow)
    assert payload["data"]["path"] == path
    other = await send(server, hook["address"][:-1] + ("0" if hook["address"][-1] != "0" else "1") + below)
    assert other.status_code == 404


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({"content": b""}, None),
        ({"content": b"a=1"}, "a=1"),
        ({"data": {"a": ["1", "2"], "b": "x y"}}, {"a": ["1", "2"], "b": "x y"}),
        ({"content": b"{no", "headers": {"Content-Type": "application/json"}}, "{no"),
        ({"content": b"[1]", "headers": {"Content-Type": "application/vnd.a+json"}}, [1]),
        (in_charset("text/plain", "ISO-8859-1", "é"), "é"),
        (in_charset("text/plain", '"utf-8"', "é"), "é"),
        (in_charset("text/csv", "Shift_JIS", "温度,1"), "温度,1"),
        (in_charset("application/json", "utf-16", '{"a": "é"}'), {"a": "é"}),
        (
            {"content": b"a=%E9&b=x", "headers": {"Content-Type": f"{FORM}; charset=latin1"}},
            {"a": "é", "b": "x"},
        ),
        (
            {"data": {"a": "1"}, "files": {"f": ("x.txt", b"\xff", "text/plain")}},
            {"a": "1", "f": {"fileName": "x.txt", "contentType": "text/plain", "data": "/w=="}},
        ),
    ],
)
async def test_a_body_is_told_as_its_type_says(server: Server, given: Any, body: Any) -> None:
    hook = await webhook(server)
    flow = await watch(server, hook)
    assert (await send(server, hook["address"], **given)).status_code == 200
    (payload,) = await told(server, flow)
    assert payload["data"]["body"] == body


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, "Content-Encoding: 'gzip'"),
        ({"Content-Type": "text/plain; charset=x-none"}, "Content-Type: 'text/plain; charset=x-none'"),
        (
            {"Content-Type": "text/plain; charset=zlib_codec"},
            "Content-Type: 'text/plain; charset=zlib_codec'",
        ),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(server: Server, headers: Any, named: str) -> None:
    hook = await webhook(server)
    flow = await watch(server, hook)
    answer = await send(server, hook["address"], content=gzip.compress(b"{}"), headers=headers)
    refusal = answer.json()
    assert (answer.status_code, refusal["type"]) == (415, "UnsupportedMediaType")
    assert refusal["message"].startswith(named)
    assert await told(server, flow) == []


async def test_a_compressed_body_is_told_as_bytes(server: Server) -> None:
    hook = await webhook(server, castBuffersAs="base64")
    flow = await watch(server, hook)
    packed = gzip.compress(b"{}")
    headers = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
    assert (await send(server, hook["address"], content=packed, headers=headers)).status_code == 200
    (payload,) = await told(server, flow)
    assert payload["data"]["body"] == base64.b64encode(packed).decode()


@each_cast
async def test_bytes_are_told_as_the_webhook_says(server: Server, cast: str, shown: Any) -> None:
    hook = await webhook(server, castBuffersAs=cast)
    flow = await watch(server, hook)
    octets = b"\xff\x00"
    for type in ("application/octet-stream", "image/png", "image/svg+xml"):
        await send(server, hook["address"], content=octets, headers={"Content-Type": type})
    form: dict[str, Any] = {"data": {"a": "1"}, "files": {"f": ("x.bin", octets, "image/png")}}
    await send(server, hook["address"], **form)
    path = f"/applications/{hook['applicationId']}/webhooks/{hook['id']}"
    await server.call("PATCH", path, {"annotateMultipart": True})
    await send(server, hook["address"], **form)
    bodies = [each["data"]["body"] for each in await told(server, flow)]
    assert bodies == [
        shown,
        shown,
        "\ufffd\x00",
        {"a": "1", "f": shown},
        {"a": "1", "f": {"fileName": "x.bin", "contentType": "image/png", "data": shown}},
    ]


@each_cast
async def test_files_of_one_name_are_an_array_of_what_each_is(server: Server, cast: str, shown: Any) -> None:
    hook = await webhook(server, castBuffersAs=cast)
    flow = await watch(server, hook)
    files = [("f", ("x.bin", b"\xff\x00", "image/png"))] * 3
    await send(server, hook["address"], files=files)
    await send(server, hook["address"], files=[*files, ("g", ("y", b"", "image/png"))])
    bodies = [each["data"]["body"] for each in await told(server, flow)]
    empty = [] if cast == "array" else ""
    assert bodies == [{"f": [shown, shown, shown]}, {"f": [shown, shown, shown], "g": empty}]


async def test_calls_do_not_wait_for_each_other(server: Server) -> None:
    hook = await webhook(server)
    flow = await watch(server, hook)
    for _ in range(3):
        await send(server, hook["address"])
    assert [each["triggerId"] for each in await told(server, flow)] == [hook["id"]] * 3
    application = bytes.fromhex(flow["applicationId"])
    house = House(server.system, ManualClock(), application)
    runs = kept_runs(house, Ref("flow", application, bytes.fromhex(flow["id"])))
    assert len({run.trigger_id for run in runs}) == 3  # runs with one id are one after the other


async def test_a_header_names_the_version_that_is_run(server: Server) -> None:
    hook = await webhook(server)
    flow = await watch(server, hook)
    version = {
        "version": "v1",
        "triggers": [{"type": "webhook", "key": hook["id"].upper(), "outputIds": [["d"]]}],
        "nodes": [{"id": "d", "type": "DebugNode", "config": {"message": "one"}}],
    }
    path = f"/applications/{hook['applicationId']}/flows/{flow['id']}"
    await server.call("POST", f"{path}/versions", version, status=201)
    for name in ("v1", "gone"):
        answer = await send(server, hook["address"], headers={"X-Flow-Version": name})
        assert answer.status_code == 200
    assert [each["flowVersion"] for each in await told(server, flow)] == ["v1"]
    await server.call("PATCH", path, {"enabled": False})
    await send(server, hook["address"])
    assert len(await told(server, flow)) == 1


async def test_a_call_waits_for_the_first_reply(server: Server) -> None:
    hook = await webhook(server, waitForReply=True, responseCode=201)
    flow = await watch(server, hook)
    replies = [
        WebhookReply(202, (("X-Tank", "full\r\nx: y"), ("Content-Length", "9")), b'{"a":1}'),
        WebhookReply(999, (), "<b>"),
        WebhookReply(204, (), ""),
    ]
    answers: list[httpx.Response] = []
    for number, reply in enumerate(replies):
        async with trio.open_nursery() as calls:
            calls.start_soon(call_once, server, hook, answers)
            with trio.fail_after(PATIENCE_S):
                while len(payloads := await told(server, flow)) <= number:
                    await trio.lowlevel.checkpoint()
            id = payloads[-1]["data"]["replyId"]
            waiting, application = server.system.component(Replies), bytes.fromhex(hook["applicationId"])
            assert waiting.reply(application, id, reply)
            assert not waiting.reply(application, id, WebhookReply(500))
    first, second, third = answers
    assert (first.status_code, first.json()) == (202, {"a": 1})
    assert first.headers["x-tank"] == "full  x: y"
    assert first.headers["content-type"] == "application/json"
    assert first.headers["content-security-policy"].startswith("sandbox")
    assert (second.status_code, second.text) == (200, "<b>")
    assert second.headers["content-type"] == "text/plain; charset=utf-8"
    assert (third.status_code, third.content) == (204, b"")


async def call_once(server: Server, hook: Any, answers: list[httpx.Response]) -> None:
    answers.append(await send(server, hook["address"]))


async def test_a_call_without_a_reply_is_a_time_out(start_server: StartServer) -> None:
    async with start_server(limits={"webhook_reply_wait_s": 0.05}) as server:
        hook = await webhook(server, waitForReply=True)
        answer = await send(server, hook["address"])
        assert (answer.status_code, answer.json()["type"]) == (501, "NotImplemented")
        flow = await watch(server, hook)
        answer = await send(server, hook["address"])
        assert (answer.status_code, answer.json()) == (
            504,
            {"error": "Time out waiting for workflow reply"},
        )
        assert len(await told(server, flow)) == 1


async def test_a_call_whose_workflows_have_all_failed_does_not_wait(server: Server) -> None:
    hook = await webhook(server, waitForReply=True)
    failing = [{"id": "d", "type": "ThrowErrorNode", "config": {"messageTemplate": "no"}}]
    await watch(server, hook, nodes=failing)
    rejecting = {"id": "d", "type": "ConditionalNode", "config": {"expression": "{{data.body}}"}}
    await watch(server, hook, nodes=[rejecting])
    answer = await send(server, hook["address"])
    assert (answer.status_code, answer.json()) == (500, {"error": NO_REPLY})
    replying = [{"id": "d", "type": "WebhookReplyNode", "config": {"bodyTemplate": "yes"}}]
    await watch(server, hook, nodes=replying)
    assert (await send(server, hook["address"])).text == "yes"


async def test_few_calls_wait(start_server: StartServer) -> None:
    async with start_server(limits={"webhook_waiting_calls_max": 1}) as server:
        hook = await webhook(server, waitForReply=True)
        flow = await watch(server, hook)
        answers: list[httpx.Response] = []
        async with trio.open_nursery() as calls:
            calls.start_soon(call_once, server, hook, answers)
            with trio.fail_after(PATIENCE_S):
                while not (payloads := await told(server, flow)):
                    await trio.lowlevel.checkpoint()
            refused = await send(server, hook["address"])
            application = bytes.fromhex(hook["applicationId"])
            server.system.component(Replies).reply(
                application, payloads[0]["data"]["replyId"], WebhookReply()
            )
        assert (refused.status_code, answers[0].status_code) == (503, 200)


@pytest.mark.parametrize(
    ("config", "status", "header", "body"),
    [
        (
            {
                "bodyTemplate": "level {{data.body.level}}",
                "responseCodeTemplate": "{{data.body.level}}",
                "headerInfo": [{"keyTemplate": "X-Tank", "valueTemplate": "{{data.body.tank}}"}],
            },
            203,
            ("x-tank", "A 1"),
            b"level 203",
        ),
        ({"bodyTemplate": "data.body", "bodyTemplateType": "path"}, 200, None, b'{"level":203,"tank":"A 1"}'),
        (
            {"bodyTemplate": '{"l": {{data.body.level}}}', "bodyTemplateType": "json"},
            200,
            ("content-type", "application/json"),
            b'{"l":203}',
        ),
        (
            {"replyType": "redirect", "bodyTemplate": "https://example.com/{{data.body.level}}"},
            302,
            ("location", "https://example.com/203"),
            b"",
        ),
    ],
)
async def test_a_node_replies(
    server: Server, config: dict[str, Any], status: int, header: tuple[str, str] | None, body: bytes
) -> None:
    hook = await webhook(server, waitForReply=True)
    nodes = [
        {"id": "d", "type": "WebhookReplyNode", "config": config, "outputIds": [["again"]]},
        {"id": "again", "type": "WebhookReplyNode", "config": {"bodyTemplate": "too late"}},
    ]
    await watch(server, hook, nodes=nodes)
    answer = await send(server, hook["address"], json={"level": 203, "tank": "A 1"})
    assert (answer.status_code, answer.content) == (status, body)
    if header is not None:
        assert answer.headers[header[0]] == header[1]
