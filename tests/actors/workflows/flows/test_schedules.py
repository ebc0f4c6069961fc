"""When timers are due."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.workflows.flows.schedules import MISSED_COUNTED_MAX, Schedule, schedule_of

BERLIN = "Europe/Berlin"


def ms(text: str, zone: str = "UTC", fold: int = 0) -> int:
    """The time of a text such as 2026-03-29 02:30 in a time zone; `fold` is the pass through a repeated hour."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def cron(text: str, zone: str = "UTC") -> Schedule:
    schedule = schedule_of({"cron": text, "tz": zone})
    assert schedule is not None
    return schedule


def due(text: str, start: str, number: int, zone: str = "UTC") -> list[str]:
    """The next due times, in UTC."""
    schedule, found, at_ms = cron(text, zone), [], ms(start)
    for _ in range(number):
        at_ms = schedule.first(at_ms)
        found.append(datetime.fromtimestamp(at_ms / 1000, ZoneInfo("UTC")).strftime("%m-%d %H:%M:%S"))
    return found


def test_five_fields_six_fields_and_aliases() -> None:
    assert due("*/20 * * * *", "2026-01-01 00:00", 3) == [
        "01-01 00:20:00",
        "01-01 00:40:00",
        "01-01 01:00:00",
    ]
    assert due("*/25 * * * * *", "2026-01-01 00:00", 3) == [
        "01-01 00:00:25",
        "01-01 00:00:50",
        "01-01 00:01:00",
    ]
    assert due("@daily", "2026-01-01 00:00", 2, BERLIN) == ["01-01 23:00:00", "01-02 23:00:00"]
    for alias in ("@hourly", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"):
        assert due(alias, "2026-01-01 00:00", 1)[0].endswith("00:00")


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("30 2 * * *", ["03-29 01:00:00", "03-30 00:30:00"]),
        ("0 30 2 * * *", ["03-29 01:00:00", "03-30 00:30:00"]),
        ("15,45 2 * * *", ["03-29 01:00:00", "03-30 00:15:00"]),
        ("*/20 2 * * *", ["03-29 01:00:00", "03-30 00:00:00"]),
        ("0 */2 * * *", ["03-28 23:00:00", "03-29 01:00:00", "03-29 02:00:00"]),
        ("10 0 */2 * * *", ["03-28 23:00:10", "03-29 01:00:00", "03-29 02:00:10"]),
        # Every hour that is there has its run.
        ("30 * * * *", ["03-29 00:30:00", "03-29 01:30:00"]),
        (
            "*/40 * * * *",
            ["03-28 23:00:00", "03-28 23:40:00", "03-29 00:00:00", "03-29 00:40:00", "03-29 01:00:00"],
        ),
    ],
)
def test_times_that_summer_time_leaves_out_are_due_once_right_after_it(text: str, times: list[str]) -> None:
    # From 02:00 to 03:00 on 29 March there is no time.
    start = "2026-03-28 22:59" if times[0] < "03-29" else "2026-03-29 00:10"
    assert due(text, start, len(times), BERLIN) == times


@pytest.mark.parametrize(
    ("text", "times"),
    [
        # From 02:00 to 02:30 there is no time, so an hour between two runs is half an hour.
        ("0 * * * *", ["01:00", "02:30", "03:00"]),
        ("5 * * * *", ["01:05", "02:30", "03:05"]),
        ("45 * * * *", ["00:45", "01:45", "02:45", "03:45"]),
        ("0 45 * * * *", ["00:45", "01:45", "02:45", "03:45"]),
        ("*/20 * * * *", ["00:40", "01:00", "01:20", "01:40", "02:40", "03:00"]),
        ("0 15 2 * * *", ["02:30"]),
        ("0 0 4 * * *", ["04:00"]),
    ],
)
def test_a_change_of_half_an_hour(text: str, times: list[str]) -> None:
    zone = "Australia/Lord_Howe"
    schedule, at_ms, found = cron(text, zone), ms("2026-10-04 00:30", zone), []
    for _ in times:
        at_ms = schedule.first(at_ms)
        found.append(datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone)).strftime("%H:%M"))
    assert found == times


@pytest.mark.parametrize(
    "zone", ["America/Havana", "Africa/Cairo", "Antarctica/Troll", "Australia/Lord_Howe", BERLIN]
)
@pytest.mark.parametrize("text", ["0 0 * * *", "30 1 * * *", "*/30 2 * * *", "15 10 0 * * *", "0 45 2 * * *"])
def test_a_daily_time_is_due_on_every_day(text: str, zone: str) -> None:
    schedule, days = cron(text, zone), set()
    at_ms, end_ms = ms("2026-01-01 00:00", zone) - 1000, ms("2027-01-01 00:00", zone)
    while (at_ms := schedule.first(at_ms)) < end_ms:
        days.add(datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone)).date())
    assert len(days) == 365


