"""Revocations: what depends on a subject ends with it, nothing else does, and nothing is kept of what is gone."""

from __future__ import annotations

import pytest

from trunkline.actors.core.runtime.revocations import Bearer, Revocations

USER, KEY, DEVICE = b"u" * 12, b"k" * 12, b"d" * 12


def bearer(*subjects: bytes) -> Bearer:
    made = Bearer()
    for subject in subjects:
        made.add_subject(subject)
    return made


def held(revocations: Revocations, *subjects: bytes) -> Bearer:
    made = bearer(*subjects)
    revocations.hold(made)
    return made


def test_only_what_depends_on_a_subject_is_revoked() -> None:
    revocations = Revocations()
    one, other, both = held(revocations, KEY), held(revocations, DEVICE), held(revocations, KEY, DEVICE)
    revocations.revoke(KEY)
    assert (one.revoked, other.revoked, both.revoked) == (True, False, True)
    assert revocations.revoked == 2
    revocations.revoke(KEY)
    revocations.revoke(USER)
    assert revocations.revoked == 2


def test_watchers_of_what_is_revoked_are_called_once_and_no_others() -> None:
    revocations, called = Revocations(), list[str]()
    one, other = held(revocations, KEY), held(revocations, DEVICE)
    one.watchers[lambda: called.append("one")] = None
    other.watchers[lambda: called.append("other")] = None
    revocations.revoke(KEY)
    revocations.revoke(KEY)
    assert called == ["one"]


def test_a_subject_may_be_added_while_a_bearer_is_held() -> None:
    revocations = Revocations()
    made = held(revocations, USER)
    revocations.add_subject(made, KEY)
    revocations.revoke(KEY)
    assert made.revoked


def test_a_watcher_may_let_go_while_it_is_called() -> None:
    revocations = Revocations()
    made = held(revocations, KEY)
    made.watchers[lambda: revocations.release(made)] = None
    revocations.revoke(KEY)
    assert len(revocations) == 0


@pytest.mark.parametrize("revoke", [True, False])
def test_nothing_is_kept_of_what_nobody_holds(revoke: bool) -> None:
    revocations = Revocations()
    made = bearer(USER, KEY, DEVICE)
    revocations.hold(made)
    revocations.hold(made)
    assert len(revocations) == 3
    if revoke:
        revocations.revoke(USER)
        assert len(revocations) == 0
    revocations.release(made)
    revocations.add_subject(made, b"x" * 12)
    revocations.release(made)
    assert len(revocations) == 0


def test_what_nobody_holds_is_not_found_and_not_kept() -> None:
    revocations = Revocations()
    made = bearer(KEY)
    revocations.add_subject(made, USER)
    revocations.revoke(KEY)
    assert not made.revoked
    assert len(revocations) == 0
