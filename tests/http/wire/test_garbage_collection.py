"""The garbage collector runs rarely, and its pauses are measured."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from trunkline.http.wire import garbage_collection


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    if garbage_collection.PAUSES in gc.callbacks:
        gc.callbacks.remove(garbage_collection.PAUSES)


def test_its_pauses_are_counted_once_each() -> None:
    for _ in range(2):
        garbage_collection.configure()
    assert gc.get_threshold() == garbage_collection.COLLECT_AFTER
    assert gc.callbacks.count(garbage_collection.PAUSES) == 1
    before_s = garbage_collection.PAUSES.total_s
    gc.collect()
    assert garbage_collection.PAUSES.total_s > before_s
    assert garbage_collection.PAUSES.longest_s <= garbage_collection.PAUSES.total_s


def test_cycles_are_collected_all_the_same() -> None:
    class Cycle:
        made = 0

        def __init__(self) -> None:
            self.me = self
            Cycle.made += 1

        def __del__(self) -> None:
            Cycle.made -= 1

    garbage_collection.configure()
    for _ in range(2 * garbage_collection.COLLECT_AFTER[0]):
        Cycle()
    assert Cycle.made <= garbage_collection.COLLECT_AFTER[0]
