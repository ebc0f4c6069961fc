"""What the loop has worked on in the last hour: the window, who gets the commits, and what is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.runtime.busy_hour import (
    APPLICATIONS_MAX,
    SAMPLE_NS,
    SLOT_NS,
    SLOTS,
    BusyHour,
)
from trunkline.actors.core.runtime.work import Work

ONE, OTHER = bytes(11) + b"\x01", bytes(11) + b"\x02"
BEGAN_NS = 7 * SLOT_NS + SLOT_NS // 2
S = 1_000_000_000
SAMPLE_S = SAMPLE_NS / S


def call(application: bytes | None) -> Work:
    return Work("call", "device.sendState", application)


COMMIT = Work("commit", "group commit")


def test_each_application_has_its_samples_and_the_whole_all_of_them() -> None:
    hour = BusyHour(BEGAN_NS)
    hour.count(call(ONE), 30, BEGAN_NS + S)
    hour.count(call(OTHER), 10, BEGAN_NS + S)
    hour.count(call(None), 5, BEGAN_NS + S)
    hour.count(None, 5, BEGAN_NS + 2 * S)
    told = hour.told(BEGAN_NS + 10 * S)
    assert told.counted_s == 10
    assert told.busy_s == pytest.approx(50 * SAMPLE_S)
    assert told.applications == pytest.approx({ONE: 30 * SAMPLE_S, OTHER: 10 * SAMPLE_S})
    assert hour.busy(BEGAN_NS + 10 * S) == told[:2]


def test_commits_are_divided_among_those_who_worked_in_their_slot() -> None:
    hour = BusyHour(BEGAN_NS)
    hour.count(call(ONE), 30, BEGAN_NS)
    hour.count(call(OTHER), 10, BEGAN_NS)
    hour.count(COMMIT, 20, BEGAN_NS)
    hour.count(COMMIT, 7, BEGAN_NS + SLOT_NS)  # of a slot in which no application had a sample
    told = hour.told(BEGAN_NS + SLOT_NS)
    assert told.applications == pytest.approx({ONE: 45 * SAMPLE_S, OTHER: 15 * SAMPLE_S})
    assert told.busy_s == pytest.approx(67 * SAMPLE_S)


def test_what_is_older_than_the_window_is_forgotten() -> None:
    hour = BusyHour(BEGAN_NS)
    hour.count(call(ONE), 30, BEGAN_NS)
    last_ns = (BEGAN_NS // SLOT_NS + SLOTS) * SLOT_NS - 1
    assert hour.told(last_ns).applications
    told = hour.told(last_ns + 1)
    assert not told.applications
    assert told.busy_s == 0
    assert told.counted_s == (SLOTS - 1) * SLOT_NS / 1e9
    hour.count(call(OTHER), 1, last_ns + 40 * SLOT_NS)
    assert hour.told(last_ns + 40 * SLOT_NS).applications == pytest.approx({OTHER: SAMPLE_S})


def test_the_window_is_never_longer_than_an_hour_nor_than_it_has_counted() -> None:
    hour = BusyHour(BEGAN_NS)
    for passed_s in range(1, 3 * 3600, 77):
        counted_s, _ = hour.busy(BEGAN_NS + passed_s * S)
        assert counted_s <= min(3600, passed_s)
        assert counted_s == pytest.approx(passed_s) or counted_s >= 3300


def test_above_the_bound_of_a_slot_applications_are_counted_as_nobodys() -> None:
    hour = BusyHour(BEGAN_NS)
    for number in range(APPLICATIONS_MAX + 5):
        hour.count(call(number.to_bytes(12, "big")), 1, BEGAN_NS)
    hour.count(call(bytes(12)), 1, BEGAN_NS)  # one of those that are counted
    told = hour.told(BEGAN_NS + 100 * S)
    assert len(told.applications) == APPLICATIONS_MAX
    assert told.applications[bytes(12)] == pytest.approx(2 * SAMPLE_S)
    assert told.busy_s == pytest.approx((APPLICATIONS_MAX + 6) * SAMPLE_S)
    hour.count(call(b"new in slot "), 1, BEGAN_NS + SLOT_NS)
    assert b"new in slot " in hour.told(BEGAN_NS + SLOT_NS).applications


def test_a_new_begin_forgets() -> None:
    hour = BusyHour(BEGAN_NS)
    hour.count(call(ONE), 30, BEGAN_NS)
    hour.begin(BEGAN_NS + S)
    assert hour.told(BEGAN_NS + 2 * S) == (1.0, 0.0, {})


COUNTED = st.tuples(st.sampled_from([None, ONE, OTHER, b"commit"]), st.integers(1, 900), st.integers(0, 400))


@given(st.lists(COUNTED, max_size=60))
def test_applications_have_no_more_than_the_whole(counted: list[tuple[bytes | None, int, int]]) -> None:
    hour, now_ns = BusyHour(BEGAN_NS), BEGAN_NS
    for whose, samples, passed_s in counted:
        now_ns += passed_s * S + samples * SAMPLE_NS
        hour.count(COMMIT if whose == b"commit" else call(whose), samples, now_ns)
    told = hour.told(now_ns + 1)
    assert sum(told.applications.values()) <= told.busy_s + 1e-6
    assert told.busy_s <= told.counted_s
