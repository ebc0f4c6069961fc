"""Requests to experiences are counted, and the counts are stored."""

from __future__ import annotations

from typing import Any

import trio

from tests.e2e.experience_browser import browser, static
from tests.e2e.experiences import Experience, new_experience
from tests.patience import PATIENCE_S


async def test_requests_are_counted_by_endpoint_status_version_and_host(start_server: Any) -> None:
    """A server that stops stores what it has counted."""
    async with start_server() as server:
        exp = await new_experience(server)
        await exp.make("slugs", slug="farm")
        await exp.make("domains", domainName="www.farm.example")
        first, second = await static(exp, "/a", "a"), await static(exp, "/b", "b", access="authenticated")
        third = await static(exp, "/c", "c")
        for host, path in (("farm.localhost", "/a"), ("www.farm.example", "/a"), ("farm.localhost", "/b")):
            await browser(exp, host).get(path)
        await browser(exp).send("POST", "/x")
        async with server.client("") as client:
            metrics = (await client.get("/metrics")).text
        assert 'trunkline_experience_requests_total{status="200"} 2.0' in metrics
    async with start_server() as server:
        exp = Experience(server, exp.application)

        async def counted(query: str) -> dict[str, int]:
            found = await exp.get(f"endpoints/stats?{query}")
            return {name: sum(each["count"] for each in points) for name, points in found.items()}

        assert await counted("") == {"200": 2, "401": 1, "404": 1}
        assert await counted("statGrouping=endpointId") == {first: 2, second: 1, "0" * 24: 1}
        assert await counted("statGrouping=version&statusCodeFilter=200") == {"develop": 2}
        assert await counted("statGrouping=domain&versionFilter=develop") == {
            "farm.localhost": 3,
            "www.farm.example": 1,
        }
        assert await counted(f"endpointIdFilter={second}&domainFilter=farm.localhost") == {"401": 1}
        assert await counted("versionFilter=v1") == {}
        assert await counted("end=-3600000&duration=60000") == {}
        listed = await exp.get(
            "endpoints?requestCountDuration=600000&sortField=requestCount&sortDirection=desc"
        )
        assert [(each["id"], each["requestCount"]) for each in listed["items"]] == [
            (first, 2),
            (second, 1),
            (third, 0),
        ]
        assert listed["notFoundRequestCount"] == 1
        payloads = await server.call("GET", f"{exp.application}/payloadCounts")
        assert payloads["endpoint"] == {"total": 4}


async def test_counts_are_stored_soon(start_server: Any) -> None:
    async with start_server(limits={"experience_counts_delay_s": 0.001}) as server:
        exp = await new_experience(server)
        await exp.make("slugs", slug="farm")
        with trio.fail_after(PATIENCE_S):
            while not await exp.get("endpoints/stats"):
                await browser(exp).get("/")
