"""Dashboards show nothing of an application that who wrote them may not see."""

from __future__ import annotations

from tests.e2e.conftest import Json, Server
from tests.e2e.test_dashboards import PLACE
from tests.e2e.test_roles import make_farm


def events_of(application: str) -> Json:
    return {"id": "e", "blockType": "event-list", **PLACE, "applicationId": application.rpartition("/")[2]}


def parameter_of(application: str, device: str) -> Json:
    id = application.rpartition("/")[2]
    config = {"includeFullDevice": True}
    return {
        "name": "d",
        "type": "deviceId",
        "applicationId": id,
        "defaultValue": device,
        "validationConfig": config,
    }


async def problem(server: Server, path: str) -> str | None:
    """Why the first block of a public dashboard shows nothing to readers without a token."""
    found = await server.call("POST", f"{path}/data", token="", status=200)
    shown: str | None = found["blocks"][0].get("problem")
    return shown


async def test_a_member_makes_no_dashboard_of_an_application_that_is_closed_to_the_member(
    server: Server,
) -> None:
    farm = await make_farm(server)
    closed = [{"resourceId": farm.mill.rpartition("/")[2], "role": "none"}]
    token = await farm.join("eve", "edit", applicationRoles=closed)
    await server.call("GET", farm.mill, token=token, status=403)
    body = {"name": "leak", "orgId": farm.org_id, "public": True, "blocks": [events_of(farm.mill)]}
    await server.call("POST", "/dashboards", body, token=token, status=403)
    body["blocks"] = [events_of(farm.barn)]
    made = await server.call("POST", "/dashboards", body, token=token, status=201)
    path = f"/dashboards/{made['id']}"
    assert await problem(server, path) is None
    await server.call("PATCH", path, {"blocks": [events_of(farm.mill)]}, token=token, status=403)
    parameter = parameter_of(farm.mill, "0" * 24)
    await server.call("PATCH", path, {"contextConfiguration": [parameter]}, token=token, status=403)
    # The owner may show it, but eve cannot make it public.
    await server.call("PATCH", path, {"public": False, "blocks": [events_of(farm.mill)]})
    await server.call("PATCH", path, {"public": True}, token=token, status=403)
    await server.call("PATCH", path, {"description": "d"}, token=token, status=200)


async def test_a_public_dashboard_shows_what_its_writer_may_see_now(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("eve", "edit")
    body = {"name": "open", "orgId": farm.org_id, "public": True, "blocks": [events_of(farm.mill)]}
    path = f"/dashboards/{(await server.call('POST', '/dashboards', body, token=token, status=201))['id']}"
    assert await problem(server, path) is None
    closed = [{"resourceId": farm.mill.rpartition("/")[2], "role": "none"}]
    await farm.change("eve", role="edit", applicationRoles=closed)
    found = await problem(server, path) or ""
    assert "Who wrote the dashboard may not see the application" in found
    assert "eve" not in found
    await server.call("PATCH", path, {"public": True})
    assert await problem(server, path) is None


async def test_a_parameter_shows_no_device_of_an_application_that_is_closed_to_the_reader(
    server: Server,
) -> None:
    farm = await make_farm(server)
    device = (await server.device(farm.mill)).rpartition("/")[2]
    writer = await farm.join("wendy", "edit")
    body = {
        "name": "open",
        "orgId": farm.org_id,
        "public": True,
        "contextConfiguration": [parameter_of(farm.mill, device)],
        "blocks": [{**PLACE, "blockType": "section-header", "config": {"content": "{{ctx.d.name}}"}}],
    }
    path = f"/dashboards/{(await server.call('POST', '/dashboards', body, token=writer))['id']}"
    assert await problem(server, path) is None
    closed = [{"resourceId": farm.mill.rpartition("/")[2], "role": "none"}]
    eve = await farm.join("eve", "view", applicationRoles=closed)
    check = f"{path}/validateContext"
    await server.call("POST", check, {}, token=writer, status=200)
    await server.call("POST", check, {}, token="", status=200)
    await server.call("POST", check, {}, token=eve, status=400)
    await farm.change("wendy", role="edit", applicationRoles=closed)
    await server.call("POST", check, {}, token="", status=400)
    assert "may not be shown here; that needs device.get" in (await problem(server, path) or "")
