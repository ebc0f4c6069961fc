"""The states of the last hour, beside the history of ten minutes, by the same counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.fleet.devices.state.traffic import (
    HOUR_INTERVALS,
    HOUR_SLOTS,
    INTERVAL_MS,
    INTERVALS_MAX,
    ApplicationTraffic,
)

SLOT_MS = HOUR_INTERVALS * INTERVAL_MS
BEGAN_MS = 1_700_000_003_000


@given(
    st.lists(st.tuples(st.integers(0, 900_000), st.integers(1, 500), st.booleans()), max_size=40),
    st.integers(0, 5_000_000),
)
def test_the_hour_has_what_was_stored_in_its_slots(
    counted: list[tuple[int, int, bool]], later_ms: int
) -> None:
    traffic, now_ms, stored = ApplicationTraffic(BEGAN_MS), BEGAN_MS, []
    for passed_ms, states, looks in counted:
        now_ms += passed_ms
        traffic.count_states(states, now_ms)
        stored.append((now_ms, states))
        if looks:  # it changes nothing
            traffic.states_of_hour(now_ms)
            traffic.history(now_ms)
    now_ms += later_ms
    first_ms = (now_ms // SLOT_MS - HOUR_SLOTS + 1) * SLOT_MS
    assert traffic.states_of_hour(now_ms) == sum(states for at_ms, states in stored if at_ms >= first_ms)
    shown_ms = (now_ms // INTERVAL_MS - INTERVALS_MAX + 1) * INTERVAL_MS
    assert sum(traffic.history(now_ms).states) == sum(states for at_ms, states in stored if at_ms >= shown_ms)


def test_a_clock_that_is_set_back_counts_on() -> None:
    traffic = ApplicationTraffic(BEGAN_MS)
    traffic.count_states(3, BEGAN_MS + 20 * SLOT_MS)
    traffic.count_states(4, BEGAN_MS)
    assert traffic.states_of_hour(BEGAN_MS) == 7
    assert traffic.states_of_hour(BEGAN_MS + 20 * SLOT_MS) == 7
