"""Large values are freed in pieces, and nothing that somebody holds is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio.testing

from trunkline.actors.core.runtime.letting_go import PIECE_ITEMS, let_go

ITEMS = 20 * PIECE_ITEMS


class Freed:
    """Counts how many of it are gone."""

    count = 0

    def __del__(self) -> None:
        Freed.count += 1


def _wide() -> Any:
    return [[Freed()] for _ in range(ITEMS)]


def _object() -> Any:
    return {f"k{number}": {"a": Freed()} for number in range(ITEMS)}


def _deep() -> Any:
    value: Any = []
    for _ in range(ITEMS):
        value = [value, Freed()]
    return value


@pytest.mark.parametrize("make", [_wide, _object, _deep])
async def test_each_turn_frees_a_piece(make: Callable[[], Any]) -> None:
    value = make()
    Freed.count, before, most = 0, 0, 0
    let_go(value)
    del value
    for _ in range(40 * ITEMS // PIECE_ITEMS):
        await trio.lowlevel.checkpoint()
        most, before = max(most, Freed.count - before), Freed.count
    assert Freed.count == ITEMS
    assert 0 < most <= PIECE_ITEMS


async def test_what_somebody_holds_stays() -> None:
    inner = [[number] for number in range(ITEMS)]
    value = {"data": {"inner": inner, "gone": _wide()}}
    outer = [value]
    Freed.count = 0
    let_go(value)
    await trio.testing.wait_all_tasks_blocked()
    assert outer[0]["data"]["inner"] is inner
    assert Freed.count == 0
    let_go(outer.pop())
    del value
    await trio.testing.wait_all_tasks_blocked()
    assert Freed.count == ITEMS
    assert len(inner) == ITEMS
    assert inner[-1] == [ITEMS - 1]
