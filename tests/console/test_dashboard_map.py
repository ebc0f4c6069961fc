"""Maps of dashboards: drawn on outlines of land, moved by mouse and keys, and tiles where there is a server of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.console.console_page import ConsolePage, console_page
from tests.e2e.conftest import EMAIL, PASSWORD, Server, running_server
from tests.e2e.test_dashboard_numbers import HOT
from tests.e2e.test_map_tiles import ATTRIBUTES
from tests.e2e.test_reports import block

pytestmark = pytest.mark.slow

DEVICES = 70
"""More than are drawn each by itself."""
DRAWN = """(() => {
    const canvas = document.querySelector("canvas"), { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    return colours.has(COLOUR);
})()"""
LAND, RED = 0xF7F5EF, 0xFF0000


async def fleet(server: Server) -> str:
    """The path of a dashboard with a map of many devices, of which one is too hot."""
    application = await server.application("fleet")
    for number in range(DEVICES):
        device = await server.device(application, f"van {number}", attributes=ATTRIBUTES)
        place = f"{48 + number % 7 / 3},{8 + number // 7 / 3}"
        state = {"data": {"place": place, "load": 90 if number == 0 else 10}}
        await server.call("POST", f"{device}/state", state)
    config = {"attribute": "place", "valueAttribute": "load", "unit": "%", "thresholds": HOT}
    made = await server.call(
        "POST",
        f"{application}/dashboards",
        {"name": "Fleet", "blocks": [{**block(0, "map", "Vans", config), "width": 8, "height": 5}]},
    )
    return f"{application}/dashboards/{made['id']}"


async def test_a_map_shows_land_and_devices_by_their_levels(server: Server, console: ConsolePage) -> None:
    await console.scheme("light")
    path = await fleet(server)
    await console.go(f"#{path}")
    vans = console.at("region", "Vans")
    await vans.at("image", "Vans: places of 70 devices: 0 no level, 69 OK, 0 Warm, 1 Hot").shown()
    await vans.says("Hot 1")
    await console.gives(DRAWN.replace("COLOUR", str(LAND)), True)
    await console.gives(DRAWN.replace("COLOUR", str(RED)), True)
    # Devices that lie together are one; the text under the pointer names the hot one first.
    places = console.at(css=".map-frame")
    for _ in range(6):
        await places.press("-")
    await vans.at(css="canvas").hover()
    await vans.says("70 devices van 0, Hot, 90 %")
    await places.press("0")
    await vans.at("button", "Zoom in").click()
    await places.press("ArrowLeft")
    # The first rows are there as a table, too.
    await vans.at(css="summary").click()
    await vans.says("van 0 48.00000 8.00000")
    await vans.at("link", "van 0").click()
    await console.comes_to(re.compile("/devices/"))


SEEN = """import("/console/views/dashboard/map/projection.js").then(({ fitted, projected, sizeOf }) => {
    const canvas = document.querySelector("canvas"), { clientWidth: width, clientHeight: height } = canvas;
    const view = fitted(WAY.map(projected), width, height), size = sizeOf(view);
    return PLACES.map(([longitude, latitude]) => {
        const [x, y] = projected([longitude, latitude]);
        const at = [(x - view.x) * size + width / 2, (y - view.y) * size + height / 2].map(Math.round);
        return [...canvas.getContext("2d").getImageData(...at, 1, 1).data.slice(0, 3)].join();
    });
})"""
"""The colours of places of a map that shows all of a way."""


async def test_lines_over_the_meridian_of_180_degrees_go_on_at_the_other_side(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application("fleet")
    ship = await server.device(application, "ship", attributes=ATTRIBUTES)
    way = [[178.5, 20], [-178.5, 20]]
    for longitude, latitude in way:
        state = {"data": {"place": f"{latitude},{longitude}"}}
        await server.call("POST", f"{ship}/state", state)
    config = {"attribute": "place", "deviceIds": [ship.rpartition("/")[2]], "duration": 3_600_000}
    shown = {**block(0, "map", "Ways", config), "width": 8, "height": 5}
    made = await server.call("POST", f"{application}/dashboards", {"name": "Fleet", "blocks": [shown]})
    await console.scheme("light")
    await console.go(f"#{application}/dashboards/{made['id']}")
    await console.at("image", "Ways: places of ship").shown()
    await console.gives(DRAWN.replace("COLOUR", str(LAND)), True)
    # The Atlantic, the sea between Norway and Greenland, that of Fiji; the east of Russia on both sides.
    sea, land = [[-40, 20], [0, 68], [-140, -16.5]], [[177, 66.5], [-176, 66.3]]
    script = SEEN.replace("WAY", str(way)).replace("PLACES", str([*sea, *land]))
    colours = await console.run(script)
    assert len(set(colours[:3])) == len(set(colours[3:])) == 1
    assert colours[0] != colours[-1]


async def test_tiles_are_asked_of_the_server_that_the_operator_names(chromium: None, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/{z}/{x}/{y}.png"  # nobody listens there
    async with (
        running_server(tmp_path / "data", map_tiles=url, map_attribution="Tiles of somebody") as server,
        console_page(server.url, tmp_path) as page,
    ):
        await page.log_in(EMAIL, PASSWORD)
        path = await fleet(server)
        async with page.expecting("127.0.0.1:9/"):
            await page.go(f"#{path}")
            await page.at("region", "Vans").says("Tiles of somebody")
            await page.settled()
