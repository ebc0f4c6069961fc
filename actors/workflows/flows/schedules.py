"""Schedules: when a timer is due, from its settings.

An interval of seconds begins anew with each due time, so it does not drift. A cron expression has five fields, or six
with the seconds first, or is an alias such as `@daily`. It is read in its time zone. Times that the change to summer
time leaves out are due once, right after it, unless the expression takes every hour: then each hour that is there has
its run. A time that is there twice is due once if the expression has five fields, and neither the minute nor the hour
begins with `*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from trunkline.actors.core.values.errors import Invalid

MISSED_COUNTED_MAX: Final = 1_000
"""Missed due times of a cron expression that are counted."""

SECONDS_MAX: Final = 31_622_400
"""A year of 366 days."""

_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_BACK_MS: Final = 3_600_000
_FAR_MS: Final = 50 * SECONDS_MAX * 1000
"""The library looks no further ahead."""


class Schedule(Protocol):
    """When something is due. All times in ms since the epoch."""

    def first(self, now_ms: int) -> int:
        """The first due time after now."""
        ...

    def after(self, due_ms: int, now_ms: int) -> tuple[int, int]:
        """The due time that follows a due time that is over, later than now, and how many of those before are over."""
        ...

    def corrected(self, due_ms: int, since_ms: int, now_ms: int) -> int:
        """The due time, which was determined at `since_ms`; an earlier one if the clock was set back since."""
        ...


class Interval:
    """Due again and again after a number of ms."""

    __slots__ = ("_ms",)

    def __init__(self, ms: int) -> None:
        self._ms = ms

    def first(self, now_ms: int) -> int:
        return now_ms + self._ms

    def after(self, due_ms: int, now_ms: int) -> tuple[int, int]:
        missed = (now_ms - due_ms) // self._ms
        return due_ms + (missed + 1) * self._ms, missed

    def corrected(self, due_ms: int, since_ms: int, now_ms: int) -> int:  # noqa: ARG002
        return min(due_ms, now_ms + self._ms)


class Cron:
    """Due at the times of a cron expression. Raises `Invalid` for the expression or the time zone.

    The library reads the expression as times of a clock on the wall, without a time zone. What they are in the zone is
    decided here: with a zone the library loses times where the clocks are not put forward by a whole hour.
    """

    __slots__ = ("_is_once", "_takes_every_hour", "_text", "_zone")

    def __init__(self, text: str, zone: str) -> None:
        try:
            self._zone = ZoneInfo(zone) if zone else UTC
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise Invalid(
                f"tz: there is no time zone {zone!r}; give one such as Europe/Berlin, or UTC."
            ) from None
        self._text = _ALIASES.get(text.strip().lower(), text)
        try:
            schedule = CronSim(self._text, datetime(2024, 1, 1))  # noqa: DTZ001 - a time on the wall
            next(schedule)
        except StopIteration:
            raise Invalid(f"cron: {text!r} is never due; no month has such a day.") from None
        except (CronSimError, AssertionError, TypeError, ValueError) as error:
            reason = str(error) or "the expression cannot be read"
            raise Invalid(
                f"cron: {text!r} cannot be used ({reason}); give five fields, minute hour day month weekday, such as "
                "'0 6 * * 1-5', six with the seconds first, or an alias such as @daily."
            ) from None
        fields = self._text.split()
        self._is_once = len(fields) == 5 and not any(each.startswith("*") for each in fields[:2])
        self._takes_every_hour = len(schedule.hours) == 24

    def first(self, now_ms: int) -> int:
        now = datetime.fromtimestamp(now_ms / 1000, self._zone)
        wall = now.replace(tzinfo=None, fold=0)
        due_s = self._next(wall, now_ms // 1000)
        before, after = self._passes(wall)
        if before < after and not now.fold:
            # The clocks are about to be put back: times that are over on the wall come again.
            again_s = self._next_after(self._change(before, after))
            if due_s is not None and again_s is not None:
                due_s = min(due_s, again_s)
        return now_ms + _FAR_MS if due_s is None else due_s * 1000

    def _next(self, wall: datetime, now_s: int) -> int | None:
        """The first due time (s) that is later on the wall."""
        for each in CronSim(self._text, wall):
            before, after = self._passes(each)
            if before > after:
                return self._made_up(each, self._change(after, before))
            if before > now_s:
                return before
            if not self._is_once:
                return after
        return None

    def _next_after(self, change_s: int) -> int | None:
        """The first due time (s) from a change of the clocks on."""
        wall = datetime.fromtimestamp(change_s, self._zone).replace(tzinfo=None, fold=0)
        return self._next(wall - timedelta(seconds=1), change_s - 1)

    def _made_up(self, wanted: datetime, change_s: int) -> int | None:
        """The due time for one that is left out on the wall when the clocks are put forward."""
        if not self._takes_every_hour:
            return change_s
        due_s = self._next_after(change_s)
        if due_s is None:
            return None
        due = datetime.fromtimestamp(due_s, self._zone)
        # An hour of which a part is there has its run; one that is not there as a whole has none.
        is_there = wanted.hour == datetime.fromtimestamp(change_s, self._zone).hour
        return change_s if is_there and due.hour != wanted.hour else due_s

    def _passes(self, wall: datetime) -> tuple[int, int]:
        """When it is this time on the wall (s): by the offset before and after a change of the clocks near it.

        Both are the same as a rule. The first is earlier if the time is there twice, and later if it is left out.
        """
        first, second = (wall.replace(tzinfo=self._zone, fold=fold).timestamp() for fold in (0, 1))
        return int(first), int(second)

    def _change(self, low_s: int, high_s: int) -> int:
        """The second from which on the offset is not that of `low_s` but that of `high_s`."""
        offset = datetime.fromtimestamp(high_s, self._zone).utcoffset()
        while high_s - low_s > 1:
            middle_s = (low_s + high_s) // 2
            if datetime.fromtimestamp(middle_s, self._zone).utcoffset() == offset:
                high_s = middle_s
            else:
                low_s = middle_s
        return high_s

    def after(self, due_ms: int, now_ms: int) -> tuple[int, int]:
        missed, next_ms = 0, self.first(due_ms)
        while next_ms <= now_ms:
            missed += 1
            if missed == MISSED_COUNTED_MAX:
                return self.first(now_ms), missed
            next_ms = self.first(next_ms)
        return next_ms, missed

    def corrected(self, due_ms: int, since_ms: int, now_ms: int) -> int:
        # What was due before a small correction of the clock is not due twice.
        return due_ms if now_ms >= since_ms - _BACK_MS else min(due_ms, self.first(now_ms))


def schedule_of(config: Mapping[str, Any], *, seconds_min: float = 1) -> Schedule | None:
    """The schedule of the settings of a timer; None without one. Raises `Invalid`, which begins with the field."""
    seconds, cron = config.get("seconds"), config.get("cron")
    if seconds is not None and cron:
        raise Invalid("cron: the timer has seconds as well; give only one of them.")
    if cron:
        return _cron(cron, config.get("tz") or "")
    if seconds is None:
        return None
    if not seconds_min <= seconds <= SECONDS_MAX:
        raise Invalid(
            f"seconds: {seconds} is not possible; give {seconds_min:g} to {SECONDS_MAX}, which is a year."
        )
    return Interval(round(seconds * 1000))


@lru_cache(1024)
def _cron(text: str, zone: str) -> Cron:
    return Cron(text, zone)
