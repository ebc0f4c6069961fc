"""How often somebody may try to log in: a window for each account and one for each network address.

Without it a password could be guessed at the speed of the machine. The windows are kept for the latest
`login_windows_length_max` accounts and addresses; the oldest ones go first.
"""

from __future__ import annotations

from trunkline.actors.errors import TooManyRequests
from trunkline.limits.table import Limits, Rate
from trunkline.limits.window import SlidingWindow


class LoginGuard:
    """Counts attempts. `attempt` before a check, `failed` where only failures are to count."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._windows: dict[tuple[str, str], SlidingWindow] = {}

    def attempt(self, account: str, address: str, now_s: float) -> None:
        """Count an attempt at `account` from `address`; raises `TooManyRequests` where either is used up."""
        for bucket, name, rate in self._buckets(account, address):
            verdict = self._window(bucket, name, rate).allow(now_s)
            if not verdict.allowed:
                raise self._refusal(bucket, verdict.reset_s)

    def check(self, account: str, address: str, now_s: float) -> None:
        """Raise `TooManyRequests` where the failures of `account` or `address` are used up. Counts nothing."""
        for bucket, name, rate in self._buckets(account, address):
            verdict = self._window(bucket, name, rate).peek(now_s)
            if not verdict.allowed:
                raise self._refusal(bucket, verdict.reset_s)

    def failed(self, account: str, address: str, now_s: float) -> None:
        """Count a failure."""
        for bucket, name, rate in self._buckets(account, address):
            self._window(bucket, name, rate).allow(now_s)

    def _buckets(self, account: str, address: str) -> list[tuple[str, str, Rate]]:
        limits = self._limits
        found = [
            ("login_per_account", account.casefold(), limits.login_per_account),
            ("login_per_address", address, limits.login_per_address),
        ]
        return [(bucket, name, rate) for bucket, name, rate in found if rate is not None]

    def _window(self, bucket: str, name: str, rate: Rate) -> SlidingWindow:
        key = (bucket, name)
        window = self._windows.pop(key, None) or SlidingWindow(rate)
        if len(self._windows) >= self._limits.login_windows_length_max:
            del self._windows[next(iter(self._windows))]
        self._windows[key] = window
        return window

    @staticmethod
    def _refusal(bucket: str, reset_s: float) -> TooManyRequests:
        subject = "this account" if bucket == "login_per_account" else "this network address"
        return TooManyRequests(
            f"Too many attempts to log in at {subject}; the next one is possible in {reset_s:.0f} seconds.",
            bucket=bucket,
            retry_after_s=reset_s,
        )
