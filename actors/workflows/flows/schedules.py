"""Schedules: when a timer is due, from its settings.

An interval of seconds begins anew with each due time, so it does not drift. A cron expression has five fields, or six
with the seconds first, or is an alias such as `@daily`. It is read in its time zone: a time that the change to summer
time leaves out is due right after it, and one that is there twice is due once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
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
    """Due at the times of a cron expression. Raises `Invalid` for the expression or the time zone."""

    __slots__ = ("_text", "_zone")

    def __init__(self, text: str, zone: str) -> None:
        try:
            self._zone = ZoneInfo(zone) if zone else UTC
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise Invalid(
                f"tz: there is no time zone {zone!r}; give one such as Europe/Berlin, or UTC."
            ) from None
        self._text = _ALIASES.get(text.strip().lower(), text)
        try:
            next(CronSim(self._text, datetime(2024, 1, 1, tzinfo=self._zone)))
        except StopIteration:
            raise Invalid(f"cron: {text!r} is never due; no month has such a day.") from None
        except (CronSimError, AssertionError, TypeError, ValueError) as error:
            reason = str(error) or "the expression cannot be read"
            raise Invalid(
                f"cron: {text!r} cannot be used ({reason}); give five fields, minute hour day month weekday, such as "
                "'0 6 * * 1-5', six with the seconds first, or an alias such as @daily."
            ) from None

    def first(self, now_ms: int) -> int:
        for each in CronSim(self._text, datetime.fromtimestamp(now_ms / 1000, self._zone)):
            due_ms = int(each.timestamp()) * 1000
            if due_ms > now_ms:  # in an hour that the clocks repeat, the library begins with its first pass
                return due_ms
        return now_ms + _FAR_MS

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
