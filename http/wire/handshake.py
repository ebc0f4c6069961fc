"""A TLS handshake under way, as the occupant of the place of its connection."""

from __future__ import annotations

import trio

from trunkline.http.wire.places import LEAST_S


class Handshake:
    """Ends where its scope does: in time, or when it gives way."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self._began_s = trio.current_time()
        self.gave_way = False

    def idle_until_s(self, now_s: float) -> float | None:
        return None if now_s < self._began_s + LEAST_S else self._scope.deadline

    def give_way(self) -> None:
        self.gave_way = True
        self._scope.cancel()
