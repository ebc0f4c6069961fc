"""The registry: the mailboxes of all active actors, their limit, and the deactivation of idle ones.

A message activates an actor. It is deactivated when it has been idle for a while, or earlier if the limit is
reached; in both cases only if that loses nothing, which the mailbox decides (`Mailbox.is_idle`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

import trio

from trunkline.actors.core.runtime.ref import application_streams
from trunkline.actors.core.values.errors import Overloaded

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.mailbox import Mailbox
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.values.clock import Clock
    from trunkline.limits.table import Limits

SLICE_LENGTH: Final = 1000
"""Mailboxes that are checked without a pause: half a millisecond."""


class Registry:
    """The active actors by ref. `deactivations` counts those that were deactivated because they were idle."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.mailboxes: dict[Ref, Mailbox] = {}
        self.deactivations = 0
        self._limits = limits
        self._clock = clock

    def add(self, mailbox: Mailbox) -> None:
        """Add a mailbox. Raises `Overloaded` at the limit, if no idle actor can be deactivated."""
        if len(self.mailboxes) >= self._limits.actors_active_max:
            self._make_room()
        mailbox.last_used_s = self._clock.monotonic_s()
        self.mailboxes[mailbox.ref] = mailbox

    def remove(self, mailbox: Mailbox) -> None:
        """Remove a mailbox. No error if it is not registered (any more)."""
        if self.mailboxes.get(mailbox.ref) is mailbox:
            del self.mailboxes[mailbox.ref]

    def release(self, mailboxes: Iterable[Mailbox]) -> None:
        """Deactivate those of the mailboxes that nothing uses any more."""
        now_s = self._clock.monotonic_s()
        for mailbox in mailboxes:
            if mailbox.is_idle(now_s, 0.0):
                self._deactivate(mailbox)

    def of_parent(self, parent: bytes) -> list[Mailbox]:
        """The mailboxes of the active actors of one application."""
        return [mailbox for ref, mailbox in self.mailboxes.items() if ref.parent == parent]

    def of_application(self, application: bytes) -> list[Mailbox]:
        """The same, and the mailbox of the application's own actor."""
        found = self.of_parent(application)
        own = self.mailboxes.get(application_streams(application))
        return found if own is None else [*found, own]

    async def sweep(self) -> None:
        """Deactivate idle actors until cancelled, in slices, so that the event loop is never blocked for long."""
        while True:
            await trio.sleep(self._limits.actor_sweep_s)
            mailboxes = list(self.mailboxes.values())
            for start in range(0, len(mailboxes), SLICE_LENGTH):
                now_s = self._clock.monotonic_s()
                for mailbox in mailboxes[start : start + SLICE_LENGTH]:
                    if mailbox.is_idle(now_s, self._limits.actor_idle_s):
                        self._deactivate(mailbox)
                await trio.lowlevel.checkpoint()

    def _make_room(self) -> None:
        """Deactivate idle actors early. Checks only the next slice, so a refusal at the limit stays cheap."""
        now_s = self._clock.monotonic_s()
        for ref, mailbox in list(islice(self.mailboxes.items(), SLICE_LENGTH)):
            if mailbox.is_idle(now_s, 0.0):
                self._deactivate(mailbox)
            else:
                # Move it to the end, so that the next call checks others.
                del self.mailboxes[ref]
                self.mailboxes[ref] = mailbox
        if len(self.mailboxes) >= self._limits.actors_active_max:
            raise Overloaded(
                f"{self._limits.actors_active_max} actors are active, which is the limit of this server.",
                retry_after_s=self._limits.actor_sweep_s,
            )

    def _deactivate(self, mailbox: Mailbox) -> None:
        if self.mailboxes.get(mailbox.ref) is mailbox:
            del self.mailboxes[mailbox.ref]
            self.deactivations += 1
