"""The times that are given to states which have none."""

from __future__ import annotations

import pytest

from tests.actors.house import START_MS, House, at
from trunkline.actors.core.values.errors import Invalid, TooManyRequests
from trunkline.actors.fleet.devices.record.messages import StateReport
from trunkline.actors.fleet.devices.state.link_messages import ReportFrame
from trunkline.limits.table import DAY_MS


async def test_states_without_a_time_are_all_kept_in_their_order(house: House) -> None:
    """However many come within one millisecond, in whatever form, also behind a state that is a little ahead."""
    device = await house.device()
    for number in range(3):
        await house.report(device, {"data": {"a": number}})
    await house.report(device, *({"data": {"a": number}} for number in range(3, 103)))
    house.forget()
    await house.report(device, {"data": {"a": 103}})
    await house.ask(device, ReportFrame(session=1, n=1, body=StateReport(data={"a": 104})))
    await house.report(device, {"data": {"a": 105}, "time": START_MS + 200})
    await house.report(device, {"data": {"a": 106}})
    offsets = [*range(105), 200, 201]
    assert await house.states(device) == [
        {"time": at(offset), "data": {"a": number}} for number, offset in enumerate(offsets)
    ]


async def test_a_state_without_a_time_is_of_now_behind_one_of_tomorrow(house: House) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 1}, "time": START_MS + DAY_MS})
    for number in (2, 3):
        await house.report(device, {"data": {"a": number}})
    assert [state["time"] for state in await house.states(device)] == [at(0), at(1), at(DAY_MS)]


async def test_a_state_without_a_time_is_of_now_after_the_clock_was_set_back(house: House) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 1}})
    house.clock.set_wall(START_MS - 60_000)
    await house.report(device, {"data": {"a": 2}}, {"data": {"a": 3}})
    await house.report(device, {"data": {"a": 4}})
    offsets = [-60_000, -59_999, -59_998, 0]
    assert [state["time"] for state in await house.states(device)] == [at(offset) for offset in offsets]


async def test_states_without_a_time_do_not_run_away_from_the_clock(house: House) -> None:
    device = await house.device()
    many = [{"data": {"a": 1}}] * 1000
    for _ in range(10):
        await house.report(device, *many)
    await house.report(device, {"data": {"a": 2}})
    with pytest.raises(TooManyRequests, match=r"give each its time, or send fewer") as refused:
        await house.report(device, {"data": {"a": 3}})
    assert refused.value.retry_after_s == 0.001
    house.clock.pass_s(0.001)
    await house.report(device, {"data": {"a": 4}})
    assert await house.states(device, start=START_MS + 10_000) == [
        {"time": at(10_000), "data": {"a": 2}},
        {"time": at(10_001), "data": {"a": 4}},
    ]


async def test_a_refused_call_takes_no_time(house: House) -> None:
    device = await house.device()
    states = [{"data": {"a": 1}}, {"data": {"a": 2}}, {"data": {"unheard of": 3}}]
    with pytest.raises(Invalid):
        await house.report(device, *states, as_array=True)
    await house.report(device, {"data": {"a": 4}})
    assert await house.states(device) == [{"time": at(0), "data": {"a": 4}}]
