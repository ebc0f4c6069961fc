"""From which day on an application is archived."""

from __future__ import annotations

from trunkline.actors.platform.applications.archive_days import last_due_day
from trunkline.limits.table import DAY_MS, Limits


def test_fewer_days_than_the_least_count_as_that() -> None:
    now_ms, limits = 100 * DAY_MS, Limits()
    assert last_due_day(now_ms, 1, limits) == last_due_day(now_ms, 31, limits) == 100 - 31 - 1
    assert last_due_day(now_ms, 32, limits) == 100 - 32 - 1
