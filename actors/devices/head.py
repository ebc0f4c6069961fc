"""The head of a device: what is known of it now, in one small value beside its newest points.

Owns the composite state (the newest value of each attribute), the running position of the command and
connection logs, and the payload counts of the current hour. It lies on the same leaf of the b-tree as the
newest point, so writing it costs no page of its own. It must stay small: of a long text it holds only when it
was reported, and the point of that time has the text.

It is written with every batch of the device but those that it follows from: a report that is newer than all
others changes nothing that its point does not say. Up to `FOLLOWING_MAX` such points may lie behind the stored
head, and `Head.read` takes them in. So most reports are one small write.

It is encoded often, so it is stored as one flat list, which takes half the time of nested ones:
the running numbers, the hour's counts with their number before them, then for each attribute its number, how
many milliseconds before the newest point it was reported (mostly 0, which is one byte), and its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from trunkline.actors.values.timestamps import HOUR_MS
from trunkline.store import keys
from trunkline.store.codec import decode, encode

POSITION_SHIFT = 32
"""A position in a log is `time_ms << 32 | seq`: one integer that orders as the log does."""

STATE_COUNT = "deviceState"
"""What a stored state is counted as."""

TEXT_CHARS_MAX = 256
"""Longer texts stay in their points: 256 of them would make a head of 16 MB, written with each report."""

FOLLOWING_MAX = 3
"""Points behind the stored head. Each spares the next report 8 us of head, and costs each read 1 us."""

Newest = tuple[int, Any] | tuple[int]
"""When an attribute was reported last, and its value where the head holds it."""


class Source(Protocol):
    """Where a head is read from: a snapshot, or the journal with what waits for its commit."""

    def get(self, db: str, key: bytes) -> bytes | None:
        """The value at `key`, None where there is none."""
        ...

    def range(self, db: str, lo: bytes, hi: bytes) -> Iterable[tuple[bytes, bytes]]:
        """Keys and values for lo <= key < hi, in order."""
        ...


class Head:
    """The mutable head in the memory of its device actor.

    `values` maps the interned number of an attribute to `(time_ms, value)`, or to `(time_ms,)` for a long
    text. `newest_ms` is the time of the newest stored point (-1 without any), `command_ms` that of the
    newest command, `seq` counts log entries and never goes back. `following` is how many points the stored
    head does not know yet.
    """

    __slots__ = ("command_ms", "counts", "following", "hour", "newest_ms", "seq", "values")

    def __init__(self) -> None:
        self.seq = 0
        self.following = 0
        self.newest_ms = -1
        self.command_ms = 0
        self.hour = 0
        self.counts: dict[str, int] = {}
        self.values: dict[int, Newest] = {}

    @classmethod
    def read(cls, source: Source, device: bytes) -> Head:
        """The head of a device, with what the points behind the stored one say."""
        head = cls.decoded(source.get(keys.TIMELINE, keys.head_key(device)))
        behind, end = keys.point_key(device, head.newest_ms + 1), keys.point_key(device, keys.TIME_MS_MAX)
        for key, raw in source.range(keys.TIMELINE, behind, end):
            head.report(keys.point_time_ms(key), decode(raw))
            head.counts[STATE_COUNT] = head.counts.get(STATE_COUNT, 0) + 1
            head.following += 1
        return head

    @classmethod
    def decoded(cls, raw: bytes | None) -> Head:
        """The head as it is stored; a fresh one where nothing is stored yet."""
        head = cls()
        if raw is not None:
            flat = decode(raw)
            head.seq, head.newest_ms, head.command_ms, head.hour, counts = flat[:5]
            first = 5 + 2 * counts
            head.counts = dict(zip(flat[5:first:2], flat[6:first:2], strict=True))
            newest_ms = head.newest_ms
            head.values = {
                number: (newest_ms - age_ms,) if value is None else (newest_ms - age_ms, value)
                for number, age_ms, value in zip(
                    flat[first::3], flat[first + 1 :: 3], flat[first + 2 :: 3], strict=True
                )
            }
        return head

    def takes_follower(self, now_ms: int) -> bool:
        """Whether a report that comes now, alone and newer than all others, may be stored without the head.

        It is counted in the hour that the stored head has.
        """
        return self.following < FOLLOWING_MAX and self.hour == now_ms // HOUR_MS

    def report(self, time_ms: int, point: Mapping[int, Any]) -> None:
        """Take a report in: what is older than an attribute's newest value does not change the head."""
        values = self.values
        late = time_ms < self.newest_ms
        for number, value in point.items():
            if number < 0 or (late and number in values and time_ms < values[number][0]):
                continue
            if type(value) is str and len(value) > TEXT_CHARS_MAX:
                values[number] = (time_ms,)
            else:
                values[number] = (time_ms, value)
        if not late:
            self.newest_ms = time_ms

    def report_all(self, reports: Sequence[tuple[int, Mapping[int, Any]]]) -> None:
        """Take many reports in, in their order: of those that go forward in time, the last of each attribute."""
        times = [time_ms for time_ms, _ in reports]
        if len(times) < 2 or times != sorted(times):
            for time_ms, point in reports:
                self.report(time_ms, point)
            return
        seen: set[int] = set()
        for time_ms, point in reversed(reports):
            if not point.keys() <= seen:
                self.report(time_ms, {number: point[number] for number in point.keys() - seen})
                seen |= point.keys()
        self.newest_ms = max(self.newest_ms, times[-1])

    def encoded(self) -> bytes:
        """The bytes to store. No value is None, so that stands for a long text."""
        self.following = 0
        newest_ms = self.newest_ms
        flat: list[Any] = [self.seq, newest_ms, self.command_ms, self.hour, len(self.counts)]
        for count in self.counts.items():
            flat += count
        for number, newest in self.values.items():
            flat += (number, newest_ms - newest[0], newest[1] if len(newest) == 2 else None)
        return encode(flat)
