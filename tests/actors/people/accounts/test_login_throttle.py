"""The login throttle: only failures count, exactly, and neither parallel nor abandoned attempts evade it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from trunkline.actors.core.values.errors import Invalid, Overloaded, TooManyRequests, Unauthorized
from trunkline.actors.people.accounts.login_throttle import LoginThrottle
from trunkline.limits.networks import network_of
from trunkline.limits.table import Limits

HERE, THERE = "192.0.2.7", "192.0.2.8"


class Seconds:
    """A clock that the test controls."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


def guard_of(account: int = 3, address: int = 100, **more: Any) -> LoginThrottle:
    rates = {
        "login_per_account": {"calls": account, "window_s": 60},
        "login_per_address": {"calls": address, "window_s": 60},
    }
    return LoginThrottle(Limits().override(rates | more))


async def fail(guard: LoginThrottle, clock: Seconds, account: str = "ada", address: str = HERE) -> str:
    """Try a wrong password; returns the kind of response."""
    try:
        async with guard.attempt(account, address, clock):
            raise Unauthorized("wrong")
    except (Unauthorized, TooManyRequests) as refusal:
        return refusal.type


async def succeed(guard: LoginThrottle, clock: Seconds, account: str = "ada", address: str = HERE) -> str:
    try:
        async with guard.attempt(account, address, clock):
            return "in"
    except TooManyRequests as refusal:
        return refusal.type


async def test_failures_count_and_successes_do_not(clock: Seconds) -> None:
    guard = guard_of()
    for _ in range(3):
        assert [await succeed(guard, clock) for _ in range(5)] == ["in"] * 5
        assert await fail(guard, clock) == "Unauthorized"
    assert await fail(guard, clock) == "TooManyRequests"
    assert await succeed(guard, clock) == "TooManyRequests"
    assert await succeed(guard, clock, "grace") == "in"
    assert await succeed(guard, clock, "ADA", THERE) == "TooManyRequests"


async def test_what_is_refused_for_another_reason_is_no_failure(clock: Seconds) -> None:
    guard = guard_of(account=1)
    for _ in range(3):
        with pytest.raises(Invalid):
            async with guard.attempt("ada", HERE, clock):
                raise Invalid("taken")
    assert await succeed(guard, clock) == "in"


async def test_the_window_slides(clock: Seconds) -> None:
    guard = guard_of()
    for _ in range(3):
        assert await fail(guard, clock) == "Unauthorized"
        clock.now += 10
    with pytest.raises(TooManyRequests) as refused:
        async with guard.attempt("ada", HERE, clock):
            pass
    assert refused.value.retry_after_s == 30
    assert refused.value.bucket == "login_per_account"
    assert "possible in 30 seconds" in refused.value.message
    clock.now += 29.999
    assert await succeed(guard, clock) == "TooManyRequests"
    clock.now += 0.001
    assert await fail(guard, clock) == "Unauthorized"
    assert await fail(guard, clock) == "TooManyRequests"


async def test_an_address_is_limited_over_all_accounts(clock: Seconds) -> None:
    guard = guard_of(address=3)
    assert [await fail(guard, clock, f"user{n}") for n in range(4)] == ["Unauthorized"] * 3 + [
        "TooManyRequests"
    ]
    assert await succeed(guard, clock, "ada", THERE) == "in"


async def test_lifted_limits_let_everybody_try(clock: Seconds) -> None:
    guard = LoginThrottle(Limits.off())
    assert {await fail(guard, clock) for _ in range(200)} == {"Unauthorized"}
    for _ in range(200):
        guard.count_failure("ada", HERE, clock.now)


async def test_open_attempts_count_as_failed_until_they_are_known(clock: Seconds) -> None:
    guard = guard_of(account=2)
    go = trio.Event()
    answers: list[str] = []

    async def right() -> None:
        async with guard.attempt("ada", HERE, clock):
            await go.wait()
        answers.append("in")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(right)
        nursery.start_soon(right)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(TooManyRequests) as refused:
            async with guard.attempt("ada", THERE, clock):
                pass
        assert refused.value.retry_after_s == 1
        go.set()
    assert answers == ["in", "in"]
    # Both were right, so nothing is counted.
    assert [await fail(guard, clock) for _ in range(3)] == ["Unauthorized"] * 2 + ["TooManyRequests"]


async def test_attempts_at_one_account_are_checked_one_after_the_other(clock: Seconds) -> None:
    guard = guard_of(account=50)
    inside: list[str] = []
    most: dict[str, int] = {}

    async def attempt(written: str) -> None:
        async with guard.attempt(written, HERE, clock):
            account = written.lower()
            inside.append(account)
            most[account] = max(most.get(account, 0), inside.count(account))
            most["all"] = max(most.get("all", 0), len(inside))
            await trio.testing.wait_all_tasks_blocked()
            inside.remove(account)

    async with trio.open_nursery() as nursery:
        for account in ("ada", "grace", "Ada", "grace", "ADA"):
            nursery.start_soon(attempt, account)
    assert most == {"ada": 1, "grace": 1, "all": 2}
    assert guard._locks == {}
    assert not guard._checking
    assert not guard._undecided


async def test_who_leaves_early_has_failed(clock: Seconds) -> None:
    guard = guard_of(account=2)

    async def leave() -> None:
        with trio.CancelScope() as scope:
            async with guard.attempt("ada", HERE, clock):
                scope.cancel()
                await trio.sleep_forever()

    await leave()
    await leave()
    assert await succeed(guard, clock) == "TooManyRequests"
    assert guard._locks == {}


