"""Revocation takes effect at once: for the tokens of a key, a device or an application, and for their streams."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import EMAIL, Server
from tests.patience import PATIENCE_S

BEFORE_THE_NEXT_COMMENT_S = 50
"""A stream that notices its end only with its next keep-alive, after a minute, has not ended at once."""


async def ended(response: httpx.Response) -> bool:
    """Read a stream to its end."""
    with trio.move_on_after(BEFORE_THE_NEXT_COMMENT_S):
        async for _ in response.aiter_raw():
            pass
        return True
    return False


END: dict[str, tuple[str, str, dict[str, Any] | None, int]] = {
    "key switched off": ("PATCH", "key", {"status": "inactive"}, 401),
    "key deleted": ("DELETE", "key", None, 401),
    "key for other addresses": (
        "PATCH",
        "key",
        {"addressFilterType": "whitelist", "addresses": ["192.0.2.0/24"]},
        403,
    ),
    "device deleted": ("DELETE", "device", None, 401),
    "application deleted": ("DELETE", "application", None, 401),
}


@pytest.mark.parametrize("end", END)
async def test_a_device_token_ends_with_what_it_stands_on(server: Server, end: str) -> None:
    method, what, body, status = END[end]
    application = await server.application()
    device = await server.device(application)
    token, key = await server.device_token(device)
    path = {"key": key, "device": device, "application": application}[what]
    async with server.client(token) as client:
        async with client.stream("GET", f"{device}/commandStream?keepAliveInterval=60") as stream:
            assert stream.status_code == 200
            async with client.stream("GET", f"{device}/stateStream?keepAliveInterval=60") as states:
                await server.call(method, path, body)
                assert await ended(stream)
                assert await ended(states)
        assert (await client.get(device)).status_code == status
        assert (await client.post(f"{device}/state", json={"data": {"temp": 1}})).status_code == status


async def test_a_key_switched_on_again_holds_again(server: Server) -> None:
    device = await server.device(await server.application())
    token, key = await server.device_token(device)
    await server.call("PATCH", key, {"status": "inactive"})
    await server.call("GET", device, token=token, status=401)
    await server.call("PATCH", key, {"status": "active"})
    await server.call("GET", device, token=token, status=200)


async def test_the_streams_of_other_devices_go_on(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    token, _ = await server.device_token(device)
    other, key = await server.device_token(device)
    async with (
        server.client(token) as staying,
        server.client(other) as leaving,
        staying.stream("GET", f"{device}/commandStream?keepAliveInterval=60") as stays,
        leaving.stream("GET", f"{device}/commandStream?keepAliveInterval=60") as leaves,
    ):
        await server.call("DELETE", key)
        assert await ended(leaves)
        await server.call("POST", f"{device}/command", {"name": "still there"})
        with trio.fail_after(PATIENCE_S):
            async for piece in stays.aiter_text():
                if "still there" in piece:
                    break


@pytest.mark.parametrize("what", ["device", "application", "token"])
async def test_a_users_stream_ends_with_what_it_is_about(server: Server, what: str) -> None:
    application = await server.application()
    device = await server.device(application)
    made = await server.call("POST", "/me/tokens", {"name": "t"})
    path = {"device": device, "application": application, "token": f"/me/tokens/{made['id']}"}[what]
    async with (
        server.client(made["token"]) as client,
        client.stream("GET", f"{device}/commandStream?keepAliveInterval=60") as commands,
        client.stream("GET", f"{device}/stateStream?keepAliveInterval=60") as states,
    ):
        await server.call("DELETE", path)
        assert await ended(commands)
        assert await ended(states)


async def test_a_stream_ends_when_its_token_expires(server: Server) -> None:
    device = await server.device(await server.application())
    token = await server.log_in(EMAIL, tokenTTL=60)
    async with (
        server.client(token) as client,
        client.stream("GET", f"{device}/commandStream?keepAliveInterval=1") as stream,
    ):
        server.move_clock(60)
        assert await ended(stream)


# Network addresses.


async def test_a_key_may_be_bound_to_addresses(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    for filters, status in (
        ({"addressFilterType": "whitelist", "addresses": ["127.0.0.1"]}, 200),
        ({"addressFilterType": "whitelist", "addresses": ["::1", "127.0.0.0/8"]}, 200),
        ({"addressFilterType": "whitelist", "addresses": ["192.0.2.0/24", "::/0"]}, 401),
        ({"addressFilterType": "whitelist", "addresses": []}, 401),
        ({"addressFilterType": "blacklist", "addresses": ["127.0.0.1/32"]}, 401),
        ({"addressFilterType": "blacklist", "addresses": ["192.0.2.0/24"]}, 200),
        ({"addressFilterType": "all", "addresses": ["192.0.2.0/24"]}, 200),
        ({"addresses": ["192.0.2.0/24"]}, 200),
    ):
        made = await server.call("POST", f"{application}/keys", filters)
        credentials = {"deviceId": device.rpartition("/")[2], "key": made["key"], "secret": made["secret"]}
        answer = await server.call("POST", "/auth/device", credentials, token="", status=status)
        if status == 200:
            await server.call("GET", device, token=answer["token"], status=200)


async def test_a_key_that_is_bound_later_binds_the_tokens_made_before(server: Server) -> None:
    device = await server.device(await server.application())
    token, key = await server.device_token(device)
    await server.call("PATCH", key, {"addressFilterType": "blacklist", "addresses": ["127.0.0.0/8"]})
    answer = await server.call("GET", device, token=token, status=403)
    assert "network address" in answer["message"]
    await server.call("PATCH", key, {"addressFilterType": "all"})
    await server.call("GET", device, token=token, status=200)


# What a change costs everybody else.


async def test_a_saved_record_revokes_nobody_and_wakes_no_stream(server: Server) -> None:
    application = await server.application()
    device, other = await server.device(application), await server.device(application)
    token, key = await server.device_token(device)
    _, other_key = await server.device_token(other)
    hook = await server.call("POST", f"{application}/webhooks", {"name": "h"}, status=201)
    system = server.system
    async with server.client(token) as client, client.stream("GET", f"{device}/commandStream") as stream:
        assert stream.status_code == 200
        await server.call("GET", device, token=token, status=200)
        before = system.revocations.revoked
        await server.call("PATCH", f"{application}/webhooks/{hook['id']}", {"name": "changed"})
        await server.call("PATCH", key, {"description": "only words"})
        await server.call("PATCH", other_key, {"status": "inactive"})
        await server.call("PATCH", device, {"description": "only words"})
        await server.call("PATCH", application, {"description": "only words"})
        await server.call("PATCH", "/me", {"location": "somewhere"})
        await server.call("DELETE", other)
        assert system.revocations.revoked == before
        await server.call("PATCH", key, {"status": "inactive"})
        assert system.revocations.revoked > before


FLOOR = {"key": "floor", "value": "2"}
BY_TAG: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "the tag is taken away": ({"filterType": "whitelist", "deviceTags": [{"key": "floor"}]}, []),
    "the tag gets another value": (
        {"filterType": "whitelist", "deviceTags": [FLOOR]},
        [{**FLOOR, "value": "3"}],
    ),
}


@pytest.mark.parametrize("verified_again", [False, True])
@pytest.mark.parametrize("change", BY_TAG)
async def test_a_key_that_filters_by_tags_ends_its_streams_with_the_tag(
    server: Server, change: str, verified_again: bool
) -> None:
    key, tags = BY_TAG[change]
    application = await server.application()
    own, other = [await server.device(application, name, tags=[FLOOR]) for name in ("own", "other")]
    token, _ = await server.device_token(own, **key)
    query = "keepAliveInterval=60"
    async with server.client(token) as client, AsyncExitStack() as opened:
        streams = {
            (device, kind): await opened.enter_async_context(client.stream("GET", f"{device}/{kind}?{query}"))
            for device in (own, other)
            for kind in ("commandStream", "stateStream")
        }
        chunks = {which: stream.aiter_bytes() for which, stream in streams.items()}
        with trio.fail_after(PATIENCE_S):
            for each in chunks.values():
                await anext(each)
            if verified_again:
                # An event makes a stream verify its token, and so it gets another principal.
                for device in (own, other):
                    await server.call("POST", f"{device}/command", {"name": "n"})
                    await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
                for each in chunks.values():
                    await anext(each)
        for device, status in ((other, 403), (own, 401)):
            await server.call("PATCH", device, {"tags": tags})
            for kind in ("commandStream", "stateStream"):
                with trio.move_on_after(BEFORE_THE_NEXT_COMMENT_S) as timer:
                    assert [chunk async for chunk in chunks[device, kind]] == []
                assert not timer.cancelled_caught, (device, kind)
            assert (await client.get(device)).status_code == status


async def test_what_nobody_uses_any_more_is_not_remembered(server: Server) -> None:
    device = await server.device(await server.application())
    token, key = await server.device_token(device)
    async with server.client(token) as client, client.stream("GET", f"{device}/commandStream") as stream:
        assert stream.status_code == 200
        await server.call("PATCH", key, {"status": "inactive"})
        assert await ended(stream)
    subjects = server.system.revocations._bearers
    assert bytes.fromhex(device[-24:]) not in subjects
    assert bytes.fromhex(key[-24:]) not in subjects
