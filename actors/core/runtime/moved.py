"""The parts of a component's work that are about one application, for those that have such work.

A server begins and ends all its work at its start and its stop. An application that is moved to another process leaves
a server that goes on, and comes to one that runs (`actors/moving.py`, which calls these methods in this order).
"""

from __future__ import annotations


class Moved:
    """The base of a component with work for applications. Each does of this what it needs."""

    async def leave(self, application: bytes) -> None:
        """End what works for an application, as at a stop of the server, and begin nothing more for it.

        Its actors still answer. What is in memory is forgotten after that, when they do not (`System.forgotten`).
        """

    async def load(self, application: bytes) -> None:
        """Read what the start reads, as far as it must not change meanwhile: no actor of the application answers."""

    async def recover(self, application: bytes) -> None:
        """Put in order what was open when the application left, as the start does after a stop.

        Its actors answer, but no client can have a stream, a link or another connection that lasts.
        """

    async def come(self, application: bytes) -> None:
        """Begin the work that the start begins. All is as ever from now on."""