async def test_who_leaves_the_queue_holds_nobody_up(clock: Seconds) -> None:
    guard = guard_of()
    go = trio.Event()

    async def first() -> None:
        async with guard.attempt("ada", HERE, clock):
            await go.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0):
            async with guard.attempt("ada", HERE, clock):
                raise AssertionError("the first one is still inside")
        go.set()
    assert await succeed(guard, clock) == "in"
    assert guard._locks == {}


async def test_a_bound_holds_for_the_passwords_that_are_checked(clock: Seconds) -> None:
    guard = guard_of(logins_checking_max=2)
    go = trio.Event()

    async def wait(account: str) -> None:
        async with guard.attempt(account, HERE, clock):
            await go.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "ada")
        nursery.start_soon(wait, "grace")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Overloaded):
            async with guard.attempt("mary", HERE, clock):
                pass
        go.set()
    assert await succeed(guard, clock, "mary") == "in"


async def test_who_fills_the_room_for_checks_takes_none_from_another_address(clock: Seconds) -> None:
    guard = guard_of(logins_checking_max=2)
    go = trio.Event()

    async def wait(account: str, address: str) -> None:
        async with guard.attempt(account, address, clock):
            await go.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "ada", HERE)
        nursery.start_soon(wait, "grace", HERE)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(wait, "mary", "198.51.100.7")
        nursery.start_soon(wait, "emmy", "198.51.100.8")
        await trio.testing.wait_all_tasks_blocked()
        for address in (HERE, "198.51.100.7", "198.51.100.9"):
            with pytest.raises(Overloaded, match="4 logins are being checked"):
                async with guard.attempt("lise", address, clock):
                    pass
        go.set()
    assert not guard._checking
    assert not guard._checking_of


async def test_only_failures_are_remembered_and_the_oldest_goes_first(clock: Seconds) -> None:
    guard = guard_of(account=1, login_per_address="off", login_windows_length_max=2)
    for number in range(10):
        assert await succeed(guard, clock, f"user{number}") == "in"
    assert not len(guard.users)
    for account in ("ada", "grace", "mary"):
        assert await fail(guard, clock, account) == "Unauthorized"
    assert len(guard.users) == 2
    assert await succeed(guard, clock, "ada") == "in"
    assert await succeed(guard, clock, "grace") == await succeed(guard, clock, "mary") == "TooManyRequests"


async def test_accounts_with_few_failures_do_not_displace_one_with_many(clock: Seconds) -> None:
    guard = guard_of(login_per_address="off", login_windows_length_max=20)
    for _ in range(3):
        await fail(guard, clock)
    for number in range(200):
        clock.now += 0.01
        await fail(guard, clock, f"user{number}")
        assert len(guard.users) <= 20
    assert await succeed(guard, clock) == "TooManyRequests"
    assert await fail(guard, clock, "user199") == await fail(guard, clock, "user199") == "Unauthorized"
    assert await fail(guard, clock, "user199") == "TooManyRequests"


async def test_failures_that_no_longer_count_are_displaced_first(clock: Seconds) -> None:
    guard = guard_of(account=2, login_per_address="off", login_windows_length_max=2)
    await fail(guard, clock)
    await fail(guard, clock)
    clock.now += 60
    for _ in range(2):
        await fail(guard, clock, "grace")
        await fail(guard, clock, "mary")
    assert await succeed(guard, clock) == "in"
    assert await succeed(guard, clock, "grace") == await succeed(guard, clock, "mary") == "TooManyRequests"


async def test_long_names_of_accounts_are_told_apart_and_not_kept(clock: Seconds) -> None:
    guard = guard_of(account=1)
    for end in ("a", "b"):
        assert await fail(guard, clock, "x" * 1000 + end) == "Unauthorized"
        assert await fail(guard, clock, "X" * 1000 + end) == "TooManyRequests"
    assert max(map(len, guard.users._windows)) <= 64


def test_a_wrong_secret_is_counted_after_it_was_checked(clock: Seconds) -> None:
    guard = guard_of()
    for _ in range(3):
        guard.count_failure("0" * 24, HERE, clock.now)
    with pytest.raises(TooManyRequests) as refused:
        guard.count_failure("0" * 24, HERE, clock.now)
    assert refused.value.retry_after_s == 60
    guard.count_failure("1" * 24, HERE, clock.now)


async def test_failures_of_a_device_do_not_count_for_a_user_of_the_same_id(clock: Seconds) -> None:
    guard = guard_of()
    for _ in range(3):
        guard.count_failure("ada", HERE, clock.now)
    assert await succeed(guard, clock) == "in"
    for _ in range(3):
        await fail(guard, clock, "grace")
    guard.count_failure("grace", HERE, clock.now)


async def test_an_address_at_its_limit_makes_no_windows(clock: Seconds) -> None:
    guard = guard_of(address=5, login_windows_length_max=10)
    for _ in range(3):
        await fail(guard, clock, "ada", THERE)
        guard.count_failure("f" * 24, "192.0.2.9", clock.now)
    refusals = set()
    for number in range(100):
        try:
            guard.count_failure(f"{number:024x}", HERE, clock.now)
        except TooManyRequests as refusal:
            refusals.add(refusal.bucket)
    assert refusals == {"login_per_address"}
    assert len(guard.devices) == 1 + 5
    assert await succeed(guard, clock, "ada", "192.0.2.10") == "TooManyRequests"
    with pytest.raises(TooManyRequests):
        guard.count_failure("f" * 24, "192.0.2.10", clock.now)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:ffff:ffff:ffff", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_one_caller_is_one_address_or_one_network(address: str, network: str) -> None:
    assert network_of(address) == network
