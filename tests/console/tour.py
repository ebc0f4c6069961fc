"""Every page of the console on the demo: each route of `routes.js`, and each tab that a page shows.

A new route is found without being named here, unless its address has a new kind of id.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.console.demo_server import DemoServer, demo_server

IDS: Final = {
    "accessKey": "applicationKeyId",
    "app": "applicationId",
    "certificate": "applicationCertificateId",
    "credential": "credentialId",
    "dashboard": "dashboardId",
    "device": "deviceId",
    "event": "eventId",
    "flow": "flowId",
    "group": "alarmGroupId",
    "integration": "integrationId",
    "org": "orgId",
    "recipe": "deviceRecipeId",
    "rule": "alarmRuleId",
    "table": "dataTableId",
    "token": "applicationApiTokenId",
    "webhook": "webhookId",
}
"""The names of ids in addresses of the console, and the records of the demo."""

NAMES: Final = {
    "/dashboards": "own-dashboards",
    "/dashboards/:dashboard": "own-dashboard",
    "/shared/:dashboard": "shared",
}
"""Pages whose names would be those of others."""

MORE: Final = {
    "flow-edit": {"json": "?as=json", "part": "?node=command"},
    "dashboard": {"edit": "?edit=blocks"},
}
"""Further pages of a page, by its name: what is added to its name, and to its address."""

_ROUTES: Final = """import("/console/routes.js").then(
    ({ ROUTES }) => ROUTES.map(({ path }) => path))"""
_LINKS: Final = "[...document.querySelectorAll({css!r})].map((link) => link.getAttribute('href'))"


WINDOWS: Final = {"wide": (1280, 800), "narrow": (390, 844)}
SCHEMES: Final = ("light", "dark")


_OTHER_TABS: Final = "nav.tabs a:not([aria-current])"
"""The tab that is current without being named is the page that has been given already."""


class Stop(NamedTuple):
    """A page, by a name for files, and its place."""

    name: str
    place: str


@asynccontextmanager
async def demo_console(folder: Path, **options: Any) -> AsyncIterator[tuple[DemoServer, ConsolePage]]:
    """The demo on a server of this process, and its console with the owner logged in."""
    async with (
        demo_server(folder / "data") as demo,
        console_page(demo.server.url, folder, login=await login_of(demo.server), **options) as page,
    ):
        yield demo, page


async def tour(page: ConsolePage, demo: DemoServer) -> AsyncGenerator[Stop, None]:
    """Go to one page after the other; each is loaded when it is given. The last one is the log-in."""
    seen: set[str] = set()
    for path in await page.run(_ROUTES):
        own = {} if path.startswith("/applications/") else {"dashboardId": demo.ids["userDashboardId"]}
        ids = {**demo.ids, **own}
        await page.viewport(*WINDOWS["wide"])
        for stop in await _stops(page, path, ids):
            await page.viewport(*WINDOWS["wide"])
            await page.go(stop.place)
            await page.settled()
            if stop.place not in seen and await page.place() == stop.place:
                seen.add(stop.place)
                yield stop
                for name, query in MORE.get(stop.name, {}).items():
                    await page.viewport(*WINDOWS["wide"])
                    await page.go(stop.place + query)
                    await page.settled()
                    yield Stop(f"{stop.name}-{name}", stop.place + query)
    await page.viewport(*WINDOWS["wide"])
    await page.go("#/account")
    await page.at("button", "Log out").click()
    await page.at(css='input[type="password"]').shown()
    await page.settled()
    yield Stop("log-in", "#/")


async def _stops(page: ConsolePage, path: str, ids: Any) -> list[Stop]:
    """The pages of a route. What is not an id, a tab or a record of a tab, is found by the links to it."""
    known = "#" + re.sub(r":(\w+)", lambda found: ids[IDS[found[1]]] if found[1] in IDS else found[0], path)
    before, _, open_part = known.partition("/:")
    name = _name(re.split(r"/:tab\b", path)[0])
    if not open_part:
        return [Stop(name, known)]
    assert open_part in ("tab", "tab/:record"), f"name the record of :{open_part} in IDS"
    await page.go(before)
    await page.settled()
    css = "nav.tabs a" if "record" in open_part else _OTHER_TABS
    tabs = [Stop(f"{name}-{each.rpartition('/')[2]}", each) for each in await _links(page, css, before)]
    if open_part == "tab":
        return tabs
    stops = []
    for tab in tabs:
        await page.go(tab.place)
        await page.settled()
        stops += [Stop(f"{tab.name}-record", each) for each in (await _links(page, "td a", tab.place))[:1]]
    return stops


async def _links(page: ConsolePage, css: str, below: str) -> list[str]:
    """The places one level below another to which the page has links."""
    found = await page.run(_LINKS.format(css=css))
    return [each for each in found if re.fullmatch(re.escape(below) + r"/[^/?]+", each or "")]


def _name(path: str) -> str:
    """A name for files: `/applications/:app/devices/:device` is `device`."""
    if path in NAMES:
        return NAMES[path]
    parts = path.removeprefix("/applications/:app").strip("/").split("/")
    named = [part for part, after in zip(parts, [*parts[1:], ""], strict=True) if not after.startswith(":")]
    if not path.strip("/"):
        return "start"
    return re.sub(r"[A-Z]", r"-\g<0>", "-".join(part.strip(":") for part in named)).lower() or "overview"
