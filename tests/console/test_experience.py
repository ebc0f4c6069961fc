"""The experience of an application in the console: a first one, its pages, its users and its versions."""

from __future__ import annotations

import re
from datetime import datetime

import httpx
import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

AHEAD = """globalThis.Date = class extends Date {
    constructor(...given) { super(...(given.length ? given : [Date.now() + 600_000])); }
}"""
"""The clock of the browser is ten minutes ahead."""


async def test_a_first_experience_is_created_changed_and_served(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/experience")
    await console.sees("There are no endpoints yet")
    await console.at("button", "Create a first experience").click()
    await console.at("textbox", re.compile("^Slug")).fill("farm")
    await console.at("button", "Create").click()
    await console.sees("The password is shown now and never again")
    await console.at("button", "I have copied it").click()
    await console.at("cell", "/log-in").shown()

    await console.at("link", "Views").click()
    await console.at("combobox", "Type").choose("pages")
    views = (await server.call("GET", f"{application}/experience/views", params={"viewType": "page"}))[
        "items"
    ]
    page = next(each for each in views if "log" in each["name"].lower())
    await console.at("link", page["name"]).click()
    await console.at("textbox", re.compile("^Body")).fill("<p>Who are you?</p>")
    await console.at("button", "Save").click()
    await console.sees("The template is saved")
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        assert "<p>Who are you?</p>" in (await client.get("/x/farm/log-in")).text

    await console.go(f"#{application}/experience/versions")
    await console.at("button", "Create a version").click()
    await console.at("textbox", "Version").fill("v1")
    await console.at("button", "Create").click()
    await console.at("heading", "v1").shown()
    await console.go(f"#{application}/experience/views?version=v1")
    await console.at("link", page["name"]).click()
    await console.sees("Version v1")
    await console.at("button", "Delete").gone()
    view = f"{application}/experience/views/{page['id']}"
    await server.call("PATCH", view, {"body": "<p>Who is there?</p>"})
    await console.go(f"#{view}")
    await console.at("textbox", re.compile("^Body")).holds("<p>Who is there?</p>")


async def search(console: ConsolePage, field: str, text: str, found: str) -> None:
    """Search in a field of a form, and click what is found."""
    await console.at("searchbox", field).fill(text)
    await console.at("button", found).click()


async def test_endpoints_answer_as_the_form_says(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await server.call("PATCH", application, {"endpointSlug": "barn"})
    await server.call("POST", f"{application}/experience/groups", {"name": "farmers"})
    await console.go(f"#{application}/experience")
    await console.at("button", "Create an endpoint", nth=1).click()
    await console.at("combobox", "Method").choose("GET")
    await console.at("textbox", "Route").fill("/old")
    await console.at("combobox", "Reply without a workflow").choose("a redirection")
    await console.at("textbox", re.compile("^Address")).fill("/new")
    await console.at("button", "Create").click()
    await console.at("heading", "GET /old").shown()
    await console.sees("redirection to /new")
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        answer = await client.get("/x/barn/old")
        assert (answer.status_code, answer.headers["location"]) == (302, "/x/barn/new")
    await console.at("button", "Change").click()
    await console.at("combobox", "Access").choose("users of its groups")
    await search(console, "Search Groups to add", "farm", "Add farmers")
    await console.at("button", "Save").click()
    await console.at("link", "farmers").shown()
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        assert (await client.get("/x/barn/old")).status_code == 401
    await console.at("button", "Change").click()
    await console.at("combobox", "Reply without a workflow").choose("none")
    await console.at("button", "Save").click()
    await console.sees("that of a workflow")

    await console.go(f"#{application}/experience/users")
    await console.at("button", "Create a user", nth=1).click()
    await console.at("textbox", "Email").fill("ann@example.com")
    await console.at("textbox", "Password").fill("a long password")
    await search(console, "Search Groups to add", "farm", "Add farmers")
    await console.at("button", "Create").click()
    await console.at("heading", "ann@example.com").shown()
    await console.run(AHEAD)
    await console.at("button", "End all logins").click()
    await console.at("button", "End them").click()
    await console.sees("Logins ended")
    (user,) = (await server.call("GET", f"{application}/experience/users"))["items"]
    assert datetime.fromisoformat(user["tokenCutoff"]).timestamp() * 1000 <= server.system.clock.wall_ms()
    await console.go(f"#{application}/experience")
    await console.at("button", "Delete the experience").click()
    await console.at("checkbox", "Keep the users").click()
    await console.at("button", "Go on").click()
    await console.at("textbox", re.compile("^To confirm")).fill("house")
    await console.at("dialog").at("button", "Delete").click()
    await console.sees("There are no endpoints yet")
    (user,) = (await server.call("GET", f"{application}/experience/users"))["items"]
    assert user["email"] == "ann@example.com"


async def test_users_of_a_group_are_searched_for(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    for name in ("ann", "bob", "eve"):
        body = {"email": f"{name}@example.com", "password": "a long password"}
        await server.call("POST", f"{application}/experience/users", body)
    await console.go(f"#{application}/experience/groups")
    await console.at("button", "Create a group", nth=1).click()
    form = console.at("dialog")
    await form.at("textbox", "Name").fill("farmers")
    for name in ("ann", "eve"):
        await search(console, "Search Users to add", name, f"Add {name}@example.com")
        await form.at("button", "Add bob@example.com").gone()
    await form.at("button", "Remove ann@example.com").click()
    await form.at("button", "Create").click()
    await console.at("link", "eve@example.com").shown()
    await console.at("button", "Change").click()
    await form.at("button", "Remove eve@example.com").click()
    await form.at("button", "Save").click()
    await console.sees("Users none")


async def test_pages_layouts_and_groups_are_searched_for(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    base = f"{application}/experience"
    for type in ("layout", "page", "component"):
        for number in (1, 2):
            body = {"name": f"{type} {number}", "viewType": type, "body": "{{page}}"}
            await server.call("POST", f"{base}/views", body)
    await server.call("POST", f"{base}/groups", {"name": "all people"})
    await console.go(f"#{base}/views")
    await console.at("link", "page 1").click()
    form = console.at("dialog")
    await console.at("button", "Change").click()
    await console.at("searchbox", "Search Layout to choose").fill("1")
    await form.at("button", "Choose layout 1").click()
    await form.at("button", re.compile("^Choose ")).gone()  # neither pages nor components
    await search(console, "Search Layout to choose", "2", "Choose layout 2")
    await form.at("button", "Remove layout 1").gone()
    await form.at("button", "Save").click()
    await console.sees("Layout layout 2")
    await console.at("button", "Change").click()
    await form.at("button", "Remove layout 2").click()
    await form.at("button", "Save").click()
    await form.gone()
    pages = (await server.call("GET", f"{base}/views", params={"viewType": "page"}))["items"]
    assert [each.get("layoutId") for each in pages] == [None, None]
    for headers, shown in (("content-type=text/plain", "content-type: text/plain"), ("", "Type page Id")):
        await console.at("button", "Change").click()
        await form.at("textbox", "Headers").fill(headers)
        await form.at("button", "Save").click()
        await form.gone()
        await console.sees(shown)

    await console.go(f"#{base}")
    await console.at("button", "Create an endpoint", nth=1).click()
    await form.at("combobox", "Method").choose("GET")
    await form.at("textbox", "Route").fill("/hello")
    await form.at("combobox", "Reply without a workflow").choose("a page")
    async with console.expecting("status of 400"):
        await form.at("button", "Create").click()
        await form.at("alert").says("staticReply.value: is missing")
    await search(console, "Search Page to choose", "page", "Choose page 1")
    await form.at("button", "Create").click()
    await console.at("heading", "GET /hello").shown()
    await console.at("link", "page 1").shown()
    await console.at("button", "Change").click()
    await search(console, "Search Page to choose", "page", "Choose page 2")
    await form.at("button", "Save").click()
    await console.at("link", "page 2").shown()
    (endpoint,) = (await server.call("GET", f"{base}/endpoints"))["items"]
    shown = next(each["id"] for each in pages if each["name"] == "page 2")
    assert endpoint["staticReply"] == {"type": "page", "value": shown}
    await console.go(f"#{base}")
    await console.at("cell", "page page 2").shown()

    await console.go(f"#{base}/groups")
    await console.at("button", "Create a group").click()
    await form.at("textbox", "Name").fill("farmers")
    await search(console, "Search Group above it to choose", "people", "Choose all people")
    await search(console, "Search Endpoints to add", "hel", "Add GET /hello")
    await form.at("button", "Create").click()
    await console.at("heading", "farmers").shown()
    await console.at("link", "all people").shown()
    await console.at("link", "GET /hello").shown()
    await console.go(f"#{base}/groups")
    await console.at("cell", "all people", nth=1).shown()


async def test_sites_of_a_version_are_searched_for(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    base = f"{application}/experience"
    for name in ("farm", "barn"):
        await server.call("POST", f"{base}/slugs", {"slug": name})
        await server.call("POST", f"{base}/domains", {"domainName": f"{name}.example.com"})
    await console.go(f"#{base}/versions")
    await console.at("button", "Create a version").click()
    await console.at("textbox", "Version").fill("v1")
    await search(console, "Search Domains to add", "far", "Add farm.example.com")
    await search(console, "Search Slugs to add", "bar", "Add barn")
    await console.at("button", "Create").click()
    await console.at("heading", "v1").shown()
    await console.sees("Domains farm.example.com")
    versions = (await server.call("GET", f"{base}/versions"))["items"]
    (made,) = [each for each in versions if each["version"] == "v1"]
    assert [each["domainName"] for each in made["attachedDomains"]] == ["farm.example.com"]
    assert [each["slug"] for each in made["attachedSlugs"]] == ["barn"]
    await console.go(f"#{base}/domains")
    box = console.at("searchbox", "Search domains")
    assert await box.attribute("placeholder") == "Search by domain name"
    await box.fill("bar")
    await console.sees("1 domain")
