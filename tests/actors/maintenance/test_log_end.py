"""A machine compares the end of the log with what it has, before it follows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import trio
import trio.testing

from tests.store.simulated_log import SimulatedLog
from trunkline.actors.maintenance.standby import check_end
from trunkline.store.errors import LogBroken

HERE = Path("data")


async def test_a_log_that_has_lost_entries_is_noticed_at_the_start(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    log = SimulatedLog(Random(1), nursery)
    place = await log.append(b"an entry", 0)
    await check_end(log, HERE, place)
    with pytest.raises(
        LogBroken, match=f"The log ends at {place}, and data has it up to {place + 1}: it has lost"
    ):
        await check_end(log, HERE, place + 1)


async def test_a_server_of_the_log_may_be_behind_for_a_while(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    log = SimulatedLog(Random(1), nursery)
    place = await log.append(b"an entry", 0)

    async def append_later() -> None:
        await trio.sleep(5)
        await log.append(b"another one", place)

    nursery.start_soon(append_later)
    await check_end(log, HERE, place + 1)
