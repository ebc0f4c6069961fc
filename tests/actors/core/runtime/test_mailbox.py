"""Admission: what is let in, what a refusal costs, and when a mailbox may be forgotten."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.probes import Add, AddThrottled, Tally, tally
from trunkline.actors.core.runtime.actor import Handler
from trunkline.actors.core.runtime.mailbox import Mailbox, QueuedMessage
from trunkline.actors.core.values.errors import Overloaded, TooManyRequests
from trunkline.limits.table import Limits
from trunkline.store.commit_group import Group

LIMITS = Limits().override({"mailbox_length_max": 2, "send_state": {"calls": 3, "window_s": 10}})
THROTTLED = AddThrottled(by=1)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(tally(1))


def waiting(entered_s: float) -> QueuedMessage:
    return QueuedMessage(THROTTLED, Handler(Tally.on_add, waits=False), entered_s)


def test_a_verdict_tells_what_is_left(mailbox: Mailbox) -> None:
    verdicts = [mailbox.admit(THROTTLED, LIMITS, now_s) for now_s in (0.0, 1.0, 2.0)]
    assert [verdict and verdict.remaining for verdict in verdicts] == [2, 1, 0]
    assert [verdict and verdict.reset_s for verdict in verdicts] == [10, 9, 8]


def test_without_a_throttle_there_is_no_verdict_and_no_window(mailbox: Mailbox) -> None:
    assert mailbox.admit(Add(by=1), LIMITS, 0.0) is None
    assert mailbox.admit(THROTTLED, Limits.off(), 0.0) is None
    assert mailbox.windows is None


def test_a_used_up_throttle_names_bucket_rate_and_time(mailbox: Mailbox) -> None:
    for _ in range(3):
        mailbox.admit(THROTTLED, LIMITS, 0.0)
    with pytest.raises(TooManyRequests) as refusal:
        mailbox.admit(THROTTLED, LIMITS, 4.0)
    assert refusal.value.message == (
        "This tally takes 3 calls of send_state in any 10 seconds. The next one is allowed in 6.000 seconds."
    )
    assert (refusal.value.bucket, refusal.value.retry_after_s) == ("send_state", 6.0)
    assert mailbox.refused == 1
    mailbox.admit(THROTTLED, LIMITS, 10.0)


def test_a_refusal_for_want_of_room_spends_no_call_of_the_window(mailbox: Mailbox) -> None:
    mailbox.awaiting_commit = 2
    for _ in range(5):
        with pytest.raises(Overloaded, match="2 messages waiting"):
            mailbox.admit(THROTTLED, LIMITS, 0.0)
    mailbox.awaiting_commit = 0
    verdict = mailbox.admit(THROTTLED, LIMITS, 0.0)
    assert verdict is not None
    assert (verdict.remaining, mailbox.refused) == (2, 5)


def test_depth_counts_the_queue_and_who_waits_for_the_commit(mailbox: Mailbox) -> None:
    assert mailbox.depth == 0
    mailbox.awaiting_commit = 1
    assert mailbox.depth == 1
    mailbox.queue = deque([waiting(0.0)])
    assert mailbox.depth == 2
    with pytest.raises(Overloaded):
        mailbox.admit(THROTTLED, LIMITS, 0.0)


def test_a_check_counts_nothing(mailbox: Mailbox) -> None:
    for _ in range(10):
        mailbox.check(THROTTLED, LIMITS, 0.0)
    for _ in range(3):
        mailbox.spend(THROTTLED, LIMITS, 0.0)
    with pytest.raises(TooManyRequests):
        mailbox.check(THROTTLED, LIMITS, 9.9)
    mailbox.check(THROTTLED, LIMITS, 10.0)


@given(st.lists(st.tuples(st.floats(0, 5), st.booleans()), max_size=80))
def test_a_check_says_what_admission_would_say(steps: list[tuple[float, bool]]) -> None:
    mailbox, now_s = Mailbox(tally(1)), 0.0
    for passing_s, full in steps:
        now_s += passing_s
        mailbox.awaiting_commit = 2 if full else 0
        said = []
        for ask in (mailbox.check, mailbox.admit):
            try:
                ask(THROTTLED, LIMITS, now_s)
            except (Overloaded, TooManyRequests) as refusal:
                said.append(refusal.message)
            else:
                said.append("")
        assert said[0] == said[1]


def test_buckets_are_apart(mailbox: Mailbox) -> None:
    class Other(Add, frozen=True):
        throttle = "send_command"

    for _ in range(3):
        mailbox.admit(THROTTLED, LIMITS, 0.0)
    verdict = mailbox.admit(Other(by=1), LIMITS, 0.0)
    assert verdict is not None
    assert (verdict.limit, verdict.remaining) == (30, 29)


def test_a_mailbox_is_forgotten_only_where_that_loses_nothing(mailbox: Mailbox) -> None:
    assert mailbox.is_idle(60.0, 60.0)
    assert not mailbox.is_idle(59.9, 60.0)

    mailbox.awaiting_commit = 1
    assert not mailbox.is_idle(60.0, 60.0)
    mailbox.awaiting_commit = 0

    mailbox.queue = deque()
    assert not mailbox.is_idle(60.0, 60.0)
    mailbox.queue = None

    mailbox.subscribers = {"topic": {}}
    assert not mailbox.is_idle(60.0, 60.0)
    mailbox.subscribers = {}

    mailbox.admit(THROTTLED, LIMITS, 55.0)
    assert not mailbox.is_idle(64.9, 0.0)
    assert mailbox.is_idle(65.0, 0.0)


async def test_a_mailbox_whose_writes_wait_is_not_idle(mailbox: Mailbox) -> None:
    mailbox.group = Group()
    assert not mailbox.is_idle(60.0, 0.0)
    mailbox.group.finish(None)
    assert mailbox.is_idle(60.0, 0.0)


async def test_the_oldest_message_is_the_one_whose_turn_it_is(mailbox: Mailbox) -> None:
    assert mailbox.oldest_message_age_s(10.0) == 0.0
    mailbox.queue = deque([waiting(3.0), waiting(7.0)])
    assert mailbox.oldest_message_age_s(10.0) == 7.0
    mailbox.queue.popleft()
    assert mailbox.oldest_message_age_s(10.0) == 3.0
