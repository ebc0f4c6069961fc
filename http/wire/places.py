"""The places for connections, and which idle connection gives its place to a new one when all are taken.

Owns how many connections each network address has, and the order in which they give way: of the address with the most
connections, the idle one whose idle time ends first. So one address cannot keep all others out. Does not own when a
connection is idle, nor how it ends (`http1.py`, `http2.py`): its `Occupant` knows.

Why it costs a request nothing: a connection says nothing when it becomes busy or idle. Each address has a heap of its
connections by a time before which their idle time cannot end. Only when a new connection needs a place, those at the
front are looked at; whoever is busy, or has more time by now, goes back with a later time. For a new connection only a
few are looked at: then the one among them gives way whose time ends first, and the next search goes on from there.

WebSockets keep their places and are not counted here: they last, and the shares of owners bound them.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import Protocol

from trunkline.limits.networks import network_of

LOOKED_AT_MAX = 16
"""Connections that are looked at for a new one: some 2 us each."""
LOOKED_AT_OF_AN_ADDRESS_MAX = 8
"""Those of one address: if all are busy, the address with the next most connections is looked at."""
LEAST_S = 1.0
"""A busy connection is not looked at again for this long."""
_SPARE_ENTRIES = 16
"""Entries of connections that are gone, beside an eighth of the others, for which a heap is not made anew."""


class Occupant(Protocol):
    """What has a place: a connection, or the handshake before it."""

    def idle_until_s(self, now_s: float) -> float | None:
        """The time at which it ends if it stays idle; None where it is not idle, so that it must not end."""
        ...

    def give_way(self) -> None:
        """End it, which is idle."""
        ...


class Place:
    """The place of one connection. `occupant` is None until there is one that may be asked."""

    __slots__ = ("crowd", "occupant")

    def __init__(self) -> None:
        self.occupant: Occupant | None = None
        self.crowd: _Crowd | None = None
        """Those of its address; None where it is not counted."""


class _Crowd:
    """The connections of one address. The heap has an entry for each, and some of connections that are gone."""

    __slots__ = ("count", "heap")

    def __init__(self) -> None:
        self.count = 0
        self.heap: list[tuple[float, int, Place]] = []


class Places:
    """`places_max` places. Without `by_address`, as behind a proxy, whose address all have, nobody gives way."""

    def __init__(self, places_max: int, *, by_address: bool) -> None:
        self.displaced = 0
        """Connections that gave their place to another since the start."""
        self._places_max = places_max
        self._by_address = by_address
        self._taken: set[Place] = set()
        self._crowds: dict[str, _Crowd] = {}
        self._addresses: dict[_Crowd, str] = {}
        self._by_count: dict[int, dict[_Crowd, None]] = {}
        """The addresses by the number of their connections: at most some hundred different numbers."""
        self._serial = 0

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, address: str | None, now_s: float) -> Place | None:
        """A place for a new connection, that of an idle one if there is no other; None where there is none.

        `address` is the network address of the client; None where it has none, as on a Unix socket.
        """
        if len(self._taken) >= self._places_max and not self._make_room(now_s):
            return None
        place = Place()
        self._taken.add(place)
        if address is not None and self._by_address:
            network = network_of(address)
            crowd = self._crowds.get(network)
            if crowd is None:
                crowd = self._crowds[network] = _Crowd()
                self._addresses[crowd] = network
            place.crowd = crowd
            self._recount(crowd, 1)
            self._put(crowd, now_s, place)
        return place

    def leave(self, place: Place) -> None:
        """The connection of a place is over. It may have given way before."""
        self._taken.discard(place)
        self.exempt(place)
        place.occupant = None

    def exempt(self, place: Place) -> None:
        """Do not count a connection for its address any more; it keeps its place."""
        crowd, place.crowd = place.crowd, None
        if crowd is None:
            return
        self._recount(crowd, -1)
        if not crowd.count:
            del self._crowds[self._addresses.pop(crowd)]
        elif 8 * (len(crowd.heap) - crowd.count - _SPARE_ENTRIES) > crowd.count:
            crowd.heap = [entry for entry in crowd.heap if entry[2].crowd is crowd]
            heapify(crowd.heap)

    # Giving way.

    def _make_room(self, now_s: float) -> bool:
        """End an idle connection of the address with the most that has one, as far as is looked. False if none is."""
        looked_at = 0
        for count in sorted(self._by_count, reverse=True):
            for crowd in self._by_count[count]:
                if looked_at >= LOOKED_AT_MAX:
                    return False
                place, looked = self._first_idle(crowd, now_s)
                looked_at += looked
                if place is not None:
                    assert place.occupant is not None
                    place.occupant.give_way()
                    self.leave(place)
                    self.displaced += 1
                    return True
        return False

    def _first_idle(self, crowd: _Crowd, now_s: float) -> tuple[Place | None, int]:
        """The idle connection of an address that ends first, as far as is looked, and how many were looked at."""
        heap, best, best_s = crowd.heap, None, math.inf
        seen: list[tuple[float, Place]] = []
        while heap and len(seen) < LOOKED_AT_OF_AN_ADDRESS_MAX and heap[0][0] < best_s:
            _, _, place = heappop(heap)
            if place.crowd is not crowd:
                continue  # gone; each such entry is dropped once
            until_s = None if place.occupant is None else place.occupant.idle_until_s(now_s)
            if until_s is not None and until_s < best_s:
                best, best_s = place, until_s
            seen.append((now_s + LEAST_S if until_s is None else until_s, place))
        for not_before_s, place in seen:
            self._put(crowd, not_before_s, place)
        return best, len(seen)

    def _put(self, crowd: _Crowd, not_before_s: float, place: Place) -> None:
        self._serial += 1
        heappush(crowd.heap, (not_before_s, self._serial, place))

    def _recount(self, crowd: _Crowd, more: int) -> None:
        if crowd.count:
            of_count = self._by_count[crowd.count]
            del of_count[crowd]
            if not of_count:
                del self._by_count[crowd.count]
        crowd.count += more
        if crowd.count:
            self._by_count.setdefault(crowd.count, {})[crowd] = None
