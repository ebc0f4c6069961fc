"""The experience as a whole: a first one at once, its deletion, what is linked with what, counts of requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.experience_browser import browser, token_of
from tests.e2e.experiences import NO_ID, Experience, Json, new_experience
from trunkline.actors.core.records import records
from trunkline.actors.maintenance.verify import verify
from trunkline.actors.people.accounts.passwords import verify_password
from trunkline.actors.presentation.experience.kind import USER
from trunkline.actors.presentation.experience.routes import RouteTree

NOUNS = ("endpoints", "views", "versions", "domains", "slugs", "groups", "users")
PASSWORD = "planted-secret-7"


@pytest.fixture
async def exp(server: Server) -> Experience:
    return await new_experience(server)


async def bootstrap(exp: Experience, **body: Any) -> Json:
    made: Json = await exp.server.call("PATCH", f"{exp.path}/bootstrap", body)
    return made


async def totals(exp: Experience) -> dict[str, int]:
    """The number of records of each kind, without the version develop, and without kinds of which there are none."""
    counts = {nouns: (await exp.get(nouns))["totalCount"] for nouns in NOUNS}
    counts["versions"] -= 1
    return {nouns: count for nouns, count in counts.items() if count}


FIRST = {"endpoints": 3, "views": 5, "groups": 1, "users": 1}


async def test_a_first_experience_is_whole(exp: Experience) -> None:
    made = await bootstrap(exp, slug="my-farm")
    assert made["resourceSuffix"] == ""
    assert await totals(exp) == {**FIRST, "slugs": 1}
    (user,) = (await exp.get("users"))["items"]
    (group,) = (await exp.get("groups"))["items"]
    endpoints = (await exp.get("endpoints"))["items"]
    views = {each["name"]: each for each in (await exp.get("views"))["items"]}
    assert user["email"] == made["email"]
    assert group["experienceUserIds"] == [user["id"]]
    application = bytes.fromhex(exp.application.split("/")[2])
    with exp.server.system.store.snapshot() as snapshot:
        (stored,) = records.all_of_kind(snapshot, USER, application)
    assert await verify_password(stored.doc["passwordHash"], made["password"])
    routes = RouteTree((bytes.fromhex(each["id"]), each["method"], each["route"]) for each in endpoints)
    home = routes.find("get", "/")
    assert home is not None
    first = next(each for each in endpoints if each["id"] == home.endpoint.hex())
    assert (
        first.items()
        >= {"access": "group", "experienceGroups": [{"id": group["id"], "name": "users"}]}.items()
    )
    assert first["staticReply"]["value"] == views["home"]["id"]
    assert first["unauthorizedReply"]["value"] == views["log-in"]["id"]
    assert views["home"]["layoutName"] == "main"
    assert (await exp.get("versions/develop"))["notFoundReply"]["value"] == views["not-found"]["id"]
    assert (await exp.get("slugs"))["items"][0]["version"] == "develop"


async def test_a_first_experience_is_served(exp: Experience) -> None:
    made = await bootstrap(exp, slug="my-farm")
    at = browser(exp, "my-farm.localhost")
    log_in = await at.get("/")
    assert (log_in.status_code, "<h1>Log in</h1>" in log_in.text) == (401, True)
    assert (await at.get("/log-in")).status_code == 200
    missing = await at.get("/none")
    assert (missing.status_code, "<h1>Not found</h1>" in missing.text) == (404, True)
    (user,) = (await exp.get("users"))["items"]
    assert user["email"] == made["email"]
    home = await at.get("/", Authorization=f"Bearer {token_of(exp, user['id'])}")
    assert "<title>home</title>" in home.text
    assert '<a href="/log-in">Log in</a>' in home.text
    assert "<h1>Home</h1>" in home.text


async def test_the_user_of_a_first_experience_logs_in_with_the_form(exp: Experience) -> None:
    made = await bootstrap(exp, slug="my-farm")
    at = browser(exp, "my-farm.localhost")
    form = {"email": made["email"], "password": made["password"]}
    wrong = await at.send("POST", "/log-in", data=form | {"password": "another one"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    assert '<p role="alert">The e-mail address or the password is wrong.</p>' in wrong.text
    assert "alert" not in (await at.get("/log-in")).text
    right = await at.send("POST", "/log-in", data=form)
    assert (right.status_code, right.headers["location"]) == (302, "/")
    cookie, _, attributes = right.headers["set-cookie"].partition(";")
    assert attributes == " Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"
    home = await at.get("/", Cookie=cookie)
    assert (home.status_code, "<h1>Home</h1>" in home.text) == (200, True)
    (user,) = (await exp.get("users"))["items"]
    assert user["lastLogin"]


async def test_a_second_one_gets_a_suffix_or_replaces_the_first(exp: Experience) -> None:
    first = await bootstrap(exp)
    second = await bootstrap(exp)
    assert (first["resourceSuffix"], second["resourceSuffix"]) == ("", "-2")
    assert second["email"] != first["email"]
    assert await totals(exp) == {nouns: 2 * count for nouns, count in FIRST.items()}
    served = [(each["method"], each["route"]) for each in (await exp.get("endpoints"))["items"]]
    forms = ("get", "/log-in"), ("post", "/log-in"), ("get", "/log-in-2"), ("post", "/log-in-2")
    assert sorted(served) == sorted([("get", "/"), ("get", "/home-2"), *forms])
    flows = f"{exp.application}/flows?flowClass=experience"
    before = {each["name"]: each for each in (await exp.server.call("GET", flows))["items"]}
    assert before.keys() == {"log-in", "log-in-2"}
    (home,) = (await exp.get("views?filterField=name&filter=home"))["items"]
    await exp.patch(f"views/{home['id']}", body="mine")
    again = await bootstrap(exp, replaceExisting=True)
    assert (again["resourceSuffix"], again["email"]) == ("", first["email"])
    assert again["password"] != first["password"]
    assert (await exp.get(f"views/{home['id']}"))["body"] == home["body"]
    assert await totals(exp) == {nouns: 2 * count for nouns, count in FIRST.items()}
    after = {each["name"]: each for each in (await exp.server.call("GET", flows))["items"]}
    assert {name: each["id"] for name, each in after.items()} == {
        name: each["id"] for name, each in before.items()
    }
    assert after["log-in"]["triggers"] != before["log-in"]["triggers"], "the endpoint is a new one"
    assert after["log-in-2"] == before["log-in-2"]
    bare = Experience(exp.server, await exp.server.application("bare"))
    assert await bootstrap(bare, createUsers=False, createGroups=False) == {"resourceSuffix": ""}
    assert await totals(bare) == {"endpoints": 3, "views": 5}
    assert (await bare.get("endpoints"))["items"][0]["access"] == "public"


async def test_a_first_experience_that_cannot_be_made_leaves_nothing(exp: Experience) -> None:
    other = await new_experience(exp.server)
    await other.make("slugs", slug="taken")
    assert (await exp.refused("PATCH", "bootstrap", {"slug": "taken"})).startswith("slug: taken is taken")
    assert await totals(exp) == {}
    assert (await exp.server.call("GET", f"{exp.application}/flows"))["totalCount"] == 0


async def whole(exp: Experience) -> None:
    """Records of every kind that refer to each other."""
    await bootstrap(exp, slug="my-farm")
    await exp.make("domains", domainName="www.farm.example")
    await exp.make("versions", version="v1")


KEPT: list[tuple[str, dict[str, int]]] = [
    ("", {"versions": 1}),
    ("removeVersions=true", {}),
    ("keepUsers=true", {"versions": 1, "users": 1}),
    (
        "keepGroups=true&keepSlugs=true&keepDomains=true",
        {"versions": 1, "groups": 1, "slugs": 1, "domains": 1},
    ),
    ("keepViews=true&keepEndpoints=true&removeVersions=true", {"views": 5, "endpoints": 3}),
]


@pytest.mark.parametrize(("query", "left"), KEPT)
async def test_an_experience_is_deleted_but_for_what_is_kept(
    start_server: Callable[..., Any], query: str, left: dict[str, int]
) -> None:
    async with start_server(limits={"experience_removed_records_max": 2}) as server:
        exp = await new_experience(server)
        await whole(exp)
        neighbour = await new_experience(server)
        await bootstrap(neighbour)
        assert await server.call("DELETE", f"{exp.path}?{query}") == {"success": True}
        assert await totals(exp) == left
        assert await totals(neighbour) == FIRST
        assert ("notFoundReply" in await exp.get("versions/develop")) == ("views" in left)
        for group in (await exp.get("groups"))["items"]:
            assert (group["experienceUserIds"], group["experienceEndpointIds"]) == ([], [])
        for each in (await exp.get("users"))["items"] + (await exp.get("endpoints"))["items"]:
            assert each["experienceGroups"] == []
        await server.stop()
        report = verify(Path(server.settings.data_dir))
        assert report.ok, report.problems


async def test_what_is_kept_cannot_need_what_goes(exp: Experience) -> None:
    await whole(exp)
    before = await totals(exp)
    assert (await exp.refused("DELETE", "?keepEndpoints=true")).startswith("keepViews: the endpoint ")
    (domain,) = (await exp.get("domains"))["items"]
    await exp.patch(f"domains/{domain['id']}", version="v1")
    said = await exp.refused("DELETE", "?removeVersions=true&keepDomains=true")
    assert said.startswith("removeVersions: the experience domain www.farm.example serves the version v1")
    assert await totals(exp) == before


# What is linked.


async def test_an_endpoint_and_its_page_know_of_each_other(exp: Experience) -> None:
    layout = await exp.make("views", name="main", viewType="layout", body='{{component "menu"}} {{page}}')
    page = await exp.make("views", name="home", viewType="page", layoutId=layout["id"])
    other = await exp.make("views", name="other", viewType="page", body="{{component 'menu' data}}")
    menu = await exp.make("views", name="menu", viewType="component", body='{{component "menus"}}')
    reply = {"type": "page", "value": page["id"]}
    endpoint = await exp.make("endpoints", route="/", method="get", unauthorizedReply=reply)
    await exp.make("endpoints", route="/b", method="get")
    trigger = {
        "type": "endpoint",
        "key": endpoint["id"],
        "config": {},
        "meta": {"category": "trigger", "name": "endpoint"},
    }
    node = {"type": "EndpointReplyNode", "config": {"experiencePageId": page["id"]}, "meta": {}}
    flows = f"{exp.application}/flows"
    flow = await exp.server.call(
        "POST",
        flows,
        {"name": "answers", "flowClass": "experience", "triggers": [trigger], "nodes": [{"id": "a", **node}]},
    )
    await exp.server.call("POST", flows, {"name": "unrelated", "flowClass": "experience"})

    async def linked(place: str) -> dict[str, list[str]]:
        found = await exp.get(f"{place}/linkedResources")
        assert all(each["count"] == each["totalCount"] == len(each["items"]) for each in found.values())
        return {name: [each["id"] for each in found[name]["items"]] for name in found if found[name]["items"]}

    pages = {"experienceViews": [page["id"], layout["id"]], "flows": [flow["id"]]}
    place = f"endpoints/{endpoint['id']}"
    assert {name: sorted(ids) for name, ids in (await linked(place)).items()} == {
        name: sorted(ids) for name, ids in pages.items()
    }
    assert await linked(f"views/{page['id']}") == {
        "experienceViews": [layout["id"]],
        "experienceEndpoints": [endpoint["id"]],
        "flows": [flow["id"]],
    }
    assert await linked(f"views/{layout['id']}") == {"experienceViews": [page["id"]]}
    assert await linked(f"views/{menu['id']}") == {"experienceViews": [layout["id"], other["id"]]}
    await exp.make("versions", version="v1")
    await exp.server.call("POST", f"{flows}/{flow['id']}/versions", {"version": "v1", "triggers": [trigger]})
    await exp.patch(place, unauthorizedReply=None)
    assert await linked(place) == {"flows": [flow["id"]]}
    then = await exp.get(f"{place}/linkedResources?version=v1")
    assert (then["experienceViews"]["count"], then["flows"]["count"], then["flowVersions"]["count"]) == (
        2,
        0,
        1,
    )
    assert (await exp.get(f"views/{page['id']}/linkedResources?version=v1"))["experienceEndpoints"][
        "count"
    ] == 1
    await exp.refused("GET", f"views/{NO_ID}/linkedResources", status=404)


async def test_workflows_go_with_an_endpoint_or_with_the_experience_only_if_that_is_asked(
    exp: Experience,
) -> None:
    flows = f"{exp.application}/flows"

    async def flow(name: str, endpoint: str, flow_class: str = "experience") -> None:
        meta = {"category": "trigger", "name": "endpoint"}
        trigger = {"type": "endpoint", "key": endpoint, "config": {}, "meta": meta}
        await exp.server.call("POST", flows, {"name": name, "flowClass": flow_class, "triggers": [trigger]})

    async def names() -> list[str]:
        found = [
            await exp.server.call("GET", f"{flows}?flowClass={each}") for each in ("experience", "cloud")
        ]
        return [flow["name"] for each in found for flow in each["items"]]

    first = (await exp.make("endpoints", route="/a", method="get"))["id"]
    second = (await exp.make("endpoints", route="/b", method="get"))["id"]
    for name, endpoint in (("a", first), ("b", second), ("c", "0" * 24)):
        await flow(name, endpoint)
    await flow("d", first, "cloud")
    await exp.delete(f"endpoints/{second}")
    assert await names() == ["a", "b", "c", "d"]
    await exp.delete(f"endpoints/{first}?includeWorkflows=true")
    assert await names() == ["b", "c"]
    await flow("e", first, "cloud")
    await exp.server.call("DELETE", exp.path)
    assert await names() == ["b", "c", "e"]
    await exp.server.call("DELETE", f"{exp.path}?removeWorkflows=true")
    assert await names() == ["e"]


# Counts of requests.


async def test_requests_are_counted_and_there_are_none(exp: Experience) -> None:
    assert await exp.get("endpoints/stats") == {}
    assert await exp.get("endpoints/stats?statGrouping=domain&duration=3600000&end=-1&resolution=60000") == {}
    for query, field in (
        ("statGrouping=user", "statGrouping"),
        ("resolution=0", "resolution"),
        ("duration=-1", "duration"),
        ("end=yesterday", "end"),
        ("statusCodeFilter=99", "statusCodeFilter"),
        ("endpointIdFilter=1", "endpointIdFilter"),
    ):
        assert (await exp.refused("GET", f"endpoints/stats?{query}")).startswith(field), query
