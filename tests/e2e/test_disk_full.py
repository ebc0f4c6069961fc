"""A full disk, or a used-up quota: writes get 507, reads continue, and nothing that was acknowledged is lost."""

from __future__ import annotations

import random
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.conftest import PASSWORD, Server
from tests.e2e.crash_load import FIRST_MS
from tests.e2e.server_process import serving
from tests.e2e.test_data_tables import make_table
from tests.e2e.test_monitoring import alerts
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk

MIB = 2**20
CALLS_MAX = 3000
UNTHROTTLED = {"send_state": "off", "send_command": "off", "set_connection_status": "off"}


def label(time_ms: int) -> str:
    """A text that the store can hardly compress."""
    return random.Random(time_ms).randbytes(10_000).hex()


async def fill(server: Server, device: str, kept: list[int]) -> None:
    """Send states until one is refused for want of room; `kept` gets the times of the acknowledged ones."""
    async with server.client() as client:
        for number in range(CALLS_MAX):
            times = [FIRST_MS + 10 * number + n for n in range(4)]
            states = [
                {"time": time_ms, "data": {"temp": time_ms, "label": label(time_ms)}} for time_ms in times
            ]
            response = await client.post(f"{device}/state", json=states)
            if response.status_code != 200:
                assert response.status_code == 507, response.text
                refusal = response.json()
                assert set(refusal) == {"type", "message"}
                assert refusal["type"] == "StorageFull"
                assert "Reads still work" in refusal["message"]
                return
            kept += times
    raise AssertionError("the store never became full")


async def until_refused(server: Server, path: str, body: dict[str, Any]) -> int:
    """Post small things until there is no room for one more. Returns how many were stored."""
    async with server.client() as client:
        for number in range(CALLS_MAX):
            response = await client.post(path, json={**body, "name": f"{body['name']} {number}"})
            if response.status_code == 507:
                assert response.json()["type"] == "StorageFull"
                return number
            assert response.is_success, response.text
    raise AssertionError("the store never became full")


async def stored(server: Server, device: str) -> list[int]:
    """The times of all states of a device, each with the value that was sent with it."""
    times: list[int] = []
    while True:
        query = (
            f"start={times[-1] + 1 if times else FIRST_MS}&end={FIRST_MS + 10**6}&limit=100&sortDirection=asc"
        )
        page = await server.call("GET", f"{device}/state?{query}")
        times += [each["data"]["temp"] for each in page]
        assert all(each["data"]["label"] == label(each["data"]["temp"]) for each in page)
        if len(page) < 100:
            return times


async def until_stored(server: Server, device: str, time_ms: int) -> None:
    """Send a state again and again until there is room for it."""
    state = {"time": time_ms, "data": {"temp": time_ms, "label": label(time_ms)}}
    with trio.fail_after(PATIENCE_S):
        async with server.client() as client:
            while (await client.post(f"{device}/state", json=state)).status_code != 200:
                await trio.lowlevel.checkpoint()


@pytest.mark.slow
async def test_a_used_up_quota_is_told_and_freed_by_deleting(start_server: Callable[..., Any]) -> None:
    limits = {**UNTHROTTLED, "purge_interval_s": 0.1}
    room = {"map_size_bytes": MIB, "store_size_max_bytes": 6 * MIB}
    async with start_server(limits=limits, **room) as server:
        doomed, house = await server.application("doomed"), await server.application("house")
        victims = [await server.device(doomed, f"victim {n}") for n in range(3)]
        device = await server.device(house)
        first = FIRST_MS - 1000
        await until_stored(server, device, first)
        kept: list[list[int]] = [[] for _ in victims]
        async with trio.open_nursery() as nursery:
            for victim, times in zip(victims, kept, strict=True):
                nursery.start_soon(fill, server, victim, times)
        # What was acknowledged is there, what was refused is not, in any of the devices.
        assert [await stored(server, victim) for victim in victims] == kept
        assert sum(map(len, kept)) > 20
        await assert_alerted(server)
        # Everything that needs no room works: reading, and logging in.
        assert (await server.call("GET", f"{house}/devices"))["totalCount"] == 1
        assert await server.log_in()
        devices = 1 + await until_refused(server, f"{house}/devices", {"name": "small"})
        await until_refused(server, f"{device}/command", {"name": "on"})
        await server.call("DELETE", doomed)
        await until_stored(server, device, FIRST_MS)
        await server.call("POST", f"{house}/devices", {"name": "more"})
        devices += 1
    async with start_server(**room) as server:
        times = [each["data"]["temp"] for each in await _all(server, device)]
        assert times == [first, FIRST_MS]
        assert (await server.call("GET", f"{house}/devices"))["totalCount"] == devices


