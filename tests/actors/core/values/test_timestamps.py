"""Times: every form a caller may give is read as promised, and what is written can be read again."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunkline.actors.core.values.timestamps import (
    SECONDS_BELOW,
    TIMESTAMP_MS_MAX,
    TimeRange,
    TimestampError,
    iso,
    parse_duration,
    parse_iso,
    parse_report_time,
    resolve_range,
    resolve_timestamp,
)

NOW_MS = 1_714_564_800_123  # 2024-05-01T12:00:00.123Z
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

moments = st.integers(0, TIMESTAMP_MS_MAX)
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def to_datetime(time_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time_ms)


class TestIso:
    @given(st.integers(-62_135_596_800_000, TIMESTAMP_MS_MAX))
    @example(0)
    @example(999)
    @example(-1)
    @example(86_399_999)
    @example(951_782_400_000)  # the 29th of February 2000
    @example(TIMESTAMP_MS_MAX)
    def test_writes_what_datetime_writes_and_reads_it_back(self, time_ms: int) -> None:
        expected = to_datetime(time_ms).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        assert iso(time_ms) == expected
        assert parse_iso(expected) == time_ms

    @given(st.lists(moments, min_size=2, max_size=10))
    def test_text_sorts_like_time(self, times: list[int]) -> None:
        assert [iso(time_ms) for time_ms in sorted(times)] == sorted(map(iso, times))

    @pytest.mark.parametrize("time_ms", [TIMESTAMP_MS_MAX + 1, -62_135_596_800_001, 10**30])
    def test_refuses_what_has_no_text(self, time_ms: int) -> None:
        with pytest.raises(TimestampError, match="outside the years"):
            iso(time_ms)

    @given(st.datetimes(timezones=offsets | st.just(UTC), min_value=datetime(2, 1, 1)))  # noqa: DTZ001
    def test_reads_any_offset(self, moment: datetime) -> None:
        assert parse_iso(moment.isoformat()) == (moment - EPOCH) // timedelta(milliseconds=1)

    @pytest.mark.parametrize(
        ("text", "same"),
        [
            ("2024-05-01", "2024-05-01T00:00:00.000Z"),
            ("2024-05-01T12:00", "2024-05-01T12:00:00.000Z"),
            ("2024-05-01 12:00:00", "2024-05-01T12:00:00.000Z"),
            ("2024-05-01t12:00:00z", "2024-05-01T12:00:00.000Z"),
            ("2024-05-01T12:00:00.5Z", "2024-05-01T12:00:00.500Z"),
            ("2024-05-01T12:00:00,25Z", "2024-05-01T12:00:00.250Z"),
            ("2024-05-01T12:00:00.123999999Z", "2024-05-01T12:00:00.123Z"),
            ("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00.000Z"),
            ("2024-05-01T12:00:00-0530", "2024-05-01T17:30:00.000Z"),
            ("2024-05-01T12:00:00+02", "2024-05-01T10:00:00.000Z"),
            ("  2024-05-01T12:00:00Z\n", "2024-05-01T12:00:00.000Z"),
        ],
    )
    def test_reads_the_forms_in_use(self, text: str, same: str) -> None:
        assert iso(parse_iso(text)) == same

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "now",
            "2024-5-1",
            "20240501T120000Z",
            "2024-05-01x12:00:00.000Z",
            "2024-05-01T12:00:00.000ZZ",
            "2024-02-30",
            "2023-02-29T00:00:00.000Z",
            "2024-05-01T24:00:00Z",
            "2024-05-01T12:60:00Z",
            "2024-05-01T12:00:00+99:00",
            "2024-05-01T12:00:00-24:00",
            "2024-05-01T12:00:00+05:75",
            "2024-05-01T12:00:00.0o0Z",
            "0000-01-01T00:00:00.000Z",
            "+012024-05-01T12:00:00Z",
            "2024-W18-3T12:00:00.000Z",
            "２０２４-05-01",
            "2024-05-01T12:00:00." + "1" * 10_000,
        ],
    )
    def test_refuses_other_texts_with_a_short_sentence(self, text: str) -> None:
        with pytest.raises(
            TimestampError, match=r"^seen: '.*(is not an ISO 8601 time|not a valid date)"
        ) as caught:
            parse_iso(text, field="seen")
        assert caught.value.field == "seen"
        assert len(str(caught.value)) < 300
        assert "timedelta" not in str(caught.value)

    @given(st.text(max_size=40))
    def test_any_text_gives_a_moment_or_a_moment_error(self, text: str) -> None:
        with suppress(TimestampError):
            assert isinstance(parse_iso(text), int)


class TestReportTime:
    def test_absent_is_now(self) -> None:
        assert parse_report_time(None, NOW_MS) == NOW_MS

    @given(moments)
    def test_iso_text_plain_or_as_date_object(self, time_ms: int) -> None:
        assert parse_report_time(iso(time_ms), NOW_MS) == time_ms
        assert parse_report_time({"$date": iso(time_ms)}, NOW_MS) == time_ms

    @given(st.integers(0, SECONDS_BELOW - 1))
    def test_small_numbers_are_seconds(self, time_s: int) -> None:
        for given_time in (time_s, float(time_s), str(time_s)):
            assert parse_report_time(given_time, NOW_MS) == time_s * 1000

    @given(st.integers(SECONDS_BELOW, TIMESTAMP_MS_MAX))
    def test_large_numbers_are_milliseconds(self, time_ms: int) -> None:
        for given_time in (time_ms, float(time_ms), f" {time_ms} "):
            assert parse_report_time(given_time, NOW_MS) == time_ms

    @given(st.integers(0, SECONDS_BELOW * 1000 - 1))
    @example(1001)  # 1.001 * 1000 is a little less than 1001
    def test_fractions_of_seconds_keep_every_millisecond(self, time_ms: int) -> None:
        assert parse_report_time(time_ms / 1000, NOW_MS) == time_ms
        assert parse_report_time(f"{time_ms // 1000}.{time_ms % 1000:03}", NOW_MS) == time_ms

    @given(st.integers(1, NOW_MS))
    def test_negative_numbers_count_back_from_now(self, ago_ms: int) -> None:
        for given_time in (-ago_ms, float(-ago_ms), str(-ago_ms)):
            assert parse_report_time(given_time, NOW_MS) == NOW_MS - ago_ms

    def test_the_edges_of_the_years(self) -> None:
        assert parse_report_time(0, NOW_MS) == 0
        assert parse_report_time(-NOW_MS, NOW_MS) == 0
        assert parse_report_time(TIMESTAMP_MS_MAX, NOW_MS) == TIMESTAMP_MS_MAX
        assert parse_report_time("1970-01-01T01:00+01:00", NOW_MS) == 0

    @pytest.mark.parametrize(
        "value",
        [
            TIMESTAMP_MS_MAX + 1,
            -NOW_MS - 1,
            1e300,
            -1e300,
            10**400,
            -(10**400),
            "1969-12-31T23:59:59.999Z",
            "9999-12-31T23:59:59-01:00",
            {"$date": "0001-01-01T00:00+10:00"},
        ],
    )
    def test_outside_the_years_is_refused(self, value: object) -> None:
        with pytest.raises(TimestampError, match="outside the years 1970 to 9999") as caught:
            parse_report_time(value, NOW_MS, field="states[3].time")
        assert str(caught.value).startswith("states[3].time: ")
        assert len(str(caught.value)) < 200

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (True, "true"),
            (False, "false"),
            ([], "an array"),
            ({}, "an object"),
            ({"$date": 5}, '{"$date": 5}'),
            ({"$date": None}, '{"$date": null}'),
            ({"$date": "2024-05-01", "x": 1}, "an object"),
            (float("nan"), "nan"),
            (float("inf"), "inf"),
            ("1e999", "1e999"),
            (b"2024-05-01", "2024"),
        ],
    )
    def test_other_values_are_named_with_what_would_be_right(self, value: object, shown: str) -> None:
        with pytest.raises(TimestampError) as caught:
            parse_report_time(value, NOW_MS)
        assert shown in str(caught.value)
        assert "give an ISO 8601 text" in str(caught.value)

    @pytest.mark.parametrize("value", ["", "yesterday", {"$date": ""}, {"$date": "12"}, "9" * 5000, "0x10"])
    def test_text_that_is_no_time(self, value: object) -> None:
        with pytest.raises(TimestampError, match="is not an ISO 8601 time"):
            parse_report_time(value, NOW_MS)

    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.just("$date") | st.text(), inner),
        max_leaves=5,
    )

    @given(json_values)
    def test_any_json_gives_a_moment_in_range_or_a_moment_error(self, value: object) -> None:
        with suppress(TimestampError):
            assert 0 <= parse_report_time(value, NOW_MS) <= TIMESTAMP_MS_MAX


class TestRange:
    def test_nothing_given_is_everything_until_now(self) -> None:
        assert resolve_range(NOW_MS) == TimeRange(0, NOW_MS)
        assert resolve_range(NOW_MS, start="", end="", duration="", since="") == TimeRange(0, NOW_MS)

    def test_a_start_of_one_is_the_beginning(self) -> None:
        for start in (1, "1", 1.0):
            assert resolve_range(NOW_MS, start=start) == TimeRange(0, NOW_MS)
        assert resolve_range(NOW_MS, start="1970-01-01T00:00:00.001Z") == TimeRange(1, NOW_MS)
        assert resolve_range(NOW_MS, start=1, end=1, since="1970-01-01") == TimeRange(1, 1)

    def test_zero_is_now_and_negative_counts_back_from_now(self) -> None:
        assert resolve_range(NOW_MS, start=-1000, end=0) == TimeRange(NOW_MS - 1000, NOW_MS)
        assert resolve_range(NOW_MS, start=0, end=0) == TimeRange(NOW_MS, NOW_MS)
        assert resolve_range(NOW_MS, start=5, end=-1000) == TimeRange(5, NOW_MS - 1000)

    def test_duration_counts_back_from_the_end_and_wins_over_start(self) -> None:
        assert resolve_range(NOW_MS, start=7, duration=1000) == TimeRange(NOW_MS - 1000, NOW_MS)
        assert resolve_range(NOW_MS, end=5000, duration="1000") == TimeRange(4000, 5000)
        assert resolve_range(NOW_MS, end=5000, duration=0) == TimeRange(5000, 5000)
        assert resolve_range(NOW_MS, end=500, duration=1000) == TimeRange(0, 500)

    def test_defaults_hold_only_where_nothing_is_given(self) -> None:
        assert resolve_range(NOW_MS, default_start=-1000) == TimeRange(NOW_MS - 1000, NOW_MS)
        assert resolve_range(NOW_MS, default_duration=1000, end=5000) == TimeRange(4000, 5000)
        assert resolve_range(NOW_MS, default_duration=1000, start=10) == TimeRange(10, NOW_MS)
        assert resolve_range(NOW_MS, default_duration=1000, since=10) == TimeRange(11, NOW_MS)
        assert resolve_range(NOW_MS, default_end=-5) == TimeRange(0, NOW_MS - 5)

    def test_since_leaves_its_own_millisecond_out(self) -> None:
        assert resolve_range(NOW_MS, since=1000) == TimeRange(1001, NOW_MS)
        assert resolve_range(NOW_MS, since=-1000) == TimeRange(NOW_MS - 999, NOW_MS)
        assert resolve_range(NOW_MS, since="1000", start=500) == TimeRange(1001, NOW_MS)
        assert resolve_range(NOW_MS, since=1000, start=1500) == TimeRange(1500, NOW_MS)
        assert resolve_range(NOW_MS, since=1000, duration=NOW_MS) == TimeRange(1001, NOW_MS)

    def test_a_reader_who_has_seen_everything_gets_an_empty_range(self) -> None:
        assert resolve_range(NOW_MS, since=0).empty
        assert resolve_range(NOW_MS, start=NOW_MS + 1).empty
        assert not resolve_range(NOW_MS, start=NOW_MS).empty

    def test_is_a_pair(self) -> None:
        start_ms, end_ms = resolve_range(NOW_MS, start=5, end=6)
        assert (start_ms, end_ms) == (5, 6)

    @given(st.integers(-(10**16), TIMESTAMP_MS_MAX))
    def test_text_and_whole_floats_mean_the_number(self, number: int) -> None:
        expected = resolve_timestamp(number, NOW_MS, field="end")
        assert expected == (number if number > 0 else max(NOW_MS + number, 0))
        assert resolve_timestamp(f"{number}", NOW_MS, field="end") == expected
        assert resolve_timestamp(f"{number}.0", NOW_MS, field="end") == expected
        if float(number) == number:
            assert resolve_timestamp(json.loads(json.dumps(float(number))), NOW_MS, field="end") == expected

    @pytest.mark.parametrize("name", ["start", "end", "duration", "since"])
    @pytest.mark.parametrize(
        "value", ["soon", True, [], {}, float("nan"), float("inf"), "2024-13-01", "1e99", 1e300, 10**400]
    )
    def test_errors_name_the_field(self, name: str, value: object) -> None:
        with pytest.raises(TimestampError, match=f"^{name}: ") as caught:
            resolve_range(NOW_MS, **{name: value})  # type: ignore[arg-type]
        assert caught.value.field == name

    @pytest.mark.parametrize("name", ["start", "end", "since"])
    @pytest.mark.parametrize("text", ["2024-05-01T12:00:00.123Z", "2024-05-01T14:00:00.123+02:00"])
    def test_iso_text_means_what_the_number_means(self, name: str, text: str) -> None:
        by_number = resolve_range(NOW_MS + 5000, **{name: NOW_MS})
        assert resolve_range(NOW_MS + 5000, **{name: text}) == by_number  # type: ignore[arg-type]

    def test_iso_text_before_1970_is_the_epoch_and_never_now(self) -> None:
        for text in ("1970-01-01T00:00:00Z", "1969-12-31", "0001-01-01"):
            assert resolve_timestamp(text, NOW_MS, field="start") == 0

    @pytest.mark.parametrize(
        ("value", "expected"),
        [(1714564800123.4567, NOW_MS), ("1714564800123.4567", NOW_MS), (1.5, 2), (-999.6, NOW_MS - 1000)],
    )
    def test_decimals_are_rounded_to_milliseconds(self, value: object, expected: int) -> None:
        assert resolve_timestamp(value, NOW_MS, field="start") == expected

    @pytest.mark.parametrize(
        ("value", "expected"), [(1.6, 2), ("1.6", 2), (0.2, 1), (0, 0), ("0", 0), (0.0, 0)]
    )
    def test_a_short_length_of_time_is_never_rounded_to_none(self, value: object, expected: int) -> None:
        assert parse_duration(value, field="resolution") == expected

    @pytest.mark.parametrize("text", ["2024-05-01T12:00:00 02:00", "soon", "2024-05-01T12:00:00+2:00"])
    def test_text_that_is_no_bound_shows_all_forms(self, text: str) -> None:
        with pytest.raises(TimestampError) as caught:
            resolve_timestamp(text, NOW_MS, field="start")
        sentence = str(caught.value)
        assert "ISO 8601" in sentence
        assert "milliseconds since 1970, 0 for now" in sentence
        assert ("written %2B" in sentence) == (" " in text)

    @pytest.mark.parametrize("value", [-1, "-1", TIMESTAMP_MS_MAX + 1, -0.5])
    def test_a_length_of_time_is_never_negative(self, value: object) -> None:
        with pytest.raises(TimestampError, match=r"^resolution: .*milliseconds"):
            parse_duration(value, field="resolution")

    bounds = st.none() | st.just("") | st.integers(-(10**13), 10**13)

    @given(bounds, bounds, st.none() | st.integers(0, 10**13), bounds)
    def test_always_a_range_within_the_years(
        self, start: object, end: object, duration: object, since: object
    ) -> None:
        found = resolve_range(NOW_MS, start=start, end=end, duration=duration, since=since)
        assert 0 <= found.start_ms <= TIMESTAMP_MS_MAX + 1
        assert 0 <= found.end_ms <= TIMESTAMP_MS_MAX
