"""Arrays of states: one call is one turn of the device and one batch. Measures acknowledged states a second by size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Caller, Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.run import Run, Scenario
from trunkline.bench.session import Session

STATES_PER_CALL_MAX = 10_000
"""States: the API's bound for a call."""


class ArraysScenario(Scenario):
    """One stage for each array size, on the same devices; everything is read back."""

    name = "arrays"
    title = "Arrays of states"

    def __init__(self, *, devices: int, per_call: Sequence[int]) -> None:
        if not per_call or not all(1 <= count <= STATES_PER_CALL_MAX for count in per_call):
            raise BenchError(f"--per-call takes between 1 and {STATES_PER_CALL_MAX:,} states.")
        self.devices = devices
        self.per_call = per_call

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices, "states a call": ", ".join(f"{count:,}" for count in self.per_call)}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)

    async def perform(self, run: Run) -> None:
        for count in self.per_call:
            await run.load(f"arrays of {count:,}", partial(self._callers, count))

    def _callers(self, count: int, rehearsal: bool) -> list[Caller]:
        tally = Tally(f"arrays of {count:,} states", "states")
        return self.fleet.state_posts(tally, per_call=count, rehearsal=rehearsal)

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        await self.fleet.audit(session, found, bar)
