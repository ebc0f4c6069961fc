"""Logins to what applications offer: to their experiences, and to webhooks with a password.

Owns that guessing is throttled as for logins to the API, by account and by network address, in windows of its own: who
guesses at one application is refused there, and neither at another one nor at the API. Does not own how passwords are
compared. What the server checks at once for one application has a bound, so its guessers do not take the place of the
logins of others.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from trunkline.actors.core.values.clock import Clock
from trunkline.actors.people.accounts.login_throttle import LoginThrottle
from trunkline.limits.networks import network_of
from trunkline.limits.table import Limits


class ApplicationLogIns:
    """The failed logins to applications. A component of the system."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._throttle = LoginThrottle(limits)
        self._clock = clock

    def attempt(
        self, application: bytes, account: str, address: str | None
    ) -> AbstractAsyncContextManager[None]:
        """Check a password in the body: the attempt fails if the body raises `Unauthorized` or is cancelled.

        Without an `address`, because it is not known who asks, only the account counts. Raises `TooManyRequests` and
        `Overloaded` as `LoginThrottle.attempt`.
        """
        id = application.hex()
        place = None if address is None else _place(id, address)
        return self._throttle.attempt(
            f"{id} {account}", place, self._clock.monotonic_s, f"the application {id}"
        )

    def check(self, application: bytes, account: str, address: str) -> None:
        """Raise `TooManyRequests` if there were too many failures. For secrets that are compared at no cost."""
        id = application.hex()
        self._throttle.check(f"{id} {account}", _place(id, address), self._clock.monotonic_s())

    def note_failure(self, application: bytes, account: str, address: str) -> None:
        """Count a failure of an attempt that `check` let pass."""
        id = application.hex()
        self._throttle.note_failure(f"{id} {account}", _place(id, address), self._clock.monotonic_s())


def _place(application: str, address: str) -> str:
    """An address as one application sees it."""
    return f"{application} {network_of(address)}"
