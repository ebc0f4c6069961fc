"""Mixed traffic: of 25 calls 20 post a state, 2 read the newest values, 1 each reads a history, lists and commands."""

from __future__ import annotations

from trunkline.bench.command_ledger import CommandBook, audit_history
from trunkline.bench.fleet import Fleet, Get
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Tally, Work
from trunkline.bench.progress import Bar
from trunkline.bench.run import Run, Scenario
from trunkline.bench.scenarios.commands import CommandPost
from trunkline.bench.session import Session

GROUP = 20
"""Devices that share the calls which are not posts of states."""

HISTORY_ENTRIES = 100
"""Entries: what a page of a graph asks for."""


class MixedScenario(Scenario):
    """All kinds of calls at once over the same connections; states and commands are read back."""

    name = "mixed"
    title = "Mixed traffic"

    def __init__(self, *, devices: int) -> None:
        self.devices = devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def prepare(self, session: Session, bar: Bar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)
        # One device of each group is sent commands: its first one.
        self.commanded = [CommandBook([one]) for one in self.fleet.device_ids[::GROUP]]

    async def perform(self, run: Run) -> None:
        await run.load("mixed calls", self._works)

    def _works(self, rehearsal: bool) -> list[Work]:
        fleet = self.fleet
        posts = Tally("state posts", "states")
        newest, histories = Tally("newest values"), Tally(f"history of {HISTORY_ENTRIES}")
        lists, commands = Tally("list of devices"), Tally("commands")
        sent = fleet.state_posts(posts, rehearsal=rehearsal)
        works: list[Work] = []
        # A load goes round its works, so the order here is the mix.
        for group, book in enumerate(self.commanded):
            members = fleet.device_ids[group * GROUP : (group + 1) * GROUP]
            works += sent[group * GROUP : (group + 1) * GROUP]
            works += (Get(newest, fleet.get(fleet.path(one, "/compositeState"))) for one in members[:2])
            works.append(Get(histories, fleet.get(fleet.path(members[-1], "/state"), limit=HISTORY_ENTRIES)))
            works.append(
                Get(lists, fleet.get(f"/applications/{fleet.application_id}/devices", perPage=GROUP))
            )
            works.append(CommandPost(commands, fleet, CommandBook(book.device_ids) if rehearsal else book))
        return works

    async def audit(self, session: Session, found: Audit, bar: Bar) -> None:
        await self.fleet.audit(session, found, bar)
        await audit_history(session, self.fleet.application_id, self.commanded, found)
