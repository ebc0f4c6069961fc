"""The addresses of webhooks: what other systems may send there, and what they get back."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import OWNER, serving
from tests.patience import PATIENCE_S

StartServer = Callable[..., Any]
METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE")
CODE = "code-of-a-webhook"
CLIENTS = 4


async def webhook(server: Server, **fields: Any) -> Any:
    """A new webhook in an application of its own."""
    application = await server.application()
    made = await server.call("POST", f"{application}/webhooks", {"name": "hook", **fields}, status=201)
    return made | {"path": f"{application}/webhooks/{made['id']}", "address": f"/webhooks/{made['token']}"}


async def send(server: Server, address: str, method: str = "POST", **given: Any) -> httpx.Response:
    """A call of another system: it has no token, and answers have the codes that the webhook chooses."""
    async with httpx.AsyncClient(
        base_url=server.url, timeout=PATIENCE_S, trust_env=False, verify=False
    ) as client:
        return await client.request(method, address, **given)


async def counted(server: Server, hook: Any) -> int:
    counts = await server.call("GET", f"/applications/{hook['applicationId']}/payloadCounts")
    return int(counts["webhook"].get("total", 0))


async def test_every_method_and_any_body_is_taken_and_counted(server: Server) -> None:
    hook = await webhook(server)
    for method in METHODS:
        answer = await send(
            server, hook["address"] + "?a=1&a=%ff&_links", method, content=b"\x00\xff{no json"
        )
        assert (answer.status_code, answer.json()) == (200, {"success": True}), method
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["ratelimit"].startswith('"webhook_call";r=')
    assert (await send(server, hook["address"])).status_code == 200
    assert await counted(server, hook) == len(METHODS) + 1
    for method in ("HEAD", "OPTIONS"):
        refused = await send(server, hook["address"], method)
        assert refused.status_code == 405
        assert refused.headers["allow"]
    assert await counted(server, hook) == len(METHODS) + 1


@pytest.mark.parametrize(
    ("code", "sent"), [(201, 201), (204, 204), (304, 304), (302, 302), (404, 404), (500, 500), (599, 599), (100, 200)]
)  # fmt: skip
async def test_the_answer_has_the_code_of_the_webhook(server: Server, code: int, sent: int) -> None:
    hook = await webhook(server, responseCode=code)
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, verify=False) as client:
        for _ in range(2):  # the second one shows that the connection is still in order
            answer = await client.post(hook["address"], content=b"x")
            assert answer.status_code == sent
            assert answer.content == (b"" if sent in (204, 304) else b'{"success":true}')


async def test_what_is_no_address_is_404_and_says_nothing(server: Server) -> None:
    hook = await webhook(server)
    token = hook["token"]
    other = await webhook(server)
    wrong = [
        token[:-1] + ("a" if token[-1] != "a" else "b"),
        token[:-1],
        token + "a",
        token.upper(),
        other["token"][:48] + token[48:],
        hook["id"],
        "%00",
        "%F0%9F%92%A9",
        "x" * 4000,
    ]
    said = set()
    for each in wrong:
        answer = await send(server, f"/webhooks/{each}")
        assert answer.status_code == 404, each
        said.add(answer.json()["message"])
    assert said == {"There is no webhook at this address."}
    assert await counted(server, hook) == 0
    await server.call("DELETE", hook["path"])
    assert (await send(server, hook["address"])).status_code == 404
    await server.call("DELETE", f"/applications/{other['applicationId']}")
    assert (await send(server, other["address"])).status_code == 404


async def test_a_disabled_webhook_succeeds_and_takes_nothing(server: Server) -> None:
    hook = await webhook(server, enabled=False, responseCode=418, basicAuthPassword=CODE)
    answer = await send(server, hook["address"])
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert await counted(server, hook) == 0
    await server.call("PATCH", hook["path"], {"enabled": True, "basicAuthPassword": None})
    assert (await send(server, hook["address"])).status_code == 418
    assert await counted(server, hook) == 1


async def test_a_body_has_a_bound(start_server: StartServer) -> None:
    async with start_server(limits={"webhook_body_bytes_max": 1000}) as server:
        hook = await webhook(server)
        assert (await send(server, hook["address"], content=b"x" * 1000)).status_code == 200
        refused = await send(server, hook["address"], content=b"x" * 1001)
        assert refused.status_code == 413
        assert refused.json()["message"] == "The body has 1001 bytes; a webhook takes at most 1000."
        assert await counted(server, hook) == 1


async def test_a_webhook_takes_a_hundred_calls_in_ten_seconds(server: Server) -> None:
    hook, other = await webhook(server), await webhook(server)
    async with httpx.AsyncClient(
        base_url=server.url, timeout=PATIENCE_S, trust_env=False, verify=False
    ) as client:
        codes = [(await client.post(hook["address"])).status_code for _ in range(110)]
        refused = await client.post(hook["address"])
        assert (await client.post(other["address"])).status_code == 200, "each webhook has its own"
    # However slow the machine is, no window of ten seconds has more than a hundred.
    assert codes[:100] == [200] * 100
    if codes[100:] == [429] * 10:
        assert refused.json()["type"] == "TooManyRequests"
        assert int(refused.headers["retry-after"]) >= 1
    assert await counted(server, hook) == codes.count(200)
    server.move_clock(11)
    assert (await send(server, hook["address"])).status_code == 200


async def test_a_password_of_the_webhook_is_needed(server: Server) -> None:
    hook = await webhook(server, basicAuthUsername="système", basicAuthPassword=CODE)
    basic = [f"système:{CODE}", f"systeme:{CODE}", "système:", f":{CODE}", "système"]
    headers = [f"Basic {base64.b64encode(each.encode()).decode()}" for each in basic]
    assert (await send(server, hook["address"], headers={"authorization": headers[0]})).status_code == 200
    for each in [*headers[1:], "Basic", "Basic ***", f"Bearer {server.token}", ""]:
        refused = await send(server, hook["address"], headers={"authorization": each} if each else {})
        assert refused.status_code == 401, each
        assert refused.headers["www-authenticate"] == 'Basic realm="webhook"'
        assert CODE not in refused.text
    assert await counted(server, hook) == 1
    refusal = await server.call("PATCH", hook["path"], {"basicAuthPassword": None}, status=400)
    assert refusal["message"].startswith("basicAuthPassword: is needed with basicAuthUsername")
    await server.call("PATCH", hook["path"], {"basicAuthPassword": None, "basicAuthUsername": None})
    assert (await send(server, hook["address"])).status_code == 200


async def test_an_empty_password_is_none(server: Server) -> None:
    hook = await webhook(server, basicAuthUsername="", basicAuthPassword="", verificationCode="")
    assert (await send(server, hook["address"])).status_code == 200
    await server.call("PATCH", hook["path"], {"basicAuthPassword": None})
    assert (await send(server, hook["address"])).status_code == 200
    await server.call("PATCH", hook["path"], {"basicAuthPassword": CODE})
    assert (await send(server, hook["address"])).status_code == 401


# What services expect.


async def test_facebook_verifies_an_address(server: Server) -> None:
    hook = await webhook(server, verificationType="facebook", verificationCode=CODE)

    async def handshake(**changed: str | None) -> httpx.Response:
        query = {
            "hub.mode": "subscribe",
            "hub.verify_token": CODE,
            "hub.challenge": "<1158201444>",
            **{name.replace("_", ".", 1): value for name, value in changed.items()},
        }
        params = {name: value for name, value in query.items() if value is not None}
        return await send(server, hook["address"], "GET", params=params)

    answer = await handshake()
    assert (answer.status_code, answer.text) == (200, "<1158201444>")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    for wrong in ({"hub_verify_token": "other"}, {"hub_verify_token": None}, {"hub_mode": "unsubscribe"}):
        assert (await handshake(**wrong)).status_code == 403
    assert await counted(server, hook) == 0
    assert (await send(server, hook["address"], json={"object": "page"})).json() == {"success": True}
    assert await counted(server, hook) == 1


async def test_fitbit_verifies_an_address(server: Server) -> None:
    hook = await webhook(server, verificationType="fitbit", verificationCode=CODE, responseCode=204)
    assert (await send(server, f"{hook['address']}?verify={CODE}", "GET")).status_code == 204
    assert (await send(server, f"{hook['address']}?verify=wrong", "GET")).status_code == 404
    assert (await send(server, f"{hook['address']}?verify=", "GET")).status_code == 404
    assert await counted(server, hook) == 0
    assert (await send(server, hook["address"], json=[])).status_code == 204
    assert await counted(server, hook) == 1


def twilio(url: str, fields: dict[str, str], code: str = CODE) -> dict[str, str]:
    """The header of a call with these fields in its form."""
    signed = url + "".join(name + fields[name] for name in sorted(fields))
    return {
        "x-twilio-signature": base64.b64encode(hmac.digest(code.encode(), signed.encode(), "sha1")).decode()
    }


async def test_twilio_signs_its_calls(server: Server) -> None:
    hook = await webhook(server, verificationType="twilio", verificationCode=CODE)
    url = f"{server.url}{hook['address']}?foo=1"
    fields = {"To": "+18005551212", "CallSid": "CA1", "From": "+1 2"}
    good = twilio(url, fields)
    assert (await send(server, url, data=fields, headers=good)).status_code == 200
    assert (await send(server, url, "GET", headers=twilio(url, {}))).status_code == 200
    body = json.dumps({"a": 1}).encode()
    hashed = f"{url}&bodySHA256={hashlib.sha256(body).hexdigest()}"
    typed = twilio(hashed, {}) | {"content-type": "application/json"}
    assert (await send(server, hashed, content=body, headers=typed)).status_code == 200
    assert await counted(server, hook) == 3
    refused = [
        await send(server, url, data=fields),
        await send(server, url, data=fields, headers=twilio(url, fields, "other")),
        await send(server, url, data=fields | {"To": "+1"}, headers=good),
        await send(server, f"{url}&bar=2", data=fields, headers=good),
        await send(server, hashed, content=body + b" ", headers=typed),
        await send(server, url, content=body, headers=twilio(url, {})),
        await send(server, url, content=urlencode([(f"f{n}", "") for n in range(2000)]),
                   headers=good | {"content-type": "application/x-www-form-urlencoded"}),
    ]  # fmt: skip
    assert [each.status_code for each in refused] == [403] * len(refused)
    assert await counted(server, hook) == 3
    refusal = await server.call("PATCH", hook["path"], {"verificationCode": None}, status=400)
    assert refusal["message"].startswith("verificationCode: the verification type twilio needs it")


async def test_twilio_may_name_the_default_port(start_server: StartServer) -> None:
    async with start_server(public_url="https://hooks.example.com") as server:
        hook = await webhook(server, verificationType="twilio", verificationCode=CODE)
        for host in ("hooks.example.com", "hooks.example.com:443"):
            headers = twilio(f"https://{host}{hook['address']}", {})
            assert (await send(server, hook["address"], "GET", headers=headers)).status_code == 200


async def test_alexa_signs_its_calls(server: Server) -> None:
    """A certificate that is not Amazon's is refused before it is fetched; the rest is in
    tests/actors/connections/webhooks."""
    hook = await webhook(server, verificationType="alexa")
    for headers in ({}, {"signaturecertchainurl": f"{server.url}/echo.api/cert.pem"}):
        refused = await send(server, hook["address"], json={}, headers=headers)
        assert refused.status_code == 403
        assert refused.json()["message"].startswith("SignatureCertChainUrl: is not an address")
    assert await counted(server, hook) == 0


# A call that was answered is on disk, and the token of an address is a secret.


@pytest.mark.slow
async def test_an_answered_call_survives_a_kill_and_its_token_is_not_logged(tmp_path: Path) -> None:
    env = OWNER | {"TRUNKLINE_ACCESS_LOG": "true", "TRUNKLINE_LOG_LEVEL": "debug"}
    answered = 0
    async with serving(tmp_path / "data", env=env) as server:
        application = await server.application()
        hook = await server.call("POST", f"{application}/webhooks", {"name": "hook"})
        address = f"{server.url}/webhooks/{hook['token']}"

        async def keep_calling() -> None:
            nonlocal answered
            async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False, verify=False) as client:
                for _ in range(25):
                    try:
                        answer = await client.post(address, content=b"x")
                    except httpx.TransportError:
                        return
                    answered += answer.status_code == 200
                    if answered == 20:
                        server.process.kill()

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as clients:
                for _ in range(CLIENTS):
                    clients.start_soon(keep_calling)
        assert await server.ended() < 0
    assert answered >= 20
    assert hook["token"] not in server.log
    assert hook["token"][48:] not in server.log
    assert "/webhooks/***" in server.log
    async with serving(tmp_path / "data", env=env) as server:
        server.token = await server.log_in()
        counts = await server.call("GET", f"{application}/payloadCounts")
        assert answered <= counts["webhook"]["total"] <= answered + CLIENTS