def test_all_times_of_a_day_that_summer_time_leaves_out_are_due_at_once() -> None:
    # From 01:00 to 03:00.
    assert due("10 1,2 * * *", "2026-03-29 00:00", 2, "Antarctica/Troll") == [
        "03-29 01:00:00",
        "03-29 23:10:00",
    ]


def test_a_time_of_the_repeated_hour_is_due_once() -> None:
    schedule = cron("30 2 * * *", BERLIN)
    first = schedule.first(ms("2026-10-24 12:00"))
    assert first == ms("2026-10-25 02:30", BERLIN)
    assert schedule.first(first) == ms("2026-10-26 02:30", BERLIN)
    # Also if the time is asked for in the second pass.
    for minute in ("02:10", "02:30", "02:50"):
        again = ms(f"2026-10-25 {minute}", BERLIN, fold=1)
        assert schedule.first(again) == ms("2026-10-26 02:30", BERLIN)


def test_a_frequent_schedule_goes_on_in_the_repeated_hour() -> None:
    assert due("*/30 * * * *", "2026-10-24 23:45", 6, BERLIN) == [
        f"10-25 0{hour}:{minute}:00" for hour in range(3) for minute in ("00", "30")
    ]
    six = cron("0 30 2 * * *", BERLIN)
    passes = [ms("2026-10-25 02:30", BERLIN, fold=fold) for fold in (0, 1)]
    assert [six.first(each - 60_000) for each in passes] == passes
    assert six.first(passes[0]) == passes[1]
    assert six.first(passes[1]) == ms("2026-10-26 02:30", BERLIN)


def test_an_interval_does_not_drift_and_counts_what_it_missed() -> None:
    schedule = schedule_of({"seconds": 1.5})
    assert schedule is not None
    assert schedule.first(1000) == 2500
    assert schedule.after(2500, 2507) == (4000, 0)
    assert schedule.after(2500, 3999) == (4000, 0)
    assert schedule.after(2500, 4000) == (5500, 1)
    assert schedule.after(2500, 2500 + 86_400_000) == (2500 + 86_401_500, 57_600)


def test_cron_counts_what_it_missed_up_to_a_bound() -> None:
    schedule, start = cron("* * * * *"), ms("2026-01-01 00:01")
    assert schedule.after(start, start + 500) == (start + 60_000, 0)
    assert schedule.after(start, start + 180_000) == (start + 240_000, 3)
    after = start + 90 * 86_400_000
    assert schedule.after(start, after) == (after + 60_000, MISSED_COUNTED_MAX)


def test_a_clock_that_was_set_back_delays_an_interval_by_no_more_than_the_interval() -> None:
    schedule = schedule_of({"seconds": 60})
    assert schedule is not None
    assert schedule.corrected(1_060_000, 1_000_000, 400_000) == 460_000
    assert schedule.corrected(1_060_000, 1_000_000, 999_000) == 1_059_000


def test_a_clock_that_was_set_back_a_little_makes_no_cron_time_due_twice() -> None:
    schedule, noon = cron("0 * * * *"), ms("2026-01-01 12:00")
    due_ms = schedule.first(noon)
    assert schedule.corrected(due_ms, noon, noon - 600_000) == due_ms
    assert schedule.corrected(due_ms, noon, noon - 86_400_000) == noon - 86_400_000 + 3_600_000


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"seconds": 0.5}, "seconds: 0.5 is not possible; give 1 to 31622400"),
        ({"seconds": 31_622_401}, "seconds: 31622401 is not possible"),
        ({"seconds": 5, "cron": "* * * * *"}, "cron: the timer has seconds as well"),
        ({"cron": "* * * *"}, "cron: '* * * *' cannot be used (Wrong number of fields)"),
        ({"cron": "61 * * * *"}, "cron: '61 * * * *' cannot be used (Bad minute)"),
        ({"cron": "@often"}, "cron: '@often' cannot be used"),
        ({"cron": "0 0 30 2 *"}, "cron: '0 0 30 2 *' cannot be used (Bad day-of-month)"),
        ({"cron": "0 0 */31 2 MON#5"}, "is never due"),
        ({"cron": "0 0 L/2-3 * *"}, "cannot be used"),
        ({"cron": "0 0 * * 1,2L/2"}, "cannot be used"),
        ({"cron": "0 0 * * *", "tz": "Mars/Base"}, "tz: there is no time zone 'Mars/Base'"),
        ({"cron": "0 0 * * *", "tz": "../etc/passwd"}, "tz: there is no time zone"),
    ],
)
def test_what_cannot_be_used_is_refused(config: dict[str, object], sentence: str) -> None:
    with pytest.raises(Invalid) as refusal:
        schedule_of(config)
    assert sentence in refusal.value.message


def test_without_settings_there_is_no_schedule() -> None:
    assert schedule_of({}) is None
    assert schedule_of({"cron": "", "tz": ""}) is None
