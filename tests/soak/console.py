"""What an open console asks for: its page, the overview, lists, charts and a dashboard, and a stream of states.

Owns no ledger: the other parts read back.
"""

from __future__ import annotations

from typing import Any, Final

import trio

from tests.soak.house import Part
from trunkline.bench.event_stream import open_events

WATCHING_S: Final = 20.0
PAGES: Final = (
    "",
    "/overview",
    "/health",
    "/devices?perPage=100&sortField=lastUpdated&sortDirection=desc",
    "/devices/health",
    "/events?perPage=25&state=new",
    "/events/mostRecentBySeverity",
    "/alarms",
    "/flows",
    "/data-tables",
    "/jobLogs",
    "/actors",
    "/search?filter=rest",
)
BLOCKS: Final = [
    ("graph", "Numbers", {"segments": [{"attribute": "n", "query": "{}"}], "duration": 3_600_000}),
    ("device-count", "Devices", {"segments": [{"id": "all", "query": "{}"}]}),
    ("event-list", "Events", {"query": "{}"}),
]


class Console(Part):
    """One who looks at one page after the other, while a page is told of new states."""

    pause_s = 1.0

    async def prepare(self) -> None:
        blocks: list[dict[str, Any]] = [
            {
                "blockType": kind,
                "title": title,
                "startX": 0,
                "startY": 3 * number,
                "width": 3,
                "height": 3,
                "applicationId": self.path.rpartition("/")[2],
                "config": config,
            }
            for number, (kind, title, config) in enumerate(BLOCKS)
        ]
        body = {"name": "board", "blocks": blocks}
        made = await self.calls.call("dashboard created", "POST", f"{self.path}/dashboards", body)
        self._dashboard = f"{self.path}/dashboards/{made['id']}"
        self.house.nursery.start_soon(self._watch)

    async def step(self) -> None:
        choice = self.random.random()
        if choice < 0.2:
            await self.calls.call("data of a dashboard", "POST", f"{self._dashboard}/data", {})
        elif choice < 0.3:
            query = {"attributes": ["n"], "duration": 3_600_000, "resolution": 60_000, "aggregation": "MEAN"}
            await self.calls.call("chart", "POST", f"{self.path}/data/time-series-query", query)
        elif choice < 0.35:
            with self.calls.timed("page of the console"):
                await self.calls.session.fetch("GET", "/console/")
        elif choice < 0.4:
            await self.calls.call("list of applications", "GET", "/applications?perPage=100")
        else:
            page = self.random.choice(PAGES)
            await self.calls.call(f"page {page.partition('?')[0] or '/'}", "GET", f"{self.path}{page}")

    async def look(self) -> int:
        await self.step()
        return 0

    async def _watch(self) -> None:
        """The states of the application, on a stream that is opened again and again."""
        while True:
            with trio.move_on_after(WATCHING_S):
                url, token = self.calls.server.url, self.calls.session.token
                async with open_events(url, f"{self.path}/stateStream", token) as stream:
                    async for _ in stream:
                        pass
