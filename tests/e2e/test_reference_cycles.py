"""Calls leave no reference cycles: only the garbage collector would free these, and it stops everybody meanwhile."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import trio

from tests.e2e.conftest import EMAIL, PASSWORD, running_server
from trunkline.bench.neighbours.quiet import QuietTenant
from trunkline.bench.neighbours.tenant import Account, Tenant

PERIOD_S = 1.0
CALLS_MIN = 30
"""Calls of ten kinds; with a cycle for each call, or for each of a kind, there would be more than OBJECTS_MAX."""
OBJECTS_MAX = 10


def found() -> Counter[str]:
    """The types of the objects that only the collector could free."""
    gc.collect()
    types = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
    gc.garbage.clear()
    return types


async def test_calls_leave_no_reference_cycles(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "data", trust_forwarded_for=True) as server,
        trio.open_nursery() as nursery,
    ):
        tenant = await Tenant.sign_in(server.url, Account(EMAIL, PASSWORD), "10.1.0.1", 1)
        quiet = await QuietTenant.prepare(tenant, nursery)
        await quiet.measure(PERIOD_S)
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            calls = await quiet.measure(PERIOD_S)
            garbage = found()
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
        quiet.close()
        tenant.close()
        nursery.cancel_scope.cancel()
    assert sum(kind.calls - sum(kind.errors.values()) for kind in calls.values()) > CALLS_MIN
    assert garbage.total() <= OBJECTS_MAX, garbage.most_common()
