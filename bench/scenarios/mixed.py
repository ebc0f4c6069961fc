"""Mixed traffic: of 25 calls 20 post a state, 2 read newest values, and 1 each reads a history, lists, commands."""

from __future__ import annotations

from trunkline.bench.command_ledger import CommandLedger, audit_history
from trunkline.bench.fleet import Fleet, Get
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Caller, Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.run import Run, Scenario
from trunkline.bench.scenarios.commands import CommandPost
from trunkline.bench.session import Session

GROUP = 20
"""Devices in a group; each group has one set of the calls that are not posts of states."""

HISTORY_ENTRIES = 100
"""Entries: as many as a page with a graph requests."""


class MixedScenario(Scenario):
    """All kinds of calls mixed on the same connections; states and commands are read back."""

    name = "mixed"
    title = "Mixed traffic"

    def __init__(self, *, devices: int) -> None:
        self.devices = devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)
        # The first device of each group receives commands.
        self.commanded = [CommandLedger([one]) for one in self.fleet.device_ids[::GROUP]]

    async def perform(self, run: Run) -> None:
        await run.load("mixed calls", self._callers)

    def _callers(self, rehearsal: bool) -> list[Caller]:
        fleet = self.fleet
        posts = Tally("state posts", "states")
        newest, histories = Tally("newest values"), Tally(f"history of {HISTORY_ENTRIES}")
        lists, commands = Tally("list of devices"), Tally("commands")
        sent = fleet.state_posts(posts, rehearsal=rehearsal)
        callers: list[Caller] = []
        # A load uses its callers in turn, so the order here determines the mix.
        for group, ledger in enumerate(self.commanded):
            members = fleet.device_ids[group * GROUP : (group + 1) * GROUP]
            callers += sent[group * GROUP : (group + 1) * GROUP]
            callers += (Get(newest, fleet.get(fleet.path(one, "/compositeState"))) for one in members[:2])
            callers.append(
                Get(histories, fleet.get(fleet.path(members[-1], "/state"), limit=HISTORY_ENTRIES))
            )
            callers.append(
                Get(lists, fleet.get(f"/applications/{fleet.application_id}/devices", perPage=GROUP))
            )
            callers.append(
                CommandPost(commands, fleet, CommandLedger(ledger.device_ids) if rehearsal else ledger)
            )
        return callers

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        await self.fleet.audit(session, found, bar)
        await audit_history(session, self.fleet.application_id, self.commanded, found)
