"""The fleet of an application: its devices by their last sign of life, and its open events, counted now and then.

Owns the count and when it is made again. Counting reads the head of each device, in a worker thread: half a second
for 100,000 devices (`tests/bench/overview.py`). So the result is kept, and counted again at most each second and in at
most a twentieth of the time. The devices are kept in the order in which they fell silent or will; a count serves every
`silentAfterSeconds` as well. What is expected of a device is learned from its reports for at most a second in a count,
and kept until it reports again (`fleet/devices/state/signs_of_life.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import facet_index
from trunkline.actors.core.records.listing import KeyRange, index_range
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events.kind import EVENT, LEVELS, SEVERITY
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.head import last_arrival_ms
from trunkline.actors.fleet.devices.state.signs_of_life import (
    DEFAULT,
    FIELD,
    INTERVALS,
    expected_as_learned,
    expected_as_set,
)
from trunkline.actors.presentation.overview.troubles import FailedJob, FailingFlow, failed_jobs, failing_flows
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from numpy.typing import NDArray

    from trunkline.actors.core.records.reading import Reading
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.report_items import Ahead
    from trunkline.store.snapshot import Snapshot

_AGE_S: Final = 1.0
"""A count that is younger is not made again."""
_REST: Final = 19
"""For so many times as long as a count took, no other one is made."""
_LEARN_S: Final = 1.0
"""For so long a count learns what is expected of devices, of 20,000 of them. The next counts learn the rest."""
_SURE_MS: Final = INTERVALS * 5_000
"""A device whose last sign of life is younger is not silent: no interval is below five seconds."""
_FIELD: Final = FIELD.encode()
OPEN_STATES: Final = ("new", "acknowledged")

_CONNECTED: Final = keys.sortable("connected")
_DISCONNECTED: Final = keys.sortable("disconnected")


class Fleet(NamedTuple):
    """The devices of an application at `as_of_ms`.

    `due_ms` are the times at which devices fell silent or will, ascending: those that are not connected and were seen.
    `seen_ms` are their last signs of life and `ids` their ids in the same order, `never_seen` those of the others.
    `is_learned` says of which of them it was learned when they are silent. `events` are the open events: by state, then
    by level. `failing` are the workflows that fail, `failed_jobs` the jobs that have failed.
    """

    as_of_ms: int
    took_s: float
    connected: int
    disconnected: int
    never_seen: NDArray[np.void]
    due_ms: NDArray[np.int64]
    seen_ms: NDArray[np.int64]
    ids: NDArray[np.void]
    is_learned: NDArray[np.bool_]
    events: dict[str, dict[str, int]]
    failing: list[FailingFlow]
    failed_jobs: list[FailedJob]

    def silent(self, after_s: int | None) -> NDArray[np.intp]:
        """The places of the devices that are silent, in the order in which they fell silent.

        With `after_s`: of those that were seen, but not within so many seconds.
        """
        if after_s is None:
            return np.arange(int(np.searchsorted(self.due_ms, self.as_of_ms)))
        places = np.flatnonzero(self.seen_ms < self.as_of_ms - after_s * 1000)
        return places[np.argsort(self.seen_ms[places], kind="stable")]


class CountFleet(Message, frozen=True):
    """The devices of an application by their last sign of life, and what has failed in it: a long read.

    `before` is the count before, from which is taken what was learned of devices that have not reported since.
    """

    application: bytes
    now_ms: int
    before: Fleet | None = None


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
        system.forgotten.append(self._forget)

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
                kept.fleet = await self._read(
                    CountFleet(application=application, now_ms=clock.wall_ms(), before=kept.fleet)
                )
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

    def _forget(self, application: bytes) -> None:
        """An application is deleted, or has left. A count that is under way ends."""
        kept = self._kept.get(application)
        if kept is not None and kept.counting is None:
            del self._kept[application]

    def _keep(self, application: bytes, kept: _Kept) -> _Kept:
        self._kept[application] = kept
        self._kept.move_to_end(application)
        if len(self._kept) > self._system.limits.counted_fleets_max:
            self._kept.popitem(last=False)
        return kept


def count_fleet(reading: Reading, message: CountFleet) -> Fleet:
    """Count the devices and the open events of an application, and find what has failed in it."""
    reading.check_time(is_long=True)
    snapshot, application = reading.snapshot, message.application
    began_s = perf_counter()
    connected = disconnected = 0
    signs = _Signs(snapshot, message, began_s + _LEARN_S)
    never_seen: list[bytes] = []
    _, low, high = index_range(DEVICE, application, "connectionStatus")
    status_at = len(low)
    for key in snapshot.keys(keys.INDEXES, low, high):
        status, id = key[status_at : -keys.ID_BYTES], bytes(key[-keys.ID_BYTES :])
        if status == _CONNECTED:
            connected += 1
            continue
        disconnected += status == _DISCONNECTED
        if not signs.add(id, is_disconnected=status == _DISCONNECTED):
            never_seen.append(id)
    due = np.array(signs.due, np.int64)
    order = np.argsort(due, kind="stable")
    events = {state: _count_events(snapshot, application, state) for state in OPEN_STATES}
    failing = failing_flows(snapshot, application, message.now_ms)
    jobs = failed_jobs(snapshot, application, message.now_ms)
    took_s = perf_counter() - began_s
    return Fleet(
        message.now_ms,
        took_s,
        connected,
        disconnected,
        _packed(sorted(never_seen)),
        due[order],
        np.array(signs.seen, np.int64)[order],
        _packed(signs.ids)[order],
        np.array(signs.is_learned, np.bool_)[order],
        events,
        failing,
        jobs,
    )


class _Signs:
    """The last signs of life of the devices that are not connected, and when each of them fell silent or will.

    A device that was seen just now is not silent whatever is expected of it, so nothing is read of it but its head.
    """

    __slots__ = (
        "_application",
        "_before",
        "_now_ms",
        "_snapshot",
        "_until_s",
        "due",
        "ids",
        "is_learned",
        "seen",
    )

    def __init__(self, snapshot: Snapshot, message: CountFleet, until_s: float) -> None:
        self._snapshot = snapshot
        self._application = message.application
        self._now_ms = message.now_ms
        self._before = {} if message.before is None else _learned(message.before)
        self._until_s = until_s
        self.ids: list[bytes] = []
        self.seen: list[int] = []
        self.due: list[int] = []
        self.is_learned: list[bool] = []

    def add(self, id: bytes, *, is_disconnected: bool) -> bool:
        """Add a device. Returns False for one that was never seen."""
        ahead = self._snapshot.head(id)
        seen_ms, raw = last_arrival_ms(ahead), None
        if is_disconnected:
            raw = self._record(id)
            seen_ms = max(seen_ms, -1 if raw is None else int(decode(raw)["connection"]["time"]))
        if seen_ms < 0:
            return False
        silent_ms = learned_ms = None
        if self._now_ms - seen_ms > _SURE_MS:
            silent_ms = _set_ms(self._record(id) if raw is None else raw)
            if silent_ms is None:
                silent_ms = learned_ms = self._learned_ms(id, seen_ms, ahead)
        self.ids.append(id)
        self.seen.append(seen_ms)
        self.due.append(seen_ms + (DEFAULT.silent_ms if silent_ms is None else silent_ms))
        self.is_learned.append(learned_ms is not None)
        return True

    def _record(self, id: bytes) -> bytes | None:
        return records.raw_of(self._snapshot.get, DEVICE, self._application, id)

    def _learned_ms(self, id: bytes, seen_ms: int, ahead: Ahead) -> int | None:
        """After how long the device is silent by its reports, None where the time of this count is over."""
        before = self._before.get(id)
        if before is not None and before[0] == seen_ms:
            return before[1]
        if perf_counter() >= self._until_s:
            return None
        return expected_as_learned(self._snapshot, id, ahead).silent_ms


def _learned(fleet: Fleet) -> dict[bytes, tuple[int, int]]:
    """What a count has learned: the last sign of life of a device, and after how long without one it is silent."""
    known = fleet.is_learned
    seen_ms = fleet.seen_ms[known]
    silent_ms = fleet.due_ms[known] - seen_ms
    times = zip(seen_ms.tolist(), silent_ms.tolist(), strict=True)
    return dict(zip(fleet.ids[known].tolist(), times, strict=True))


def _set_ms(raw: bytes | None) -> int | None:
    """After how long without a sign of life a device with this record is silent, None where that is not set."""
    if raw is None or _FIELD not in raw:
        return None
    found = expected_as_set(decode(raw))
    return None if found is None else found.silent_ms


def _packed(ids: list[bytes]) -> NDArray[np.void]:
    """The ids as an array."""
    return np.frombuffer(b"".join(ids), f"V{keys.ID_BYTES}")


def _count_events(snapshot: Snapshot, application: bytes, state: str) -> dict[str, int]:
    """The events of a state by level."""
    return {level: snapshot.count(*_events_range(application, state, level)) for level in LEVELS}


def _events_range(application: bytes, state: str, level: str) -> KeyRange:
    """The events of a state and a level, by creation. Their index begins with the level (`data/events/kind.py`)."""
    rank = LEVELS.index(level)
    ends = keys.sortable(rank << 48), keys.sortable((rank + 1) << 48)
    return index_range(EVENT, application, facet_index(SEVERITY, state), *ends)


def newest_events(
    snapshot: Snapshot, application: bytes, state: str, level: str, most: int
) -> list[tuple[bytes, str]]:
    """The ids and subjects of the newest events of a state and a level."""
    newest = islice(snapshot.keys(*_events_range(application, state, level), reverse=True), most)
    found = [records.find(snapshot, EVENT, application, bytes(key[-keys.ID_BYTES :])) for key in newest]
    return [(each.id, each.doc["subject"]) for each in found if each is not None]
