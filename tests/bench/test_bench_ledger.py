"""The audit tells a server that keeps its promise from one that loses, changes or invents a state."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.ledger import REFUSED, UNKNOWN, DeviceBook, body_of, same_data, state_of
from trunkline.bench.session import Session
from trunkline.bench.state import StateLoad


async def loaded(api: Any, *, devices: int = 3, connections: int = 2, duration_s: float = 0.1) -> StateLoad:
    session = Session(api.url, patience_s=5)
    await session.login(api.email, api.password)
    load = StateLoad(session, devices=devices, connections=connections)
    with trio.fail_after(10):
        await load.prepare("load")
        await load.drive(duration_s)
    return load


def test_a_body_carries_the_state_of_its_number() -> None:
    for number in (0, 1, 2, 26, 27, 999, 1000, 123_456_789):
        sent = json.loads(body_of(number, 1_700_000_000_000))
        assert sent == {"time": 1_700_000_000_000, "data": state_of(number)}
        assert same_data(state_of(number), sent["data"])


def test_times_of_a_book_rise_whatever_the_clock_does() -> None:
    book = DeviceBook("d")
    assert [book.begin(now)[1] for now in (100, 100, 50, 300)] == [100, 101, 102, 300]
    assert [book.number_at(time) for time in (100, 102, 103, 300, 301)] == [0, 2, None, 3, None]


@pytest.mark.parametrize(
    ("read", "same"),
    [({"a": 5.0}, True), ({"a": 1}, False), ({"a": "5"}, False), ({}, False), ({"a": 5, "b": 1}, False)],
)
def test_values_are_compared_by_value_and_kind(read: dict[str, Any], same: bool) -> None:
    assert same_data({"a": 5}, read) is same
    assert not same_data({"a": True}, {"a": 1})


async def test_an_honest_server_passes(fake_api: Any) -> None:
    load = await loaded(fake_api)
    found = await load.audit()
    figures = load.figures()
    assert found.clean
    assert found.acknowledged == found.read == figures.acknowledged == figures.sent > 10
    assert figures.unknown == 0
    assert figures.rate > 0
    assert 0 < figures.p50_s <= figures.p99_s <= figures.max_s
    assert all(len(states) > 1 for states in fake_api.states.values())


async def test_a_lost_state_is_found(fake_api: Any) -> None:
    fake_api.keep = lambda device, time, data: None if data["sequence"] == 2 else data
    found = await (await loaded(fake_api, devices=2)).audit()
    assert (found.clean, found.missing, found.different, found.unexpected) == (False, 2, 0, 0)
    assert all(example.startswith("missing: device ") for example in found.examples)


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
    load.books[0].fates[1] = REFUSED
    found = await load.audit()
    assert (found.unexpected, found.missing) == (1, 0)


async def test_states_in_flight_when_a_connection_broke_are_unknown_not_lost(
    fake_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.bench.state.BREAK_PAUSE_S", 0.0)
    fake_api.cut = lambda method, path, number: (
        method == "POST" and path.endswith("/state") and number % 7 == 0
    )
    fake_api.keep = lambda device, time, data: data if data["sequence"] % 2 else None
    load = await loaded(fake_api, devices=1, connections=1)
    book = load.books[0]
    for number in range(0, len(book.fates), 2):
        book.fates[number] = UNKNOWN
    found = await load.audit()
    assert found.clean
    assert found.unknown > found.unknown_found > 0
    assert load.breaks > 0


async def test_throttled_posts_are_counted_and_their_pause_is_kept(fake_api: Any) -> None:
    fake_api.answer_state = lambda device, states, number: (
        fake_api.refusal(429, "TooManyRequests", "Later.", retry_after="60") if number > 5 else None
    )
    load = await loaded(fake_api, devices=3, connections=1)
    found = await load.audit()
    assert found.clean
    assert (load.acknowledged, load.refused) == (5, {"429 TooManyRequests": 3})
    assert fake_api.state_posts == 8


async def test_a_failed_answer_leaves_the_state_unknown(fake_api: Any) -> None:
    fake_api.answer_state = lambda device, states, number: (
        fake_api.refusal(500, "Internal", "Broken.", retry_after="0") if number % 2 else None
    )
    load = await loaded(fake_api, devices=1, connections=1)
    found = await load.audit()
    assert found.clean
    assert found.unknown == found.unknown_found == load.failed["500 Internal"] > 0


def test_a_load_needs_devices_and_no_more_connections_than_those() -> None:
    session = Session("http://127.0.0.1:1")
    assert StateLoad(session, devices=2, connections=64).connections == 2
    with pytest.raises(BenchError):
        StateLoad(session, devices=0, connections=1)
