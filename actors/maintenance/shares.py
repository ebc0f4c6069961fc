"""Which partition each application goes to, by size. Pure: numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_ABOUT_EQUAL: Final = 0.05
"""Nothing is moved for so small a part of a share."""


def shares(
    sizes: Mapping[bytes, int], now: Mapping[bytes, int], base: Sequence[int], *, grows: bool
) -> dict[bytes, int]:
    """The new partition of each application.

    `sizes` and `now` are by application: its bytes, and the partition that it is in. `base` are the bytes of each of
    the new partitions that belong to no application of `sizes`. With fewer partitions than before an application stays
    if its partition does. With more (`grows`) it stays as long as the partition has at most its share with it; what is
    larger comes first. The others go, the largest first, to the partition that has the least.
    """
    load, count = list(base), len(base)
    mean = (sum(sizes.values()) + sum(load)) / count
    placed: dict[bytes, int] = {}
    left: list[bytes] = []
    for id in sorted(sizes, key=lambda each: (-sizes[each], each)):
        here = now[id]
        if here < count and (not grows or not load[here] or load[here] + sizes[id] <= mean):
            placed[id] = here
            load[here] += sizes[id]
        else:
            left.append(id)
    for id in left:
        target = min(range(count), key=lambda number: (load[number], number))
        here = now[id]
        if here < count and load[here] <= load[target] + mean * _ABOUT_EQUAL:
            target = here
        placed[id] = target
        load[target] += sizes[id]
    return placed
