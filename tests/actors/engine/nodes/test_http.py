"""HttpNode sends requests, to addresses that may be called, and tells the answers."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.actors.engine.flow_cases import failure, node
from tests.actors.engine.run_house import (
    add_credential,
    button,
    change_credential,
    create_flow,
    kept_runs,
    press,
    run_one,
    runs_end,
    told,
)
from tests.actors.house import House, running_house
from tests.web_server import Answer, Asked, WebServer, web_server

Json = dict[str, Any]

PACKED = (("Content-Encoding", "gzip"),)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with running_house(tmp_path / "data", callback_private_networks=True) as found:
        yield found


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with web_server(_answer) as found:
        yield found


def _answer(asked: Asked) -> Answer:
    path, _, query = asked.target.partition("?")
    if path == "/echo":
        return Answer(201, (("X-One", "1"), ("Set-Cookie", "a=b")), json.dumps({"query": query}).encode())
    if path == "/text":
        return Answer(404, (), b"\xe9t\xe9 12")
    if path.startswith("/text/"):
        return Answer(200, (("Content-Type", f"text/plain; charset={path[6:]}"),), b"\xe9t\xe9 12")
    if path == "/packed":
        return Answer(200, PACKED, gzip.compress(b"[1, 2]"))
    if path == "/bomb":
        return Answer(200, PACKED, gzip.compress(bytes(20_000_000)))
    if path == "/large":
        return Answer(200, (), b"x" * 5_000_001)
    if path == "/silent":
        return Answer(200, (), None)
    if path.startswith("/go/"):
        return Answer(int(path.removeprefix("/go/")), (("Location", query),))
    return Answer(200, (), b"")


async def result(house: House, server: WebServer, data: Any = None, **config: Any) -> Json:
    """The result of a request to the server. `uri` is the part after its address."""
    uri = server.url + config.pop("uri", "/echo")
    given = {"uriTemplate": uri, "responsePath": "data.result", **config}
    found: Json = told(await run_one(house, "HttpNode", given, data))["data"]
    return found


async def test_a_get_tells_all_of_the_answer(house: House, server: WebServer) -> None:
    found = await result(
        house,
        server,
        {"id": "a b"},
        uri="/echo?id={{encodeURIComponent data.id}}",
        headerInfo=[
            {"key": "X-Me", "valueTemplate": "{{data.id}}"},
            {"key": "X-None", "valueTemplate": "{{data.none}}"},
            {"key": "Content-Length", "valueTemplate": "999"},
        ],
        bodyTemplate="a GET has no body",
    )
    shown = found["result"]
    assert (shown["statusCode"], shown["body"]) == (201, {"query": "id=a%20b"})
    assert (shown["headers"]["x-one"], shown["headers"]["set-cookie"]) == ("1", ["a=b"])
    assert shown["requestDuration"] >= 0
    assert (shown["request"]["method"], shown["request"]["uri"]) == ("GET", f"{server.url}/echo?id=a%20b")
    assert shown["request"]["headers"]["X-Me"] == "a b"
    (asked,) = server.asked
    assert (asked.method, asked.body, asked.headers["x-me"]) == ("GET", b"", "a b")
    assert asked.headers.keys().isdisjoint({"x-none", "content-length", "idempotency-key", "content-type"})


@pytest.mark.parametrize(
    ("config", "body", "content_type"),
    [
        ({"bodyTemplate": "a {{data.n}}"}, b"a 1", None),
        ({"bodyTemplate": "ff00", "requestEncodingTemplate": "hex"}, b"\xff\x00", None),
        (
            {"bodyType": "jsonTemplate", "bodyTemplate": '{ "n": {{data.n}} }'},
            b'{"n":1}',
            "application/json",
        ),
        (
            {
                "bodyType": "urlencoded",
                "bodyFields": [
                    {"keyTemplate": "k", "valueTemplate": "{{data.o}}"},
                    {"keyTemplate": "k", "valueTemplate": "x&y"},
                ],
            },
            b"k=%7B%22p%22%3A2%7D&k=x%26y",
            "application/x-www-form-urlencoded;charset=utf-8",
        ),
        ({"bodyType": "none", "bodyTemplate": "x"}, b"", None),
        (
            {
                "bodyType": "jsonTemplate",
                "bodyTemplate": "[]",
                "headerInfo": [{"key": "content-type", "valueTemplate": "application/vnd.x+json"}],
            },
            b"[]",
            "application/vnd.x+json",
        ),
    ],
)
async def test_bodies(house: House, server: WebServer, config: Json, body: bytes, content_type: str) -> None:
    await result(house, server, {"n": 1, "o": {"p": 2}}, method="POST", **config)
    (asked,) = server.asked
    assert asked.body == body
    assert asked.headers.get("content-type") == content_type


async def test_a_multipart_form(house: House, server: WebServer) -> None:
    fields = [
        {"keyTemplate": "name", "valueTemplate": "{{data.name}}"},
        {"keyTemplate": "all", "valueTemplate": "{{data}}"},
    ]
    await result(house, server, {"name": "é"}, method="PUT", bodyType="multipart", bodyFields=fields)
    (asked,) = server.asked
    form, _, boundary = asked.headers["content-type"].partition("; boundary=")
    assert form == "multipart/form-data"
    parts = asked.body.split(f"--{boundary}".encode())
    assert parts[1] == b'\r\nContent-Disposition: form-data; name="name"\r\n\r\n\xc3\xa9\r\n'
    assert '{"name":"é"}'.encode() in parts[2]


async def test_the_body_may_be_that_of_another_url(house: House, server: WebServer) -> None:
    found = await result(
        house, server, method="POST", bodyType="url", bodyTemplate=f"{server.url}/echo?from=here"
    )
    fetched, sent = server.asked
    assert (fetched.method, sent.body) == ("GET", b'{"query": "from=here"}')
    assert found["result"]["request"]["bodyUrl"] == f"{server.url}/echo?from=here"


async def test_a_text_is_written_as_the_encoding_says(house: House, server: WebServer) -> None:
    texts = [
        (await result(house, server, uri="/text", encodingTemplate=encoding))["result"]["body"]
        for encoding in ("latin1", "hex", "base64", "")
    ]
    assert texts == ["été 12", "e974e9203132", "6XTpIDEy", "\ufffdt\ufffd 12"]


async def test_a_text_is_read_in_its_charset_unless_the_node_says_another(
    house: House, server: WebServer
) -> None:
    async def text(charset: str, encoding: str) -> Any:
        return (await result(house, server, uri=f"/text/{charset}", encodingTemplate=encoding))["result"][
            "body"
        ]

    assert await text("windows-1252", "") == "été 12"
    assert await text("iso-8859-7", "") == "ιtι 12"
    assert await text("iso-8859-7", "latin1") == "été 12"
    assert await text("x-none", "") == "\ufffdt\ufffd 12"


async def test_compressed_answers_are_unpacked_within_the_bound(house: House, server: WebServer) -> None:
    assert (await result(house, server, uri="/packed"))["result"]["body"] == [1, 2]
    for uri in ("/bomb", "/large"):
        run = await run_one(house, "HttpNode", {"uriTemplate": server.url + uri})
        assert run.error == [0, "HttpError", "127.0.0.1 answered with more than 5000000 bytes."]


async def test_an_error_goes_where_the_node_says(house: House, server: WebServer) -> None:
    late = {"uriTemplate": f"{server.url}/silent", "timeoutTemplate": "0.01"}
    run = await run_one(house, "HttpNode", late)
    assert run.error == [0, "HttpTimeout", "127.0.0.1 did not answer within 0.01 seconds."]
    found = told(
        await run_one(
            house, "HttpNode", {**late, "errorBehavior": "payloadPath", "errorPath": "data.problem"}
        )
    )
    assert found["data"]["problem"] == {
        "name": "HttpTimeout",
        "message": "127.0.0.1 did not answer within 0.01 seconds.",
    }
    run = await run_one(
        house,
        "HttpNode",
        {"uriTemplate": "{{data.none}}", "errorBehavior": "payloadPath", "errorPath": "data.problem"},
    )
    assert run.error == [0, "ValidationError", "config.uriTemplate: gives nothing; give the URL to call."]


async def test_a_change_has_a_key_and_a_repeated_run_has_the_same(house: House, server: WebServer) -> None:
    config = {"uriTemplate": f"{server.url}/echo", "method": "POST"}
    flow = await create_flow(
        house,
        [button(["a", "b"])],
        [node("a", "HttpNode", config), node("b", "HttpNode", config)],
    )
    await press(house, flow)
    await runs_end(house)
    assert kept_runs(house, flow)[0].outcome == "completed"
    keys = [each.headers["idempotency-key"] for each in server.asked]
    assert len(set(keys)) == 2
    assert all(key.startswith(f'"{flow.id.hex()}-') and key.endswith('"') for key in keys)
    own = [{"key": "idempotency-key", "valueTemplate": "mine"}]
    await result(house, server, method="POST", headerInfo=own)
    assert server.asked[-1].headers["idempotency-key"] == "mine"
    none = [{"key": "Idempotency-Key", "valueTemplate": ""}]
    await result(house, server, method="POST", headerInfo=none)
    assert "idempotency-key" not in server.asked[-1].headers


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST")])
async def test_redirects_are_followed(house: House, server: WebServer, status: int, method: str) -> None:
    found = await result(house, server, uri=f"/go/{status}?/echo", method="POST", bodyTemplate="x")
    assert found["result"]["statusCode"] == 201
    assert server.asked[-1].method == method
    assert server.asked[-1].body == (b"x" if method == "POST" else b"")
    found = await result(house, server, uri=f"/go/{status}?/echo", disableRedirects=True)
    assert found["result"]["statusCode"] == status


async def test_redirects_have_an_end(house: House, server: WebServer) -> None:
    run = await run_one(house, "HttpNode", {"uriTemplate": f"{server.url}/go/302?/go/302?"})
    assert run.outcome == "completed"  # the last one has no place to go to
    async with web_server(lambda _asked: Answer(302, (("Location", "/again"),))) as circle:
        run = await run_one(house, "HttpNode", {"uriTemplate": circle.url})
        assert run.error == [0, "HttpError", "127.0.0.1 redirects once more after 10 redirects."]
        assert len(circle.asked) == 11


async def test_what_proves_the_sender_does_not_follow_to_elsewhere(house: House, server: WebServer) -> None:
    async with web_server(lambda _asked: Answer(302, (("Location", f"{server.url}/echo"),))) as first:
        await result(
            house,
            first,
            authType="basic",
            authCredentials={"usernameTemplate": "ada", "passwordTemplate": "{{data.none}}x"},
            headerInfo=[
                {"key": "Cookie", "valueTemplate": "a=b"},
                {"key": "X-Api-Key", "valueTemplate": "k"},
                {"key": "X-Me", "valueTemplate": "1"},
            ],
        )
        assert first.asked[0].headers["authorization"] == "Basic YWRhOng="
        assert first.asked[0].headers["cookie"] == "a=b"
        assert first.asked[0].headers["x-api-key"] == "k"
    assert server.asked[0].headers.keys().isdisjoint({"authorization", "cookie", "x-api-key"})
    assert server.asked[0].headers["x-me"] == "1"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("ftp://127.0.0.1/", "must begin with http:// or https:// and name a host."),
        (
            "http://me:secret@127.0.0.1/",
            "must not contain a user name or a password; put a token into its query.",
        ),
    ],
)
async def test_each_redirect_is_checked(house: House, server: WebServer, location: str, message: str) -> None:
    run = await run_one(house, "HttpNode", {"uriTemplate": f"{server.url}/go/302?{location}"})
    assert run.error == [0, "HttpError", f"the redirect of 127.0.0.1: {message}"]


async def test_private_addresses_are_refused(tmp_path: Path, server: WebServer) -> None:
    async with running_house(tmp_path / "closed") as closed:
        run = await run_one(closed, "HttpNode", {"uriTemplate": server.url})
        assert run.error == [
            0,
            "HttpError",
            "config.uriTemplate: 127.0.0.1 is not a public address; this server calls only public ones.",
        ]
    assert server.asked == []


async def test_a_credential_proves_the_sender_and_is_never_told(house: House, server: WebServer) -> None:
    base = f"{server.url}/echo"
    for how, public in (("header", "X-Key"), ("queryParam", "key"), ("basicAuth", "ada")):
        secret = "s3crét" if how == "header" else "s3cret"
        config = {"uriMatch": base, "authMethod": how, "publicValue": public, "secretValue": secret}
        await add_credential(house, how, type="http", httpConfig=config)
        given = {"authType": "credential", "credentialNameTemplate": how, "responsePath": "data.result"}
        run = await run_one(house, "HttpNode", {"uriTemplate": "?a=1", **given})
        assert told(run)["data"]["result"]["request"]["uri"] == f"{base}?a=1"
        shown = {**told(run)["data"]["result"], "body": ""}
        assert secret.encode() not in msgspec.json.encode(shown)
        assert b"YWRhOnMzY3JldA==" not in msgspec.json.encode(shown)
    header, query, basic = server.asked
    assert header.headers["x-key"] == "s3crét"
    assert query.target == "/echo?a=1&key=s3cret"
    assert basic.headers["authorization"] == "Basic YWRhOnMzY3JldA=="


@pytest.mark.parametrize(
    ("public", "said"),
    [
        ("X-Key", "The secret of the credential has a line break or another control character."),
        ("", "The publicValue of the credential is not the name of a header."),
    ],
)
async def test_a_secret_that_no_header_can_have_is_not_told(
    house: House, server: WebServer, public: str, said: str
) -> None:
    """It was given for basic authentication, where it may have any characters."""
    config = {"authMethod": "basicAuth", "publicValue": public, "secretValue": "s3\ncret"}
    await add_credential(house, "mine", type="http", httpConfig={"uriMatch": server.url, **config})
    await change_credential(house, "mine", httpConfig={"authMethod": "header"})
    given = {"uriTemplate": server.url, "authType": "credential", "credentialNameTemplate": "mine"}
    run = await run_one(house, "HttpNode", given)
    assert run.error is not None
    assert run.error[2] == said


@pytest.mark.parametrize("uri", ["/echo/../text", "/echo/%2e%2e/text", "/echos", "/"])
async def test_a_credential_is_for_the_urls_under_its_own(house: House, server: WebServer, uri: str) -> None:
    config = {
        "uriMatch": f"{server.url}/echo",
        "authMethod": "header",
        "publicValue": "X-Key",
        "secretValue": "s",
    }
    await add_credential(house, "mine", type="http", httpConfig=config)
    given = {"authType": "credential", "credentialNameTemplate": "mine"}
    run = await run_one(house, "HttpNode", {"uriTemplate": server.url + uri, **given})
    assert run.error is not None
    assert f"is not under {server.url}/echo" in run.error[2]
    assert server.asked == []


async def test_a_credential_that_cannot_be_used_is_an_error(house: House, server: WebServer) -> None:
    await add_credential(house, "token", type="jwt", jwtConfig={"algorithm": "HS256", "secret": "s"})
    for name, message in (
        ("none", "the application has no credential 'none'."),
        ("token", "the credential 'token' is for jwt; give one for http."),
    ):
        given = {"uriTemplate": server.url, "authType": "credential", "credentialNameTemplate": name}
        run = await run_one(house, "HttpNode", given)
        assert run.error == [0, "CredentialError", f"config.credentialNameTemplate: {message}"]


async def test_a_dry_run_calls_nobody() -> None:
    name, message = await failure("HttpNode", {"uriTemplate": "http://example.com"})
    assert name == "NotInDryRun"
    assert "stub" in message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "config.uriTemplate: is not set; give a text or a template."),
        ({"method": "TRACE"}, "config.method: is 'TRACE'; give one of GET, POST, PUT, PATCH, DELETE, HEAD."),
        (
            {"uriTemplate": "http://x", "bodyType": "diskPath"},
            "config.bodyType: is 'diskPath'; give one of string, jsonTemplate, multipart, urlencoded, url, none.",
        ),
        (
            {"uriTemplate": "http://x", "headerInfo": [{"key": "a b"}]},
            "config.headerInfo[0].key: 'a b' is not the name of a header.",
        ),
    ],
)
async def test_a_config_that_cannot_be_used(config: Json, message: str) -> None:
    assert await failure("HttpNode", config) == ("ValidationError", message)
