"""Admissions: a repeated call is admitted from the cache, and never after its access has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import running_server
from tests.http.both_paths import FAST_ROUTES, GOOD_BODIES, Twin, both_paths, request
from trunkline.actors.core.records.messages import DeleteRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.messages import DeleteDevice, DevicePatch, PatchDevice

STATE = FAST_ROUTES["device.sendState"]
BODY = GOOD_BODIES[STATE.operation]


def is_admitted(twin: Twin, token: str) -> bool:
    return (
        twin.dispatcher.admissions.find_by_token("POST", twin.path(STATE), b"Bearer " + token.encode())
        is not None
    )


async def send(twin: Twin, token: str, **other: str) -> int:
    answer = await twin.ask(request(twin, STATE, BODY, token=token, **other), method="POST")
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize("operation", FAST_ROUTES)
async def test_a_hot_call_that_comes_again_is_admitted(tmp_path: Path, operation: str) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin, route = paths.fast, FAST_ROUTES[operation]
        token = twin.bearer(route)
        authorization = b"Bearer " + token.encode()
        assert twin.dispatcher.admissions.find_by_token(route.method, twin.path(route), authorization) is None
        first = await twin.ask(
            request(twin, route, GOOD_BODIES.get(operation), token=token), method=route.method
        )
        assert first.startswith(b"HTTP/1.1 20")
        admission = twin.dispatcher.admissions.find_by_token(route.method, twin.path(route), authorization)
        if "{rowId}" in route.path:
            assert admission is None, "rows are too many to be cached"
            return
        assert admission is not None
        assert admission.route is route
        assert (admission.ids.get("device") or admission.ids.get("dataTable")) == (
            twin.device if "{deviceId}" in route.path else twin.table
        )
        for method in {"GET", "POST"} - {route.method}:
            assert twin.dispatcher.admissions.find_by_token(method, twin.path(route), authorization) is None


async def test_what_ends_access_ends_it_with_the_next_call(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        system, application = twin.house.system, twin.house.application
        brief, lasting = twin.token(ttl_s=60), twin.token()
        for _ in range(2):
            assert await send(twin, brief) == await send(twin, lasting) == 200
        assert is_admitted(twin, brief)
        twin.house.clock.pass_s(60)
        assert not is_admitted(twin, brief)
        assert await send(twin, brief) == 401
        assert await send(twin, lasting) == 200
        revoke = DeleteRecord(resource="applicationKey", record=twin.key, if_match=None)
        await system.ask(Ref("application", ROOT, application), revoke)
        assert not is_admitted(twin, lasting)
        assert await send(twin, lasting) == 401


async def test_a_deleted_device_has_no_admission_any_more(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin, token = paths.fast, paths.fast.token()
        assert await send(twin, token) == await send(twin, token) == 200
        ref = Ref("device", twin.house.application, twin.device)
        await twin.house.system.ask(ref, DeleteDevice(if_match=None))
        assert await send(twin, token) == 401


async def test_access_that_ends_while_the_body_comes_has_ended(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin, token = paths.fast, paths.fast.token()
        assert await send(twin, token) == await send(twin, token) == 200
        peer = await twin.wired.connect()
        whole = request(twin, STATE, BODY, token=token)
        await peer.send(whole[:-1])
        revoke = DeleteRecord(resource="applicationKey", record=twin.key, if_match=None)
        await twin.house.system.ask(Ref("application", ROOT, twin.house.application), revoke)
        await peer.send(whole[-1:])
        answer = await peer.answer()
        assert answer is not None
        assert answer.head.startswith(b"HTTP/1.1 401 ")
        await peer.close()


@pytest.mark.parametrize(
    "key",
    [
        {"address_filter_type": "whitelist", "addresses": ["127.0.0.0/8"]},
        {"device_tags": [{"key": "floor"}]},
    ],
    ids=["an address", "a tag"],
)
async def test_what_depends_on_more_than_authority_is_not_cached(
    tmp_path: Path, key: dict[str, object]
) -> None:
    tagged = {"tags": [{"key": "floor", "value": "1"}]}
    async with both_paths(tmp_path / "data", key=key, device=tagged) as paths:
        twin, token = paths.fast, paths.fast.token()
        assert await send(twin, token) == await send(twin, token) == 200
        assert not is_admitted(twin, token)


async def test_a_gateway_that_is_none_any_more_sends_no_more(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data") as server:
        application = await server.application()
        gateway = await server.device(application, deviceClass="gateway")
        other = await server.device(application, deviceClass="gateway")
        gateway_id, other_id = gateway.rpartition("/")[2], other.rpartition("/")[2]
        sensor = await server.device(application, deviceClass="peripheral", gatewayId=gateway_id)
        token, _ = await server.device_token(gateway)
        for _ in range(2):
            await server.call("POST", f"{sensor}/state", {"data": {"temp": 1}}, token=token)
        await server.call("PATCH", sensor, {"gatewayId": other_id})
        await server.call("POST", f"{sensor}/state", {"data": {"temp": 1}}, token=token, status=403)


async def test_a_change_of_the_device_alone_keeps_its_admissions(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin, token = paths.fast, paths.fast.token()
        assert await send(twin, token) == 200
        ref = Ref("device", twin.house.application, twin.device)
        await twin.house.system.ask(ref, PatchDevice(body=DevicePatch(name="other"), if_match=None))
        assert await send(twin, token) == 200


async def test_no_more_admissions_are_stored_than_the_bound(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data", limits={"admission_cache_length_max": 2}) as paths:
        twin = paths.fast
        tokens = [twin.token(ttl_s=60 + number) for number in range(3)]
        for token in tokens:
            assert await send(twin, token) == 200
        assert [is_admitted(twin, token) for token in tokens] == [False, True, True]
