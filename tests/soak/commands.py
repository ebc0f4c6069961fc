"""Commands to devices that listen to their stream and come back to it, and to one on the link.

Owns the ledger of the commands. Each must come once, in order, however often the listener has come back.
"""

from __future__ import annotations

import json
from typing import Final

import trio

from tests.patience import PATIENCE_S
from tests.soak.house import Part
from trunkline.bench.event_stream import open_events

LISTENING_S: Final = 15.0
AWAY_S: Final = 1.0
KEPT_MAX: Final = 500
"""Commands of a device; then all are removed."""


class Commands(Part):
    """Commands to one device, which are heard by a stream with `Last-Event-ID`."""

    pause_s = 1.5

    async def prepare(self) -> None:
        self._device = await self.device("listener")
        self._sent = self._heard = self._removed = 0
        self._wrong: list[str] = []
        self._last_id = ""
        self._changed = trio.Event()
        listening = trio.Event()
        self.house.nursery.start_soon(self._listen, listening)
        await listening.wait()

    async def step(self) -> None:
        body = {"name": f"c{self._sent}", "payload": {"n": self._sent}}
        await self.calls.call("command", "POST", f"{self._device}/command", body)
        self._sent += 1
        if self._sent - self._removed > KEPT_MAX:
            await self.look()
            queued = await self.calls.call("removal of commands", "DELETE", f"{self._device}/data")
            await self.calls.job(self.path, queued)
            self._removed = self._sent

    async def look(self) -> int:
        with trio.fail_after(PATIENCE_S):
            while self._heard < self._sent:
                await self._changed.wait()
        assert not self._wrong, self._wrong
        query = {"start": 2, "limit": 1000, "sortDirection": "asc"}
        page = await self.calls.call("commands read", "GET", f"{self._device}/command", query=query)
        found = [each["payload"]["n"] for each in page]
        assert found == list(range(self._removed, self._sent)), found
        return len(found)

    async def _listen(self, listening: trio.Event) -> None:
        while True:
            with trio.move_on_after(LISTENING_S):
                async with open_events(
                    self.calls.server.url,
                    f"{self._device}/commandStream",
                    self.calls.session.token,
                    last_id=self._last_id,
                ) as stream:
                    listening.set()
                    async for event in stream:
                        self._hear(event.data)
                        self._last_id = event.id
            await trio.sleep(AWAY_S)

    def _hear(self, data: str) -> None:
        number = json.loads(data)["payload"]["n"]
        if number != self._heard:
            self._wrong.append(f"heard {number} instead of {self._heard}")
        self._heard += 1
        changed, self._changed = self._changed, trio.Event()
        changed.set()
