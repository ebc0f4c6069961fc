"""States over links: acknowledged durable states a second by the size and form of frames and the number of links.

Beside them the same states in arrays over REST, in the same run. What is stored is read back whole, or, where that is
too much, counted and summed for each device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import ACKNOWLEDGED, UNKNOWN, Audit, StateLedger
from trunkline.bench.link_load import LinkLoad
from trunkline.bench.link_states import Form
from trunkline.bench.load import Caller, Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor
from trunkline.bench.run import Run, Scenario
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan

READ_BACK_MAX = 1_000_000
"""States: up to so many are read back one by one, in about a minute."""

SUMMED_SEQUENCE_MAX = 2**26
"""States of a device: up to so many the sum of their numbers is exact in floating point."""


class LinkScenario(Scenario):
    """A stage for each number of links, form and size of frames, and one of REST for each size."""

    name = "link"
    title = "States over the device link"

    def __init__(
        self, *, devices: int, links: Sequence[int], sizes: Sequence[int], forms: Sequence[Form], rest: bool
    ) -> None:
        if max(links) > devices:
            raise BenchError(f"--links: {max(links):,} links need as many --devices.")
        self.devices = devices
        self.links = links
        self.sizes = sizes
        self.forms = forms
        self.rest = rest
        self._used = 0

    def connections(self, plan: Plan) -> int:
        return max(*self.links, plan.connections)

    def settings(self) -> dict[str, object]:
        return {
            "devices": self.devices,
            "links": ", ".join(f"{count:,}" for count in self.links),
            "states a frame": ", ".join(f"{count:,}" for count in self.sizes),
        }

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)

    async def perform(self, run: Run) -> None:
        for size in self.sizes:
            if self.rest:
                await run.load(f"REST, arrays of {size:,}", partial(self._posts, size))
            for count in self.links:
                for form in self.forms:
                    name = f"{count:,} {'link' if count == 1 else 'links'}, {size:,} by {form}"
                    await run.load_with(name, partial(self._load, run, self._next(count), form, size))

    def _posts(self, size: int, rehearsal: bool) -> list[Caller]:
        tally = Tally(f"arrays of {size:,} states", "states")
        return self.fleet.state_posts(tally, per_call=size, rehearsal=rehearsal)

    def _next(self, count: int) -> list[StateLedger]:
        """The devices of a stage: not always the first ones, so that none gets the states of all stages."""
        ledgers, first = self.fleet.ledgers, self._used % self.devices
        self._used += count
        return list(islice([*ledgers[first:], *ledgers[:first]], count))

    def _load(
        self, run: Run, ledgers: Sequence[StateLedger], form: Form, size: int, reactor: Reactor
    ) -> LinkLoad:
        tally = Tally(f"frames of {size:,} by {form}", "states")
        return LinkLoad(reactor, run.session.origin, self.fleet, ledgers, tally, form, size)

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        await audit_many(self.fleet, session, found, bar)


async def audit_many(fleet: Fleet, session: Session, found: Audit, bar: ProgressBar) -> None:
    """Read all states of a fleet back, or let the server count and sum them where they are too many."""
    stored = sum(len(ledger.outcomes) for ledger in fleet.ledgers)
    if stored <= READ_BACK_MAX:
        await fleet.audit(session, found, bar)
        return
    bar.begin("counting states")
    waiting, done = iter(fleet.ledgers), 0

    async def work() -> None:
        nonlocal done
        for ledger in waiting:
            await _count(session, fleet.application_id, ledger, found)
            done += 1
            bar.show(done / len(fleet.ledgers), f"{found.read:,} states")

    async with trio.open_nursery() as nursery:
        for _ in range(session.connections_max):
            nursery.start_soon(work)
    bar.end(f"{found.read:,} states counted and summed")


async def _count(session: Session, application_id: str, ledger: StateLedger, found: Audit) -> None:
    """Compare the count of a device's states, and the sum of their numbers, with its ledger."""
    outcomes = ledger.outcomes
    acknowledged, unknown = outcomes.count(ACKNOWLEDGED), outcomes.count(UNKNOWN)
    found.acknowledged += acknowledged
    found.unknown += unknown
    if not outcomes:
        return
    stored = int(await _aggregate(session, application_id, ledger, "COUNT"))
    found.read += stored
    if stored < acknowledged:
        found.missing += acknowledged - stored
        found.note(f"missing: device {ledger.device_id}: {acknowledged:,} acknowledged, {stored:,} stored")
    elif stored > acknowledged + unknown:
        found.unexpected += stored - acknowledged - unknown
        found.note(f"unexpected: device {ledger.device_id}: {len(outcomes):,} sent, {stored:,} stored")
    else:
        found.unknown_found += stored - acknowledged
    if stored == len(outcomes) == acknowledged <= SUMMED_SEQUENCE_MAX:
        total = await _aggregate(session, application_id, ledger, "SUM")
        if total != acknowledged * (acknowledged - 1) // 2:
            found.different += 1
            found.note(f"different: device {ledger.device_id}: the sum of all sequences is {total:,}")


async def _aggregate(session: Session, application_id: str, ledger: StateLedger, aggregation: str) -> float:
    body = {
        "start": ledger.first_ms - 1,
        "end": ledger.first_ms + len(ledger.outcomes),
        "resolution": 0,
        "aggregation": aggregation,
        "attributes": ["sequence"],
        "deviceIds": [ledger.device_id],
    }
    path = f"/applications/{application_id}/data/time-series-query"
    series = (await session.call("POST", path, body))["devices"].get(ledger.device_id, {})
    return float(sum(point["data"].get("sequence", 0) for point in series.get("points", ())))
