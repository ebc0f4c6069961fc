"""A throttle lets runs through once in a while."""

from __future__ import annotations

from tests.actors.engine.flow_cases import failure
from tests.actors.engine.kept_between_runs import outcome
from tests.actors.engine.run_house import create_node
from tests.actors.house import START_MS, House

THROTTLE = {
    "ratePerMinute": 2,
    "throttleIdTemplate": "{{data.device}}",
    "timeSincePath": "data.since",
}


async def test_it_is_passed_once_in_its_time(house: House) -> None:
    flow = await create_node(house, "ThrottleNode", THROTTLE)
    steps = ((0, 1, None), (29_999, 0, 29_999), (30_000, 1, 30_000), (40_000, 0, 10_000))
    for at_ms, output, since in steps:
        house.clock.set_wall(START_MS + at_ms)
        assert await outcome(house, flow, {"device": "a"}) == (output, {"device": "a", "since": since})
    assert (await outcome(house, flow, {"device": "b"}))[0] == 1


async def test_it_is_passed_when_the_clock_was_set_back(house: House) -> None:
    flow = await create_node(house, "ThrottleNode", {**THROTTLE, "ratePerMinute": "0.001"})
    assert (await outcome(house, flow))[0] == 1
    house.clock.set_wall(START_MS - 1)
    assert (await outcome(house, flow))[0] == 1
    assert (await outcome(house, flow))[0] == 0


async def test_it_keeps_its_time_across_a_restart(house: House) -> None:
    flow = await create_node(house, "ThrottleNode", THROTTLE)
    assert (await outcome(house, flow))[0] == 1
    house.forget()
    assert (await outcome(house, flow))[0] == 0


async def test_a_rate_is_above_0_and_at_most_600() -> None:
    right = "give a number above 0, at most 600."
    for rate in (0, 601):
        message = f"config.ratePerMinute: gives {rate}; {right}"
        assert await failure("ThrottleNode", {"ratePerMinute": rate}) == ("ValidationError", message)
    message = f"config.ratePerMinute: is not set; {right}"
    assert await failure("ThrottleNode", {}) == ("ValidationError", message)
