"""What crosses partitions: transfers, names, lists, audit logs, dashboards and revocations, in one server with two.

The first application is in the second partition, the next one in the root, and so on. Clients connect to the root.
Processes that die are in `test_partitions.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Server, running_server
from tests.patience import PATIENCE_S
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.system import System


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "data", partitions=2) as running:
        yield running


def place_of(server: Server, application: str) -> int:
    return server.system.component(Places).of_application(bytes.fromhex(application.rpartition("/")[2]))


def owner(server: Server, application: str) -> System:
    return server.systems[place_of(server, application)]


async def two(server: Server) -> tuple[str, str]:
    """An application in the root, and one in the other partition."""
    there, here = await server.application("there"), await server.application("here")
    assert (place_of(server, here), place_of(server, there)) == (0, 1)
    return here, there


async def owner_of(server: Server, application: str) -> str:
    return str((await server.call("GET", application))["ownerId"])


async def test_applications_are_listed_in_order_and_counted_once(server: Server) -> None:
    names = ["c", "a", "d", "b", "e"]
    made = [await server.application(name) for name in names]
    assert {place_of(server, each) for each in made} == {0, 1}
    shown = await server.call("GET", "/applications?sortField=name")
    assert [each["name"] for each in shown["items"]] == sorted(names)
    assert shown["totalCount"] == 5
    page = await server.call("GET", "/applications?sortField=name&sortDirection=desc&page=1&perPage=2")
    assert [each["name"] for each in page["items"]] == ["c", "b"]
    assert (await server.call("GET", "/me"))["summary"]["appCount"] == 5
    await server.call("DELETE", made[0])
    assert (await server.call("GET", "/applications"))["totalCount"] == 4


async def test_applications_of_both_partitions_are_transferred_together(server: Server) -> None:
    here, there = await two(server)
    org = (await server.organization()).rpartition("/")[2]
    ids = [each.rpartition("/")[2] for each in (here, there)]
    body = {"destinationId": org, "destinationType": "organization", "applicationIds": ids, "strict": True}
    await server.call("PATCH", "/me/transferResources", body)
    assert [await owner_of(server, each) for each in (here, there)] == [org, org]
    # An organization that owns applications, wherever they are, is not deleted.
    await server.call("DELETE", here)
    await server.call("DELETE", f"/orgs/{org}", status=400)
    await server.call("DELETE", there)
    await server.call("DELETE", f"/orgs/{org}")


async def test_a_refused_transfer_gives_nothing(server: Server) -> None:
    here, there = await two(server)
    me = (await server.call("GET", "/me"))["id"]
    org = (await server.organization()).rpartition("/")[2]
    ids = [each.rpartition("/")[2] for each in (there, here)]
    body = {"destinationId": org, "destinationType": "organization", "strict": True}
    unknown = {**body, "applicationIds": [*ids, "0" * 24]}
    refused = await server.call("PATCH", "/me/transferResources", unknown, status=400)
    assert "nothing was transferred" in refused["message"]
    assert [await owner_of(server, each) for each in (here, there)] == [me, me]
    nobody = {**body, "destinationId": "1" * 24, "applicationIds": ids}
    await server.call("PATCH", "/me/transferResources", nobody, status=400)
    assert [await owner_of(server, each) for each in (here, there)] == [me, me]


async def test_a_name_of_the_server_is_given_once(server: Server) -> None:
    here, there = await two(server)
    for first, second, slug in ((here, there, "barn"), (there, here, "stable")):
        await server.call("PATCH", first, {"endpointSlug": slug})
        refused = await server.call("PATCH", second, {"endpointSlug": slug}, status=400)
        assert "endpointSlug" in refused["message"]
    await server.call("PATCH", there, {"endpointSlug": "coop"})
    await server.call("PATCH", here, {"endpointSlug": "stable"})


async def test_only_one_of_many_that_claim_a_name_at_a_time_gets_it(server: Server) -> None:
    applications = [*await two(server), *await two(server)]
    answers: list[int] = []

    async def claim(application: str) -> None:
        async with server.client() as client:
            while True:
                answer = await client.patch(application, json={"endpointSlug": "wanted"})
                if answer.status_code != 503:
                    answers.append(answer.status_code)
                    return

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for each in applications:
                nursery.start_soon(claim, each)
    assert sorted(answers) == [200, 400, 400, 400]


async def test_the_audit_log_has_the_calls_of_all_partitions_in_order(server: Server) -> None:
    here, there = await two(server)
    for number, application in enumerate((here, there, here, there)):
        await server.call("PATCH", application, {"description": f"change {number}"})
    shown = await server.call("GET", "/me/audit-logs?sortField=creationDate&sortDirection=asc")
    changed = [each for each in shown["items"] if each["requestAction"] == "patch"]
    assert [each["requestBody"]["description"] for each in changed] == [f"change {n}" for n in range(4)]
    assert shown["totalCount"] == len(shown["items"])
    for each in shown["items"]:
        one = await server.call("GET", f"/me/audit-logs/{each['id']}")
        assert one["id"] == each["id"]


async def test_a_dashboard_of_a_user_shows_devices_of_both_partitions(server: Server) -> None:
    applications = await two(server)
    blocks = []
    for number, application in enumerate(applications):
        device = await server.device(application)
        await server.call("POST", f"{device}/state", {"data": {"temp": 20 + number}})
        segment = {"attribute": "temp", "deviceIds": [device.rpartition("/")[2]]}
        blocks.append(
            {
                "id": f"b{number}",
                "blockType": "gauge",
                "applicationId": application.rpartition("/")[2],
                "startX": number,
                "startY": 0,
                "width": 1,
                "height": 1,
                "config": {"segment": segment},
            }
        )
    made = await server.call("POST", "/dashboards", {"name": "both", "blocks": blocks})
    shown = await server.call("POST", f"/dashboards/{made['id']}/data", {})
    texts = [str(block) for block in shown["blocks"]]
    assert ["20" in texts[0], "21" in texts[1]] == [True, True], texts


async def test_a_token_that_the_root_revokes_ends_with_the_next_call_elsewhere(server: Server) -> None:
    _, there = await two(server)
    made = await server.call("POST", "/me/tokens", {"name": "mine", "scope": ["all.User"]})
    for _ in range(2):
        await server.call("GET", there, token=made["token"])
    await server.call("DELETE", f"/me/tokens/{made['id']}")
    await server.call("GET", there, token=made["token"], status=401)


async def test_a_new_application_may_be_used_at_once_and_a_deleted_one_is_gone(server: Server) -> None:
    for _ in range(4):
        application = await server.application()
        device = await server.device(application)
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        assert owner(server, application).mailboxes()
        await server.call("DELETE", application)
        await server.call("GET", device, status=404)
        await server.call("GET", application, status=404)
