"""How often somebody may fail to log in: a window for each account and one for each network address.

Passwords and access keys are treated apart, because they are worth different guesses. A password is short
and dear to check, so an attempt over the limit is refused before it is checked, and attempts whose outcome
is open count as failed until they are known. The secret of an access key has 384 random bits and is checked
in microseconds: it is checked first, and only a wrong one meets the limit. So nobody locks a device out by
failing in its name, and one device with an old key does not lock out all others behind the same router.

Attempts at one account are checked one after the other, whether there is such an account or not: the time
of an answer then tells nothing, and guesses in parallel gain nothing. The windows are kept for the latest
`login_windows_length_max` accounts and addresses; the oldest ones go first.
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
"""A household or a server is given at least a /64: its single addresses cost an attacker nothing."""


class _Bucket(NamedTuple):
    name: str
    subject: str
    rate: Rate


class LoginGuard:
    """Counts failures to log in. Clocks are monotonic, in seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._windows: dict[tuple[str, str], SlidingWindow] = {}
        self._open: Counter[tuple[str, str]] = Counter()
        self._turns: dict[str, trio.Lock] = {}
        self._checking = 0

    @asynccontextmanager
    async def attempt(self, account: str, address: str, now_s: Callable[[], float]) -> AsyncIterator[None]:
        """Check a password in the body: it counts as failed if the body raises `Unauthorized` or is broken off.

        Raises `TooManyRequests` where the failures of `account` or `address` are used up, `Overloaded`
        where too many passwords are being checked. Within the body there is no other attempt at `account`.
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
        self._open.update(keys)
        self._checking += 1
        try:
            async with self._turn(account.casefold()):
                yield
        except (Unauthorized, trio.Cancelled):
            for bucket in buckets:
                self._window(bucket).allow(now_s())
            raise
        finally:
            self._checking -= 1
            self._open -= Counter(keys)

    def failed(self, account: str, address: str, now_s: float) -> None:
        """Count a wrong secret; raises `TooManyRequests` where the failures were used up before."""
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
        """Refuse where failures, and attempts that may still fail, use the bucket up."""
        key = bucket[:2]
        window = self._windows.get(key)
        verdict = window.peek(now_s) if window is not None else None
        left = bucket.rate.calls if verdict is None else verdict.remaining
        if left <= self._open[key]:
            # Where only open attempts stand in the way, the first of them may be known at any moment.
            raise _refusal(bucket, verdict.reset_s if verdict is not None and left == 0 else 1.0)

    def _window(self, bucket: _Bucket) -> SlidingWindow:
        key = bucket[:2]
        window = self._windows.pop(key, None) or SlidingWindow(bucket.rate)
        if len(self._windows) >= self._limits.login_windows_length_max:
            del self._windows[next(iter(self._windows))]
        self._windows[key] = window
        return window

    @asynccontextmanager
    async def _turn(self, account: str) -> AsyncIterator[None]:
        lock = self._turns.setdefault(account, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            # A lock that others wait for goes straight to the next of them and stays locked.
            if not lock.locked():
                self._turns.pop(account, None)


def network_of(address: str) -> str:
    """What counts as one caller: an IPv4 address, the /64 of an IPv6 address, anything else as it is."""
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
