"""Counters: named integers under one key, which many writers increment.

Owns how increments are merged before they are stored and how they are applied to the stored counters.
Increments commute, so those of all batches of a group need one read and one write per key, and no writer needs
to know the current value.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from trunkline.store import codec

_log = structlog.get_logger("trunkline.store")


def merge_increments(into: dict[bytes, dict[str, int]], key: bytes, counts: Mapping[str, int]) -> None:
    """Add `counts` to the increments of `key` in `into`. No reference to `counts` is kept."""
    present = into.get(key)
    if present is None:
        into[key] = dict(counts)
    else:
        for name, count in counts.items():
            present[name] = present.get(name, 0) + count


def apply_increments(raw: bytes | None, counts: Mapping[str, int]) -> bytes:
    """Return the encoded counters of `raw` (None: there are none yet) after adding `counts`. Those at zero are removed.

    Counters that cannot be decoded start again from zero, with an error in the log: one damaged counter must
    not make every commit fail.
    """
    if raw is None:
        return codec.encode(counts)
    try:
        counters: dict[str, int] = codec.decode(raw)
        for name, count in counts.items():
            total = counters.get(name, 0) + count
            if total:
                counters[name] = total
            else:
                # Most names are fixed, but some are ids of records that may be deleted.
                counters.pop(name, None)
        return codec.encode(counters)
    except (ValueError, TypeError, AttributeError) as error:
        _log.error("counters cannot be read and start again from zero", error=str(error))
        return codec.encode(counts)
