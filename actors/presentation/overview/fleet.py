"""The fleet of an application: its devices by their last sign of life, and its open events, counted now and then.

Owns the count and when it is made again. Counting reads the head of each device, in a worker thread: half a second
for 100,000 devices (`tests/bench/overview.py`). So the result is kept, and counted again at most each second and in at
most a twentieth of the time. The times of all devices are kept in order, so that one count serves every
`silentAfterSeconds`.
"""

from __future__ import annotations

from collections import OrderedDict
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import facet_index
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.data.events.kind import EVENT, LEVELS, SEVERITY
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.head import last_arrival_ms
from trunkline.actors.presentation.overview.messages import CountFleet
from trunkline.store import keys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from numpy.typing import NDArray

    from trunkline.actors.core.records.reading import Reading
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

_AGE_S: Final = 1.0
"""A count that is younger is not made again."""
_REST: Final = 19
"""For so many times as long as a count took, no other one is made."""
OPEN_STATES: Final = ("new", "acknowledged")

_CONNECTED: Final = keys.sortable("connected")
_DISCONNECTED: Final = keys.sortable("disconnected")


class Fleet(NamedTuple):
    """The devices of an application at `as_of_ms`.

    `seen_ms` are the last signs of life of the devices that are not connected, ascending, without those that were never
    seen; `ids` are their ids in the same order, `never_seen` those of the others. `events` are the open events: by
    state, then by level.
    """

    as_of_ms: int
    took_s: float
    connected: int
    disconnected: int
    never_seen: NDArray[np.void]
    seen_ms: NDArray[np.int64]
    ids: NDArray[np.void]
    events: dict[str, dict[str, int]]

    def silent(self, after_s: int) -> int:
        """How many devices were seen, but not within so many seconds. They are the first ones of `ids`."""
        return int(np.searchsorted(self.seen_ms, self.as_of_ms - after_s * 1000))


class _Kept:
    """The latest count of an application, and when the next one is due. `counting` is set when that ends."""

    __slots__ = ("counting", "due_s", "fleet")

    def __init__(self) -> None:
        self.fleet: Fleet | None = None
        self.due_s = 0.0
        self.counting: trio.Event | None = None


class Fleets:
    """The latest counts of the applications that were asked for last: a component. `read` answers a long read."""

    def __init__(self, system: System, read: Callable[[CountFleet], Awaitable[Fleet]]) -> None:
        self._system = system
        self._read = read
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    async def count(self, application: bytes) -> Fleet:
        """The latest count, or a new one if that is due. Who comes while one is made gets the one before."""
        kept = self._keep(application, self._kept.get(application) or _Kept())
        while kept.counting is not None:
            if kept.fleet is not None:
                return kept.fleet
            await kept.counting.wait()
        clock = self._system.clock
        if kept.fleet is None or clock.monotonic_s() >= kept.due_s:
            kept.counting = trio.Event()
            try:
                kept.fleet = await self._read(CountFleet(application=application, now_ms=clock.wall_ms()))
                kept.due_s = clock.monotonic_s() + max(_AGE_S, _REST * kept.fleet.took_s)
            except Overloaded:
                if kept.fleet is None:
                    raise
            finally:
                kept.counting.set()
                kept.counting = None
            self._keep(application, kept)
        return kept.fleet

    def of(self, application: bytes) -> Fleet:
        """The latest count, right after `count`."""
        fleet = self._kept[application].fleet
        assert fleet is not None
        return fleet

    def _keep(self, application: bytes, kept: _Kept) -> _Kept:
        self._kept[application] = kept
        self._kept.move_to_end(application)
        if len(self._kept) > self._system.limits.counted_fleets_max:
            self._kept.popitem(last=False)
        return kept


def count_fleet(reading: Reading, message: CountFleet) -> Fleet:
    """Count the devices and the open events of an application."""
    reading.check_time(is_long=True)
    snapshot, application = reading.snapshot, message.application
    began_s = perf_counter()
    connected = disconnected = 0
    seen: list[int] = []
    ids: list[bytes] = []
    never_seen: list[bytes] = []
    _, low, high = index_range(DEVICE, application, "connectionStatus")
    status_at = len(low)
    for key in snapshot.keys(keys.INDEXES, low, high):
        status, id = key[status_at : -keys.ID_BYTES], bytes(key[-keys.ID_BYTES :])
        if status == _CONNECTED:
            connected += 1
            continue
        seen_ms = last_arrival_ms(snapshot.head(id))
        if status == _DISCONNECTED:
            disconnected += 1
            seen_ms = max(seen_ms, _disconnected_ms(snapshot, application, id))
        if seen_ms < 0:
            never_seen.append(id)
        else:
            seen.append(seen_ms)
            ids.append(id)
    times = np.array(seen, np.int64)
    order = np.argsort(times, kind="stable")
    events = {state: _count_events(snapshot, application, state) for state in OPEN_STATES}
    took_s = perf_counter() - began_s
    return Fleet(
        message.now_ms,
        took_s,
        connected,
        disconnected,
        _packed(sorted(never_seen)),
        times[order],
        _packed(ids)[order],
        events,
    )


def _packed(ids: list[bytes]) -> NDArray[np.void]:
    """The ids as an array."""
    return np.frombuffer(b"".join(ids), f"V{keys.ID_BYTES}")


def _disconnected_ms(snapshot: Snapshot, application: bytes, device: bytes) -> int:
    found = records.find(snapshot, DEVICE, application, device)
    return -1 if found is None else int(found.doc["connection"]["time"])


def _count_events(snapshot: Snapshot, application: bytes, state: str) -> dict[str, int]:
    """The events of a state by level. Their index begins with the level (`data/events/kind.py`)."""
    index, counts = facet_index(SEVERITY, state), {}
    for rank, level in enumerate(LEVELS):
        ends = keys.sortable(rank << 48), keys.sortable((rank + 1) << 48)
        counts[level] = snapshot.count(*index_range(EVENT, application, index, *ends))
    return counts
