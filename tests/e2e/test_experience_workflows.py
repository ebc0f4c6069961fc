"""Requests to endpoints are answered by workflows."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import trio

from tests.actors.engine.flow_cases import node
from tests.e2e.conftest import Server
from tests.e2e.experience_browser import Browser, browser, error, page, static, user
from tests.e2e.experiences import Experience, Json, new_experience
from tests.patience import PATIENCE_S
from trunkline.actors.engine.runner import FlowRunner
from trunkline.http.experiences.answers import NO_REPLY

ANY = "0" * 24
GLOBALS = {"application": "abc", "version": "bc", "flow": "c"}


@pytest.fixture
async def exp(server: Server) -> Experience:
    made = await new_experience(server)
    await made.make("slugs", slug="farm")
    return made


async def endpoint(exp: Experience, route: str = "/", method: str = "get", **more: Any) -> str:
    return str((await exp.make("endpoints", route=route, method=method, **more))["id"])


async def workflow(
    exp: Experience,
    key: str,
    *nodes: Json,
    flow_class: str = "experience",
    config: Json | None = None,
    **more: Any,
) -> str:
    """An enabled workflow that an endpoint triggers; the nodes follow each other."""
    chained = [{**each, "outputIds": [[after["id"]]]} for each, after in itertools.pairwise(nodes)]
    trigger = {
        "type": "endpoint",
        "key": key,
        "config": config or {},
        "meta": {"category": "trigger", "name": "endpoint", "label": "Endpoint"},
        "outputIds": [[nodes[0]["id"]]],
    }
    body = {
        "name": f"of {key} {len(await exp.server.call('GET', f'{exp.application}/flows?flowClass={flow_class}'))}",
        "flowClass": flow_class,
        "enabled": True,
        "triggers": [trigger],
        "nodes": [*chained, nodes[-1]],
        **more,
    }
    made = await exp.server.call("POST", f"{exp.application}/flows", body, status=201)
    return str(made["id"])


def reply(id: str = "reply", **config: Any) -> Json:
    return node(id, "EndpointReplyNode", config)


async def answers(exp: Experience, method: str = "get", **config: Any) -> Browser:
    """An endpoint at `/` that a workflow answers."""
    await workflow(exp, await endpoint(exp, method=method), reply(**config))
    return browser(exp)


async def test_a_workflow_sees_the_request_and_answers_it(exp: Experience) -> None:
    id, token = await user(exp)
    at_id = await endpoint(exp, "/devices/{id}", "post")
    texts = {name: [{"key": key, "json": f'"{name}"'} for key in keys] for name, keys in GLOBALS.items()}
    flow = await workflow(exp, at_id, reply(bodyTemplateType="payload"), globals=texts["flow"])
    await exp.server.call("PATCH", exp.application, {"globals": texts["application"]})
    await exp.patch("versions/develop", globals=texts["version"])
    at = browser(exp)
    headers = {"X-Odd": "1", "Cookie": f"a=%C3%A4; authorization={token}"}
    sent = {"json": {"on": True}, "headers": headers}
    seen = (await at.send("POST", "/devices/7?page=2&page=3", **sent)).json()
    data = seen["data"]
    assert data["replyId"].startswith(f"{at_id}.")
    assert data["headers"]["x-odd"] == "1"
    assert "cookie" not in data["headers"]
    assert {name: data[name] for name in ("body", "method", "path", "params", "query", "cookies")} == {
        "body": {"on": True},
        "method": "post",
        "path": "/devices/7",
        "params": {"id": "7"},
        "query": {"page": ["2", "3"]},
        "cookies": {"a": "ä", "authorization": "*****REDACTED*****"},
    }
    seen_by = seen["experience"]
    assert seen_by["endpoint"]["route"] == "/devices/{id}"
    assert (seen_by["user"]["email"], seen_by["version"]) == ("one@example.com", "develop")
    assert set(seen_by["authInfo"]) == {"issuedAt", "expiresAt", "extraData"}
    assert (seen["triggerId"], seen["triggerType"]) == (at_id, "endpoint")
    assert (seen["relayId"], seen["relayType"]) == (id, "experienceUser")
    assert (seen["flowId"], seen["globals"]) == (
        flow,
        {"a": "application", "b": "version", "c": "flow"},
    )
    anonymous = (await at.send("POST", "/devices/7", headers={"Authorization": "Bearer own"})).json()
    assert anonymous["data"]["headers"]["authorization"] == "Bearer own", (
        "it may be a token of the application"
    )
    assert (anonymous["relayId"], anonymous["relayType"]) == (ANY, "public")
    assert (anonymous["experience"]["user"], anonymous["data"]["body"]) == (None, None)


async def test_a_reply_has_its_status_headers_and_cookies(exp: Experience) -> None:
    cookies = [
        {"nameTemplate": "authorization", "valueTemplate": "a b;c", "maxAgeTemplate": "60999"},
        {
            "nameTemplate": "other",
            "valueTemplate": "{{data.query.v}}",
            "maxAgeTemplate": "",
            "pathTemplate": "/a",
        },
        {"nameTemplate": "gone"},
        {"nameTemplate": "short", "valueTemplate": "1", "maxAgeTemplate": "500"},
        {"nameTemplate": "over", "valueTemplate": "1", "maxAgeTemplate": "0"},
    ]
    headers = [
        {"keyTemplate": "Content-Type", "valueTemplate": "application/json"},
        {"keyTemplate": "Cache-Control", "valueTemplate": "no-store"},
        {"keyTemplate": "X-Many", "valueTemplate": "{{data.query.many}}"},
        {"keyTemplate": "Content-Length", "valueTemplate": "7"},
        {"keyTemplate": "", "valueTemplate": ""},
        {"keyTemplate": "X-Line", "valueTemplate": "a\r\nSet-Cookie: b"},
    ]
    at = await answers(
        exp,
        responseCodeTemplate="{{data.query.code}}",
        bodyTemplate='{"a": {{data.query.v}}}',
        headerInfo=headers,
        cookieInfo=cookies,
        sameSiteTemplate="strict",
    )
    answer = await at.get("/?code=201&v=1&many=x&many=y")
    assert (answer.status_code, answer.json()) == (201, {"a": 1})
    assert answer.headers.get_list("x-many") == ["x", "y"]
    assert (answer.headers["cache-control"], answer.headers["content-length"]) == ("no-store", "8")
    assert answer.headers["x-line"] == "a  Set-Cookie: b"
    assert answer.headers.get_list("set-cookie") == [
        "authorization=a%20b%3Bc; Path=/; Max-Age=60; HttpOnly; SameSite=Strict",
        "other=1; Path=/a; SameSite=Strict",
        "gone=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; SameSite=Strict",
        "short=1; Path=/; Max-Age=1; SameSite=Strict",
        "over=1; Path=/; Max-Age=0; SameSite=Strict",
    ]
    assert (await at.get("/?code=9000&v=1")).status_code == 200
    assert (await at.get("/?code=204&v=1")).content == b""
    on_path = await browser(exp, "127.0.0.1").get("/x/farm/?v=1")
    assert "other=1; Path=/x/farm/a; SameSite=Strict" in on_path.headers.get_list("set-cookie")


@pytest.mark.parametrize(
    ("config", "body"),
    [
        ({"bodyTemplateType": "path", "bodyTemplate": "data.query"}, b'{"a":"1"}'),
        ({"bodyTemplateType": "path", "bodyTemplate": "data.query.a"}, b"1"),
        ({"bodyTemplateType": "path", "bodyTemplate": "data.nothing"}, b""),
        ({"bodyTemplateType": "json", "bodyTemplate": '{"b": {{data.query.a}}}'}, b'{"b":1}'),
        ({"bodyTemplateType": "none", "bodyTemplate": "x"}, b""),
        ({"bodyTemplateType": "string", "bodyTemplate": "{{data.query.a}}"}, b"1"),
        ({"replyIdPath": "", "bodyTemplate": "x"}, b"x"),
    ],
)
async def test_bodies_of_replies(exp: Experience, config: Json, body: bytes) -> None:
    at = await answers(exp, **config)
    assert (await at.get("/?a=1")).content == body


async def test_a_reply_may_be_a_page_or_a_redirection(exp: Experience) -> None:
    view = await page(
        exp, "first", "{{pageData.name}}|{{flow.version}}|{{request.params.id}}|{{experience.page.name}}"
    )
    layout = await exp.make("views", name="around", viewType="layout", body="<{{page}}>")
    to_page = {"replyType": "page", "pageIdTemplate": view, "responseCodeTemplate": "401"}
    pages = {
        "/string/{id}": {"bodyTemplate": '{"name": "{{data.params.id}}"}'},
        "/path/{id}": {
            "bodyTemplateType": "path",
            "bodyTemplate": "working",
            "layoutIdTemplate": layout["id"],
        },
    }
    change = {
        "rules": [
            {
                "type": "set",
                "destination": "working",
                "valueTemplate": '{"name": "n"}',
                "valueTemplateType": "json",
            }
        ]
    }
    for route, config in pages.items():
        at_id = await endpoint(exp, route)
        await workflow(exp, at_id, node("set", "MutateNode", change), reply(**to_page, **config))
    await workflow(
        exp,
        await endpoint(exp, "/to"),
        reply(replyType="redirect", bodyTemplate="/log in?a={{data.query.a}}", responseCodeTemplate="301"),
    )
    at = browser(exp)
    shown = await at.get("/string/7")
    assert (shown.status_code, shown.text) == (401, "7|develop|7|first")
    assert (await at.get("/path/7")).text == "<n|develop|7|first>"
    moved = await at.get("/to?a=1")
    assert (moved.status_code, moved.headers["location"]) == (301, "/log%20in?a=1")


async def test_a_request_without_a_workflow_is_answered_at_once(exp: Experience) -> None:
    id = await endpoint(exp)
    at = browser(exp)
    answer = await at.get("/")
    assert (answer.status_code, error(answer)) == (
        501,
        "No enabled workflow is triggered by this endpoint, which has no stored reply.",
    )
    flow = await workflow(exp, id, reply(bodyTemplate="x"), enabled=False)
    assert (await at.get("/")).status_code == 501
    await exp.server.call("PATCH", f"{exp.application}/flows/{flow}", {"enabled": True})
    assert (await at.get("/")).text == "x"


async def test_a_workflow_that_does_not_reply_lets_the_request_end(start_server: Any) -> None:
    async with start_server(limits={"experience_reply_wait_s": 0.05}) as server:
        exp = await new_experience(server)
        await exp.make("slugs", slug="farm")
        await workflow(exp, await endpoint(exp), node("debug", "DebugNode"))
        answer = await browser(exp).get("/")
        assert (answer.status_code, error(answer)) == (504, "Time out waiting for workflow reply")


async def test_a_request_whose_workflows_have_all_failed_is_answered_at_once(exp: Experience) -> None:
    id = await endpoint(exp)
    throw = node("throw", "ThrowErrorNode", {"messageTemplate": "no"})
    await workflow(exp, id, throw)
    await workflow(exp, id, node("if", "ConditionalNode", {"expression": "false"}), throw)
    at = browser(exp)
    answer = await at.get("/")
    assert (answer.status_code, error(answer)) == (500, NO_REPLY)
    await workflow(exp, id, node("wait", "DelayNode", {"delay": "0.01"}), reply(bodyTemplate="late"))
    assert (await at.get("/")).text == "late"


async def test_a_failed_workflow_may_have_told_another_one_who_waits(start_server: Any) -> None:
    async with start_server(limits={"experience_reply_wait_s": 0.5}) as server:
        exp = await new_experience(server)
        await exp.make("slugs", slug="farm")
        store = node(
            "store", "StoreValueNode", {"keyName": "waits", "valueType": "path", "value": "data.replyId"}
        )
        throw = node("throw", "ThrowErrorNode", {"messageTemplate": "no"})
        await workflow(exp, await endpoint(exp), store, throw)
        assert (await browser(exp).get("/")).status_code == 504


async def test_a_trigger_of_errors_may_answer_for_a_workflow_that_failed(exp: Experience) -> None:
    id = await endpoint(exp)
    nodes = [
        node("throw", "ThrowErrorNode", {"messageTemplate": "no {{data.query.a}}"}),
        reply(
            responseCodeTemplate="500", bodyTemplateType="path", bodyTemplate="data.errorInfo.error.message"
        ),
    ]
    triggers = [
        {
            "type": kind,
            "key": key,
            "config": config,
            "meta": {"category": "trigger", "name": kind, "label": kind},
            "outputIds": [[to]],
        }
        for kind, key, config, to in (
            ("endpoint", id, {}, "throw"),
            ("flowError", "local", {"scope": "local"}, "reply"),
        )
    ]
    body = {"name": "f", "flowClass": "experience", "enabled": True, "triggers": triggers, "nodes": nodes}
    await exp.server.call("POST", f"{exp.application}/flows", body, status=201)
    answer = await browser(exp).get("/?a=luck")
    assert (answer.status_code, answer.text) == (500, "no luck")


async def test_versions_choose_what_runs(exp: Experience) -> None:
    id = await endpoint(exp)
    own = await workflow(exp, id, reply(bodyTemplate="develop"))
    cloud = await workflow(
        exp, id, reply(bodyTemplate="cloud"), flow_class="cloud", config={"experienceVersion": "v2"}
    )
    flows = f"{exp.application}/flows"
    shown = await exp.server.call("GET", f"{flows}/{own}")
    nodes = [reply(bodyTemplate="named")]
    body = {"version": "v1", "triggers": shown["triggers"], "nodes": nodes}
    await exp.server.call("POST", f"{flows}/{own}/versions", body, status=201)
    shown = await exp.server.call("GET", f"{flows}/{cloud}")
    body = {"version": "w", "triggers": shown["triggers"], "nodes": [reply(bodyTemplate="cloud w")]}
    await exp.server.call("POST", f"{flows}/{cloud}/versions", body, status=201)
    for version in ("v1", "v2"):
        await exp.make("versions", version=version)
        await exp.make("slugs", slug=f"at-{version}", version=version)
    assert (await browser(exp).get("/")).text == "develop"
    assert (await browser(exp, "at-v1.localhost").get("/")).text == "named"
    assert (await browser(exp, "at-v2.localhost").get("/")).text == "cloud"
    of_cloud = browser(exp, "at-v2.localhost")
    assert (await of_cloud.get("/", **{"X-Flow-Version": "w"})).text == "cloud w"
    assert (await of_cloud.get("/", **{"X-Flow-Version": "unknown"})).status_code == 501


async def test_triggers_of_any_endpoint_see_what_no_endpoint_serves(exp: Experience) -> None:
    """They are run, and do not delay the answer, which is not theirs."""
    await workflow(exp, ANY, reply(bodyTemplate="late {{data.path}}"))
    inside = await endpoint(exp, "/inside", access="authenticated")
    await workflow(exp, inside, reply(bodyTemplate="in"))
    await static(exp, "/static", "page")
    await exp.patch("versions/develop", endpointDefaultCors=True)
    at, runner = browser(exp), exp.server.system.component(FlowRunner)
    assert (await at.get("/none")).status_code == 404
    assert (await at.get("/inside")).status_code == 401
    assert (await at.get("/static")).text == "page"
    assert (await at.send("OPTIONS", "/static")).status_code == 204
    assert (
        await at.send("POST", "/none", content="{", headers={"Content-Type": "application/json"})
    ).is_error
    await endpoint(exp, "/own")
    assert (await at.get("/own")).text == "late /own"
    with trio.fail_after(PATIENCE_S):
        while runner.runs < 4:
            await trio.lowlevel.checkpoint()
    assert (runner.runs, runner.failed) == (4, 0)


async def test_no_workflow_answers_a_request_of_another_application(start_server: Any) -> None:
    async with start_server(limits={"experience_reply_wait_s": 0.2}) as server:
        exp, other = await new_experience(server), await new_experience(server)
        for each, slug in ((exp, "farm"), (other, "shop")):
            await each.make("slugs", slug=slug)
        id = await endpoint(exp)
        await workflow(exp, id, node("debug", "DebugNode"))
        await workflow(
            other, await endpoint(other, "/{id}"), reply(replyIdPath="data.query.id", bodyTemplate="theirs")
        )
        # The id of a request is random, and counts for its application only.
        answer = await browser(exp).get("/")
        assert answer.status_code == 504
        assert (await browser(other, "shop.localhost").get(f"/{id}?id={id}.0")).status_code == 504


async def test_a_client_that_leaves_no_longer_waits(start_server: Any) -> None:
    async with start_server(limits={"experience_waiting_requests_max": 1}) as server:
        exp = await new_experience(server)
        await exp.make("slugs", slug="farm")
        await workflow(exp, await endpoint(exp, "/silent"), node("debug", "DebugNode"))
        await workflow(exp, await endpoint(exp, "/ok"), reply(bodyTemplate="ok"))
        at = browser(exp)

        async def wait() -> None:
            while True:  # it is refused while the other request has the only place
                await at.get("/silent")

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                while (await at.get("/ok")).status_code != 503:
                    pass
                nursery.cancel_scope.cancel()
            while (await at.get("/ok")).status_code != 200:
                pass
