"""Transfers of applications and dashboards between a user and organizations, and the counts of organizations."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import Server
from tests.e2e.rows import UNKNOWN
from tests.e2e.test_roles import make_farm
from trunkline.actors.maintenance.verify import verify


async def owner_of(server: Server, application: str) -> tuple[str, str]:
    found = await server.call("GET", application)
    return found["ownerType"], found["ownerId"]


async def test_an_application_moves_with_all_that_it_holds(server: Server) -> None:
    farm = await make_farm(server)
    me = (await server.call("GET", "/me"))["id"]
    house, shed = await server.application("house"), await server.application("shed")
    ids = [path.rpartition("/")[2] for path in (house, shed)]
    device = await server.device(house)
    token, _ = await server.device_token(device)
    worker = await farm.join("worker", "view")
    await server.call("GET", house, token=worker, status=403)
    body = {"destinationId": farm.org_id, "destinationType": "organization", "applicationIds": ids}
    assert await server.call("PATCH", "/me/transferResources", body) == {"success": True}
    for path in (house, shed):
        assert await owner_of(server, path) == ("organization", farm.org_id)
    await server.call("GET", f"{device}/state", token=worker, status=200)
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}}, token=token, status=200)
    assert await farm.names(worker) == ["barn", "house", "mill", "shed"]
    assert await farm.names(server.token, "?orgId=") == []
    assert (await server.call("GET", "/me"))["summary"]["appCount"] == 0
    assert (await server.call("GET", farm.org))["summary"]["appCount"] == 4
    # And back, without one that the organization does not own.
    back = {"destinationId": me, "destinationType": "user", "applicationIds": [ids[0].upper(), UNKNOWN]}
    path = f"{farm.org}/transferResources"
    refusal = await server.call("PATCH", path, {**back, "strict": True}, status=400)
    assert refusal["message"].startswith(f"applicationIds: there is no application {UNKNOWN} of this owner")
    assert (await owner_of(server, house))[0] == "organization"
    await server.call("PATCH", path, back, status=200)
    assert await owner_of(server, house) == ("user", me)
    await server.call("GET", f"{device}/state", token=worker, status=403)
    assert await farm.names(worker) == ["barn", "mill", "shed"]
    await server.stop()
    assert verify(Path(server.settings.data_dir)).ok


async def test_a_dashboard_moves(server: Server) -> None:
    org = await server.organization()
    org_id, me = org.rpartition("/")[2], (await server.call("GET", "/me"))["id"]
    made = await server.call("POST", "/dashboards", {"name": "d", "refreshRate": 60})
    there = {"destinationId": org_id, "destinationType": "organization", "dashboardIds": [made["id"]]}
    await server.call("PATCH", "/me/transferResources", there, status=200)
    refusal = await server.call("DELETE", org, status=400)
    assert refusal["message"].startswith("The organization owns dashboards: 1.")
    back = {"destinationId": me, "destinationType": "user", "dashboardIds": [made["id"]], "strict": True}
    await server.call("PATCH", f"{org}/transferResources", back, status=200)
    moved = await server.call("GET", f"/dashboards/{made['id']}")
    assert moved | {"lastUpdated": 0, "_etag": 0} == made | {"lastUpdated": 0, "_etag": 0}
    await server.call("DELETE", org, status=200)


async def test_a_transfer_that_is_not_allowed_changes_nothing(server: Server) -> None:
    farm = await make_farm(server)
    house, second = await server.application("house"), await server.organization("second")
    house_id, second_id = (path.rpartition("/")[2] for path in (house, second))
    barn = farm.barn.rpartition("/")[2]
    worker = await farm.join("worker", "collaborate")
    editor = await farm.join("editor", "edit")

    async def refused(path: str, status: int, token: str | None = None, **body: object) -> None:
        await server.call("PATCH", f"{path}/transferResources", body, token=token, status=status)

    to_org = {"destinationId": farm.org_id, "destinationType": "organization"}
    to_second = {"destinationId": second_id, "destinationType": "organization"}
    await refused("/me", 400, **to_org)
    await refused(
        "/me", 400, destinationId=UNKNOWN, destinationType="organization", applicationIds=[house_id]
    )
    await refused("/me", 400, **to_org, applicationIds=[barn], strict=True)
    await refused(farm.org, 400, **to_org, applicationIds=[barn])
    # Giving needs an administrator, taking a role that creates applications.
    await refused(farm.org, 403, editor, **to_second, applicationIds=[barn])
    await server.call("POST", "/applications", {"name": "own"}, token=worker)
    await refused("/me", 400, worker, **to_org, applicationIds=[house_id])
    await refused("/me", 400, editor, **to_second, applicationIds=[house_id])
    assert (await owner_of(server, house))[0] == "user"
    assert await owner_of(server, farm.barn) == ("organization", farm.org_id)


async def test_an_organization_counts_what_its_applications_count(server: Server) -> None:
    farm = await make_farm(server)
    house = await server.application("house")
    for application in (farm.barn, farm.mill, house):
        device = await server.device(application)
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
    devices = await server.call("GET", f"{farm.org}/deviceCounts")
    assert (devices["counts"][-1]["created"], devices["counts"][-1]["total"]) == (2, 2)
    payloads = await server.call("GET", f"{farm.org}/payloadCounts")
    assert (payloads["deviceState"], payloads["webhook"]) == ({"total": 2}, {})
    breakdown = await server.call("GET", f"{farm.org}/payloadCountsBreakdown?resolution=3600000")
    assert sum(hour["value"] for hour in breakdown["counts"]) == 2
    minutes = await server.call("GET", f"{farm.org}/notebookMinuteCounts")
    assert {day["minutes"] for day in minutes["counts"]} == {0}
    narrow = await farm.join(
        "narrow", "view", applicationRoles=[{"resourceId": farm.mill.rpartition("/")[2], "role": "none"}]
    )
    payloads = await server.call("GET", f"{farm.org}/payloadCounts", token=narrow)
    assert payloads["deviceState"] == {"total": 1}
