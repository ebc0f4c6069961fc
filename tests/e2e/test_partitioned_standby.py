"""Data with several partitions on two machines, with a real log: one machine owns all of them, or the other one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.machines import Machines, copied, machines_in, made, report, states
from tests.partitions import make_partitions

pytestmark = [pytest.mark.slow]


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    async with machines_in(tmp_path, silence_ms=60_000) as found:
        make_partitions(found.folder / "a", 2)
        yield found


async def test_all_partitions_are_handed_over_at_once(machines: Machines) -> None:
    async with machines.serving("a") as one:
        houses = [await made(one) for _ in range(2)]
        for number, (_, device) in enumerate(houses):
            await report(one, device, number)
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            await copied(two)
            for number, (_, device) in enumerate(houses):
                await report(two, device, 10 + number)
            assert await one.terminate() == 0
            for number, (_, device) in enumerate(houses):
                assert await states(two, device) == [number, 10 + number]
                await report(two, device, 20 + number)
