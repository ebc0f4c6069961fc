"""Deployments: which version of a workflow edge and embedded devices are to run, released, replaced and removed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of
from tests.e2e.test_exports import ended, fetched
from tests.e2e.test_flows import make
from trunkline.actors.maintenance import sweep
from trunkline.store import keys

Json = dict[str, Any]
CLASSES = {"edge": "edgeCompute", "embedded": "embedded"}
BOTH = pytest.mark.parametrize("of", sorted(CLASSES))


class Fleet:
    """An application with devices a and b, and workflows x and y, each with the versions v1 and v2."""

    def __init__(self, server: Server, application: str, of: str) -> None:
        self.server = server
        self.application = application
        self.path = f"{application}/{of}/deployments"
        self.of = of
        self.ids: dict[str, str] = {}

    async def fill(self) -> None:
        for name, floor in (("a", "1"), ("b", "2")):
            tags = [{"key": "floor", "value": floor}]
            device = await self.server.device(self.application, name, deviceClass=CLASSES[self.of], tags=tags)
            self.ids[name] = id_of(device)
        for name in ("x", "y"):
            flow = await make(self.server, f"{self.application}/flows", name=name, flowClass=self.of)
            self.ids[name] = flow["id"]
            for version in ("v1", "v2"):
                body = {"version": version, "nodes": [{"type": version}]}
                versions = f"{self.application}/flows/{flow['id']}/versions"
                await self.server.call("POST", versions, body, status=201)

    async def change(self, how: str, status: int = 201, **body: Any) -> Json:
        answer: Json = await self.server.call("POST", f"{self.path}/{how}", body, status=status)
        return answer

    async def release(self, flow: str, version: str | None, *devices: str, **more: Any) -> None:
        ids = [self.ids[each] for each in devices]
        await self.change("release", flowId=self.ids[flow], version=version, deviceIds=ids, **more)

    async def listed(self, **query: Any) -> Json:
        answer: Json = await self.server.call("GET", self.path, params=query)
        assert answer["totalCount"] == len(answer["items"])
        return answer

    async def desired(self, **query: Any) -> dict[str, str | None]:
        """The desired version of each workflow on each device: "a.x" to "v1"."""
        names = {id: name for name, id in self.ids.items()}
        found: dict[str, str | None] = {}
        for each in (await self.listed(**query))["items"]:
            flows = each["flows"] if self.of == "embedded" else {each["flowId"]: each}
            for flow, versions in flows.items():
                assert versions["currentVersion"] is None
                found[f"{each['deviceName']}.{names[flow]}"] = versions["desiredVersion"]
        return found


async def fleet(server: Server, of: str) -> Fleet:
    """A filled fleet in an application of its own."""
    made = Fleet(server, await server.application(), of)
    await made.fill()
    return made


@BOTH
async def test_versions_are_released_replaced_and_removed_in_every_form(server: Server, of: str) -> None:
    all = await fleet(server, of)
    gone: str | None = None  # what a removed workflow of an edge device shows
    await all.release("x", "v1", "a", "b")
    await all.release("y", "develop", "a")
    assert await all.desired() == {"a.x": "v1", "b.x": "v1", "a.y": "develop"}
    await all.change(
        "release", flowId=all.ids["x"], version="v2", deviceTags=[{"key": "floor", "value": "2"}]
    )
    assert (await all.desired())["b.x"] == "v2"
    for device in "ab":
        only = await all.desired(deviceId=all.ids[device])
        assert {name[0] for name in only} == {device}
    assert {name[2] for name in await all.desired(flowId=all.ids["y"], version="develop")} >= {"y"}
    with_v2 = await all.listed(version="v2")
    assert [each["deviceName"] for each in with_v2["items"]] == ["b"]
    assert with_v2["version"] == "v2"

    await all.change("replace", flowId=all.ids["x"], oldVersion="v1", newVersion="v2")
    assert await all.desired() == {"a.x": "v2", "b.x": "v2", "a.y": "develop"}
    await all.change("replace", flowId=all.ids["x"], oldVersion="v1", newVersion="develop")
    assert (await all.desired())["a.x"] == "v2"

    await all.change("remove", flowId=all.ids["x"], deviceId=all.ids["a"])
    left = {name: version for name, version in (await all.desired()).items() if version is not None}
    assert left == {"b.x": "v2", "a.y": "develop"}
    await all.release("x", "v1", "a", "b")
    await all.change("remove", flowId=None, deviceId=all.ids["a"])
    left = {name: version for name, version in (await all.desired()).items() if version is not None}
    assert left == {"b.x": "v1"}
    await all.release("x", "v1", "a")
    await all.change("remove", flowId=all.ids["x"], deviceId=None)
    assert set((await all.desired()).values()) <= {gone}
    if of == "edge":
        assert await all.desired(filterEmpty=True) == {}
    await all.release("x", "v1", "a", "b")
    await all.release("x", "", "a")
    await all.change("replace", flowId=all.ids["x"], oldVersion="v1", newVersion=None)
    assert set((await all.desired()).values()) <= {gone}


@BOTH
async def test_a_change_that_makes_no_sense_is_refused_and_changes_nothing(server: Server, of: str) -> None:
    all = await fleet(server, of)
    lamp = id_of(await server.device(all.application, "lamp"))
    cloud = (await make(server, f"{all.application}/flows"))["id"]
    good: Json = {"flowId": all.ids["x"], "version": "v1", "deviceIds": [all.ids["a"]]}
    unknown = "0" * 24
    refused: list[tuple[str, Json, str]] = [
        ("release", {**good, "flowId": unknown}, "flowId: there is no workflow"),
        ("release", {**good, "flowId": cloud}, f"flowId: workflow {cloud} has the class cloud"),
        ("release", {**good, "version": "v9"}, f"version: workflow {all.ids['x']} has no version 'v9'"),
        ("release", {**good, "deviceIds": [all.ids["a"], unknown]}, "deviceIds: there is no device"),
        (
            "release",
            {**good, "deviceIds": [all.ids["a"], lamp]},
            f"deviceIds: device {lamp} has the class standalone",
        ),
        ("release", {**good, "deviceIds": []}, "deviceIds or deviceTags: "),
        ("release", {"flowId": all.ids["x"], "deviceIds": [all.ids["a"]]}, "version: is missing"),
        ("replace", {"flowId": all.ids["x"], "oldVersion": "v1", "newVersion": "v9"}, "newVersion: "),
        (
            "replace",
            {"flowId": unknown, "oldVersion": "v1", "newVersion": None},
            "flowId: there is no workflow",
        ),
        ("remove", {"flowId": None, "deviceId": None}, "flowId, deviceId: both are null"),
        ("remove", {"flowId": None, "deviceId": unknown}, "deviceId: there is no device"),
        ("remove", {"flowId": unknown, "deviceId": None}, "flowId: there is no workflow"),
    ]
    for how, body, message in refused:
        answer = await all.change(how, 400, **body)
        assert answer["message"].startswith(message), answer
    nothing = [{"key": "floor", "value": "9"}]
    await all.change("release", flowId=all.ids["x"], version="v1", deviceTags=nothing)
    assert await all.desired() == {}
    await server.call("GET", f"{all.path}/{unknown}", status=404)
    await server.call("POST", f"/applications/{unknown}/{of}/deployments/release", good, status=404)


@BOTH
@pytest.mark.parametrize("by", ["id", "tag"])
async def test_what_is_deployed_is_removed_whatever_became_of_it(server: Server, of: str, by: str) -> None:
    """Of a version that was deleted, and from a device that has another class since."""
    all = await fleet(server, of)
    await all.release("x", "v2", "a", "b")
    await server.call("DELETE", f"{all.application}/flows/{all.ids['x']}/versions/v2")
    await server.call(
        "PATCH", f"{all.application}/devices/{all.ids['a']}", {"deviceClass": "standalone"}, status=200
    )
    assert await all.desired() == {"a.x": "v2", "b.x": "v2"}
    tag = [{"key": "floor", "value": "1"}]
    chosen: Json = {"deviceIds": [all.ids["a"]]} if by == "id" else {"deviceTags": tag}
    release = {"flowId": all.ids["x"], **chosen}
    if by == "id":
        refused = await all.change("release", 400, version="v1", **release)
        assert "has the class standalone" in refused["message"]
    await all.change("release", version="", **release)
    left = {name: version for name, version in (await all.desired()).items() if version is not None}
    assert left == {"b.x": "v2"}


async def test_an_edge_deployment_keeps_who_changed_what(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"deployment_logs_max": 2}) as server:
        all = await fleet(server, "edge")
        await all.release("x", "v1", "a")
        (first,) = (await all.listed())["items"]
        await all.release("x", "v1", "a")
        await all.release("x", "v2", "a")
        await all.release("x", None, "a")
        (shown,) = (await all.listed())["items"]
        assert shown["id"] == first["id"] == shown["edgeDeploymentId"]
        assert await server.call("GET", f"{all.path}/{shown['id']}") == shown
        names = ("deviceId", "deviceName", "flowId", "flowName", "flowClass", "desiredVersion")
        assert [shown[name] for name in names] == [all.ids["a"], "a", all.ids["x"], "x", "edge", None]
        assert shown["deviceConnectionInfo"] == {"connected": None}
        assert "desiredEtag" not in shown
        values = [(log["previousValue"], log["newValue"]) for log in shown["logs"]]
        assert values == [("v1", "v2"), ("v2", None)]
        old, new = shown["logs"]
        assert old["previousEtag"] == first["desiredEtag"] != old["newEtag"] == new["previousEtag"]
        assert (old["sourceType"], old["changeType"]) == ("user", "desired")
        assert shown["_links"]["self"]["href"] == f"{all.path}/{shown['id']}"


async def test_an_embedded_deployment_has_a_bundle_and_is_exported(server: Server) -> None:
    all = await fleet(server, "embedded")
    await all.release("x", "v1", "a", releaseTag="spring")
    (first,) = (await all.listed())["items"]
    assert first["desiredBundleVersion"] == "spring"
    await all.release("y", "v2", "a")
    shown = await server.call("GET", f"{all.path}/{all.ids['a']}")
    assert shown["desiredBundleVersion"] not in (None, "spring")
    assert shown["currentBundleVersion"] is None
    types = [(log["updateType"], log["desiredVersion"], log["newBundle"]) for log in shown["logs"]]
    assert types == [("newFlow", "v1", "spring"), ("newFlow", "v2", shown["desiredBundleVersion"])]

    export = f"{all.path}/export"
    await server.call("POST", export, {}, status=400)
    await server.call("POST", export, status=400)
    await server.call("POST", export, {"deviceId": all.ids["b"]}, status=404)
    options = {"deviceId": all.ids["a"], "gzip": True, "traceLevel": 1, "email": "a@example.com"}
    async with server.client() as client:
        queued = await client.post(export, json=options)
        assert queued.status_code == 202
        assert '"embedded_export";r=0' in queued.headers["ratelimit"]
    log = await ended(server, all.application, queued.json()["jobId"])
    assert log["output"]["compiled"] is False
    file = await fetched(server, log["output"]["file"]["url"])
    content = json.loads(gzip.decompress(file.content))
    assert content["compiled"] is False
    assert content["bundleVersion"] == shown["desiredBundleVersion"]
    nodes = {each["name"]: (each["version"], each["nodes"]) for each in content["flows"]}
    assert nodes == {"x": ("v1", [{"type": "v1"}]), "y": ("v2", [{"type": "v2"}])}
    again = await server.call("POST", export, {"embeddedDeploymentId": all.ids["a"]}, status=429)
    assert "1 calls of embedded_export in any 300 seconds" in again["message"]


@BOTH
async def test_deployments_go_with_their_workflow_and_with_their_device(server: Server, of: str) -> None:
    all = await fleet(server, of)
    await all.release("x", "v1", "a", "b")
    await all.release("y", "v1", "a", "b")
    await server.call("DELETE", f"{all.application}/flows/{all.ids['y']}")
    assert await all.desired() == {"a.x": "v1", "b.x": "v1"}
    device = f"{all.application}/devices/{all.ids['a']}"
    (hidden,) = (await all.listed(deviceId=all.ids["a"]))["items"]
    await server.call("DELETE", device)
    assert await all.desired() == {"b.x": "v1"}
    await server.call("GET", f"{all.path}/{hidden['id']}", status=404)
    await server.call("POST", f"{all.application}/devices/restore", {"query": {"name": "a"}})
    assert await all.desired() == {"a.x": "v1", "b.x": "v1"}
    await server.call("DELETE", device)
    server.move_clock(94 * 86_400)
    while await sweep.sweep(server.system):
        pass
    with server.system.store.snapshot() as snapshot:
        kind = keys.kind_prefix(f"{of}Deployment")
        assert len(list(snapshot.keys(keys.RECORDS, kind, keys.prefix_end(kind)))) == 1
