"""Changes of many devices over HTTP: at once and as jobs, with devices that refuse; deleted and restored ones."""

from __future__ import annotations

from typing import Any

import trio

from tests.actors.house import ManualClock
from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of, names
from tests.e2e.rows import UNKNOWN
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.store import keys

DAY_S = 86_400


def set_tag(key: str, value: str) -> dict[str, Any]:
    return {"operation": "set", "target": "tag", "value": {"key": key, "value": value}}


async def test_fields_and_operations_are_applied_in_order(server: Server) -> None:
    application = await server.application()
    tags = [{"key": "floor", "value": "1"}, {"key": "floor", "value": "2"}, {"key": "old", "value": "x"}]
    one = await server.device(application, "one", tags=tags, description="first")
    two = await server.device(application, "two")
    await server.call("POST", f"{one}/state", {"data": {"temp": 20, "label": "x", "on": True}})
    change = {
        "deviceIds": [id_of(one), id_of(two)],
        "updateFields": {"description": "changed", "keepDuplicates": True},
        "updateOperations": [
            {"operation": "set", "target": "systemInterval", "value": 60},
            {"operation": "remove", "target": "description"},
            set_tag("floor", "3"),
            {"operation": "remove", "target": "tag", "tagKey": "old"},
            {"operation": "set", "target": "attributeName", "attributeName": "temp", "value": "heat"},
            {
                "operation": "set",
                "target": "attributeDescription",
                "attributeName": "heat",
                "value": "Celsius",
            },
            {
                "operation": "set",
                "target": "attributeContentType",
                "attributeName": "label",
                "value": "text/x",
            },
            {**set_tag("k", "v"), "target": "attributeTag", "attributeName": "on"},
            {"operation": "remove", "target": "attribute", "attributeName": "label"},
            {"operation": "remove", "target": "attributeTag", "attributeName": "on", "tagKey": "none"},
            {
                "operation": "set",
                "target": "attributeTag",
                "attributeName": "none",
                "value": {"key": "k", "value": "v"},
            },
            {"operation": "add", "target": "attribute", "value": {"name": "new", "dataType": "gps"}},
            {
                "operation": "add",
                "target": "attributeSystem",
                "value": {"name": "heat", "dataType": "number", "system": {"aggregation": "MEAN"}},
            },
        ],
    }
    assert await server.call("PATCH", f"{application}/devices", change) == {
        "updated": 2,
        "failed": 0,
        "skipped": 0,
    }
    for path, name in ((one, "one"), (two, "two")):
        device = await server.call("GET", path)
        assert (device["name"], device["keepDuplicates"], device["systemInterval"]) == (name, True, 60)
        assert "description" not in device
        assert device["tags"] == [{"key": "floor", "value": "3"}]
        assert device["attributes"] == [
            {
                "name": "heat",
                "dataType": "number",
                "description": "Celsius",
                "system": {"aggregation": "MEAN"},
            },
            {"name": "on", "dataType": "boolean", "attributeTags": {"k": "v"}},
            {"name": "new", "dataType": "gps"},
        ]
    # A renamed attribute keeps its values; those of a removed one are gone.
    composite = await server.call("GET", f"{one}/compositeState")
    assert {name: each["value"] for name, each in composite.items()} == {"heat": 20, "on": True}
    # A second time the attribute exists already, and nothing of the change is stored.
    refused = await server.call("PATCH", f"{application}/devices", change)
    assert (refused["updated"], refused["failed"], refused["skipped"]) == (0, 2, 0)
    assert {each["deviceId"] for each in refused["errors"]} == {id_of(one), id_of(two)}
    assert all("already declares" in each["message"] for each in refused["errors"])


