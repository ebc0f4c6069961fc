"""Events that open, are acknowledged and resolved, and are deleted.

Owns the ledger of the events.
"""

from __future__ import annotations

from typing import Final

from tests.soak.house import Part

EVENTS_MAX: Final = 30
NEXT: Final = {"new": "acknowledged", "acknowledged": "resolved"}


class Events(Part):
    """Events of one application, which may be created once a second on the average."""

    pause_s = 2.0

    async def prepare(self) -> None:
        self._kept: dict[str, tuple[str, str]] = {}
        """The subject and the state of each event by its id."""
        self._number = 0

    async def step(self) -> None:
        open_ones = [id for id, (_, state) in self._kept.items() if state in NEXT]
        if len(self._kept) > EVENTS_MAX:
            id = next(iter(self._kept))
            await self.calls.call("event deleted", "DELETE", f"{self.path}/events/{id}")
            del self._kept[id]
        elif open_ones and self.random.random() < 0.6:
            id = self.random.choice(open_ones)
            subject, state = self._kept[id]
            await self.calls.call(
                "event changed", "PATCH", f"{self.path}/events/{id}", {"state": NEXT[state], "comment": "x"}
            )
            self._kept[id] = (subject, NEXT[state])
        else:
            self._number += 1
            subject = f"event {self._number}"
            body = {"level": "warning", "subject": subject, "data": {"n": self._number}}
            made = await self.calls.call("event created", "POST", f"{self.path}/events", body)
            self._kept[made["id"]] = (subject, "new")

    async def look(self) -> int:
        page = await self.calls.call("events read", "GET", f"{self.path}/events", query={"perPage": 100})
        found = {each["id"]: (each["subject"], each["state"]) for each in page["items"]}
        assert found == self._kept, set(found.items()) ^ set(self._kept.items())
        return len(found)
