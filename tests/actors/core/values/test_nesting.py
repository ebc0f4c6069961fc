"""The bound on the nesting of free values, for one value and for many at once."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.nesting import NESTING_MAX, check_each, check_nesting


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_the_deepest_values_are_taken() -> None:
    check_nesting(nested(NESTING_MAX), "payload")
    check_each([1, None, nested(NESTING_MAX), nested(3)], str)


def test_a_value_that_is_too_deep_is_named() -> None:
    with pytest.raises(Invalid, match=r"^payload: nests deeper than 100 levels"):
        check_nesting(nested(NESTING_MAX + 1), "payload")
    with pytest.raises(Invalid, match=r"^2: nests deeper than 100 levels"):
        check_each([1, nested(NESTING_MAX), nested(NESTING_MAX + 1)], str)