@pytest.mark.slow
async def test_access_is_ended_at_a_used_up_quota(start_server: Callable[..., Any]) -> None:
    """Who fills the disk must not keep a stolen login, key or token valid."""
    room = {"map_size_bytes": MIB, "store_size_max_bytes": 3 * MIB}
    async with start_server(limits=UNTHROTTLED, **room) as server:
        house = await server.application("house")
        device = await server.device(house)
        stolen, last = await server.log_in(), await server.log_in()
        key = await server.call("POST", f"{house}/keys", {})
        made = await server.call("POST", f"{house}/tokens", {"name": "t"})
        await fill(server, device, [])
        async with server.client() as client:
            while True:  # a full store flushes what devices have reported, which makes room once more
                await until_refused(server, f"{house}/devices", {"name": "small"})
                refusal = await client.patch("/me", json={"firstName": "x"})
                if refusal.status_code != 200:
                    break
        assert refusal.status_code == 507
        assert refusal.json()["message"].startswith(
            "The disk of the server, or its quota, is full; nothing of"
        )

        inactive = {"status": "inactive"}
        await server.call("POST", "/me/logout", token=stolen, status=200)
        await server.call("GET", "/me", token=stolen, status=401)
        await server.call("PATCH", f"{house}/keys/{key['id']}", inactive, status=200)
        login = {"deviceId": device.rpartition("/")[2], "key": key["key"], "secret": key["secret"]}
        await server.call("POST", "/auth/device", login, token="", status=401)
        await server.call("PATCH", f"{house}/tokens/{made['id']}", inactive, status=200)
        await server.call("GET", house, token=made["token"], status=401)
        password = {"currentCredentials": {"password": PASSWORD}}
        cutoff = {"tokenCutoff": "2020-01-01T00:00:00Z", **password}
        await server.call("PATCH", "/me", cutoff, status=200)
        change = {"password": PASSWORD, "newPassword": "Other-horse-9", "invalidateExistingTokens": True}
        server.token = (await server.call("PATCH", "/me/changePassword", change, status=200))["token"]
        await server.call("GET", "/me", token=last, status=401)


async def assert_alerted(server: Server) -> None:
    """The alert for writes that are not stored looks at a count that has risen."""
    (rule,) = (each for each in alerts() if each["alert"] == "TrunklineCommitsFail")
    name, label, value = re.findall(r'(trunkline_calls_total)\{(status)="(507)"\}', rule["expr"])[0]
    async with server.client() as client:
        families = text_string_to_metric_families((await client.get("/metrics")).text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    assert sum(sample.value for sample in samples if sample.labels[label] == value) > 0


async def _all(server: Server, device: str) -> Any:
    return await server.call(
        "GET", f"{device}/state?start={FIRST_MS - 2000}&end={FIRST_MS + 1000}&limit=10&sortDirection=asc"
    )


@pytest.mark.slow
async def test_a_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    """The operating system refuses to let the file grow; then it has room again."""
    data = tmp_path / "data"
    async with serving(data, "--limits", "off") as server:
        application = await server.application()
        doomed = await server.application("doomed")
        rows = f"{await make_table(server, application)}/rows"
        items = [{"sku": f"{number}", "price": number} for number in range(10)]
        row, *_ = (await server.call("POST", rows, items))["rowIds"]
        devices = [await server.device(application, f"device {n}") for n in range(3)]
        size = (data / "store" / "data.mdb").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size + 4 * MIB, resource.RLIM_INFINITY))
        kept: list[list[int]] = [[] for _ in devices]
        async with trio.open_nursery() as nursery:
            for device, times in zip(devices, kept, strict=True):
                nursery.start_soon(fill, server, device, times)
        assert [await stored(server, device) for device in devices] == kept
        assert sum(map(len, kept)) > 20
        assert await server.log_in()
        # Deleting works, although nothing else can be stored.
        await until_refused(server, f"{application}/devices", {"name": "small"})
        await server.call("DELETE", f"{rows}/{row}")
        deleted = await server.call("POST", f"{rows}/delete", {"price": {"$lt": 5}})
        assert deleted == {"removed": 4}
        await server.call("POST", f"{rows}/truncate")
        assert (await server.call("GET", rows))["totalCount"] == 0
        await server.call("DELETE", devices.pop())
        kept.pop()
        await server.call("DELETE", doomed)
        await server.call("GET", doomed, status=404)
        resource.prlimit(
            server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
        for device, times in zip(devices, kept, strict=True):
            times.append(FIRST_MS + 10**5)
            await until_stored(server, device, times[-1])
        assert await server.terminate() == 0
        assert "Traceback" not in server.log
    async with serving(data) as server:
        assert [await stored(server, device) for device in devices] == kept
