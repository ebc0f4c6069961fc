"""Login: who may log in, for how long, and how many attempts are allowed."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import argon2
import httpx
import jwt
import pytest
import trio

from tests.actors.house import ManualClock
from tests.e2e.conftest import EMAIL, PASSWORD, Server, hash_with
from tests.patience import PATIENCE_S
from trunkline.actors.maintenance import data_directory

Json = Any
StartServer = Callable[..., Any]

UNKNOWN = "nobody@example.com"
WRONG = "Wrong-horse-88"
THREE_FAILURES = {"calls": 3, "window_s": 60}


async def attempt(
    server: Server, email: str = EMAIL, password: str = WRONG, **headers: str
) -> httpx.Response:
    """One attempt to log in."""
    async with server.client("") as client:
        return await client.post("/auth/user", json={"email": email, "password": password}, headers=headers)


def claims_of(token: str) -> dict[str, Any]:
    """What a token says, as anybody can read it."""
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


# Credentials.


@pytest.mark.parametrize("email", [EMAIL, EMAIL.upper(), "Owner@Example.COM"])
async def test_a_user_logs_in_with_the_address_in_any_case(server: Server, email: str) -> None:
    body = {"email": email, "password": PASSWORD}
    answer = await server.call("POST", "/auth/user", body, token="", status=200)
    assert answer.keys() == {"userId", "token", "needsToVerifyEmail"}
    me = await server.call("GET", "/me", token=answer["token"])
    assert (me["id"], me["email"]) == (answer["userId"], EMAIL)


@pytest.mark.parametrize("password", ["short", ""])
async def test_a_short_password_is_a_wrong_one(server: Server, password: str) -> None:
    refused, wrong = await attempt(server, password=password), await attempt(server)
    assert (refused.status_code, refused.content) == (wrong.status_code, wrong.content)
    assert refused.status_code == 401


async def test_an_unknown_address_and_a_wrong_password_look_the_same(server: Server) -> None:
    unknown = await attempt(server, UNKNOWN)
    wrong = await attempt(server)
    assert (unknown.status_code, unknown.content) == (wrong.status_code, wrong.content)
    assert unknown.status_code == 401
    varying = {"date", "x-request-id"}
    assert {k: v for k, v in unknown.headers.items() if k not in varying} == {
        k: v for k, v in wrong.headers.items() if k not in varying
    }


@pytest.mark.parametrize("email", [EMAIL, UNKNOWN])
async def test_no_domain_has_single_sign_on(server: Server, email: str) -> None:
    assert await server.call("GET", f"/auth/ssoDomain?email={email}", token="", status=204) is None


@pytest.mark.parametrize("query", ["", "?email=", "?email=nobody", "?domain=example.com"])
async def test_a_question_about_single_sign_on_needs_an_address(server: Server, query: str) -> None:
    answer = await server.call("GET", f"/auth/ssoDomain{query}", token="", status=400)
    assert answer["message"].startswith("domain: " if "domain" in query else "email: ")


@pytest.mark.slow
async def test_a_malformed_login_is_400_with_the_field(server: Server) -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"email": None}, "email: is missing"),
        ({"email": "no address"}, "email: "),
        ({"email": f"{EMAIL}\n"}, "email: "),
        ({"email": f"{'a' * 1025}@example.com"}, "email: "),
        ({"password": "x" * 2049}, "password: "),
        ({"password": None}, "password: is missing"),
        ({"pasword": "x"}, "pasword: there is no such field"),
        ({"tokenTTL": -1}, "tokenTTL: "),
        ({"tokenTTL": 1.5}, "tokenTTL: "),
        ({"tokenTTL": "60"}, "tokenTTL: "),
        ({"tokenTTL": 10**9}, "tokenTTL: 1000000000 seconds are more than ten years"),
        ({"tokenTTL": 10**30}, "tokenTTL"),
        ({"requestedScopes": []}, "requestedScopes: is empty"),
        ({"requestedScopes": "all.User"}, "requestedScopes: "),
        ({"requestedScopes": ["all.User", "all.Everything"]}, "requestedScopes[1]: 'all.Everything'"),
        ({"requestedScopes": ["auth.authenticateUser"]}, "requestedScopes[0]: "),
        ({"requestedScopes": ["device.fly"]}, "requestedScopes[0]: 'device.fly' is not a scope"),
    ]
    for change, sentence in changes:
        body = {"email": EMAIL, "password": PASSWORD} | change
        body = {name: value for name, value in body.items() if value is not None}
        answer = await server.call("POST", "/auth/user", body, token="", status=400)
        assert answer["type"] == "Validation"
        assert answer["message"].startswith(sentence), (change, answer)


async def test_only_json_logs_in(server: Server) -> None:
    bodies: list[tuple[bytes, str, int]] = [
        (b"{", "application/json", 400),
        (b"", "application/json", 400),
        (b"null", "application/json", 400),
        (b"[" * 19_000, "application/json", 400),
        (b'{"email": "a@b.example", "password": "\xff\xfe-1234567"}', "application/json", 400),
        (b'{"email": "a@b.example", "password": "\\ud800-1234567"}', "application/json", 400),
        (b"email=a@b.example&password=12345678", "application/x-www-form-urlencoded", 415),
        (b"{}", "", 415),
    ]
    async with server.client("") as client:
        for content, content_type, status in bodies:
            headers = {"Content-Type": content_type}
            response = await client.post("/auth/user", content=content, headers=headers)
            assert response.status_code == status, (content[:100], response.text)


# The login throttle.


async def test_failures_at_one_account_are_limited(start_server: StartServer) -> None:
    clock = ManualClock()
    async with start_server(limits={"login_per_account": THREE_FAILURES}, clock=clock) as server:
        for _ in range(3):
            # Success is no failure and forgives none.
            assert (await attempt(server, password=PASSWORD)).status_code == 200
            assert (await attempt(server)).status_code == 401
        clock.pass_s(10)
        for password in (WRONG, PASSWORD):
            refused = await attempt(server, password=password)
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) == 50
            assert refused.json()["type"] == "TooManyRequests"
        # Upper and lower case are the same account; another account is not touched.
        assert (await attempt(server, EMAIL.upper())).status_code == 429
        assert (await attempt(server, UNKNOWN)).status_code == 401
        server.move_clock(51)
        assert (await attempt(server, password=PASSWORD)).status_code == 200


async def test_an_account_that_is_not_there_is_limited_all_the_same(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": THREE_FAILURES}) as server:
        there = [await attempt(server, EMAIL, f"{WRONG}{n}") for n in range(4)]
        absent = [await attempt(server, UNKNOWN, f"{WRONG}{n}") for n in range(4)]
        assert [each.status_code for each in there] == [401, 401, 401, 429]
        assert [each.status_code for each in absent] == [401, 401, 401, 429]
        assert [each.json()["type"] for each in there] == [each.json()["type"] for each in absent]


async def test_failures_from_one_address_are_limited(start_server: StartServer) -> None:
    settings = {"limits": {"login_per_address": THREE_FAILURES}, "trust_forwarded_for": True}
    async with start_server(**settings) as server:
        for number in range(3):
            refused = await attempt(server, f"user{number}@example.com", **{"X-Forwarded-For": "192.0.2.7"})
            assert refused.status_code == 401
        refused = await attempt(server, password=PASSWORD, **{"X-Forwarded-For": "192.0.2.7"})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) <= 60
        assert "network address" in refused.json()["message"]
        # What the client writes before the proxy's own entry counts for nothing.
        feigned = await attempt(server, password=PASSWORD, **{"X-Forwarded-For": "192.0.2.8, 192.0.2.7"})
        assert feigned.status_code == 429
        passed = await attempt(server, password=PASSWORD, **{"X-Forwarded-For": "192.0.2.7, 192.0.2.8"})
        assert passed.status_code == 200


@pytest.mark.parametrize(
    "entries",
    [
        ["192.0.2.7:4001", "192.0.2.7:4002", "192.0.2.7", "::ffff:192.0.2.7"],
        ["[2001:db8::7]:443", "[2001:db8::7]", "2001:db8:0::7", "192.0.2.1, 2001:DB8::7"],
        ["unknown", "<script>", '""', "fe80::1%<script>"],  # then it is the address of the connection
    ],
)
async def test_one_client_is_one_address_however_a_proxy_writes_it(
    start_server: StartServer, entries: list[str]
) -> None:
    settings = {"limits": {"login_per_address": THREE_FAILURES}, "trust_forwarded_for": True}
    async with start_server(**settings) as server:
        codes = [
            (await attempt(server, f"user{n}@example.com", **{"X-Forwarded-For": entry})).status_code
            for n, entry in enumerate(entries)
        ]
    assert codes == [401, 401, 401, 429]


async def test_the_forwarded_address_counts_only_where_it_is_trusted(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_address": THREE_FAILURES}) as server:
        codes = [
            (await attempt(server, f"user{n}@example.com", **{"X-Forwarded-For": f"192.0.2.{n}"})).status_code
            for n in range(4)
        ]
    assert codes == [401, 401, 401, 429]


async def test_failed_logins_of_a_device_do_not_lock_a_user_out(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": THREE_FAILURES}) as server:
        user = (await attempt(server, password=PASSWORD)).json()["userId"]
        body = {"deviceId": user, "key": user * 2, "secret": WRONG}
        async with server.client() as client:
            codes = [(await client.post("/auth/device", json=body)).status_code for _ in range(4)]
        assert codes == [401, 401, 401, 429]
        assert (await attempt(server, password=PASSWORD)).status_code == 200


@pytest.mark.slow
@pytest.mark.usefixtures("full_hashes")
async def test_guesses_in_parallel_gain_nothing(start_server: StartServer) -> None:
    codes: list[int] = []

    async def guess(server: Server) -> None:
        codes.append((await attempt(server)).status_code)

    async with start_server(limits={"login_per_account": THREE_FAILURES}) as server:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(12):
                    nursery.start_soon(guess, server)
    assert sorted(codes) == [401] * 3 + [429] * 9


class SlowHasher(argon2.PasswordHasher):
    """Checks no password before it is let go on."""

    def __init__(self, go: threading.Event) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self._go = go

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
        assert self._go.wait(PATIENCE_S)
        return super().verify(hash, password)


async def test_too_many_logins_at_once_are_told_to_come_back(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[httpx.Response] = []
    go = threading.Event()

    async def guess(server: Server, number: int) -> None:
        answers.append(await attempt(server, f"user{number}@example.com"))
        if len(answers) == 3:
            go.set()

    async with start_server(limits={"logins_checking_max": 1}) as server:
        with trio.fail_after(PATIENCE_S), monkeypatch.context() as patch:
            hash_with(SlowHasher(go), patch)
            async with trio.open_nursery() as nursery:
                for number in range(4):
                    nursery.start_soon(guess, server, number)
        assert [each.status_code for each in answers] == [503, 503, 503, 401]
        assert all(each.headers["retry-after"] == "1" for each in answers if each.status_code == 503)
        assert (await attempt(server, password=PASSWORD)).status_code == 200


# Expiry.


async def test_a_token_lives_as_long_as_was_asked_for(server: Server) -> None:
    token = await server.log_in(tokenTTL=60)
    claims = claims_of(token)
    assert claims["exp"] - claims["iat"] == pytest.approx(60)
    server.move_clock(30)
    await server.call("GET", "/me", token=token, status=200)
    server.move_clock(30)
    answer = await server.call("GET", "/me", token=token, status=401)
    assert "expired" in answer["message"]


async def test_without_a_ttl_the_setting_counts_and_zero_is_for_ever(start_server: StartServer) -> None:
    async with start_server(token_ttl_s=3600) as server:
        usual, eternal = await server.log_in(), await server.log_in(tokenTTL=0)
        assert "exp" not in claims_of(eternal)
        server.move_clock(3601)
        await server.call("GET", "/me", token=usual, status=401)
        server.move_clock(50 * 366 * 86_400)
        await server.call("GET", "/me", token=eternal, status=200)


async def test_the_token_of_a_narrow_login_is_narrow(server: Server) -> None:
    token = await server.log_in(requestedScopes=["me.get", "all.Application.read"])
    application = await server.application()
    await server.call("GET", "/me", token=token, status=200)
    await server.call("GET", application, token=token, status=200)
    for method, path, body in (
        ("PATCH", "/me", {}),
        ("GET", "/applications", None),
        ("PATCH", application, {}),
        ("GET", "/me/tokens", None),
    ):
        answer = await server.call(method, path, body, token=token, status=403)
        assert answer["type"] == "Forbidden"
        assert "needs one of" in answer["message"]


async def test_what_a_token_says_holds_no_secret(server: Server) -> None:
    claims = claims_of(server.token)
    assert claims.keys() == {"typ", "sub", "scope", "iat", "exp", "gen", "auth", "sid"}
    assert PASSWORD not in json.dumps(claims)


# What is no token.


def _resigned(token: str, **changes: Any) -> str:
    return jwt.encode(claims_of(token) | changes, "another secret of at least 32 bytes", algorithm="HS256")


def _unsigned(token: str) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    return f"{head}.{token.split('.')[1]}."


async def test_a_token_of_another_make_is_401(server: Server) -> None:
    token = server.token
    forged = [
        _resigned(token),
        _resigned(token, scope=["all.User"]),
        _unsigned(token),
        jwt.encode(claims_of(token), "", algorithm="none"),
        token[:-2],
        token + "x",
        token.swapcase(),
        token.rpartition(".")[0] + ".",
        "x",
        "a.b.c",
        "x" * 9000,
        "ümläut",
    ]
    async with server.client("") as client:
        for each in forged:
            response = await client.get("/me", headers={b"Authorization": f"Bearer {each}".encode()})
            assert response.status_code == 401, (each[:100], response.text)
            assert response.headers["www-authenticate"].startswith("Bearer")


async def test_what_is_no_bearer_header_is_401(server: Server) -> None:
    async with server.client("") as client:
        for header in ("", "Bearer", "Basic YTpi", f"Token {server.token}", server.token):
            response = await client.get("/me", headers={"Authorization": header})
            assert response.status_code == 401, header
        assert (await client.get("/me")).status_code == 401
        lower = await client.get("/me", headers={"authorization": f"bearer {server.token}"})
        assert lower.status_code == 200


async def test_a_rotated_secret_ends_every_token(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server() as first:
        before = first.token
    data_directory.rotate_secret(tmp_path / "data")
    async with start_server() as second:
        await second.call("GET", "/me", token=before, status=401)
        await second.call("GET", "/me", status=200)


async def test_tokens_outlive_a_restart(start_server: StartServer) -> None:
    async with start_server() as first:
        before = first.token
    async with start_server() as second:
        await second.call("GET", "/me", token=before, status=200)