async def test_devices_that_refuse_or_need_no_change_do_not_stop_the_others(server: Server) -> None:
    application, other = await server.application(), await server.application("other")
    gateway = await server.device(application, "gateway", deviceClass="gateway")
    meter = await server.device(application, "meter", deviceClass="peripheral", gatewayId=id_of(gateway))
    pump = await server.device(application, "pump", tags=[{"key": "floor", "value": "1"}])
    await server.device(other, "pump")
    before = await server.call("GET", gateway)
    by_tag = {"query": {"tags": {"floor": "1"}}, "deviceIds": [id_of(meter)]}
    done = await server.call(
        "PATCH", f"{application}/devices", {**by_tag, "updateOperations": [set_tag("floor", "1")]}
    )
    assert done == {"updated": 1, "failed": 0, "skipped": 1}
    change = {"query": {}, "updateFields": {"gatewayId": id_of(gateway)}}
    done = await server.call("PATCH", f"{application}/devices", change)
    assert (done["updated"], done["failed"], done["skipped"]) == (0, 2, 1)
    assert [each["message"].split(":")[0] for each in done["errors"]] == ["gatewayId", "gatewayId"]
    assert await server.call("GET", gateway) == before
    assert (await server.call("GET", pump))["tags"] == [{"key": "floor", "value": "1"}]
    nobody = {"query": {"name": "nobody"}, "updateFields": {"name": "x"}}
    nothing = {"updated": 0, "failed": 0, "skipped": 0}
    assert await server.call("PATCH", f"{application}/devices", nobody) == nothing
    assert await names(server, other) == ["pump"]


def operation(operation: str, target: str, **more: Any) -> dict[str, Any]:
    return {"query": {}, "updateOperations": [{"operation": operation, "target": target, **more}]}


