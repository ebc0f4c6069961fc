"""Experiences are served: the version that a host names, who may use it, and nothing of anybody else."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from tests.e2e.conftest import Server
from tests.e2e.experience_browser import browser, end_logins, error, page, static, user
from tests.e2e.experiences import Experience, new_experience

NOT_SHOWN = "This page cannot be shown; the log of the server says why."
LOCATION = {"type": "redirect", "value": "/elsewhere"}


@pytest.fixture
async def exp(server: Server) -> Experience:
    made = await new_experience(server)
    await made.make("slugs", slug="farm")
    return made


# Where a site is found.


async def test_a_host_leads_to_the_version_that_it_names(exp: Experience) -> None:
    await static(exp, "/", "first {{experience.version}}")
    await exp.make("versions", version="v1")
    await exp.make("domains", domainName="www.farm.example", version="v1")
    await exp.make("slugs", slug="named", version="v1")
    await exp.make("slugs", slug="nowhere", version=None)
    await exp.server.call("PATCH", exp.application, {"endpointSlug": "plain"})
    view = (await exp.ids("views"))[0]
    await exp.patch(f"views/{view}", body="second {{experience.version}}")
    hosts = {
        "farm.localhost": "second develop",
        "FARM.localhost.:1": "second develop",
        "plain.localhost": "second develop",
        "named.localhost": "first v1",
        "www.farm.example:443": "first v1",
    }
    for host, text in hosts.items():
        assert (await browser(exp, host).get("/")).text == text, host
    for host in ("nowhere.localhost", "unknown.localhost", "a.farm.localhost"):
        answer = await browser(exp, host).get("/")
        assert (answer.status_code, error(answer)) == (404, "No version of an experience is served here.")
    domain = (await exp.ids("domains"))[0]
    await exp.patch(f"domains/{domain}", version="develop")
    assert (await browser(exp, "www.farm.example").get("/")).text == "second develop"


async def test_a_host_of_an_experience_is_no_host_of_the_api(exp: Experience) -> None:
    await exp.make("domains", domainName="www.farm.example")
    for host in ("farm.localhost", "unknown.localhost", "www.farm.example"):
        for path in (exp.application, "/docs", "/healthz", "/auth/user", "/x/farm/"):
            answer = await browser(exp, host).get(path, Authorization=f"Bearer {exp.server.token}")
            assert (answer.status_code, list(answer.json())) == (404, ["error"]), (host, path)
    device = await exp.server.device(exp.application)
    state = {"json": {"data": {"temp": 1}}, "headers": {"Authorization": f"Bearer {exp.server.token}"}}
    for _ in range(3):
        await exp.server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        assert (await browser(exp).send("POST", f"{device}/state", **state)).status_code == 404
    for host in ("localhost", "127.0.0.1:80", "other.example"):
        assert (await browser(exp, host).send("POST", f"{device}/state", **state)).status_code == 200


async def test_no_host_reaches_what_another_application_serves(exp: Experience) -> None:
    other = await new_experience(exp.server)
    await other.make("slugs", slug="shop")
    await static(exp, "/mine", "mine")
    await static(other, "/theirs", "theirs")
    shop = browser(exp, "shop.localhost")
    assert (await shop.get("/theirs")).text == "theirs"
    assert (await shop.get("/mine")).status_code == 404
    assert (await browser(exp).get("/theirs")).status_code == 404
    member, token = await user(exp)
    await static(other, "/inside", "inside", access="authenticated")
    assert (await shop.get("/inside", Authorization=f"Bearer {token}")).status_code == 401
    api = await shop.get("/inside", Authorization=f"Bearer {exp.server.token}")
    assert api.status_code == 401, "a token of the API is none of an experience"
    assert await exp.server.call("GET", exp.path + "/users", token=token, status=401)
    assert member


# Routes and stored replies.


async def test_the_most_specific_endpoint_serves(exp: Experience) -> None:
    await static(exp, "/a/{id}", "{{request.params.id}}|{{request.query.q}}|{{request.path}}")
    await static(exp, "/from", "{{request.headers.x-forwarded-for}} {{request.headers.x-forwarded-proto}}")
    await static(exp, "/a/b", "b")
    off = await static(exp, "/a/off", "off")
    await exp.patch(f"endpoints/{off}", enabled=False)
    at = browser(exp)
    assert (await at.get("/a/b")).text == "b"
    assert (await at.get("/a/%C3%A4%2Fc?q=1&q=2")).text == "ä/c|1,2|/a/%C3%A4%2Fc"
    assert (await at.get("/from", **{"X-Forwarded-For": "1.2.3.4"})).text == "127.0.0.1 http"
    for method, path in (("GET", "/a/off"), ("POST", "/a/b"), ("GET", "/c")):
        answer = await at.send(method, path)
        assert (answer.status_code, error(answer)) == (404, f"No endpoint serves {method} {path}.")
    head = await at.send("HEAD", "/a/b")
    assert (head.status_code, head.text, head.headers["content-length"]) == (200, "", "1")


async def test_stored_replies_are_pages_and_redirections(exp: Experience) -> None:
    await exp.make("endpoints", route="/to", method="post", staticReply={**LOCATION, "statusCode": 303})
    await exp.make("endpoints", route="/odd", method="get", staticReply={**LOCATION, "statusCode": 200})
    missing = await page(exp, "missing", "nothing at {{request.path}}")
    await exp.patch("versions/develop", notFoundReply={"type": "page", "value": missing})
    at = browser(exp)
    moved = await at.send("POST", "/to")
    assert (moved.status_code, moved.headers["location"], moved.content) == (303, "/elsewhere", b"")
    assert (await at.get("/odd")).status_code == 302
    answer = await at.get("/<b>")
    assert (answer.status_code, answer.text) == (404, "nothing at /%3Cb%3E")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


async def test_bodies_are_read_by_their_type(exp: Experience) -> None:
    view = await page(exp, "echo", "{{{jsonEncode request.body}}}")
    await exp.make("endpoints", route="/", method="post", staticReply={"type": "page", "value": view})
    at = browser(exp)
    file = {"fileName": "a.bin", "contentType": "image/png", "data": "/wA="}
    for sent, seen in (
        ({}, None),
        ({"json": {"a": [1, None]}}, {"a": [1, None]}),
        ({"data": {"a": "1", "b": ["2", "3"], "c": ""}}, {"a": "1", "b": ["2", "3"], "c": ""}),
        ({"content": "ä", "headers": {"Content-Type": "text/plain"}}, "ä"),
        ({"content": "{", "headers": {"Content-Type": "text/csv"}}, "{"),
        ({"content": b"\xe4", "headers": {"Content-Type": "text/plain; charset=latin1"}}, "ä"),
        (
            {"files": [("f", ("a.bin", b"\xff\x00", "image/png")), ("t", (None, "x")), ("t", (None, "y"))]},
            {"f": file, "t": ["x", "y"]},
        ),
    ):
        assert (await at.send("POST", "/", **sent)).json() == seen, sent
    for content, type, status, said in (
        ("{", "application/json", 400, "The body is not valid JSON"),
        ("x", "multipart/form-data", 400, "Content-Type: needs a boundary"),
        ("x", "multipart/form-data; boundary=a", 400, "The form is malformed"),
        (
            "x",
            "text/plain; charset=x-none",
            415,
            "Content-Type: 'text/plain; charset=x-none' names a charset",
        ),
    ):
        answer = await at.send("POST", "/", content=content, headers={"Content-Type": type})
        assert (answer.status_code, error(answer)[: len(said)]) == (status, said)


async def test_a_page_lies_in_its_layout(exp: Experience) -> None:
    layout = await exp.make(
        "views",
        name="around",
        viewType="layout",
        body="<title>{{#section 't'}}{{experience.page.name}}{{/section}}</title>{{page}}",
    )
    await exp.make("views", name="card", viewType="component", body="[{{name}} {{@args.at}}]")
    body = "{{#fillSection 't'}}{{globals.title}}{{/fillSection}}{{component 'card' application at='home'}}"
    view = await page(exp, "home", body, layoutId=layout["id"])
    css = await page(exp, "style", "a { color: red }", headers={"content-type": "text/css"})
    await exp.patch("versions/develop", globals=[{"key": "title", "json": '"<Hello>"'}])
    for route, id in (("/", view), ("/style.css", css)):
        await exp.make("endpoints", route=route, method="get", staticReply={"type": "page", "value": id})
    at = browser(exp)
    assert (await at.get("/")).text == "<title>&lt;Hello&gt;</title>[house home]"
    assert (await at.get("/style.css")).headers["content-type"] == "text/css; charset=utf-8"
    own = "{{#*inline 'item'}}<li>{{name}}{{#if last}}.{{/if}}</li>{{/inline}}<ul>{{> item application last=true}}</ul>"
    await exp.patch(f"views/{view}", body=own)
    assert (await at.get("/")).text == "<title>home</title><ul><li>house.</li></ul>"
    await exp.patch(f"views/{view}", body="{{> nowhere}}")
    why = "The page home: There is no partial nowhere."
    assert error(await at.get("/")) == why, "authors work on this version"
    await exp.make("versions", version="v1")
    await exp.make("slugs", slug="named", version="v1")
    with structlog.testing.capture_logs() as logged:
        broken = await browser(exp, "named.localhost").get("/")
    assert (broken.status_code, error(broken)) == (500, NOT_SHOWN)
    assert why in [each.get("problem") for each in logged]


async def test_what_is_no_template_is_not_taken(exp: Experience) -> None:
    view = await exp.make("views", name="home", viewType="layout", body="{{component 'a' (page)}}")
    for body in ("{{#if}}", "{{nope x}}"):
        for method, place in (("PATCH", f"views/{view['id']}"), ("POST", "views")):
            more = {} if method == "PATCH" else {"name": "b", "viewType": "page"}
            said = await exp.refused(method, place, {"body": body, **more})
            assert said.startswith("body: is not a template. Line 1, column "), (method, body)
    assert (await exp.get(f"views/{view['id']}"))["body"] == view["body"]


@pytest.mark.slow
async def test_a_long_page_is_rendered_beside_the_loop_and_an_endless_one_is_not(exp: Experience) -> None:
    numbers = "[" + ",".join("1" * 130) + "]"
    loop = "{{#each @root.request.body}}%s{{/each}}"
    for route, body in (("/long", loop % (loop % ".")), ("/endless", loop % (loop % (loop % "")))):
        view = await page(exp, route, body)
        await exp.make("endpoints", route=route, method="post", staticReply={"type": "page", "value": view})
    sent = {"content": numbers, "headers": {"Content-Type": "application/json"}}
    assert (await browser(exp).send("POST", "/long", **sent)).text == "." * 130**2
    answer = await browser(exp).send("POST", "/endless", **sent)
    assert error(answer) == "The page /endless: This takes more than 2000000 steps of work."


# Access.


async def test_only_those_who_may_reach_an_endpoint(exp: Experience) -> None:
    id, token = await user(exp)
    other, other_token = await user(exp, "two@example.com")
    group = (await exp.make("groups", name="g", experienceUserIds=[id]))["id"]
    await static(exp, "/public", "{{experience.user.email}}")
    await static(exp, "/users", "{{experience.user.email}}", access="authenticated")
    await static(exp, "/group", "in", access="group", experienceGroupIds=[group])
    at = browser(exp)
    assert (await at.get("/public")).text == ""
    assert (await at.get("/public", Authorization="Bearer nonsense")).text == ""
    denied = await at.get("/users")
    assert (denied.status_code, error(denied)) == (401, "This endpoint is for users who are logged in.")
    for headers in (
        {"Authorization": f"Bearer {token}"},
        {"Authorization": token},
        {"Cookie": f"a=b; authorization={token}"},
        {"Cookie": f"authorization=Bearer%20{token}"},
    ):
        assert (await at.get("/users", **headers)).text == "one@example.com"
    assert (await at.get(f"/users?authorization={token}")).text == "one@example.com"
    assert (await at.get("/group", Cookie=f"authorization={token}")).text == "in"
    forbidden = await at.get("/group", Cookie=f"authorization={other_token}")
    assert (forbidden.status_code, error(forbidden)) == (403, "The user may not use this endpoint.")
    await end_logins(exp, id)
    assert (await at.get("/users", Authorization=token)).status_code == 401
    await exp.delete(f"users/{other}")
    assert (await at.get("/users", Authorization=other_token)).status_code == 401


async def test_a_device_is_for_those_whose_group_has_it(exp: Experience) -> None:
    id, token = await user(exp)
    _, other_token = await user(exp, "two@example.com")
    device = (await exp.server.device(exp.application, tags=[])).rpartition("/")[2]
    stranger = (await exp.server.device(exp.application, "other")).rpartition("/")[2]
    top = (await exp.make("groups", name="top", experienceUserIds=[id]))["id"]
    await exp.make("groups", name="low", parentId=top, deviceIds=[device])
    more = {"access": "device", "deviceIdTemplate": "{{request.params.id}}"}
    await static(exp, "/devices/{id}", "{{experience.device.name}}", **more)
    at = browser(exp)
    assert (await at.get(f"/devices/{device}", Authorization=token)).text == "pump"
    assert (await at.get(f"/devices/{device}")).status_code == 401
    for path, sent in ((stranger, token), ("0" * 24, token), ("none", token), (device, other_token)):
        assert (await at.get(f"/devices/{path}", Authorization=sent)).status_code == 403, path


async def test_a_refusal_is_the_reply_of_the_endpoint_or_else_of_the_version(exp: Experience) -> None:
    own = await page(exp, "own", "log in first")
    unauthorized = {"type": "page", "value": own}
    await static(exp, "/own", "", access="authenticated", unauthorizedReply=unauthorized)
    await static(exp, "/other", "", access="authenticated")
    await exp.patch("versions/develop", unauthorizedReply={"type": "redirect", "value": "/log-in"})
    at = browser(exp)
    answer = await at.get("/own")
    assert (answer.status_code, answer.text) == (401, "log in first")
    assert (await at.get("/other")).headers["location"] == "/log-in"


# Headers, bounds, other origins.


async def test_answers_have_the_headers_of_the_version_and_safe_ones(exp: Experience) -> None:
    await static(exp, "/", "x")
    await exp.patch("versions/develop", responseHeaders={"X-Farm": "ä", "Cache-Control": "max-age=1"})
    headers = (await browser(exp).get("/")).headers
    assert headers["x-farm"] == "ä"
    assert headers["cache-control"] == "max-age=1"
    assert headers["x-content-type-options"] == "nosniff"
    assert "strict-transport-security" not in headers
    assert "access-control-allow-origin" not in headers
    assert "content-security-policy" not in headers


async def test_pages_of_other_origins_may_call_if_the_version_wants_it(exp: Experience) -> None:
    await static(exp, "/", "x")
    at, origin = browser(exp), {"Origin": "https://a.example"}
    asked = {**origin, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-a"}
    assert (await at.send("OPTIONS", "/", headers=asked)).status_code == 404
    await exp.patch("versions/develop", endpointDefaultCors=True)
    answer = await at.send("OPTIONS", "/", headers=asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == "x-a"
    assert "access-control-allow-credentials" not in answer.headers
    await exp.patch("versions/develop", allowedCorsOrigins=["https://a.example"])
    allowed = (await at.get("/", **origin)).headers
    assert allowed["access-control-allow-origin"] == "https://a.example"
    assert allowed["access-control-allow-credentials"] == "true"
    others = (await at.get("/", Origin="https://b.example")).headers
    assert "access-control-allow-origin" not in others
    assert others["vary"] == "Origin"


async def test_bodies_and_rates_are_bounded(start_server: Any) -> None:
    limits = {"endpoint_request": {"calls": 2, "window_s": 60}, "experience_body_bytes_max": 10}
    async with start_server(limits=limits) as server:
        exp = await new_experience(server)
        await exp.make("slugs", slug="farm")
        await static(exp, "/", "x")
        at = browser(exp)
        large = await at.send("GET", "/", content=b"x" * 11)
        assert (large.status_code, error(large)[:32]) == (413, "The body is larger than 10 bytes")
        assert [(await at.get("/")).status_code for _ in range(3)] == [200, 200, 429]
        late = await at.get("/")
        assert "endpoint" in error(late)
        assert int(late.headers["retry-after"]) > 0
        assert (await at.get("/other")).status_code == 404, "each endpoint has its own"


# A site on a path.


async def test_a_site_on_a_path_has_no_origin_and_keeps_to_its_path(exp: Experience) -> None:
    await static(exp, "/a", "at {{request.path}}")
    await exp.make("endpoints", route="/to", method="get", staticReply=LOCATION)
    headers = {"Clear-Site-Data": '"*"', "Set-Cookie": "a=b; Path=/", "X-Farm": "1"}
    await exp.patch("versions/develop", responseHeaders=headers)
    at = browser(exp, "127.0.0.1")
    answer = await at.get("/x/farm/a")
    assert answer.text == "at /a"
    assert answer.headers["content-security-policy"].startswith("sandbox ")
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    assert answer.headers["x-farm"] == "1"
    assert not {"clear-site-data", "set-cookie"} & answer.headers.keys()
    assert (await at.get("/x/farm/to")).headers["location"] == "/x/farm/elsewhere"
    for path in ("/x/farm", "/x/unknown/a", "/x/"):
        assert (await at.get(path)).status_code == 404, path


async def test_the_suffix_of_hosts_is_a_setting(start_server: Any) -> None:
    async with start_server(
        experience_suffix="pages.example", public_url="https://api.pages.example"
    ) as server:
        exp = await new_experience(server)
        for slug in ("farm", "api"):
            await exp.make("slugs", slug=slug)
        await static(exp, "/", "x")
        assert (await browser(exp, "farm.pages.example").get("/")).text == "x"
        for host in ("farm.localhost", "pages.example", "api.pages.example"):
            assert "x" not in {(await browser(exp, host).get("/")).text}, host
