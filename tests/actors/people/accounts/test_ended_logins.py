"""The record of ended logins: bounded, and no login in it is ever valid again."""

from __future__ import annotations

from trunkline.actors.people.accounts.ended_logins import EndLogin, end, is_ended
from trunkline.actors.people.accounts.messages import Session

HOUR_S = 3600
NOW_MS = 1_800_000_000_000


def session(number: int) -> Session:
    """The login that began at this ms."""
    return Session(0, NOW_MS + number, f"login{number}")


def test_an_entry_is_forgotten_when_its_tokens_have_expired() -> None:
    doc: dict[str, object] = {}
    end(doc, EndLogin(session=session(1), ttl_s=HOUR_S), NOW_MS, 10)
    end(doc, EndLogin(session=session(2), ttl_s=None), NOW_MS, 10)
    assert is_ended(doc, session(1))
    assert not is_ended(doc, session(3))
    much_later_ms = NOW_MS + 1000 * HOUR_S * 1000
    end(doc, EndLogin(session=session(3), ttl_s=HOUR_S), much_later_ms, 10)
    assert [is_ended(doc, session(number)) for number in (1, 2, 3)] == [False, True, True]
    # A token of the first one has expired by now; forgetting it ends no other login.
    assert not is_ended(doc, session(0))


def test_at_the_bound_the_oldest_log_ins_end_for_good() -> None:
    doc: dict[str, object] = {}
    for number in (5, 3, 9, 7):
        end(doc, EndLogin(session=session(number), ttl_s=None), NOW_MS, 3)
        assert is_ended(doc, session(number))
    # The one that began first is forgotten, and all that did not begin later have ended with it.
    assert [number for number in range(11) if is_ended(doc, session(number))] == [0, 1, 2, 3, 5, 7, 9]
    for number in range(20, 120):
        end(doc, EndLogin(session=session(number), ttl_s=None), NOW_MS, 3)
    assert len(doc["ended"]) == 3  # type: ignore[arg-type]
    assert all(is_ended(doc, session(number)) for number in range(120))
    assert not is_ended(doc, session(120))


def test_an_older_log_in_that_ends_late_stays_ended() -> None:
    doc: dict[str, object] = {}
    for number in (5, 6, 7):
        end(doc, EndLogin(session=session(number), ttl_s=None), NOW_MS, 2)
    end(doc, EndLogin(session=session(1), ttl_s=None), NOW_MS, 2)
    assert is_ended(doc, session(1))
    assert is_ended(doc, session(5))