async def test_a_wrong_change_changes_nothing(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    before = await server.call("GET", device)
    new = {"updateFields": {"name": "x"}}
    first = "updateOperations[0]"
    for body, sentence in (
        ({"query": {}}, "updateFields or updateOperations: "),
        ({"query": {}, "updateFields": {}}, "updateFields or updateOperations: "),
        (new, "deviceIds or query: "),
        ({"deviceIds": [], **new}, "deviceIds or query: "),
        ({"deviceIds": [UNKNOWN], **new}, "deviceIds: there is no device"),
        ({"deviceIds": ["x"], **new}, "deviceIds[0]: "),
        ({"query": {"colour": "red"}, **new}, "query.colour: "),
        ({"query": {"$or": []}, **new}, "query.$or: "),
        ({"query": {}, "updateFields": {"name": ""}}, "updateFields.name: "),
        ({"query": {}, "updateFields": {"colour": "red"}}, "updateFields.colour: "),
        ({"query": {}, "updateOperations": [set_tag("floor", "1")] * 26}, "updateOperations: has 26 items"),
        (operation("set", "age", value=1), f"{first}.target: "),
        (operation("paint", "name"), first),
        (operation("set", "name", value=1), f"{first}.value: "),
        (operation("set", "systemInterval", value=4), f"{first}.value: "),
        (operation("set", "gatewayId", value="x"), f"{first}.value: "),
        (operation("set", "tag", value="x"), f"{first}.value: is not a valid tag"),
        (operation("set", "attributeName", value="x"), f"{first}.attributeName: is missing"),
        (operation("remove", "tag"), f"{first}.tagKey: is missing"),
        (operation("remove", "description", tagKey="x"), f"{first}.tagKey: is not used"),
        (operation("add", "attribute", value={"name": "x"}), f"{first}.value.dataType: "),
    ):
        refused = await server.call("PATCH", f"{application}/devices", body, status=400)
        assert (refused["type"], refused["message"][: len(sentence)]) == ("Validation", sentence)
    assert await server.call("GET", device) == before


async def everything(server: Server, device: str) -> dict[str, Any]:
    """All that can be read of a device, without the moment of its last change."""
    shown = {
        part: await server.call("GET", f"{device}{part}")
        for part in (
            "/state?limit=1000",
            "/command?limit=9",
            "/logs?limit=9",
            "/compositeState",
            "/payloadCounts",
        )
    }
    record = await server.call("GET", device)
    return {**shown, "record": {name: record[name] for name in record.keys() - {"lastUpdated", "_etag"}}}


async def test_restored_devices_have_everything_that_they_had(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock, token_ttl_s=365 * DAY_S) as server:
        application = await server.application()
        gateway = await server.device(application, "gateway", deviceClass="gateway")
        hall = await server.device(application, "hall", deviceClass="system")
        meter = await server.device(
            application, "meter", deviceClass="peripheral", gatewayId=id_of(gateway), parentId=id_of(hall)
        )
        kept = await server.device(application, "kept")
        token, _ = await server.device_token(gateway)
        for number in range(7):
            clock.pass_s(1)
            await server.call("POST", f"{meter}/state", {"data": {"temp": number}}, token=token)
        await server.call("POST", f"{meter}/state", {"data": {"label": "x" * 1000}, "time": 5000})
        await server.call("POST", f"{meter}/command", {"name": "go"})
        await server.call("POST", f"{meter}/setConnectionStatus", {"status": "connected"}, token=token)
        await server.call("DELETE", f"{meter}/attributes/on")
        before = {path: await everything(server, path) for path in (gateway, hall, meter, kept)}
        summary = (await server.call("GET", application))["summary"]

        clock.pass_s(60)
        done = await server.call(
            "POST", f"{application}/devices/delete", {"query": {"name": {"$ne": "kept"}}}
        )
        assert done == {"removed": 3, "failed": 0}
        assert await names(server, application) == ["kept"]
        assert await names(server, application, "queryDeleted=true") == ["gateway", "hall", "meter"]
        assert (await server.call("GET", application))["summary"]["deviceCount"] == 1
        await server.call("GET", meter, status=404)
        await server.call("POST", f"{meter}/state", {"data": {"temp": 1}}, status=404)
        await server.call("POST", f"{gateway}/state", {"data": {"temp": 1}}, token=token, status=401)
        assert await server.call("POST", f"{application}/devices/delete", {"query": {"name": "meter"}}) == {
            "removed": 0,
            "failed": 0,
        }

        # The peripheral comes back before its gateway and its parent.
        clock.pass_s(92 * DAY_S)
        restore = f"{application}/devices/restore"
        assert await server.call("POST", restore, {"query": {"name": "meter"}}) == {
            "restored": 1,
            "failed": 0,
        }
        alone = await server.call("GET", meter)
        assert (alone["gatewayId"], alone["parentId"]) == (id_of(gateway), id_of(hall))
        assert "deletedAt" not in alone
        assert await server.call("POST", restore, {"query": {}}) == {"restored": 2, "failed": 0}
        assert await server.call("POST", restore, {"query": {}}) == {"restored": 0, "failed": 0}
        assert await names(server, application, "queryDeleted=true") == []
        for path, expected in before.items():
            found = await everything(server, path)
            assert found["record"] == expected["record"]
            for part in ("/state?limit=1000", "/command?limit=9", "/logs?limit=9", "/compositeState"):
                assert found[part] == expected[part], part
            first = await server.call("GET", f"{path}/payloadCounts?start=1")
            assert first == expected["/payloadCounts"]
        assert (await server.call("GET", application))["summary"] == summary
        await server.call("POST", f"{meter}/state", {"data": {"temp": 99}}, token=token)
        await server.call("POST", f"{meter}/state", {"data": {"on": True}}, status=400)
        days = (await server.call("GET", f"{application}/deviceCounts?start={-93 * DAY_S * 1000}"))["counts"]
        assert [day["total"] for day in days if day["deleted"] or day["created"]] == [1]
        assert (days[-2]["total"], days[-1]["total"]) == (1, 4)

        await server.call("DELETE", kept)
        clock.pass_s(93 * DAY_S + 1)
        assert await server.call("POST", restore, {"query": {}}) == {"restored": 0, "failed": 0}


async def test_many_devices_are_changed_deleted_and_restored_by_jobs(start_server: Any) -> None:
    async with start_server(limits={"changed_devices_max": 3, "bulk_errors_max": 2}) as server:
        application = await server.application()
        devices = f"{application}/devices"
        gateway = id_of(await server.device(application, "gateway", deviceClass="gateway"))
        for number in range(7):
            await server.device(application, f"n{number}")
        change = {"query": {}, "updateOperations": [set_tag("floor", "1")], "email": "ops@example.com"}
        queued = await server.call("PATCH", devices, change, status=202)
        log = await ended(server, application, queued["jobId"])
        assert (log["name"], log["status"]) == ("devices.patch", "completed")
        assert (log["resourceType"], log["resourceId"]) == ("device", id_of(application))
        assert log["progress"] == {"completed": 8, "total": 8, "status": "completed"}
        assert log["output"] == {"updated": 8, "failed": 0, "skipped": 0, "told": log["output"]["told"]}
        assert [told["to"] for told in log["output"]["told"]] == ["ops@example.com"]
        ids = [device["id"] for device in (await server.call("GET", devices))["items"]]
        refused = {"deviceIds": ids, "updateFields": {"deviceClass": "peripheral", "gatewayId": ids[-1]}}
        log = await ended(
            server, application, (await server.call("PATCH", devices, refused, status=202))["jobId"]
        )
        assert (log["status"], log["output"]["failed"], len(log["output"]["errors"])) == ("completed", 8, 2)
        to_gateway = {"query": {"name": "n*"}, "updateFields": {"gatewayId": gateway}}
        assert await server.call("PATCH", devices, to_gateway) == {"updated": 0, "failed": 0, "skipped": 0}

        for path, query, output in (
            ("delete", {"name": {"$startsWith": "n"}}, {"removed": 7, "failed": 0}),
            ("restore", {}, {"restored": 7, "failed": 0}),
        ):
            queued = await server.call("POST", f"{devices}/{path}", {"query": query}, status=202)
            log = await ended(server, application, queued["jobId"])
            assert (log["name"], log["output"] | output) == (f"devices.{path}", log["output"])
            assert log["progress"]["completed"] == 7
        assert len(await names(server, application)) == 8
        forced = {"query": {"name": "n1"}, "forceJob": True, "callbackUrl": "ftp://example.com"}
        await server.call("POST", f"{devices}/delete", forced, status=400)
        del forced["callbackUrl"]
        queued = await server.call("POST", f"{devices}/delete", forced, status=202)
        assert (await ended(server, application, queued["jobId"]))["output"]["removed"] == 1
        for path in ("delete", "restore"):
            for body, sentence in (
                ({}, "query: "),
                ({"query": {"a": 1}}, "query.a: "),
                ({"query": []}, "query: "),
            ):
                answer = await server.call("POST", f"{devices}/{path}", body, status=400)
                assert answer["message"].startswith(sentence)
            await server.call("POST", f"/applications/{UNKNOWN}/devices/{path}", {"query": {}}, status=404)
        old = {"If-Match": '"abc"'}
        await server.call("PATCH", devices, change, headers=old, status=412)
        await server.call("POST", f"{devices}/delete", {"query": {}}, headers=old, status=412)
        assert len(await names(server, application)) == 7


async def test_a_job_ends_with_its_application(start_server: Any) -> None:
    async with start_server(limits={"changed_devices_max": 1, "job_progress_s": 0.01}) as server:
        application = await server.application()
        for number in range(30):
            await server.device(application, f"n{number}")
        change = {"query": {}, "updateFields": {"name": "changed"}}
        await server.call("PATCH", f"{application}/devices", change, status=202)
        jobs = server.system.component(Jobs)
        with trio.fail_after(PATIENCE_S):
            while "changed" not in await names(server, application):
                pass
            await server.call("DELETE", application)
            stored = stored_devices(server, application)
            while jobs.running:
                await trio.lowlevel.checkpoint()
        assert stored_devices(server, application) == stored
        assert server.system.restarts == 0


def stored_devices(server: Server, application: str) -> list[tuple[bytes, bytes]]:
    with server.system.store.snapshot() as snapshot:
        prefix = keys.record_prefix("device", bytes.fromhex(id_of(application)))
        return list(snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)))
