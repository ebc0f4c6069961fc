"""One number that many clients write and read, and whether their histories are linearizable.

Owns the clients, the history and its check. Does not own the server, nor what happens to it.

Each write has a value of its own, so the check is that of Gibbons and Korach ("Testing shared memories", 1997). All
calls about a value lie between the write of it and the write of the next one. The zone of a value reaches from the
first end of these calls to the last beginning of them. If the end comes first, the register has the value for all of
the zone, so two such zones must not overlap; else all calls overlap, and the register has the value at some moment of
the zone, which must not lie within one of the first kind.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import trio

from tests.e2e.stubborn import Answering, Stubborn
from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.errors import WireError
from trunkline.bench.transport import Origin

UNKNOWN: Final = frozenset({500, 502, 503})
"""Statuses after which nobody knows whether a call was done, or will be."""

NOTHING: Final = b"nothing of this call was stored"
"""Such an answer promises that the call was not done, and never will be."""


class Operation(NamedTuple):
    """A call that wrote or read a value. One without an answer ends never."""

    value: int
    began_s: float
    ended_s: float
    writes: bool


class _Zone(NamedTuple):
    low_s: float
    high_s: float
    value: int


def violations(history: Sequence[Operation], first: int = 0) -> list[str]:
    """What in a history no register could have done that has the value `first` at the beginning. No other value is
    written twice."""
    calls = defaultdict[int, list[Operation]](list)
    calls[first].append(Operation(first, -math.inf, -math.inf, writes=True))
    for each in history:
        calls[each.value].append(each)
    found: list[str] = []
    held, met = [], []
    for value, about in calls.items():
        writes = [each for each in about if each.writes]
        if not writes:
            found.append(f"{value} was read and never written: {about}")
            continue
        assert len(writes) == 1, f"{value} was written twice"
        if len(about) == 1 and writes[0].ended_s == math.inf:
            continue  # perhaps it was never done
        early = [each for each in about if each.ended_s < writes[0].began_s]
        if early:
            found.append(f"{value} was read before it was written: {early}, {writes[0]}")
        ended_s, began_s = min(each.ended_s for each in about), max(each.began_s for each in about)
        if ended_s < began_s:
            held.append(_Zone(ended_s, began_s, value))
        else:
            met.append(_Zone(began_s, ended_s, value))
    held.sort()
    reached = _Zone(-math.inf, -math.inf, first)
    for zone in held:
        if zone.low_s < reached.high_s:
            found.append(f"{reached} and {zone} overlap: {calls[reached.value]}, {calls[zone.value]}")
        reached = max(reached, zone, key=lambda each: each.high_s)
    for zone in met:
        at = bisect_right(held, zone.low_s, key=lambda each: each.low_s) - 1
        if at >= 0 and held[at].low_s < zone.low_s and zone.high_s < held[at].high_s:
            found.append(f"{zone} lies within {held[at]}: {calls[zone.value]}, {calls[held[at].value]}")
    return found


class Register:
    """A number that the server keeps: how it is written, and how it is read from an answer."""

    def __init__(
        self,
        name: str,
        write: Callable[[int], tuple[str, str, Any]],
        path: str,
        read: Callable[[Any], int],
        numbers: Iterator[int],
    ) -> None:
        """`write` is the method, path and body of a call that writes a value of `numbers`."""
        self.name = name
        self.takes_keys = write(0)[0] == "POST"
        self.history: list[Operation] = []
        self.unknown = 0
        """Writes of which nobody knows whether they were done."""
        self._write = write
        self._path = path
        self._read = read
        self._numbers = numbers

    async def write_stubbornly(self, client: Stubborn, server: Answering) -> None:
        """Write a value with a key, again until there is an answer. Only where it `takes_keys`."""
        value = next(self._numbers)
        _, path, body = self._write(value)
        began_s = trio.current_time()
        client.add([(path, body)])
        await client.run(server)
        self.history.append(Operation(value, began_s, trio.current_time(), writes=True))

    async def write_or_read(self, connection: Connection, random: Random) -> bool:
        """Write a value once, or read it; whether it was answered."""
        writes = random.random() < 0.3
        value = next(self._numbers) if writes else 0
        method, path, body = self._write(value) if writes else ("GET", self._path, None)
        raw = None if body is None else json.dumps(body).encode()
        began_s = trio.current_time()
        try:
            answer = await connection.request(method, path, raw)
        except WireError:
            status = 0
        else:
            status = answer.status
        ended_s = trio.current_time()
        if status in (200, 201):
            value = value if writes else self._read(json.loads(answer.body))
            self.history.append(Operation(value, began_s, ended_s, writes))
            return True
        assert status in UNKNOWN or not status, (status, answer.body)
        if writes and not (status and NOTHING in answer.body):
            self.unknown += 1
            self.history.append(Operation(value, began_s, math.inf, writes))
        return False


def state_of(device: str, numbers: Iterator[int]) -> Register:
    """The attribute `temp` in the composite state of a device."""

    def write(value: int) -> tuple[str, str, Any]:
        return "POST", f"{device}/state", {"data": {"temp": value}}

    def read(answer: Any) -> int:
        return int(answer["temp"]["value"]) if "temp" in answer else 0

    return Register("composite state", write, f"{device}/compositeState", read, numbers)


def record_of(device: str, numbers: Iterator[int]) -> Register:
    """The description of a device, which is empty at first."""

    def write(value: int) -> tuple[str, str, Any]:
        return "PATCH", device, {"description": str(value)}

    def read(answer: Any) -> int:
        return int(answer.get("description") or 0)

    return Register("record", write, device, read, numbers)


def listed_of(application: str, numbers: Iterator[int]) -> Register:
    """The description of an application, which is empty at first, as it is in the list of all. Whoever owns the root
    makes the list, also of what other machines have."""

    def write(value: int) -> tuple[str, str, Any]:
        return "PATCH", application, {"description": str(value)}

    def read(answer: Any) -> int:
        (found,) = [each for each in answer["items"] if each["id"] == application.rpartition("/")[2]]
        return int(found.get("description") or 0)

    return Register("list", write, "/applications?perPage=1000", read, numbers)


def connection_of(server: Answering) -> Connection:
    """A connection to a server, of its owner."""
    return Connection(Origin.parse(server.url), token=server.token, timeout_s=PATIENCE_S)
