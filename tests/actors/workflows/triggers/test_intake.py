"""The stored form of triggers."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.actors.core.values.origin import Origin
from trunkline.actors.workflows.triggers.intake import Cause, TriggerRecord, decode_trigger


def record(data: Any, origin: Origin | None = None, version: str | None = None) -> TriggerRecord:
    cause = Cause("t", data, 1_700_000_000_000, {"meta": [1]}, origin, 7, b"d" * 12)
    return TriggerRecord(b"a" * 12, b"f" * 12, version, 3, "deviceId", "key", 2, cause)


DATA: list[Any] = [
    None,
    {"a": 1, "b": 1.0, "c": -0.0, "d": b"bytes", "e": True, "f": None, "g": "é"},
    [{"nested": {"more": [[]]}}],
    {"large": 2**64 - 1, "negative": -(2**63)},
    {"larger": 2**64, "lower": -(2**63) - 1, "far": 10**40},
]


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("origin", [None, Origin("0" * 24, "flow", 5)])
@pytest.mark.parametrize("version", [None, "v1"])
def test_a_record_is_read_as_it_was_stored(data: Any, origin: Origin | None, version: str | None) -> None:
    stored = record(data, origin, version)
    for raw in (stored.encoded(), stored.as_cbor()):
        found = decode_trigger(raw)
        assert found == stored
        assert repr(found) == repr(stored)
