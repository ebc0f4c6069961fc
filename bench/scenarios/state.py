"""Single state posts: the rate at which a server acknowledges them, each of them durable, and their latency."""

from __future__ import annotations

from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Caller, Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.run import Run, Scenario
from trunkline.bench.session import Session


class StateScenario(Scenario):
    """Posts of one state each, to the devices in turn; everything is read back."""

    name = "state"
    title = "Single state posts"

    def __init__(self, *, devices: int) -> None:
        self.devices = devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)

    async def perform(self, run: Run) -> None:
        await run.load("single states", self._callers)

    def _callers(self, rehearsal: bool) -> list[Caller]:
        return self.fleet.state_posts(Tally("state posts", "states"), rehearsal=rehearsal)

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        await self.fleet.audit(session, found, bar)
