"""Samples of a running load: its rate, and the processor time and memory of generator and server.

Owns sampling. Does not own the interpretation of the samples.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from trunkline.bench.load import Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import clock
from trunkline.bench.result import Sample
from trunkline.bench.server_monitor import ServerMonitor, Usage

SAMPLE_S_MIN = 0.25
"""Seconds: a sample covers at least so much. The first tick may come right after the load has begun, when nothing is
answered yet and the generator has only sent."""


class Sampler:
    """Samples a load: the rates since the last sample, and the processor time that both sides used.

    Must be used in the thread of the load, because it reads the processor time of its own thread.
    """

    def __init__(
        self, tallies: Sequence[Tally], monitor: ServerMonitor | None, bar: ProgressBar, duration_s: float
    ) -> None:
        self.samples: list[Sample] = []
        self.generator_cpu = 0.0
        self.server_cpu: float | None = None
        self._tallies = tallies
        self._monitor = monitor
        self._bar = bar
        self._duration_s = duration_s
        self._first = self._last = self._look()

    def tick(self) -> None:
        """Take a sample, unless the last one was taken just now; the next one then covers this time too."""
        last, now = self._last, self._look()
        passed_s = now.at_s - last.at_s
        if passed_s < SAMPLE_S_MIN:
            return
        at_s = now.at_s - self._first.at_s
        units, refused = now.units - last.units, now.refused - last.refused
        self.samples.append(
            Sample(
                at_s=at_s,
                unit_rate=units / passed_s,
                refused_rate=refused / passed_s,
                generator_cpu=(now.cpu_s - last.cpu_s) / passed_s,
                server_cpu=_share(last.server, now.server, passed_s),
                server_bytes=now.server.bytes if now.server else None,
            )
        )
        self._last = now
        self._bar.show(at_s / self._duration_s, f"{now.units:,} acknowledged, {now.refused:,} refused")

    def end(self) -> None:
        """Compute the processor shares over the whole time."""
        now = self._look()
        passed_s = max(now.at_s - self._first.at_s, 1e-6)
        self.generator_cpu = (now.cpu_s - self._first.cpu_s) / passed_s
        self.server_cpu = _share(self._first.server, now.server, passed_s)

    def _look(self) -> _Look:
        return _Look(
            at_s=clock(),
            cpu_s=time.thread_time(),
            units=sum(tally.units for tally in self._tallies),
            refused=sum(tally.refused.total() for tally in self._tallies),
            server=self._monitor.usage() if self._monitor else None,
        )


class _Look(NamedTuple):
    at_s: float
    cpu_s: float
    units: int
    refused: int
    server: Usage | None


def _share(before: Usage | None, after: Usage | None, passed_s: float) -> float | None:
    return (after.cpu_s - before.cpu_s) / passed_s if before and after else None
