"""The head of a device: its current state in one small value, stored beside its reports.

Owns the composite state (the newest value of each attribute), the last position in the command and connection logs,
and the payload counts of the current hour. It must stay small: for a long text it contains only the time of the report,
and the text is read from the point of that time.

The head is written with every batch of the device, except where it follows from the stored reports: the effect of a
report that is newer than all others can be computed from its point. Up to `POINTS_AHEAD_MAX` such reports may come
after the stored head; `Head.read` applies them. So most reports are one small write. When reports are flushed into a
run, the head that is stored apart from them contains all of them (`advanced`).

The head is encoded often, so it is stored as one flat list, which takes half the time of nested lists: the last log
number, the times and the hour, the number of counts and the counts of the hour, then for each attribute its number,
its age in milliseconds relative to the newest point (mostly 0, which is one byte), and its value. At the end is when a
report arrived last, relative to the newest point, and a 1 if triggers of inactivity have fired since. A device that has
used the link has a list in the place of the last log number: this number and what its `LinkMark` has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.store.codec import decode, encode
from trunkline.store.report_items import Ahead
from trunkline.store.state_columns import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

POSITION_SHIFT = 32
"""A position in a log is `time_ms << 32 | seq`: one integer in the order of the log."""

STATE_COUNT = "deviceState"
"""The name of the payload count of stored states."""

TEXT_CHARS_MAX = 256
"""Longer texts are kept only in their points: 256 of them would make a head of 16 MB, written with each report."""

POINTS_AHEAD_MAX = 15
"""Reports after the stored head. Each saves 8 us of writing the head, and costs each read 1 us."""

Newest = tuple[int, Any] | tuple[int]
"""The time of an attribute's newest report in ms, and its value unless that is a long text."""


class LinkMark(NamedTuple):
    """Which frames of the device link are stored: the session that came last, and the number of its last frame.

    The frames of backlogs are counted apart. -1 is no session. `refused` are the frames up to these numbers that were
    refused, and whose refusal may have been lost with the connection.
    """

    session: int = -1
    n: int = 0
    backlog_n: int = 0
    refused: tuple[int, ...] = ()

    @classmethod
    def of(cls, plain: Sequence[Any]) -> LinkMark:
        """The mark of which `plain` is the stored form."""
        session, n, backlog_n, *refused = plain
        return cls(session, n, backlog_n, tuple(refused))

    @property
    def plain(self) -> list[int]:
        """The form in which it is stored."""
        return [self.session, self.n, self.backlog_n, *self.refused]

    def has(self, session: int, n: int, *, backlog: bool) -> bool:
        """Whether this frame or a later one of its session was stored."""
        return session == self.session and n <= (self.backlog_n if backlog else self.n)

    def after(
        self, session: int, n: int, refused: tuple[int, ...] = (), *, backlog: bool, answered: int = 0
    ) -> LinkMark:
        """The mark when this frame is stored as well, and these frames are known to be refused.

        Those that were refused before are remembered if the client may not have the answers to them: it has them up to
        the frame `answered`.
        """
        n_before, backlog_before = 0, 0
        if session == self.session:
            n_before, backlog_before = self.n, self.backlog_n
            if self.refused:
                earlier = [each for each in self.refused if each > answered and each != n]
                refused = tuple(dict.fromkeys([*earlier, *refused]))
        if backlog:
            return LinkMark(session, n_before, n, refused)
        return LinkMark(session, n, backlog_before, refused)

    def told(self, session: int) -> tuple[int, int]:
        """Up to which numbers all frames of a session are stored, live ones and those of backlogs."""
        if session != self.session:
            return 0, 0
        first = min(self.refused, default=None)
        if first is None:
            return self.n, self.backlog_n
        return min(self.n, first - 1), min(self.backlog_n, first - 1)


NO_LINK = LinkMark()


class Source(Protocol):
    """The source that a head is read from: a snapshot, or the journal, which also sees uncommitted writes."""

    def head(self, device: bytes) -> Ahead:
        """Return the stored head of a device and the reports after it."""
        ...


