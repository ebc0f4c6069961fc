"""Machines that are gone, one way or the other, while they serve: another one takes their place.

One that is not heard for 1.5 s is replaced, so all of it is a load: other tests would hold it up.
`pytest -m load tests/e2e/test_standby_lost.py`
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.machines import Machines, kill, machines_in, made, report, send, states

pytestmark = [pytest.mark.slow, pytest.mark.load]


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    async with machines_in(tmp_path, silence_ms=1500) as found:
        yield found


async def test_the_other_machine_has_everything_when_one_is_killed(machines: Machines) -> None:
    async with machines.serving("a") as one:
        application, device = await made(one)
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            await report(one, device, 1)
            await report(two, device, 2)
            table = await two.call("POST", f"{application}/data-tables", {"name": "t", "columns": []})
            assert await states(one, device) == await states(two, device) == [1, 2]
            await kill(one)
            assert await two.listens()
            assert await states(two, device) == [1, 2]
            assert (await two.call("GET", f"{application}/data-tables/{table['id']}"))["name"] == "t"
            await report(two, device, 3)
            async with machines.standing_by("a", two) as again:
                assert await two.terminate() == 0
                assert await again.listens()
                assert await states(again, device) == [1, 2, 3]
                await report(again, device, 4)
                assert await again.terminate() == 0


async def test_a_machine_that_was_stopped_answers_nothing_that_is_old(machines: Machines) -> None:
    async with machines.serving("a") as one:
        _, device = await made(one)
        await report(one, device, 1)
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            send(one, signal.SIGSTOP)
            assert await two.listens()
            assert await states(two, device) == [1]
            await report(two, device, 2)
            send(one, signal.SIGCONT)
            # Its process that owned the data ends, and it stands by: what it passes on is answered by the other one.
            assert await states(one, device) == [1, 2]
            assert "b owns partition 0 in epoch 2" in one.log
            await report(one, device, 3)
            assert await states(two, device) == [1, 2, 3]
            assert await one.terminate() == 0
            assert await two.terminate() == 0
