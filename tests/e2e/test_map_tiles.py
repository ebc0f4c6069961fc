"""Maps of dashboards: places of devices in columns, outlines of land in the package, and tiles of one server."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.console.land import BYTES_MAX, FILE, SHA256
from tests.e2e.conftest import Json, Server, running_server
from tests.e2e.test_dashboard_data import made, parts, problems
from tests.e2e.test_dashboard_numbers import HOT
from tests.e2e.test_reports import block

ATTRIBUTES = [{"name": "place", "dataType": "gps"}, {"name": "load", "dataType": "number"}]


async def vans(server: Server) -> str:
    """An application with three vans: two have told where they are, one of them its load too; its path."""
    application = await server.application("vans")
    states: tuple[Json | None, ...] = ({"place": "48.5,9.25", "load": 90}, {"place": "-33.1,151"}, None)
    for name, state in zip("abc", states, strict=True):
        device = await server.device(application, name, attributes=ATTRIBUTES)
        if state is not None:
            await server.call("POST", f"{device}/state", {"data": state})
    return application


async def test_a_map_has_the_newest_places_with_their_levels(server: Server) -> None:
    application = await vans(server)
    by_load = {"attribute": "place", "valueAttribute": "load", "unit": "%", "thresholds": HOT}
    blocks = [block(0, "map", "Health", {"attribute": "place"}), block(2, "map", "Load", by_load)]
    path = await made(server, application, blocks)
    found = await parts(server, path)
    health, table = found["Health"]
    assert (health["kind"], health["names"]) == ("places", ["a", "b"])
    # Longitude first, as x is before y.
    assert health["points"] == [[9.25, 48.5], [151, -33.1]]
    assert [health["categories"][level]["label"] for level in health["levels"]] == ["reporting", "reporting"]
    assert health["values"] == []
    assert len(health["ids"]) == len(health["times"]) == 2
    assert [row[:3] for row in table["rows"]] == [
        ["a", "48.50000", "9.25000"],
        ["b", "-33.10000", "151.00000"],
    ]
    load = found["Load"][0]
    assert [load["categories"][level]["label"] for level in load["levels"]] == ["Hot", "no level"]
    assert load["values"] == [90, None]
    # Readers without a token learn no ids.
    await server.call("PATCH", path, {"public": True})
    shown = await server.call("POST", f"{path}/data", token="", status=200)
    assert "ids" not in shown["blocks"][0]["parts"][0]


async def test_a_map_of_too_many_devices_says_so(tmp_path: Path) -> None:
    async with running_server(tmp_path / "other", limits={"dashboard_places_max": 2}) as server:
        application = await vans(server)
        path = await made(server, application, [block(0, "map", "All", {"attribute": "place"})])
        assert "More than 2 devices" in (await problems(server, path))["All"]


def test_the_outlines_are_those_of_the_package_and_small() -> None:
    content = FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert len(content) < BYTES_MAX
    assert "public domain" in json.loads(content)["source"]
    assert "Permission to use" in (FILE.parent / "world-atlas.LICENSE.txt").read_text()


async def test_only_the_server_of_tiles_is_allowed_by_the_policy(server: Server, tmp_path: Path) -> None:
    async with server.client() as client:
        policy = (await client.get("/console")).headers["content-security-policy"]
        assert "img-src 'self' data: blob:; " in policy
        assert (await client.get("/console/map/tiles.json")).json() == {"url": None, "attribution": None}
    url = "https://tiles.example.com:8443/a/{z}/{x}/{y}.png"
    async with (
        running_server(tmp_path / "other", map_tiles=url, map_attribution="Somebody") as other,
        other.client() as client,
    ):
        policy = (await client.get("/console")).headers["content-security-policy"]
        assert "img-src 'self' data: blob: https://tiles.example.com:8443; " in policy
        assert "connect-src 'self'; " in policy
        told = (await client.get("/console/map/tiles.json")).json()
        assert told == {"url": url, "attribution": "Somebody"}
        # The pages that are no console keep their policy.
        assert "tiles.example.com" not in (await client.get("/docs")).headers["content-security-policy"]
