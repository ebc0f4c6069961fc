"""The collector: seldom, and its pauses are told."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from trunkline.http.wire import collector


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    if collector.PAUSES in gc.callbacks:
        gc.callbacks.remove(collector.PAUSES)


def test_its_pauses_are_counted_once_each() -> None:
    for _ in range(2):
        collector.tame()
    assert gc.get_threshold() == collector.COLLECT_AFTER
    assert gc.callbacks.count(collector.PAUSES) == 1
    before_s = collector.PAUSES.total_s
    gc.collect()
    assert collector.PAUSES.total_s > before_s
    assert collector.PAUSES.longest_s <= collector.PAUSES.total_s


def test_cycles_are_collected_all_the_same() -> None:
    class Cycle:
        made = 0

        def __init__(self) -> None:
            self.me = self
            Cycle.made += 1

        def __del__(self) -> None:
            Cycle.made -= 1

    collector.tame()
    for _ in range(2 * collector.COLLECT_AFTER[0]):
        Cycle()
    assert Cycle.made <= collector.COLLECT_AFTER[0]
