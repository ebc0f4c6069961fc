"""Works: what tasks do for applications, so that all that is done for one of them can be ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import trio


class Works:
    """The work of one component. None begins for applications that are `away`."""

    __slots__ = ("_away", "_ended", "_scopes")

    def __init__(self, away: Collection[bytes]) -> None:
        self._away = away
        self._scopes: dict[bytes, set[trio.CancelScope]] = {}
        self._ended = trio.lowlevel.ParkingLot()

    @contextmanager
    def of(self, application: bytes) -> Iterator[None]:
        """Note that the task works for an application while the body runs, which `end` cancels."""
        scope = trio.CancelScope()
        if application in self._away:
            scope.cancel()
        scopes = self._scopes.setdefault(application, set())
        scopes.add(scope)
        try:
            with scope:
                yield
        finally:
            scopes.discard(scope)
            if not scopes:
                del self._scopes[application]
                self._ended.unpark_all()

    async def end(self, application: bytes) -> None:
        """Cancel what is done for an application, and wait until it has ended."""
        for scope in self._scopes.get(application, ()):
            scope.cancel()
        while application in self._scopes:
            await self._ended.park()
