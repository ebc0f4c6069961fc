"""The audit detects a server that loses, changes or invents a state."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.patience import PATIENCE_S
from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import REFUSED, UNKNOWN, Audit, StateLedger, body_of, same_data, state_of
from trunkline.bench.load import Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.run import Run
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan

SHORT = Plan(connections=2, duration_s=0.1, warmup_s=0, ceiling=False)

pytestmark = pytest.mark.usefixtures("work_clock")


class Loaded:
    """A fleet under a short load."""

    def __init__(self, session: Session, fleet: Fleet, tally: Tally) -> None:
        self.session, self.fleet, self.tally = session, fleet, tally

    async def audit(self) -> Audit:
        found = Audit()
        with trio.fail_after(PATIENCE_S):
            await self.fleet.audit(self.session, found, ProgressBar())
        return found


async def loaded(api: Any, *, devices: int = 3, per_call: int = 1, plan: Plan = SHORT) -> Loaded:
    session = Session(api.url, patience_s=5)
    await session.login(api.email, api.password)
    tally = Tally("state posts", "states")
    with trio.fail_after(PATIENCE_S):
        fleet = await Fleet.create(session, ProgressBar(), "test", devices)
        run = Run(session, plan, ProgressBar())
        await run.load(
            "load", lambda rehearsal: fleet.state_posts(tally, rehearsal=rehearsal, per_call=per_call)
        )
    return Loaded(session, fleet, tally)


def test_a_body_carries_the_states_of_its_numbers() -> None:
    for number in (0, 1, 2, 26, 27, 999, 1000, 123_456_789):
        sent = json.loads(body_of(number, 1, 1_700_000_000_000))
        assert sent == {"time": 1_700_000_000_000 + number, "data": state_of(number)}
        assert same_data(state_of(number), sent["data"])
    array = json.loads(body_of(7, 3, 1000))
    assert array == [{"time": 1000 + n, "data": state_of(n)} for n in (7, 8, 9)]


def test_a_book_finds_the_state_of_a_time() -> None:
    ledger = StateLedger("d", 1000)
    assert [ledger.begin(), ledger.begin(3), ledger.begin()] == [0, 1, 4]
    ledger.settle(1, 3, REFUSED)
    assert list(ledger.outcomes) == [UNKNOWN, REFUSED, REFUSED, REFUSED, UNKNOWN]
    assert [ledger.number_at(time) for time in (999, 1000, 1004, 1005)] == [None, 0, 4, None]


@pytest.mark.parametrize(
    ("read", "same"),
    [({"a": 5.0}, True), ({"a": 1}, False), ({"a": "5"}, False), ({}, False), ({"a": 5, "b": 1}, False)],
)
def test_values_are_compared_by_value_and_kind(read: dict[str, Any], same: bool) -> None:
    assert same_data({"a": 5}, read) is same
    assert not same_data({"a": True}, {"a": 1})


@pytest.mark.parametrize("per_call", [1, 7])
async def test_an_honest_server_passes(fake_api: Any, per_call: int) -> None:
    load = await loaded(fake_api, per_call=per_call)
    found = await load.audit()
    assert found.clean
    assert found.acknowledged == found.read == load.tally.units == load.tally.acknowledged * per_call > 10
    assert load.tally.unknown == found.unknown == 0
    assert load.tally.latency.count == load.tally.acknowledged
    assert all(len(states) > 1 for states in fake_api.states.values())


async def test_a_lost_state_is_found(fake_api: Any) -> None:
    fake_api.keep = lambda device, time, data: None if data["sequence"] == 2 else data
    found = await (await loaded(fake_api, devices=2)).audit()
    assert (found.clean, found.missing, found.different, found.unexpected) == (False, 2, 0, 0)
    assert all(example.startswith("missing: device ") for example in found.examples)


async def test_a_state_lost_out_of_an_array_is_found(fake_api: Any) -> None:
    fake_api.keep = lambda device, time, data: None if data["sequence"] == 5 else data
    found = await (await loaded(fake_api, devices=2, per_call=10)).audit()
    assert (found.clean, found.missing, found.different, found.unexpected) == (False, 2, 0, 0)


async def test_a_changed_state_is_found(fake_api: Any) -> None:
    fake_api.keep = lambda device, time, data: data | ({"running": 1} if data["sequence"] == 2 else {})
    found = await (await loaded(fake_api, devices=2)).audit()
    assert (found.clean, found.missing, found.different, found.unexpected) == (False, 0, 2, 0)


async def test_a_state_that_nobody_sent_is_found(fake_api: Any) -> None:
    load = await loaded(fake_api, devices=1)
    (states,) = fake_api.states.values()
    states[1000] = state_of(1)
    assert (await load.audit()).unexpected == 1


async def test_a_refused_state_that_is_stored_is_found(fake_api: Any) -> None:
    load = await loaded(fake_api, devices=1)
    load.fleet.ledgers[0].outcomes[1] = REFUSED
    found = await load.audit()
    assert (found.unexpected, found.missing) == (1, 0)


async def test_states_in_flight_when_a_connection_broke_are_unknown_not_lost(
    fake_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.bench.load.BREAK_PAUSE_S", 0.0)
    fake_api.cut = lambda method, path, number: (
        method == "POST" and path.endswith("/state") and number % 7 == 0
    )
    fake_api.keep = lambda device, time, data: data if data["sequence"] % 2 else None
    load = await loaded(fake_api, devices=1)
    ledger = load.fleet.ledgers[0]
    for number in range(0, len(ledger.outcomes), 2):
        ledger.outcomes[number] = UNKNOWN
    found = await load.audit()
    assert found.clean
    assert found.unknown > found.unknown_found > 0
    assert load.tally.breaks > 0


async def test_throttled_posts_are_counted_and_their_pause_is_kept(fake_api: Any) -> None:
    fake_api.answer_state = lambda device, states, number: (
        fake_api.refusal(429, "TooManyRequests", "Later.", retry_after="60") if number > 5 else None
    )
    load = await loaded(fake_api, devices=3)
    found = await load.audit()
    assert found.clean
    assert (load.tally.acknowledged, load.tally.refused) == (5, {"429 TooManyRequests": 3})
    assert load.tally.first_refusal == "429 TooManyRequests: Later."
    assert fake_api.state_posts == 8


async def test_a_failed_answer_leaves_the_state_unknown(fake_api: Any) -> None:
    fake_api.answer_state = lambda device, states, number: (
        fake_api.refusal(500, "Internal", "Broken.", retry_after="0") if number % 2 else None
    )
    load = await loaded(fake_api, devices=1)
    found = await load.audit()
    assert found.clean
    assert found.unknown == found.unknown_found == load.tally.failed["500 Internal"] > 0


async def test_a_fleet_needs_devices(fake_api: Any) -> None:
    with pytest.raises(BenchError, match="--devices"):
        await Fleet.create(Session(fake_api.url), ProgressBar(), "test", 0)
