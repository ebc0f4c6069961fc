"""Copies of JSON values share nothing with them, however deep they are."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.actors.engine.copies import copied


def nested(depth: int, as_list: bool) -> Any:
    value: Any = [1] if as_list else {"a": 1}
    for _ in range(depth):
        value = [value, 2] if as_list else {"a": value, "b": 2}
    return value


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 19, 20, 21, 22, 5_000])
def test_a_copy_shares_nothing(depth: int, as_list: bool) -> None:
    value = nested(depth, as_list)
    copy = copied(value)
    for _ in range(depth + 1):
        assert copy is not value
        assert len(copy) == len(value)
        key: Any = 0 if as_list else "a"
        copy, value = copy[key], value[key]
    assert copy == value == 1
