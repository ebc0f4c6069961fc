"""Promises to clients that were not kept: what was acknowledged, compared with what is stored and what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any


class Verdict:
    """How often a promise was not kept, and the evidence."""

    def __init__(self) -> None:
        self.lost = self.doubled = self.disorder = 0
        self.stale = 0
        self.evidence: list[str] = []

    def compare(self, name: str, sent: Sequence[int], stored: Sequence[int], once: set[int]) -> None:
        """Numbers that were sent in this order and acknowledged, with those that are stored; `once` are those that may
        not come again."""
        counted, first = Counter(stored), list(dict.fromkeys(stored))
        lost = [each for each in sent if not counted[each]]
        doubled = [each for each, times in counted.items() if times > 1 and each in once]
        disorder = [pair for pair in pairwise(first) if pair[0] > pair[1]]
        unknown = counted.keys() - set(sent)
        self._add(name, lost, doubled, disorder)
        if unknown:
            self.evidence.append(f"{name}: nobody has sent {sorted(unknown)}, or it was refused")

    def count(self, name: str, wanted: Counter[str], stored: Counter[str]) -> None:
        """How often each mark was sent, with how often it is stored."""
        self._add(name, [*(wanted - stored).elements()], [*(stored - wanted).elements()], [])

    def _add(self, name: str, lost: list[Any], doubled: list[Any], disorder: list[Any]) -> None:
        self.lost += len(lost)
        self.doubled += len(doubled)
        self.disorder += len(disorder)
        if lost or doubled or disorder:
            self.evidence.append(f"{name}: lost {lost}, doubled {doubled}, out of order {disorder}")

    def saw(self, name: str, value: float, least: float) -> None:
        """A value that was read, and the one that was acknowledged before that was asked for."""
        if value < least:
            self.stale += 1
            self.evidence.append(f"{name}: {value} was read after {least}")
