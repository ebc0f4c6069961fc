"""The throttle of failed logins: a window for each account and one for each network address.

Passwords and access keys are treated differently. A password is short and expensive to check, so an attempt over the
limit is refused before the check, and attempts whose result is not known yet count as failed. The secret of an access
key has 384 random bits and is checked in microseconds: it is checked first, and only a wrong one counts against the
limit. So nobody can lock a device out by failed logins in its name, and one device with an old key does not lock out
all others behind the same router.

Attempts at one account are checked one after the other, whether the account exists or not: the time of a response then
reveals nothing, and parallel guesses gain nothing. Windows are kept for the latest `login_windows_length_max` accounts
and addresses; the oldest are dropped first.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from trunkline.actors.values.errors import Overloaded, TooManyRequests, Unauthorized
from trunkline.limits.table import Limits, Rate
from trunkline.limits.window import SlidingWindow

_IPV6_NETWORK_BITS = 64
"""Every household or server has at least a /64, so an attacker can change addresses within it at no cost."""


class _Bucket(NamedTuple):
    name: str
    subject: str
    rate: Rate


class LoginThrottle:
    """Counts failed logins and refuses attempts over the limits. Clocks are monotonic, in seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._windows: dict[tuple[str, str], SlidingWindow] = {}
        self._undecided: Counter[tuple[str, str]] = Counter()
        self._locks: dict[str, trio.Lock] = {}
        self._checking = 0

    @asynccontextmanager
    async def attempt(self, account: str, address: str, now_s: Callable[[], float]) -> AsyncIterator[None]:
        """Check a password in the body: the attempt has failed if the body raises `Unauthorized` or is cancelled.

        Raises `TooManyRequests` if `account` or `address` has reached its limit, `Overloaded` if too many passwords
        are being checked. No other attempt at `account` runs at the same time as the body.
        """
        buckets = self._buckets(account, address)
        now = now_s()
        for bucket in buckets:
            self._check(bucket, now)
        if self._checking >= self._limits.logins_checking_max:
            raise Overloaded(
                f"{self._checking} log-ins are being checked, which is the bound of this server."
            )
        keys = [bucket[:2] for bucket in buckets]
        self._undecided.update(keys)
        self._checking += 1
        try:
            async with self._lock(account.casefold()):
                yield
        except (Unauthorized, trio.Cancelled):
            for bucket in buckets:
                self._window(bucket).allow(now_s())
            raise
        finally:
            self._checking -= 1
            self._undecided -= Counter(keys)

    def count_failure(self, account: str, address: str, now_s: float) -> None:
        """Count a wrong secret. Raises `TooManyRequests` if the limit was already reached."""
        verdicts = [(bucket, self._window(bucket).allow(now_s)) for bucket in self._buckets(account, address)]
        for bucket, verdict in verdicts:
            if not verdict.allowed:
                raise _refusal(bucket, verdict.reset_s)

    def _buckets(self, account: str, address: str) -> list[_Bucket]:
        limits = self._limits
        found = [
            ("login_per_account", account.casefold(), limits.login_per_account),
            ("login_per_address", network_of(address), limits.login_per_address),
        ]
        return [_Bucket(name, subject, rate) for name, subject, rate in found if rate is not None]

    def _check(self, bucket: _Bucket, now_s: float) -> None:
        """Refuse if failed attempts and undecided ones together reach the limit of the bucket."""
        key = bucket[:2]
        window = self._windows.get(key)
        verdict = window.peek(now_s) if window is not None else None
        left = bucket.rate.calls if verdict is None else verdict.remaining
        if left <= self._undecided[key]:
            # If only undecided attempts exceed the limit, one of them may be decided at any moment.
            raise _refusal(bucket, verdict.reset_s if verdict is not None and left == 0 else 1.0)

    def _window(self, bucket: _Bucket) -> SlidingWindow:
        key = bucket[:2]
        window = self._windows.pop(key, None) or SlidingWindow(bucket.rate)
        if len(self._windows) >= self._limits.login_windows_length_max:
            del self._windows[next(iter(self._windows))]
        self._windows[key] = window
        return window

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


def network_of(address: str) -> str:
    """What is counted as one address: an IPv4 address, the /64 of an IPv6 address, anything else unchanged."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), _IPV6_NETWORK_BITS), strict=False))
    return str(parsed)


def _refusal(bucket: _Bucket, reset_s: float) -> TooManyRequests:
    whose = "this account" if bucket.name == "login_per_account" else "this network address"
    return TooManyRequests(
        f"Too many failed attempts to log in at {whose}; the next one is possible in {math.ceil(reset_s)} seconds.",
        bucket=bucket.name,
        retry_after_s=reset_s,
    )
