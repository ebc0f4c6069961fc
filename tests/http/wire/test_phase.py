"""The phases of a connection: which may follow each other."""

from __future__ import annotations

import pytest

from trunkline.http.wire.phase import Phase

WITH_REQUEST = {Phase.TAKEN, Phase.FLUSHING, Phase.AWAITED}


def followers(phase: Phase) -> set[Phase]:
    return {each for each in Phase if phase.next_bits & each.bit}


def test_each_phase_is_a_bit_of_its_own() -> None:
    assert sum(phase.bit for phase in Phase) == 2 ** len(Phase) - 1
    assert all(phase.bit.bit_count() == 1 for phase in Phase)


def test_those_with_a_request_are_known() -> None:
    assert {phase for phase in Phase if phase.has_request} == WITH_REQUEST


@pytest.mark.parametrize("phase", Phase)
def test_every_connection_can_be_closed_and_stays_so(phase: Phase) -> None:
    assert Phase.CLOSED in followers(phase)
    assert followers(Phase.CLOSED) == {Phase.CLOSED}


def test_no_request_is_begun_once_the_last_response_was_sent() -> None:
    assert followers(Phase.LINGERING) == {Phase.CLOSED}


@pytest.mark.parametrize("phase", sorted(WITH_REQUEST, key=str))
def test_a_request_gets_its_response_before_the_next_one_begins(phase: Phase) -> None:
    """The one exception: what the fast path declines goes to the application, as the same request."""
    others = followers(phase) & WITH_REQUEST
    assert others == ({Phase.FLUSHING, Phase.AWAITED} if phase is Phase.TAKEN else set())


def test_an_application_is_never_awaited_for_what_the_fast_path_has_answered() -> None:
    assert Phase.AWAITED not in followers(Phase.FLUSHING)
    assert Phase.FLUSHING not in followers(Phase.AWAITED)
