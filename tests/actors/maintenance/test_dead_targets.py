"""While the process that was to take over an application is dead, its copy counts for no command that reads it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.actors.house import House
from tests.actors.maintenance.partition_houses import divided, partitions
from tests.actors.maintenance.test_merged_stores import divide, seen
from tests.actors.maintenance.test_moves import places_of, reporting, swept
from tests.actors.maintenance.test_sweep import check
from tests.patience import PATIENCE_S
from trunkline.actors.maintenance.moves import move
from trunkline.store import keys
from trunkline.store.batch import Batch


async def ended_at(house: House, other: House, ends: Callable[[Batch], bool]) -> None:
    """Move the application, and let both processes end where the other one would commit such a batch."""
    is_over = False
    with trio.fail_after(PATIENCE_S), trio.CancelScope() as life:

        def until(submit: Any) -> Any:
            def submitted(batch: Batch) -> Any:
                nonlocal is_over
                is_over = is_over or ends(batch)
                if is_over:
                    life.cancel()
                return submit(Batch() if is_over else batch)

            return submitted

        journals: list[Any] = [house.system.journal, other.system.journal]
        for journal in journals:
            journal.submit = until(journal.submit)
        await move(house.system, house.application.hex(), "1")
    assert is_over


def is_last(application: bytes, batch: Batch) -> bool:
    """Whether a batch is the last one of a move: it removes the note that the application has arrived."""
    return batch.to_plain() == [[keys.META, keys.arrived_key(application), None]]


async def given_away(data: Path) -> tuple[bytes, list[bytes], Any]:
    """A directory whose server has ended when an application was given away, and its new owner had not noted that yet.

    Return the application, its devices, and what is seen of them.
    """
    first = await divided(data)
    async with partitions(data, first) as (house, other):
        devices = await reporting(house)
        before = await seen(house, devices)
        await ended_at(house, other, partial(is_last, first))
    return first, devices, before


async def check_seen(data: Path, first: bytes, devices: list[bytes], before: Any, *, count: int = 2) -> None:
    """Start a server on a directory: all is there as it was, and stays."""
    for _ in range(2):
        async with partitions(data, first, offset_ms=120_000, count=count) as houses:
            assert None not in places_of(*houses)
            for each in houses:
                assert await seen(each, devices) == before
                await swept(each)
                check(each.system)


@pytest.mark.parametrize("count", [1, 3])
async def test_a_division_keeps_an_application_that_was_given_away(tmp_path: Path, count: int) -> None:
    """Else the note that it is not in the old partition any more would be beside it in a new one."""
    data = tmp_path / "data"
    first, devices, before = await given_away(data)
    await divide(data, count)
    if count == 1:
        await divide(data, 2)
    await check_seen(data, first, devices, before, count=max(count, 2))
