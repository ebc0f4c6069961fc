"""The account of the current user: recent items, the change of the password, and the end of the account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.conftest import EMAIL, PASSWORD, Server
from trunkline.actors import server_users
from trunkline.actors.maintenance.sweep import sweep
from trunkline.store import keys
from trunkline.store.flusher import Flusher

StartServer = Callable[..., Any]

OTHER = "other@example.com"
NEW_PASSWORD = "Better-horse-8"


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


async def opened(server: Server, type: str, item: str, parent: str | None = None, **kw: Any) -> Any:
    """Add a recent item."""
    body = {"itemType": type, "itemId": item} | ({} if parent is None else {"parentId": parent})
    return await server.call("POST", "/me/recentItems", body, **kw)


async def recent(server: Server, type: str, parent: str | None = None) -> list[str]:
    """The names of the recent items of a type."""
    query = f"?itemType={type}" + ("" if parent is None else f"&parentId={parent}")
    listed = await server.call("GET", f"/me/recentItems{query}")
    assert (listed["itemType"], listed.get("parentId")) == (type, parent)
    return [item["name"] for item in listed["items"]]


# Recent items.


async def test_recent_items_are_the_newest_first_and_end_with_what_they_name(server: Server) -> None:
    house, shed = await server.application("house"), await server.application("shed")
    pump, lamp = await server.device(house, "pump"), await server.device(house, "lamp")
    mower = await server.device(shed, "mower")
    board = await server.call("POST", f"{house}/dashboards", {"name": "board"})
    for device, application in ((pump, house), (mower, shed), (lamp, house), (pump, house)):
        answer = await opened(server, "device", id_of(device), id_of(application))
    assert [item["name"] for item in answer["items"]] == ["pump", "lamp"]
    assert await recent(server, "device") == ["pump", "lamp", "mower"]
    assert await recent(server, "device", id_of(shed)) == ["mower"]
    await opened(server, "application", id_of(shed))
    await opened(server, "application", id_of(house).upper())
    await opened(server, "dashboard", board["id"], id_of(house))
    await opened(server, "dashboard", (await server.call("POST", "/dashboards", {"name": "mine"}))["id"])
    flow = await server.call("POST", f"{house}/flows", {"name": "alarm", "flowClass": "cloud"})
    await opened(server, "flow", flow["id"], id_of(house))
    farm = await server.organization("farm")
    await opened(server, "organization", id_of(farm))
    assert await recent(server, "flow") == ["alarm"]
    owner = (await server.call("GET", "/me"))["id"]
    assert (
        await recent(server, "application") == await recent(server, "application", owner) == ["house", "shed"]
    )
    assert await recent(server, "application", id_of(house)) == []
    me = await server.call("GET", "/me?includeRecent=true")
    assert [item["name"] for item in me["recentApplications"]["items"]] == ["house", "shed"]
    assert [item["name"] for item in me["recentDashboards"]["items"]] == ["mine", "board"]
    assert [item["name"] for item in me["recentOrganizations"]["items"]] == ["farm"]
    assert "recentApplications" not in await server.call("GET", "/me")

    await server.call("PATCH", pump, {"name": "well"})
    await server.call("DELETE", lamp)
    await server.call("DELETE", shed)
    assert await recent(server, "device") == ["well"]
    assert await recent(server, "application") == ["house"]


async def test_recent_items_are_bounded_and_outlive_a_restart(start_server: StartServer) -> None:
    limits = {"recent_list_items_max": 3, "recent_items_max": 4}
    async with start_server(limits=limits) as server:
        house = await server.application("house")
        await opened(server, "application", id_of(house))
        for name in "abcd":
            await opened(server, "device", id_of(await server.device(house, name)), id_of(house))
        assert await recent(server, "device") == ["d", "c", "b"]
        assert await recent(server, "application") == ["house"]
        other = await server.application("other")
        await opened(server, "device", id_of(await server.device(other, "e")), id_of(other))
    async with start_server(limits=limits) as server:
        assert await recent(server, "device") == ["e", "d", "c"]
        assert await recent(server, "application") == [], "the oldest of all"


async def test_an_item_that_the_user_does_not_reach_is_refused(server: Server) -> None:
    house = await server.application()
    pump = await server.device(house)
    await server_users.add_user(server.root, OTHER, PASSWORD)
    stranger = await server.log_in(OTHER)
    unknown = "0" * 24
    cases: list[tuple[dict[str, str], str]] = [
        ({"itemType": "device", "itemId": id_of(pump)}, "parentId: is missing"),
        ({"itemType": "device", "itemId": unknown, "parentId": id_of(house)}, "itemId: there is no device"),
        ({"itemType": "device", "itemId": id_of(pump), "parentId": unknown}, "itemId: there is no device"),
        ({"itemType": "dashboard", "itemId": unknown}, "itemId: there is no dashboard"),
        ({"itemType": "application", "itemId": unknown}, "itemId: there is no application"),
        ({"itemType": "application", "itemId": id_of(house), "parentId": unknown}, "itemId: there is no"),
        ({"itemType": "organization", "itemId": unknown}, "itemId: there is no organization"),
        ({"itemType": "table", "itemId": unknown}, "itemType: "),
    ]
    for body, sentence in cases:
        answer = await server.call("POST", "/me/recentItems", body, status=400)
        assert answer["message"].startswith(sentence), (body, answer)
    await opened(server, "device", id_of(pump), id_of(house), token=stranger, status=400)
    await opened(server, "application", id_of(house), token=stranger, status=400)
    assert await recent(server, "device") == await recent(server, "application") == []


# The password.


async def test_a_new_password_keeps_or_ends_earlier_tokens_as_asked(server: Server) -> None:
    first = server.token
    api_token = (await server.call("POST", "/me/tokens", {"name": "t"}))["token"]
    narrow = await server.log_in(requestedScopes=["me.get", "me.changePassword"])
    answer = await server.call(
        "PATCH",
        "/me/changePassword",
        {"password": PASSWORD, "newPassword": NEW_PASSWORD, "tokenTTL": 60},
        token=narrow,
    )
    await server.call("POST", "/auth/user", {"email": EMAIL, "password": PASSWORD}, token="", status=401)
    for token in (first, api_token, narrow, answer["token"]):
        await server.call("GET", "/me", token=token, status=200)
    await server.call("GET", "/applications", token=answer["token"], status=403)
    server.move_clock(61)
    await server.call("GET", "/me", token=answer["token"], status=401)

    change = {"password": NEW_PASSWORD, "newPassword": PASSWORD, "invalidateExistingTokens": True}
    answer = await server.call("PATCH", "/me/changePassword", change)
    for token in (first, api_token, narrow):
        await server.call("GET", "/me", token=token, status=401)
    server.token = answer["token"]
    assert (await server.call("GET", "/me"))["id"] == answer["userId"]


async def test_a_password_changes_only_with_the_current_one(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": {"calls": 2, "window_s": 60}}) as server:
        change = {"password": PASSWORD, "newPassword": NEW_PASSWORD}
        answer = await server.call(
            "PATCH", "/me/changePassword", change | {"newPassword": "short"}, status=400
        )
        assert answer["message"].startswith("newPassword: ")
        for _ in range(2):
            wrong = change | {"password": "Wrong-horse-88"}
            await server.call("PATCH", "/me/changePassword", wrong, status=401)
        await server.call("PATCH", "/me/changePassword", change, status=429)
        server.move_clock(61)
        assert await server.log_in()


# Transfers.


async def moved(server: Server, **body: Any) -> Any:
    return await server.call("PATCH", "/me/transferResources", body, status=200)


async def test_resources_go_to_another_owner(server: Server) -> None:
    other = await server_users.add_user(server.root, OTHER, PASSWORD)
    farm = await server.organization("farm")
    house, shed = await server.application("house"), await server.application("shed")
    device = await server.device(house)
    token = (await server.call("POST", f"{house}/tokens", {"name": "t"}))["token"]
    board = (await server.call("POST", "/dashboards", {"name": "board"}))["id"]
    me = (await server.call("GET", "/me"))["id"]
    stranger = await server.log_in(OTHER)
    await server.call("GET", device, token=stranger, status=403)
    await opened(server, "application", id_of(house))

    await moved(
        server,
        destinationId=other,
        destinationType="user",
        applicationIds=[id_of(house)] * 2,
        dashboardIds=[board],
    )
    for path in (device, f"/dashboards/{board}"):
        await server.call("GET", path, status=403)
        await server.call("GET", path, token=stranger, status=200)
    await server.call("GET", device, token=token, status=200)
    found = await server.call("GET", house, token=stranger)
    assert (found["ownerId"], found["ownerType"]) == (other, "user")
    assert [each["name"] for each in (await server.call("GET", "/applications"))["items"]] == ["shed"]
    theirs = await server.call("GET", "/applications", token=stranger)
    assert ([each["name"] for each in theirs["items"]], theirs["totalCount"]) == (["house"], 1)
    assert (await server.call("GET", "/me"))["summary"]["appCount"] == 1
    assert await recent(server, "application") == []

    await moved(
        server, destinationId=id_of(farm), destinationType="organization", applicationIds=[id_of(shed)]
    )
    found = await server.call("GET", shed)
    assert (found["ownerId"], found["ownerType"]) == (id_of(farm), "organization")
    assert me not in (found["ownerId"], other)


async def test_a_transfer_that_does_not_fit_changes_nothing(server: Server) -> None:
    other = await server_users.add_user(server.root, OTHER, PASSWORD)
    stranger = await server.log_in(OTHER)
    theirs = (await server.call("POST", "/applications", {"name": "theirs"}, token=stranger))["id"]
    farm = (await server.call("POST", "/orgs", {"name": "farm"}, token=stranger))["id"]
    mine = id_of(await server.application("mine"))
    board = (await server.call("POST", "/dashboards", {"name": "board"}))["id"]
    me, unknown = (await server.call("GET", "/me"))["id"], "0" * 24
    to_other = {"destinationId": other, "destinationType": "user"}
    cases: list[tuple[dict[str, Any], str]] = [
        (to_other, "applicationIds: and dashboardIds name nothing"),
        (
            to_other | {"applicationIds": [theirs], "dashboardIds": [unknown]},
            "applicationIds: and dashboardIds",
        ),
        (
            to_other | {"applicationIds": [mine, theirs], "strict": True},
            "applicationIds: there is no application",
        ),
        (
            to_other | {"applicationIds": [mine], "dashboardIds": [board, unknown], "strict": True},
            "dashboardIds: there is no dashboard",
        ),
        (to_other | {"applicationIds": [mine], "destinationId": me}, "destinationId: is the owner already"),
        (to_other | {"applicationIds": [mine], "destinationId": unknown}, "destinationId: there is no user"),
        (
            {"destinationId": farm, "destinationType": "organization", "applicationIds": [mine]},
            "destinationId: there is no organization",
        ),
        (to_other | {"applicationIds": [unknown] * 1001}, "applicationIds: "),
    ]
    for body, sentence in cases:
        answer = await server.call("PATCH", "/me/transferResources", body, status=400)
        assert answer["message"].startswith(sentence), answer
    assert (await server.call("GET", f"/applications/{mine}"))["ownerId"] == me
    await server.call("GET", f"/dashboards/{board}", status=200)
    await moved(server, **to_other, applicationIds=[mine, theirs], dashboardIds=[unknown])
    await server.call("GET", f"/applications/{mine}", token=stranger, status=200)


# The end of an account.


async def test_nothing_is_left_of_a_deleted_user(server: Server) -> None:
    user = await server_users.add_user(server.root, OTHER, PASSWORD)
    owner, server.token = server.token, await server.log_in(OTHER)
    application = await server.application()
    device = await server.device(application)
    device_token, _ = await server.device_token(device)
    api_token = (await server.call("POST", "/me/tokens", {"name": "t"}))["token"]
    await opened(server, "application", id_of(application))
    await server.call("POST", "/dashboards", {"name": "board"})
    await server.call("PATCH", "/me/generateTwoFactorAuth")
    assert await traces(server, user, id_of(application), OTHER)

    login = {"email": OTHER, "password": PASSWORD}
    await server.call("POST", "/me/delete", login | {"password": "Wrong-horse-88"}, status=401)
    answer = await server.call("POST", "/me/delete", login | {"email": EMAIL}, status=401)
    assert answer["message"].startswith("email: ")
    await server.call("GET", device, status=200)

    assert await server.call("POST", "/me/delete", login | {"email": OTHER.upper()}) == {"success": True}
    for token in (server.token, api_token, device_token):
        await server.call("GET", device, token=token, status=401)
    await server.call("POST", "/auth/user", login, token="", status=401)
    await server.call("GET", application, token=owner, status=404)
    while await sweep(server.system):
        pass
    assert await traces(server, user, id_of(application), id_of(device), OTHER) == []
    assert [line.email for line in server_users.users(server.root)] == [EMAIL]
    # The address is free again.
    await server_users.add_user(server.root, OTHER, PASSWORD)


async def test_the_only_administrator_of_an_organization_stays(server: Server) -> None:
    await server_users.add_user(server.root, OTHER, PASSWORD)
    application, farm = await server.application(), await server.organization("farm")
    login = {"email": EMAIL, "password": PASSWORD}
    answer = await server.call("POST", "/me/delete", login, status=400)
    assert "is the only administrator" in answer["message"]
    await server.call("GET", application, status=200)
    await server.call("DELETE", farm)
    await server.call("POST", "/me/delete", login, status=200)
    await server.call("GET", application, status=401)


async def test_the_only_user_stays(server: Server) -> None:
    application = await server.application()
    answer = await server.call("POST", "/me/delete", {"email": EMAIL, "password": PASSWORD}, status=400)
    assert "is the only user" in answer["message"]
    await server.call("GET", application, status=200)


async def traces(server: Server, *texts: str) -> list[tuple[str, bytes]]:
    """The keys of entries of the store that contain an id (as bytes or text) or another text."""
    wanted = [each for text in texts for each in forms(text)]
    for _ in range(2):  # the first removes what devices had reported, the next what streams may resume from
        await server.system.component(Flusher).flush_all()
    with server.system.store.snapshot() as snapshot:
        return [
            (db, bytes(key))
            for db in keys.DATABASES
            for key, value in snapshot.range(db, b"", None)
            if any(each in bytes(key) or each in bytes(value) for each in wanted)
        ]


def forms(text: str) -> list[bytes]:
    return [text.encode(), *([bytes.fromhex(text)] if len(text) == 24 else [])]
