"""Counters: sums of named integers under one key, which many writers add to.

Owns how additions combine before they are stored and how they join what is stored. Additions commute, so
those of all batches of a group become one read and one write a key, and no writer needs to know the present
value.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from trunkline.store import codec

_log = structlog.get_logger("trunkline.store")


def merge_sums(into: dict[bytes, dict[str, int]], key: bytes, counts: Mapping[str, int]) -> None:
    """Add `counts` to what `into` holds for `key`. `counts` itself is never kept."""
    present = into.get(key)
    if present is None:
        into[key] = dict(counts)
    else:
        for name, count in counts.items():
            present[name] = present.get(name, 0) + count


def stored_sums(raw: bytes | None, counts: Mapping[str, int]) -> bytes:
    """Return the stored form of the sums in `raw` (None: there are none yet) after `counts` are added.

    Sums that can not be read start again from zero, with an error in the log: one damaged counter must not
    keep everybody from writing.
    """
    if raw is None:
        return codec.encode(counts)
    try:
        sums: dict[str, int] = codec.decode(raw)
        for name, count in counts.items():
            sums[name] = sums.get(name, 0) + count
        return codec.encode(sums)
    except (ValueError, TypeError, AttributeError) as error:
        _log.error("sums can not be read and start again", error=str(error))
        return codec.encode(counts)
