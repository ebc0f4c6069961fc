"""On a server with a private address, applications reach its public files and webhooks, and nothing else there."""

from __future__ import annotations

import trio

from tests.actors.engine.flow_cases import Json, node
from tests.e2e.conftest import Server
from tests.e2e.test_notebooks import ended, files_of
from tests.patience import PATIENCE_S


async def public_file(server: Server, application: str) -> str:
    """The address of a file with the text `hello`."""
    made = await server.call("POST", f"{application}/files", {"name": "a.txt", "type": "file", "fileSize": 5})
    async with server.client() as client:
        sent = await client.post(f"{application}/file/{made['id']}/upload", files={"file": b"hello"})
    assert sent.is_success
    return str((await server.call("GET", f"{application}/file/{made['id']}"))["url"])


async def flow_with(server: Server, application: str, *nodes: Json) -> str:
    """The path of a workflow with a button."""
    start = {"type": "virtualButton", "key": "b", "config": {}, "outputIds": [["n"]]}
    body = {"name": "calls", "flowClass": "cloud", "triggers": [start], "nodes": [*nodes]}
    made = await server.call("POST", f"{application}/flows", body)
    return f"{application}/flows/{made['id']}"


async def got(server: Server, flow: str, data: Json) -> Json:
    """The `got` of the data at the end of a run."""
    (trigger,) = (await server.call("GET", flow))["triggers"]
    before = (await server.call("GET", f"{flow}/runs"))["items"]
    await server.call("POST", f"{flow}/virtualButton", {"key": trigger["key"], "payload": data})
    with trio.fail_after(PATIENCE_S):
        while len(found := (await server.call("GET", f"{flow}/runs"))["items"]) == len(before):
            await trio.lowlevel.checkpoint()
    run = await server.call("GET", f"{flow}/runs/{found[0]['id']}")
    assert run["outcome"] == "completed", run
    shown: Json = run["debug"][0]["value"]
    return shown


async def test_a_workflow_gets_a_public_file_and_nothing_that_a_webhook_redirects_to(server: Server) -> None:
    application = await server.application()
    url = await public_file(server, application)
    calls = {"uriTemplate": "{{data.url}}", "responsePath": "data.got", "errorBehavior": "payloadPath"}
    flow = await flow_with(
        server,
        application,
        node("n", "HttpNode", {**calls, "errorPath": "data.got.error"}, ["d"]),
        node("d", "DebugNode", {"property": "data.got"}),
    )
    answer = await got(server, flow, {"url": url})
    assert (answer["statusCode"], answer["body"]) == (200, "hello")
    refused = await got(server, flow, {"url": f"{server.url}/healthz"})
    assert refused["error"]["message"].endswith(
        "is not a public address; this server calls only public ones."
    )
    reply = {"waitForReply": True, "name": "away"}
    hook = await server.call("POST", f"{application}/webhooks", reply)
    start = {"type": "webhook", "key": hook["id"], "config": {}, "outputIds": [["r"]]}
    redirect = {
        "replyType": "redirect",
        "bodyTemplate": f"{server.url}/healthz",
        "responseCodeTemplate": "302",
    }
    body = {"name": "away", "triggers": [start], "nodes": [node("r", "WebhookReplyNode", redirect)]}
    await server.call("POST", f"{application}/flows", {**body, "flowClass": "cloud"})
    refused = await got(server, flow, {"url": f"{server.url}/webhooks/{hook['token']}"})
    assert "the redirect of 127.0.0.1: 127.0.0.1 is not a public address" in refused["error"]["message"]


async def test_a_notebook_reads_a_public_file(server: Server) -> None:
    application = await server.application()
    url = await public_file(server, application)
    inputs = [{"inputType": "externalUrl", "fileName": "a.txt", "sourceUrl": url}]
    made = await server.call("POST", f"{application}/notebooks", {"name": "n", "inputs": inputs})
    path = f"{application}/notebooks/{made['id']}/requestInputDataExport"
    async with server.client() as client:
        job = (await client.post(path, json={})).json()
    assert (await files_of(server, await ended(server, application, job)))["a.txt"] == "hello"


async def test_a_host_with_a_malformed_name_is_refused_with_a_sentence(server: Server) -> None:
    """Whether a URL is one of this server is asked before anything else of it."""
    application = await server.application()
    async with server.client() as client:
        refused = await client.post(
            f"{application}/devices/export", json={"callbackUrl": "http://xn--zzzz--/"}
        )
    assert (refused.status_code, refused.json()["type"]) == (400, "Validation")
    assert refused.json()["message"] == "callbackUrl: is not a URL: A-label must not end with a hyphen."
