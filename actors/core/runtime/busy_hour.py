"""What the event loop has worked on in the last hour, and for which applications: samples, counted.

Owns the counts. Does not own when a sample is taken (`loop_watch.py`): about once in two milliseconds in which the loop
works, in the middle of a turn. Whoever the turn is for gets the sample, so a turn of 20 microseconds has one chance in
a hundred, and in the sum each application has as many milliseconds as it took, within some hundredths where it took
seconds. A state costs nothing by that but the comparison of two numbers.

The hour is a ring of slots of five minutes, so it has 55 to 60 of them. Commits are for all who wrote: those of a slot
are divided among its applications, by what these took besides.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from trunkline.actors.core.runtime.work import Work

SLOTS: Final = 12
SLOT_NS: Final = 300_000_000_000
SAMPLE_NS: Final = 2_000_000
"""The time of the loop that a sample stands for."""
APPLICATIONS_MAX: Final = 2_048
"""The applications of a slot. Those that get their first sample of it later are counted together, as no application's:
they are small, as the others were sampled first. A slot takes 200 kB at most."""


class _Slot:
    """The samples of five minutes: by application, of commits, and of all together."""

    __slots__ = ("applications", "commits", "total")

    def __init__(self) -> None:
        self.applications: dict[bytes, int] = {}
        self.commits = 0
        self.total = 0


class Busy(NamedTuple):
    """How many seconds the loop has worked of the last `counted_s`, and for how many of them for which application."""

    counted_s: float
    busy_s: float
    applications: dict[bytes, float]


class BusyHour:
    """The samples of the last hour. Times are of `time.perf_counter_ns`."""

    def __init__(self, now_ns: int) -> None:
        self.begin(now_ns)

    def begin(self, now_ns: int) -> None:
        """Count from now on; what was counted is forgotten."""
        self._began_ns = now_ns
        self._number = now_ns // SLOT_NS
        self._ring = [_Slot() for _ in range(SLOTS)]
        self._slot = self._ring[self._number % SLOTS]
        self._until_ns = (self._number + 1) * SLOT_NS

    def count(self, work: Work | None, samples: int, now_ns: int) -> None:
        """Count samples of a turn that was for this work."""
        if now_ns >= self._until_ns:
            self._advance(now_ns)
        slot = self._slot
        slot.total += samples
        if work is None:
            return
        application = work.application
        if application is None:
            if work.kind == "commit":
                slot.commits += samples
            return
        counted = slot.applications
        before = counted.get(application)
        if before is not None:
            counted[application] = before + samples
        elif len(counted) < APPLICATIONS_MAX:
            counted[application] = samples

    def busy(self, now_ns: int) -> tuple[float, float]:
        """How many seconds the loop has worked, of how many."""
        if now_ns >= self._until_ns:
            self._advance(now_ns)
        window_ns = (SLOTS - 1) * SLOT_NS + now_ns % SLOT_NS
        counted_ns = max(1, min(now_ns - self._began_ns, window_ns))
        samples = sum(slot.total for slot in self._ring)
        return counted_ns / 1e9, min(samples * SAMPLE_NS, counted_ns) / 1e9

    def told(self, now_ns: int) -> Busy:
        """The same, and what each application took."""
        counted_s, busy_s = self.busy(now_ns)
        applications: dict[bytes, float] = {}
        for slot in self._ring:
            own = sum(slot.applications.values())
            if own:
                factor = (1 + slot.commits / own) * SAMPLE_NS / 1e9
                for application, samples in slot.applications.items():
                    applications[application] = applications.get(application, 0.0) + factor * samples
        return Busy(counted_s, busy_s, applications)

    def _advance(self, now_ns: int) -> None:
        number = now_ns // SLOT_NS
        for passed in range(max(self._number, number - SLOTS) + 1, number + 1):
            self._ring[passed % SLOTS] = _Slot()
        self._number = number
        self._slot = self._ring[number % SLOTS]
        self._until_ns = (number + 1) * SLOT_NS
