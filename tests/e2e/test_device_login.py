"""Logging a device in with an access key and its secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.conftest import Server

StartServer = Callable[..., Any]

UNKNOWN = "0123456789abcdef01234567"


async def credentials_for(server: Server, application: str, device: str, **key: Any) -> dict[str, str]:
    made = await server.call("POST", f"{application}/keys", key)
    return {"deviceId": device.rpartition("/")[2], "key": made["key"], "secret": made["secret"]}


async def test_a_device_logs_in_with_a_key(server: Server) -> None:
    application = await server.application()
    device = await server.device(application, deviceClass="gateway")
    body = await credentials_for(server, application, device, pubTopics=["a"], subTopics=["b"])
    answer = await server.call("POST", "/auth/device", body, token="", status=200)
    token = answer.pop("token")
    assert answer == {
        "applicationId": application.rpartition("/")[2],
        "deviceId": body["deviceId"],
        "deviceClass": "gateway",
        "restricted": False,
        "ownerType": "user",
        "filterType": "all",
        "pubTopics": ["a"],
        "subTopics": ["b"],
    }
    await server.call("GET", device, token=token, status=200)
    body["deviceId"] = body["deviceId"].upper()
    again = await server.call("POST", "/auth/device", body, token="", status=200)
    assert again["deviceId"] == body["deviceId"].lower()
    for key in ({"deviceIds": [body["deviceId"]]}, {"filterType": "none", "deviceIds": [body["deviceId"]]}):
        narrow = await credentials_for(server, application, device, **key)
        answer = await server.call("POST", "/auth/device", narrow, token="", status=200)
        assert answer["restricted"] is True


async def test_what_does_not_fit_together_is_401_and_says_no_more(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": "off"}) as server:
        application, other = await server.application("own"), await server.application("other")
        device, foreign = await server.device(application), await server.device(other)
        right = await credentials_for(server, application, device)
        others = await credentials_for(server, other, foreign)
        gone = await server.device(application, "gone")
        await server.call("DELETE", gone)
        inactive = await credentials_for(server, application, device)
        deleted = await credentials_for(server, application, device)
        await server.call("PATCH", f"{application}/keys/{inactive['key'][24:]}", {"status": "inactive"})
        await server.call("DELETE", f"{application}/keys/{deleted['key'][24:]}")
        wrong: list[dict[str, str]] = [
            right | {"secret": right["secret"][:-1]},
            right | {"secret": ""},
            right | {"secret": right["secret"] + "\u0000"},
            right | {"secret": others["secret"]},
            right | {"key": others["key"]},
            right | {"key": right["key"].upper()},
            right | {"key": right["key"] + "\n"},
            right | {"key": ""},
            right | {"key": "x" * 10_000},
            right | {"key": "0" * 48},
            right | {"deviceId": UNKNOWN},
            right | {"deviceId": gone.rpartition("/")[2]},
            others | {"deviceId": right["deviceId"]},
            right | {"deviceId": others["deviceId"]},
            inactive,
            deleted,
        ]
        answers = [await server.call("POST", "/auth/device", body, token="", status=401) for body in wrong]
        assert answers == [answers[0]] * len(wrong)
        assert answers[0]["message"] == "deviceId, key and secret do not fit together."


async def test_a_malformed_device_login_is_400(server: Server) -> None:
    application = await server.application()
    body = await credentials_for(server, application, await server.device(application))
    changes: list[tuple[dict[str, Any], str]] = [
        ({"deviceId": None}, "deviceId: is missing"),
        ({"deviceId": "x"}, "deviceId: "),
        ({"deviceId": body["deviceId"] + "\n"}, "deviceId: "),
        ({"key": None}, "key: is missing"),
        ({"secret": None}, "secret: is missing"),
        ({"secret": 5}, "secret: "),
        ({"password": "x"}, "password: there is no such field"),
        ({"tokenTTL": -5}, "tokenTTL: "),
        ({"requestedScopes": []}, "requestedScopes: is empty"),
    ]
    for change, sentence in changes:
        given = {name: value for name, value in (body | change).items() if value is not None}
        answer = await server.call("POST", "/auth/device", given, token="", status=400)
        assert answer["message"].startswith(sentence), (change, answer)


async def test_wrong_secrets_are_limited_and_lock_no_device_out(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": {"calls": 3, "window_s": 60}}) as server:
        application = await server.application()
        right = await credentials_for(server, application, await server.device(application))
        wrong = right | {"secret": "wrong"}
        for status in (401, 401, 401, 429, 429):
            async with server.client("") as client:
                response = await client.post("/auth/device", json=wrong)
            assert response.status_code == status
            assert (status == 429) == ("retry-after" in response.headers)
            await server.call("POST", "/auth/device", right, token="", status=200)
        server.move_clock(61)
        await server.call("POST", "/auth/device", wrong, token="", status=401)


async def test_a_device_token_lives_as_long_as_was_asked_for(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    body = await credentials_for(server, application, device)
    short = await server.call("POST", "/auth/device", {**body, "tokenTTL": 60}, token="")
    for_ever = [
        await server.call("POST", "/auth/device", {**body, **ttl}, token="") for ttl in ({}, {"tokenTTL": 0})
    ]
    server.move_clock(60)
    await server.call("GET", device, token=short["token"], status=401)
    server.move_clock(20 * 366 * 86_400)
    for each in for_ever:
        await server.call("GET", device, token=each["token"], status=200)
