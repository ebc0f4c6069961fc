"""The times of calls, counted by class."""

from __future__ import annotations

from typing import Final

CALL_TIMES_S: Final = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
"""The upper bounds of the classes in which calls are counted by their time; one more class has the longer ones."""


class CallTimes:
    """The times of some calls, from the whole request to the response: how many in each class of `CALL_TIMES_S`."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(CALL_TIMES_S) + 1)
        self.total_s = 0.0
