"""Values survive encoding and decoding, and damage raises ValueError."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.store import codec

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(plain)
def test_what_goes_in_comes_out(obj: Any) -> None:
    again = codec.decode(codec.encode(obj))
    assert again == obj
    assert type(again) is type(obj)


@pytest.mark.parametrize("raw", [b"", b"\xff", b"\xa1", b"\x1c", b"\x62\xff\xff", b"\x5b" + b"\xff" * 8])
def test_damage_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match="no CBOR"):
        codec.decode(raw)


edges = st.sampled_from([2**bits + by for bits in (0, 8, 16, 32, 64) for by in (-2, -1, 0, 1)] + [23, 24, 25])


@given(
    st.dictionaries(
        st.integers(-3, 300),
        st.floats()
        | st.integers()
        | edges
        | st.booleans()
        | st.text(max_size=30)
        | st.none()
        | st.lists(st.floats(), max_size=2),
        max_size=30,
    )
)
def test_a_numbered_map_has_the_bytes_of_any_other(values: dict[int, Any]) -> None:
    assert codec.encode_numbered(values) == codec.encode(values)
