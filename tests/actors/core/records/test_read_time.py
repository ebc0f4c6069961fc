"""What a read may do in the event loop."""

from __future__ import annotations

import pytest

from trunkline.actors.core.records.read_time import LARGE_BYTES_MAX, Inline
from trunkline.actors.core.records.reading import INLINE_BYTES_MAX, TakesLong


def test_one_value_that_takes_long_to_decode_is_left_to_a_thread() -> None:
    assert LARGE_BYTES_MAX < INLINE_BYTES_MAX
    with pytest.raises(TakesLong):
        Inline().take(LARGE_BYTES_MAX + 1)
