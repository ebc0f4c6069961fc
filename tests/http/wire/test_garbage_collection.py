"""The loop decides when garbage is collected: a little at a time, and never what somebody's long payload is."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from trunkline.http.wire.garbage_collection import (
    EXAMINE_S,
    EXAMINED_MAX,
    GROWTH_BYTES,
    PAUSES,
    YOUNG_MIN,
    Collector,
    collecting,
    private_bytes,
)


class Cycle:
    """An object that only the collector frees."""

    alive = 0

    def __init__(self) -> None:
        self.me = self
        Cycle.alive += 1

    def __del__(self) -> None:
        Cycle.alive -= 1


@pytest.fixture(autouse=True)
def none_alive() -> None:
    gc.collect()
    Cycle.alive = 0


@pytest.fixture
def examined() -> Iterator[list[int]]:
    """The generation of each examination."""
    generations: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    gc.callbacks.append(note)
    yield generations
    gc.callbacks.remove(note)


async def test_cycles_are_freed_at_the_end_of_a_pass(autojump_clock: trio.testing.MockClock) -> None:
    with collecting():
        for _ in range(100):
            for _ in range(YOUNG_MIN // 10):
                Cycle()
            await trio.sleep(EXAMINE_S)
        assert Cycle.alive < 2 * YOUNG_MIN


async def test_examinations_are_rare(examined: list[int], autojump_clock: trio.testing.MockClock) -> None:
    """Many calls in progress make many young objects in each pass."""
    with collecting():
        await trio.sleep(EXAMINE_S)
        examined.clear()
        for _ in range(10):
            kept = [[number] for number in range(YOUNG_MIN)]
            await trio.lowlevel.checkpoint()
            del kept
        assert len(examined) == 1


async def test_nothing_is_examined_within_a_pass(examined: list[int]) -> None:
    with collecting():
        examined.clear()
        kept = [[number] for number in range(10 * EXAMINED_MAX)]
        assert examined == []
    assert len(kept) == 10 * EXAMINED_MAX


async def test_a_long_payload_is_never_examined() -> None:
    with collecting():
        kept = [[number] for number in range(2 * EXAMINED_MAX)]
        await trio.lowlevel.checkpoint()
        assert gc.get_count()[0] < YOUNG_MIN
        for generation in range(3):
            assert not any(each is kept[0] for each in gc.get_objects(generation))


async def test_few_objects_are_examined_at_a_time(
    examined: list[int], autojump_clock: trio.testing.MockClock
) -> None:
    """What lives longer is examined twice, and then only with everything else."""
    kept: list[list[int]] = []
    with collecting():
        examined.clear()
        for _ in range(20):
            kept += [[number] for number in range(2 * YOUNG_MIN)]
            before = len(gc.get_objects(0)) + len(gc.get_objects(1))
            await trio.sleep(EXAMINE_S)
            assert before < 2 * EXAMINED_MAX
        assert {0, 1} == set(examined)
        assert len(gc.get_objects(2)) >= 10 * YOUNG_MIN


async def test_all_objects_are_examined_when_the_process_has_grown() -> None:
    with collecting() as collector:
        for _ in range(2 * EXAMINED_MAX):
            Cycle()
        await trio.lowlevel.checkpoint()
        assert Cycle.alive == 2 * EXAMINED_MAX, "they were taken for a payload"
        collector.look(private_bytes())
        assert Cycle.alive == 2 * EXAMINED_MAX
        collector.look(2 * private_bytes() + 2 * GROWTH_BYTES)
        assert Cycle.alive == 0


async def test_its_growth_is_counted_from_the_least() -> None:
    collector = Collector()
    size = private_bytes()
    before = gc.get_stats()[2]["collections"]
    for bytes_now in (size, size // 4, size // 4 + GROWTH_BYTES):
        collector.look(bytes_now)
    assert gc.get_stats()[2]["collections"] == before
    collector.look(size + GROWTH_BYTES)
    assert gc.get_stats()[2]["collections"] == before + 1


async def test_pauses_are_counted_and_everything_is_as_before_at_the_end() -> None:
    before_s = PAUSES.total_s
    with collecting():
        assert not gc.isenabled()
        gc.collect()
        assert gc.callbacks.count(PAUSES) == 1
    assert PAUSES.total_s > before_s
    assert PAUSES.longest_s <= PAUSES.total_s
    assert gc.isenabled()
    assert PAUSES not in gc.callbacks
    assert gc.get_freeze_count() == 0
