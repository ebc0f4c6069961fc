"""Moves: applications that are on their way to the process of another partition, and those that have gone there.

Owns which they are, and the refusal of their calls. Who takes them away and brings them is `actors/moving.py`.

An application is `away` as long as nothing may begin for it that lasts: no stream, link or connection of a client, and
no work in the background. For a part of that time it is `paused`: then none of its actors is in memory, and none
answers. Both are looked at only where something begins, so what is under way costs the same as ever.
"""

from __future__ import annotations

from trunkline.actors.core.runtime.ref import APPLICATION, Ref
from trunkline.actors.core.values.errors import Overloaded

MOVED = "The application is being moved to another partition; connect again in a second."
"""What clients are told whose connections end."""


class Moves:
    """The applications of a system that are being moved, or that have been."""

    __slots__ = ("away", "paused")

    def __init__(self) -> None:
        self.away: set[bytes] = set()
        self.paused: set[bytes] = set()

    def check(self, application: bytes) -> None:
        """Raise `Overloaded` if nothing may begin for an application now that lasts."""
        if application in self.away:
            raise refusal()

    def check_actor(self, ref: Ref) -> None:
        """Raise `Overloaded` if an actor may not be brought into memory now."""
        if application_of(ref) in self.paused:
            raise refusal()


def application_of(ref: Ref) -> bytes:
    """The application of an actor; for actors of the root something that is the id of no application."""
    return ref.id if ref.kind == APPLICATION else ref.parent


def refusal() -> Overloaded:
    """How calls are refused."""
    return Overloaded(
        "The application is being moved to another partition; repeat the call in a second.", reason="moved"
    )


def elsewhere() -> Overloaded:
    """How calls are refused that only the process of an application can answer, which is another one since a moment."""
    return Overloaded(
        "The application was moved to another partition just now; repeat the call.", reason="moved"
    )