class Head:
    """The mutable head in the memory of its device actor.

    `values` maps the number of an attribute to `(time_ms, value)`, or to `(time_ms,)` for a long text.
    `newest_ms` is the time of the newest stored point (-1 if there is none), `command_ms` that of the newest
    command, `seq` the number of the last log entry, which never decreases. `points_ahead` is the number of points
    that are newer than the stored head. `arrived_ms` is when the last report arrived, -1 for none; `is_silent` if
    triggers of inactivity have fired since. `link` says which frames of the link are stored.
    """

    __slots__ = (
        "arrived_ms",
        "command_ms",
        "counts",
        "hour",
        "is_silent",
        "link",
        "newest_ms",
        "points_ahead",
        "seq",
        "values",
    )

    def __init__(self) -> None:
        self.seq = 0
        self.link = NO_LINK
        self.points_ahead = 0
        self.newest_ms = -1
        self.arrived_ms = -1
        self.is_silent = False
        self.command_ms = 0
        self.hour = 0
        self.counts: dict[str, int] = {}
        self.values: dict[int, Newest] = {}

    @classmethod
    def read(cls, source: Source, device: bytes) -> Head:
        """Read the stored head of a device and apply the reports after it."""
        return advanced(source.head(device))

    def after(self, reports: Iterable[tuple[int, Mapping[int, Any]]]) -> Head:
        """Apply reports that the stored head may lack, in the order of their times; return this head."""
        for time_ms, point in reports:
            if time_ms > self.newest_ms:  # else the head has it already
                self.report(time_ms, point)
                self.arrived_ms = max(self.arrived_ms, time_ms)
                self.counts[STATE_COUNT] = self.counts.get(STATE_COUNT, 0) + 1
                self.points_ahead += 1
        return self

    @classmethod
    def decoded(cls, raw: bytes | None) -> Head:
        """Decode a stored head; None gives the head of a new device."""
        head = cls()
        if raw is not None:
            flat = decode(raw)
            seq, head.newest_ms, head.command_ms, head.hour, counts = flat[:5]
            if type(seq) is list:
                seq, *link = seq
                head.link = LinkMark.of(link)
            head.seq = seq
            first = 5 + 2 * counts
            head.counts = dict(zip(flat[5:first:2], flat[6:first:2], strict=True))
            newest_ms = head.arrived_ms = head.newest_ms
            match (len(flat) - first) % 3:
                case 1:
                    head.arrived_ms -= flat.pop()
                case 2:
                    head.is_silent = bool(flat.pop())
                    head.arrived_ms -= flat.pop()
            head.values = {
                number: (newest_ms - age_ms,) if value is None else (newest_ms - age_ms, value)
                for number, age_ms, value in zip(
                    flat[first::3], flat[first + 1 :: 3], flat[first + 2 :: 3], strict=True
                )
            }
        return head

    def can_defer_write(self, now_ms: int) -> bool:
        """Return whether a single report, newer than all others, may be stored now without writing the head.

        `Head.read` counts such a report in the hour of the stored head, so the hour must be the same.
        """
        return self.points_ahead < POINTS_AHEAD_MAX and self.hour == now_ms // HOUR_MS

    def report(self, time_ms: int, point: Mapping[int, Any]) -> None:
        """Apply a report. Values older than an attribute's newest value do not change the head."""
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
        """Apply many reports in order. If their times ascend, only the last value of each attribute is applied."""
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

    def report_columns(self, times: NDArray[np.int64], columns: Mapping[int, Values]) -> None:
        """Apply many reports, given as columns: the newest value of each attribute."""
        if (times[1:] >= times[:-1]).all():
            order: Sequence[int] = range(len(times))
        else:
            order = np.argsort(times, kind="stable").tolist()
        for number, values in columns.items():
            if number < 0:
                continue
            if isinstance(values, np.ndarray):
                at = order[-1]
                self.report(int(times[at]), {number: values[at].item()})
            else:
                at = next(at for at in reversed(order) if values[at] is not None)
                self.report(int(times[at]), {number: values[at]})
        self.newest_ms = max(self.newest_ms, int(times[order[-1]]))

    def encoded(self) -> bytes:
        """Return the bytes to store. None stands for a long text, since no value is None."""
        self.points_ahead = 0
        newest_ms = self.newest_ms
        seq = self.seq if self.link is NO_LINK else [self.seq, *self.link.plain]
        flat: list[Any] = [seq, newest_ms, self.command_ms, self.hour, len(self.counts)]
        for count in self.counts.items():
            flat += count
        for number, newest in self.values.items():
            flat += (number, newest_ms - newest[0], newest[1] if len(newest) == 2 else None)
        if self.arrived_ms != newest_ms or self.is_silent:
            flat.append(newest_ms - self.arrived_ms)
        if self.is_silent:
            flat.append(1)
        return encode(flat)


def advanced(ahead: Ahead) -> Head:
    """Return a stored head with what came after it."""
    head = Head.decoded(ahead.head).after(ahead.reports)
    if ahead.link is not None:
        head.link = LinkMark.of(ahead.link)
    return head


def last_arrival_ms(ahead: Ahead) -> int:
    """When the last report arrived, -1 for never: `arrived_ms` of the head, read without its values."""
    newest_ms = arrived_ms = -1
    if ahead.head is not None:
        flat = decode(ahead.head)
        newest_ms = arrived_ms = flat[1]
        after_values = (len(flat) - 5 - 2 * flat[4]) % 3
        if after_values:
            arrived_ms -= flat[-after_values]
    for time_ms, _ in ahead.reports:
        if time_ms > newest_ms:
            newest_ms = time_ms
            arrived_ms = max(arrived_ms, time_ms)
    return arrived_ms


def encoded_after(ahead: Ahead) -> bytes:
    """Return the stored form of a head with what came after it."""
    return advanced(ahead).encoded()
