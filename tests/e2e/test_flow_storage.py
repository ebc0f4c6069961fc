"""Workflows beside their definitions: storage entries, runs, virtual buttons, the deletion of many versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.conftest import Server
from tests.e2e.test_exports import ended
from tests.e2e.test_flows import BUTTON, flows_of, make
from trunkline.actors.maintenance import sweep
from trunkline.store import keys


async def test_many_versions_are_deleted_at_once_or_by_a_job_and_the_default_stays(
    start_server: Callable[..., Any],
) -> None:
    async with start_server(limits={"deleted_versions_max": 2, "flow_versions_max": 5}) as server:
        application = await server.application()
        flow = await make(server, f"{application}/flows")
        path = f"{application}/flows/{flow['id']}"
        made = [
            await server.call("POST", f"{path}/versions", {"version": f"v{number}"}, status=201)
            for number in range(5)
        ]
        full = await server.call("POST", f"{path}/versions", {"version": "v5"}, status=413)
        assert full["message"].startswith("A workflow has at most 5 versions")
        await server.call("PATCH", path, {"defaultVersionId": made[0]["id"]})
        delete = f"{path}/versions/delete"
        few = {"query": {"version": {"$in": ["v0", "v1"]}}}
        assert await server.call("POST", delete, few, status=200) == {"removed": 1, "failed": 1}
        queued = await server.call("POST", delete, {"query": {}, "email": "a@example.com"}, status=202)
        log = await ended(server, application, queued["jobId"])
        assert log["output"].items() >= {"removed": 3, "failed": 1}.items()
        assert (await server.call("GET", f"{path}/versions"))["totalCount"] == 1
        await server.call("POST", delete, {}, status=400)
        await server.call("POST", f"{path}/versions", {"version": "v5"}, status=201)


async def test_storage_entries_are_kept_measured_bounded_and_cleared(
    start_server: Callable[..., Any],
) -> None:
    bounds = {"flow_storage_entries_max": 3, "flow_storage_bytes_max": 20_000, "purge_interval_s": 3600}
    async with start_server(limits=bounds) as server:
        flows = f"{await server.application()}/flows"
        path = f"{flows}/{(await make(server, flows))['id']}"
        storage, size = f"{path}/storage", f"{path}/storage-metadata"
        assert await server.call("GET", storage) == {}
        values = {"a/b c": {"deep": [1.0, None]}, "ä" * 255: "x" * 16_382, "_type": None}
        for key, value in values.items():
            assert await server.call("PATCH", storage, {"key": key, "value": value}) == {"success": True}
        assert await server.call("GET", storage) == values
        used = {"memoryUsed": (5 + 19) + (510 + 16_384) + (5 + 4), "keysCount": 3}
        assert await server.call("GET", size) == used
        refusals = [({"key": "d", "value": 1}, 413), ({"key": "_type", "value": "x" * 16_383}, 400)]
        refusals += [
            ({"key": "_type", "value": "x" * 10_000}, 413),
            ({"key": "", "value": 1}, 400),
            ({}, 400),
        ]
        for body, status in refusals:
            await server.call("PATCH", storage, body, status=status)
        assert await server.call("GET", size) == used
        await server.call("PATCH", storage, {"key": "_type", "value": 12345})
        await server.call("PATCH", storage, {"key": "a/b c"})
        assert await server.call("GET", size) == {"memoryUsed": (510 + 16_384) + (5 + 5), "keysCount": 2}
        assert await server.call("DELETE", storage) == {}
        await server.call("PATCH", storage, {"key": "new", "value": True})
        while await sweep.sweep(server.system):
            pass
        assert await server.call("GET", storage) == {"new": True}
        assert await server.call("GET", size) == {"memoryUsed": 7, "keysCount": 1}
        await server.call("POST", f"{path}/versions", {"version": "v1"}, status=201)
        await server.call("DELETE", path)
        while await sweep.sweep(server.system):
            pass
        with server.system.store.snapshot() as snapshot:
            assert list(snapshot.keys(keys.FLOWS, b"", None)) == []
            kind = keys.kind_prefix("flowVersion")
            for db in (keys.RECORDS, keys.INDEXES):
                assert list(snapshot.keys(db, kind, keys.prefix_end(kind))) == []
        for gone in (storage, size, f"{path}/errors", f"{path}/logs", f"{path}/stats"):
            await server.call("GET", gone, status=404)


async def test_what_ran_is_nothing_and_the_parameters_are_checked(server: Server) -> None:
    flows = await flows_of(server)
    flow = await make(server, flows)
    path = f"{flows}/{flow['id']}"
    version = await server.call("POST", f"{path}/versions", {"version": "v1"}, status=201)
    named = {"flowVersion": "v1", "flowVersionId": version["id"]}
    errors = await server.call("GET", f"{path}/errors?flowVersion=v1&end=1700000000000&limit=5")
    assert errors == {
        "start": "2023-11-13T22:13:20.000Z", "end": "2023-11-14T22:13:20.000Z", "limit": 5, "sortDirection": "desc",
        "errors": [], "applicationId": flows.split("/")[2], "flowId": flow["id"], "_type": "flowErrors", **named,
    }  # fmt: skip
    assert (
        await server.call("GET", f"{path}/errors?flowVersion=v1&end=2023-11-14T22:13:20Z&limit=5") == errors
    )
    stats = await server.call("GET", f"{path}/versions/v1/stats?duration=60000&resolution=1000")
    assert stats.items() >= {"metrics": [], "resolution": 60_000, "_type": "flowStats", **named}.items()
    hours = await server.call("GET", f"{path}/versions/v1/stats?duration=60000")
    assert hours["resolution"] == 3_600_000
    assert await server.call("GET", f"{path}/logs?limit=3&since=5") == []
    assert (await server.call("GET", f"{path}/versions/develop/errors"))["flowVersion"] == "develop"
    for bad in (
        "errors?limit=26",
        "errors?flowVersion=v2",
        "errors?duration=-1",
        "stats?resolution=0",
        "logs?limit=0",
    ):
        await server.call("GET", f"{path}/{bad}", status=400)
    for missing in ("errors", "logs", "stats"):
        await server.call("GET", f"{path}/versions/v2/{missing}", status=404)


async def test_a_press_is_checked_throttled_by_button_and_counted(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"virtual_button": {"calls": 2, "window_s": 60}}) as server:
        application = await server.application()
        flows = f"{application}/flows"
        flow = await make(server, flows, triggers=[BUTTON | {"outputIds": []}])
        other = await make(server, flows)
        press = f"{flows}/{flow['id']}/virtualButton"
        version = {"version": "v1", "triggers": []}
        await server.call("POST", f"{flows}/{flow['id']}/versions", version, status=201)
        button = {"key": f"{flow['id']}-press", "payload": {"a": 1}, "flowVersion": "develop"}
        for left in (1, 0):
            async with server.client() as client:
                response = await client.post(press, json=button)
                assert (response.status_code, response.json()) == (200, {"success": True})
                assert f"r={left}" in response.headers["ratelimit"]
        assert (await server.call("POST", press, button, status=429))["type"] == "TooManyRequests"
        await server.call("POST", press, {"key": BUTTON["key"]})
        no_version = await server.call("POST", press, {**button, "key": "x", "flowVersion": "v9"}, status=400)
        assert no_version["message"].startswith("flowVersion: this workflow has no version 'v9'")
        for body in ({"key": "y"}, {"key": "z", "flowVersion": "v1"}, {"payload": 1}):
            await server.call("POST", press, body, status=400)
        await server.call("POST", f"{flows}/{other['id']}/virtualButton", button, status=400)
        await server.call("POST", f"{flows}/{'0' * 24}/virtualButton", button, status=404)
        for fields, reason in (
            ({"enabled": False}, "enabled: this workflow is disabled"),
            ({"flowClass": "customNode"}, "key: a custom node runs in the workflows that use it"),
            ({"flowClass": "edge"}, "key: edge workflows run on devices"),
        ):
            idle = await make(server, flows, triggers=[BUTTON | {"outputIds": []}], **fields)
            refused = await server.call(
                "POST", f"{flows}/{idle['id']}/virtualButton", {"key": f"{idle['id']}-press"}, status=400
            )
            assert refused["message"].startswith(reason)
        counts = await server.call("GET", f"{application}/payloadCounts")
        assert sum(counts["virtualButton"].values()) == 3
