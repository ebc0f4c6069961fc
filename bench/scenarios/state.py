"""Single state posts: how many a second a server acknowledges, each of them durable, and how long they take."""

from __future__ import annotations

from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Tally, Work
from trunkline.bench.progress import Bar
from trunkline.bench.run import Run, Scenario
from trunkline.bench.session import Session


class StateScenario(Scenario):
    """Posts of one state each, round the devices; everything is read back."""

    name = "state"
    title = "Single state posts"

    def __init__(self, *, devices: int) -> None:
        self.devices = devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def prepare(self, session: Session, bar: Bar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)

    async def perform(self, run: Run) -> None:
        await run.load("single states", self._works)

    def _works(self, rehearsal: bool) -> list[Work]:
        return self.fleet.state_posts(Tally("state posts", "states"), rehearsal=rehearsal)

    async def audit(self, session: Session, found: Audit, bar: Bar) -> None:
        await self.fleet.audit(session, found, bar)
