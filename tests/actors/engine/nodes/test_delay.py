"""A node waits for some seconds."""

from __future__ import annotations

import trio
import trio.testing

from tests.actors.engine.flow_cases import failure, run_node


async def test_it_waits_for_the_seconds_of_the_template(autojump_clock: trio.testing.MockClock) -> None:
    began_s = trio.current_time()
    assert (await run_node("DelayNode", {"delay": "{{data.s}}"}, {"s": 30}))["output"] == 0
    assert trio.current_time() - began_s >= 30


async def test_it_waits_at_most_59_seconds() -> None:
    problem = "config.delay: gives {}; give 0 to 59 seconds."
    assert await failure("DelayNode", {"delay": 60}) == ("ValidationError", problem.format("60"))
    assert await failure("DelayNode", {"delay": "-1"}) == ("ValidationError", problem.format("-1"))
    name, message = await failure("DelayNode", {})
    assert (name, message) == ("ValidationError", "config.delay: is not set; give 0 to 59 seconds.")
