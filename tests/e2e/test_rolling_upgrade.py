"""An upgrade of one machine after the other, the one that serves last, under load by all protocols.

`BEFORE=/srv/before/.venv/bin/python pytest -m load -s tests/e2e/test_rolling_upgrade.py` begins with the version of the
program that this interpreter has, and ends with the one of this checkout; without `BEFORE` both are this one.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.cluster_load import clients_of
from tests.e2e.lives import NAMES, lives
from tests.e2e.registers import record_of, state_of, violations
from tests.e2e.test_cluster_rounds import advanced
from tests.e2e.verdict import Verdict

pytestmark = [pytest.mark.slow, pytest.mark.load]


@pytest.mark.timeout(900)
async def test_machines_are_upgraded_one_after_the_other(tmp_path: Path) -> None:
    random, verdict, acks, stopping = Random(1), Verdict(), list[float](), trio.Event()
    async with lives(tmp_path, random, os.environ.get("BEFORE")) as found:
        fronts = [*found.fronts.values()]
        shared, numbers = await fronts[0].application("shared"), count(1)
        registers = [make(await fronts[0].device(shared), numbers) for make in (state_of, record_of)]
        clients = await clients_of(fronts, registers, acks, verdict, random)
        async with trio.open_nursery() as nursery:
            for each in clients:
                nursery.start_soon(each.run, stopping)
            for name in sorted(NAMES, key=lambda each: each == found.owner):
                await advanced(clients)
                await found.upgrade(name)
                await advanced(clients)
            stopping.set()
        for each in clients:
            await each.check(verdict)
        assert not verdict.evidence
        assert not [broken for each in registers for broken in violations(each.history)]
        assert not found.problems()
