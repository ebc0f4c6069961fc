"""The throttle of failed logins: a window for each user, each device and each network address.

Passwords and access keys are treated differently. A password is short and expensive to check, so an attempt over the
limit is refused before the check, and attempts whose result is not known yet count as failed. The secret of an access
key has 384 random bits and is checked in microseconds: it is checked first, and only a wrong one counts against the
limit. So nobody can lock a device out by failed logins in its name, and one device with an old key does not lock out
all others behind the same router.

Attempts at one account are checked one after the other, whether the account exists or not: the time of a response then
reveals nothing, and parallel guesses gain nothing.

Users, devices and addresses have tables of their own, so failures of one sort never count for another, nor displace
its windows. Users of experiences and callers of webhooks have a throttle of their own, with the same limits
(`ApplicationLogIns`). An address that has reached its limit is refused before anything is counted for an account. At
its bound a table drops the windows with the fewest failures, so many accounts with one failure each do not displace an
account that is near its limit.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Final, NamedTuple

import trio

from trunkline.actors.core.values.errors import Overloaded, TooManyRequests, Unauthorized
from trunkline.actors.people.accounts.passwords import asks_from
from trunkline.limits.networks import network_of
from trunkline.limits.table import Limits, Rate
from trunkline.limits.window import SlidingWindow, Verdict

SERVER: Final = "this server"
"""The share of logins to the API."""
_DROPPED_SHARE: Final = 10
"""A full table drops a tenth of its windows at once: finding them costs a pass over the table."""


class FailureWindows:
    """Windows of failed logins by subject, at most `length_max`."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._windows: dict[str, SlidingWindow] = {}

    def __len__(self) -> int:
        return len(self._windows)

    def peek(self, subject: str, now_s: float) -> Verdict | None:
        """The verdict on one more failure, without counting one; None if no failure is known."""
        window = self._windows.get(subject)
        return None if window is None else window.peek(now_s)

    def count(self, subject: str, rate: Rate, now_s: float) -> Verdict:
        """Count a failure. The verdict says whether it was within `rate`."""
        window = self._windows.pop(subject, None)
        if window is None:
            window = SlidingWindow(rate)
            if len(self._windows) >= self._length_max:
                self._drop(now_s)
        self._windows[subject] = window
        return window.allow(now_s)

    def _drop(self, now_s: float) -> None:
        """Drop windows with the fewest failures that still count, of equal ones those that failed longest ago."""

        def failures(subject: str) -> int:
            verdict = self._windows[subject].peek(now_s)
            return verdict.limit - verdict.remaining

        dropped = heapq.nsmallest(max(1, self._length_max // _DROPPED_SHARE), self._windows, key=failures)
        for subject in dropped:
            del self._windows[subject]


class _Bucket(NamedTuple):
    name: str
    windows: FailureWindows
    subject: str
    rate: Rate

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.subject


class LoginThrottle:
    """Counts failed logins and refuses attempts over the limits. Clocks are monotonic, in seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.users = FailureWindows(limits.login_windows_length_max)
        self.devices = FailureWindows(limits.login_windows_length_max)
        self.addresses = FailureWindows(limits.login_windows_length_max)
        self._undecided: Counter[tuple[str, str]] = Counter()
        self._locks: dict[str, trio.Lock] = {}
        self._checking: Counter[str] = Counter()
        self._checking_of: Counter[tuple[str, str]] = Counter()

    @asynccontextmanager
    async def attempt(
        self, account: str | None, address: str | None, now_s: Callable[[], float], share: str = SERVER
    ) -> AsyncIterator[None]:
        """Check a password in the body: the attempt fails if the body raises `Unauthorized` or is cancelled.

        Raises `TooManyRequests` if `account` or `address` has reached its limit, `Overloaded` if too many passwords
        of the same `share` are being checked: at `logins_checking_max` for an address with a login under way, at twice
        as many for another. No other attempt at `account` runs at the same time as the body. Where the account is not
        known before (None), only the address counts.
        """
        buckets = self._buckets(self.users, account, address)
        now = now_s()
        for bucket in buckets:
            self._check(bucket, now)
        who = share, _name_of(account or "") if address is None else network_of(address)
        self._check_room(*who)
        keys = [bucket.key for bucket in buckets]
        self._undecided.update(keys)
        self._checking[share] += 1
        self._checking_of[who] += 1
        token = asks_from.set(who[1] if share == SERVER else None)
        try:
            async with nullcontext() if account is None else self._lock(_name_of(account)):
                yield
        except (Unauthorized, trio.Cancelled):
            for bucket in buckets:
                bucket.windows.count(bucket.subject, bucket.rate, now_s())
            raise
        finally:
            asks_from.reset(token)
            self._checking -= Counter([share])
            self._checking_of -= Counter([who])
            self._undecided -= Counter(keys)

    def count_failure(self, device: str, address: str, now_s: float) -> None:
        """Count a wrong secret of a device. Raises `TooManyRequests` if the device or the address was at its limit.

        For an address at its limit nothing is counted, so it neither adds windows nor displaces any.
        """
        for bucket in self._buckets(self.devices, device, address):
            verdict = bucket.windows.count(bucket.subject, bucket.rate, now_s)
            if not verdict.allowed:
                raise _refusal(bucket, verdict.reset_s)

    def check(self, account: str, address: str, now_s: float) -> None:
        """Refuse an attempt before its secret is compared, where that costs nothing and needs no turn of its own."""
        for bucket in self._buckets(self.users, account, address):
            self._check(bucket, now_s)

    def note_failure(self, account: str, address: str, now_s: float) -> None:
        """Count an attempt that `check` let pass and that failed."""
        for bucket in self._buckets(self.users, account, address):
            bucket.windows.count(bucket.subject, bucket.rate, now_s)

    def _buckets(self, accounts: FailureWindows, account: str | None, address: str | None) -> list[_Bucket]:
        """The windows that an attempt counts in: that of the address, and then that of the account."""
        limits, found = self._limits, []
        if address is not None:
            found.append(("login_per_address", self.addresses, network_of(address), limits.login_per_address))
        if account is not None:
            found.append(("login_per_account", accounts, _name_of(account), limits.login_per_account))
        return [
            _Bucket(name, windows, subject, rate)
            for name, windows, subject, rate in found
            if rate is not None
        ]

    def _check_room(self, share: str, place: str) -> None:
        """Raise `Overloaded` if too many passwords are being checked. Who checks none yet finds as much room again."""
        most = self._limits.logins_checking_max * (1 if self._checking_of[share, place] else 2)
        if self._checking[share] >= most:
            raise Overloaded(
                f"{self._checking[share]} logins are being checked, which is the limit of {share}."
            )

    def _check(self, bucket: _Bucket, now_s: float) -> None:
        """Refuse if failed attempts and undecided ones together reach the limit of the bucket."""
        verdict = bucket.windows.peek(bucket.subject, now_s)
        left = bucket.rate.calls if verdict is None else verdict.remaining
        if left <= self._undecided[bucket.key]:
            # If only undecided attempts exceed the limit, one of them may be decided at any moment.
            raise _refusal(bucket, verdict.reset_s if verdict is not None and left == 0 else 1.0)

    @asynccontextmanager
    async def _lock(self, account: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(account, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            # If others wait, the lock is handed to the next of them and stays locked.
            if not lock.locked():
                self._locks.pop(account, None)


def _name_of(account: str) -> str:
    """The name of an account's window, without regard to case. A long one is hashed, so a window stays small."""
    name = account.casefold()
    return name if len(name) <= 64 else hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _refusal(bucket: _Bucket, reset_s: float) -> TooManyRequests:
    whose = "this account" if bucket.name == "login_per_account" else "this network address"
    return TooManyRequests(
        f"Too many failed attempts to log in at {whose}; the next one is possible in {math.ceil(reset_s)} seconds.",
        bucket=bucket.name,
        retry_after_s=reset_s,
    )
