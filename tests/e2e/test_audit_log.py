"""The audit log of an organization: each change has an entry that says who, what, when, from where, and no secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.conftest import EMAIL, Json, Server
from trunkline.actors import server_users
from trunkline.actors.catalogue import RESOURCES
from trunkline.http.calls import audit
from trunkline.http.calls.route import ALSO_AUDITED, NOT_AUDITED
from trunkline.http.routes import TABLE

StartServer = Callable[..., Any]

PLANTED = "Planted-secret-7"


async def organization(server: Server, name: str = "farm") -> tuple[str, str]:
    """A new organization with an application; returns the paths of both."""
    org = await server.call("POST", "/orgs", {"name": name}, status=201)
    body = {"name": "house", "orgId": org["id"]}
    application = await server.call("POST", "/applications", body, status=201)
    return f"/orgs/{org['id']}", f"/applications/{application['id']}"


async def entries(server: Server, org: str, **query: Any) -> list[Json]:
    listed = await server.call("GET", f"{org}/audit-logs", params=query)
    return list(listed["items"])


def operation(entry: Json) -> str:
    return f"{entry['requestResource']}.{entry['requestAction']}"


async def test_a_change_has_an_entry(server: Server) -> None:
    org, application = await organization(server)
    device = await server.device(application, "pump")
    await server.call("PATCH", device, {"description": "new"})
    await server.call("PATCH", device, {"description": 5}, status=400)
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
    await server.call("GET", device)
    await server.call("DELETE", device)

    found = await entries(server, org)
    assert [(operation(each), each["responseStatus"]) for each in found] == [
        ("device.delete", 200),
        ("device.patch", 400),
        ("device.patch", 200),
        ("devices.post", 201),
        ("applications.post", 201),
    ]
    deleted, refused, patched, created, application_created = found
    me = await server.call("GET", "/me")
    ids = {"application": application.rpartition("/")[2], "device": device.rpartition("/")[2]}
    for each in found:
        assert (each["actorType"], each["actorId"], each["actorName"]) == ("User", me["id"], EMAIL)
        assert (each["primaryTargetType"], each["primaryTargetName"]) == ("Application", "house")
        assert each["primaryTargetId"] == ids["application"]
        assert each["ipAddress"] == "127.0.0.1"
        assert each["requestId"]
        assert each["orgId"] == org.rpartition("/")[2]
        assert await server.call("GET", f"{org}/audit-logs/{each['id']}") == each
    for each in (deleted, patched, created):
        assert (each["secondaryTargetType"], each["secondaryTargetId"]) == ("Device", ids["device"])
        assert each["secondaryTargetName"] == "pump"
    assert "secondaryTargetId" not in application_created
    assert patched["requestBody"] == {"description": "new"}
    assert "previous" not in patched  # the device had no description
    assert patched["requestPathParams"] == {f"{name}Id": id for name, id in ids.items()}
    assert patched["responseBody"]["description"] == "new"
    assert refused["responseBody"]["type"] == "Validation"


async def test_an_entry_has_the_values_before_the_change(server: Server) -> None:
    org, application = await organization(server)
    await server.call("PATCH", application, {"description": "first"})
    await server.call("PATCH", application, {"name": "barn", "description": "second"})
    changed = (await entries(server, org))[0]
    assert changed["previous"] == {"name": "house", "description": "first"}
    assert changed["requestBody"] == {"name": "barn", "description": "second"}


async def test_the_dashboards_of_an_organization_have_entries(server: Server) -> None:
    org, _ = await organization(server)
    made = await server.call("POST", "/dashboards", {"name": "d", "orgId": org.rpartition("/")[2]})
    path = f"/dashboards/{made['id']}"
    await server.call("PATCH", path, {"name": "new"})
    await server.call("POST", path, {"toEmail": ["a@example.com"]}, status=202)
    await server.call("DELETE", path)
    deleted, sent, patched, created, _ = await entries(server, org)
    assert [operation(each) for each in (deleted, sent, patched, created)] == [
        *("dashboard.delete", "dashboard.sendReport", "dashboard.patch", "dashboards.post")
    ]
    for each in (deleted, sent, patched, created):
        assert (each["primaryTargetType"], each["primaryTargetId"]) == ("Dashboard", made["id"])
    assert patched["previous"] == {"name": "d"}


async def test_what_belongs_to_a_user_has_no_entry(server: Server) -> None:
    org, _ = await organization(server)
    await server.device(await server.application("own"))
    await server.call("POST", "/dashboards", {"name": "d"})
    assert len(await entries(server, org)) == 1


async def test_no_secret_is_in_an_entry(server: Server) -> None:
    org, application = await organization(server)
    secrets = [PLANTED]
    key = await server.call("POST", f"{application}/keys", {"name": "k"})
    secrets.append(key["secret"])
    token = await server.call("POST", f"{application}/tokens", {"name": "t"})
    secrets.append(token["token"])
    dashboard = {"name": "d", "password": PLANTED}
    await server.call("POST", f"{application}/dashboards", dashboard)
    made = await server.call("POST", f"{application}/webhooks", {"name": "w", "basicAuthPassword": PLANTED})
    secrets.append(made["token"])
    await server.call("PATCH", f"{application}/webhooks/{made['id']}", {"basicAuthPassword": f"{PLANTED}!"})
    await server.call("POST", f"{application}/webhooks", {"basicAuthPassword": PLANTED}, status=400)
    found = await entries(server, org)
    assert len(found) == 7
    for secret in secrets:
        assert secret not in json.dumps(found)
    assert found[1]["requestBody"] == {"basicAuthPassword": audit.HIDDEN}


async def test_the_caller_is_the_api_token_that_was_used(server: Server) -> None:
    org, application = await organization(server)
    made = await server.call("POST", f"{application}/tokens", {"name": "program"})
    await server.call("PATCH", application, {"description": "x"}, token=made["token"])
    changed = (await entries(server, org))[0]
    assert (changed["actorType"], changed["actorName"], changed["actorId"]) == (
        "ApiToken",
        "program",
        made["id"],
    )


async def test_a_list_is_filtered_and_sorted(server: Server) -> None:
    org, application = await organization(server)
    server.move_clock(2)  # entries of two processes within a second are in no order
    first = await server.device(application, "first")
    server.move_clock(60)
    await server.call("PATCH", first, {"description": 1}, status=400)
    await server.call("PATCH", application, {"description": "x"})
    device_id = first.rpartition("/")[2]

    async def found(**query: Any) -> list[str]:
        return [operation(each) for each in await entries(server, org, sortDirection="asc", **query)]

    everything = ["applications.post", "devices.post", "device.patch", "application.patch"]
    assert await found() == everything
    assert await found(start=-30_000) == everything[2:]
    assert await found(end=-30_000) == everything[:2]
    assert await found(sortField="responseStatus") == [
        "application.patch",
        "applications.post",
        "devices.post",
        "device.patch",
    ]
    assert await found(auditLogFilter=json.dumps({"responseCode": [400, 409]})) == ["device.patch"]
    assert await found(**{"auditLogFilter[secondaryTarget][0][id]": device_id}) == everything[1:3]
    by_name = {"secondaryTarget": [{"type": "Device", "name": "first"}], "request": [{"action": "post"}]}
    assert await found(auditLogFilter=json.dumps(by_name)) == ["devices.post"]
    assert await found(auditLogFilter=json.dumps({"actor": [{"type": "Device"}]})) == []
    wrong = {"auditLogFilter": json.dumps({"actor": [{"type": "Robot"}]})}
    refusal = await server.call("GET", f"{org}/audit-logs", params=wrong, status=400)
    assert refusal["message"].startswith("auditLogFilter.actor[0].type: ")
    wrong = {"auditLogFilter": json.dumps({"secondaryTarget": [{"type": "Device"}, {"type": "Robot"}]})}
    for path in (f"{org}/audit-logs", "/me/audit-logs"):
        refusal = await server.call("GET", path, params=wrong, status=400)
        said = "auditLogFilter.secondaryTarget[1].type: is 'Robot'; give one of AlarmGroup, AlarmRule, ApiToken, "
        assert refusal["message"].startswith(said)


async def test_a_log_is_bounded_by_its_length_and_its_age(start_server: StartServer) -> None:
    bounds = {"audit_entries_max": 5, "audit_entry_keep_s": 3600, "audit_body_bytes_max": 100}
    async with start_server(limits=bounds) as server:
        org, application = await organization(server)
        for number in range(12):
            await server.call("PATCH", application, {"description": f"{number}"})
        kept = await entries(server, org)
        assert [each["requestBody"]["description"] for each in kept] == ["11", "10", "9", "8", "7"]
        await server.call("PATCH", application, {"description": "x" * 200})
        sent = (await entries(server, org))[0]["requestBody"]
        assert sent == {"description": {"omitted": "202 bytes"}}
        server.move_clock(3601)
        token = await server.log_in()
        async with server.client(token) as client:
            assert (await client.get(f"{org}/audit-logs")).json()["items"] == []
            await client.patch(application, json={"description": "new"})
            listed = (await client.get(f"{org}/audit-logs")).json()
        assert [each["requestBody"]["description"] for each in listed["items"]] == ["new"]


async def test_only_the_long_fields_are_left_out(server: Server) -> None:
    """A workflow may have megabytes of nodes; what else a call changed is in its entry."""
    org, application = await organization(server)

    def nodes(length: int) -> list[dict[str, Any]]:
        return [{"id": "n", "type": "DebugNode", "config": {}, "meta": {"x": "y" * length}}]

    created = await server.call(
        "POST", f"{application}/flows", {"name": "before", "nodes": nodes(10_000)}, status=201
    )
    flow = f"{application}/flows/{created['flowId']}"
    await server.call("PATCH", flow, {"name": "after", "nodes": nodes(20_000)})
    entry = (await entries(server, org))[0]
    assert entry["requestBody"]["name"] == "after"
    assert entry["previous"]["name"] == "before"
    assert entry["responseBody"]["name"] == "after"
    for body, length in (("requestBody", 20_000), ("previous", 10_000), ("responseBody", 20_000)):
        ((name, left_out),) = entry[body]["nodes"].items()
        assert name == "omitted"
        assert length < int(left_out.removesuffix(" bytes")) < length + 100


async def test_of_a_body_with_too_many_fields_the_length_is_kept(server: Server) -> None:
    org, application = await organization(server)
    body = {f"field{number}": "x" * 40 for number in range(1000)}
    await server.call("PATCH", application, body, status=400)
    ((name, length),) = (await entries(server, org))[0]["requestBody"].items()
    assert name == "omitted"
    assert int(length.removesuffix(" bytes")) > 50_000


def test_every_change_is_audited_but_for_those_that_are_listed() -> None:
    operations = {route.operation: route for route in TABLE.routes}
    assert set(operations) >= NOT_AUDITED | ALSO_AUDITED
    for route in operations.values():
        changes = route.access == "write" and route.area != "user"
        expected = (changes and route.operation not in NOT_AUDITED) or route.operation in ALSO_AUDITED
        assert route.audited == expected, route.operation


def test_what_is_shown_once_is_a_secret_by_its_name() -> None:
    shown_once, no_secrets = {"secret", "token"}, {"authors", "filtersTopics", "reportsBy"}
    for resource in RESOURCES.values():
        for name in shown_once | resource.hidden - no_secrets:
            assert audit.SECRET.search(name), (resource.name, name)


async def test_applications_of_a_person_have_an_audit_log_that_the_owner_reads(server: Server) -> None:
    application = await server.application("barn")
    id = application.rpartition("/")[2]
    token = (await server.call("POST", f"{application}/tokens", {"name": "robot"}))["token"]
    device = await server.call("POST", f"{application}/devices", {"name": "pump"}, token=token)
    await server.call("POST", f"{application}/devices", {"name": ""}, token=token, status=400)
    await server.call("DELETE", application)
    listed = await server.call("GET", "/me/audit-logs", params={"sortDirection": "asc"})
    found = [
        (each["requestResource"], each["requestAction"], each["responseStatus"], each["actorType"])
        for each in listed["items"]
    ]
    assert found == [
        ("applications", "post", 201, "User"),
        ("applicationApiTokens", "post", 201, "User"),
        ("devices", "post", 201, "ApiToken"),
        ("devices", "post", 400, "ApiToken"),
        ("application", "delete", 200, "User"),
    ]
    entry = listed["items"][2]
    assert (entry["primaryTargetType"], entry["primaryTargetId"]) == ("Application", id)
    assert entry["responseBody"]["id"] == device["id"]
    assert entry["userId"] == (await server.call("GET", "/me"))["id"]
    assert token not in json.dumps(listed)
    assert await server.call("GET", f"/me/audit-logs/{entry['id']}") == entry
    wanted = json.dumps({"primaryTarget": [{"id": id}], "actor": [{"name": "robot"}]})
    assert (await server.call("GET", "/me/audit-logs", params={"auditLogFilter": wanted}))["totalCount"] == 2
    await server_users.add_user(server.root, "eve@example.com", "Other-horse-9")
    eve = await server.log_in("eve@example.com", "Other-horse-9")
    assert (await server.call("GET", "/me/audit-logs", token=eve))["totalCount"] == 0
    await server.call("GET", f"/me/audit-logs/{entry['id']}", token=eve, status=404)
