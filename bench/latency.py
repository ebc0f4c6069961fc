"""A latency recorder with percentiles in bounded memory.

Owns counting and percentiles. It is a log-linear histogram like HdrHistogram: each power of two of microseconds
has 128 buckets, so a percentile is at most 0.8 % above the true value, and the recorder needs about 30 KiB for
any number of values.
"""

from __future__ import annotations

from array import array

_BUCKET_BITS = 7
_EXPONENTS = 30
_LENGTH = (_EXPONENTS + 1) << _BUCKET_BITS

LATENCY_MAX_S = ((1 << (_EXPONENTS + _BUCKET_BITS)) - 1) / 1e6
"""Seconds: about 38 hours; longer durations are recorded as this value."""


CURVE = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.99, 99.999, 100.0)
"""The percentiles from which a chart of a distribution is drawn."""


class LatencyRecorder:
    """Records durations in seconds and returns percentiles in seconds."""

    __slots__ = ("_counts", "_max_us", "_min_us", "_total_us", "count")

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * _LENGTH))
        self.count = 0
        self._total_us = 0
        self._min_us = 0
        self._max_us = 0

    def record(self, duration_s: float) -> None:
        """Count one duration; a negative one counts as zero."""
        value = min(max(int(duration_s * 1e6), 0), int(LATENCY_MAX_S * 1e6))
        shift = value.bit_length() - _BUCKET_BITS - 1
        index = value if shift <= 0 else (shift << _BUCKET_BITS) + (value >> shift)
        self._counts[index] += 1
        self._min_us = value if self.count == 0 or value < self._min_us else self._min_us
        self._max_us = max(value, self._max_us)
        self._total_us += value
        self.count += 1

    def percentile(self, percent: float) -> float:
        """Seconds that ``percent`` of the values do not exceed (at most 0.8 % too high); 0 if none."""
        if not 0 <= percent <= 100:
            raise ValueError("A percentile lies between 0 and 100.")
        if self.count == 0:
            return 0.0
        rank = max(1, -int(-self.count * percent // 100))
        seen = 0
        for index, count in enumerate(self._counts):
            seen += count
            if seen >= rank:
                return min(max(_top(index), self._min_us), self._max_us) / 1e6
        return self._max_us / 1e6

    def curve(self) -> list[tuple[float, float]]:
        """Pairs of a percentile and its seconds, denser towards the slowest; empty if nothing was recorded."""
        return [(percent, self.percentile(percent)) for percent in CURVE] if self.count else []

    @property
    def mean_s(self) -> float:
        """The exact mean in seconds, of values in whole microseconds."""
        return self._total_us / self.count / 1e6 if self.count else 0.0

    @property
    def max_s(self) -> float:
        """The longest duration in seconds."""
        return self._max_us / 1e6


def _top(index: int) -> int:
    """The largest value in microseconds that belongs to the bucket."""
    shift = (index >> _BUCKET_BITS) - 1
    if shift <= 0:
        return index
    return (((index & ((1 << _BUCKET_BITS) - 1)) | 1 << _BUCKET_BITS) + 1 << shift) - 1
