"""History and list queries: a stage for each kind of read, over devices with known states.

The histories are read as they arrived and, where the server is on this machine, once more after it has flushed them.
The data does not change during the load, so all answers to the same query must be identical bytes. The first
one is compared value by value with the stored data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import Fleet, with_body
from trunkline.bench.flushed import data_directory, file_of, flush
from trunkline.bench.framing import Response
from trunkline.bench.history import to_ms
from trunkline.bench.ledger import ACKNOWLEDGED, Audit, StateLedger, body_of, same_data, state_of
from trunkline.bench.load import Caller, Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.run import Run, Scenario
from trunkline.bench.session import Session

STATES_PER_CALL = 1000
"""States: stored with one call during preparation."""

PAGE = 100
"""Devices: one page of a list."""

SERIES_DEVICES = 10
"""Devices: of one time series query."""

BUCKETS = 20
"""Buckets: of each device in the answer to a time series query, about."""

Check = Callable[[Any], bool]


class Query(Caller):
    """One query; ``check`` says whether its first answer is right, and all others must be equal to that one."""

    __slots__ = ("_check", "_first", "_raw", "_units", "changed", "path")

    def __init__(self, tally: Tally, path: str, raw: bytes, units: int, check: Check) -> None:
        super().__init__(tally)
        self.path = path
        self.changed = 0
        self._raw = raw
        self._units = units
        self._check = check
        self._first: bytes | None = None

    def request(self) -> bytes:
        return self._raw

    def acknowledged(self, response: Response) -> int:
        if self._first is None:
            self._first = response.body
        elif self._first != response.body:
            self.changed += 1
        return self._units

    def audit(self, found: Audit) -> None:
        """Add wrong answers to ``found``."""
        if self._first is None:
            return
        found.acknowledged += 1
        found.read += 1
        if not self._check(msgspec.json.decode(self._first)):
            found.different += 1
            found.note(f"different: {self.path}: the answer is not what was stored: {self._first[:200]!r}")
        elif self.changed:
            found.different += 1
            found.note(f"different: {self.path}: {self.changed:,} answers differ from the first")


class QueriesScenario(Scenario):
    """Reads of histories, newest values and lists."""

    name = "queries"
    title = "History and list queries"
    writes = False

    def __init__(self, *, devices: int, states: int) -> None:
        self.devices = devices
        self.states = states
        self.asked: list[Query] = []

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices, "states of each": self.states}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)
        bar.begin("storing states")
        waiting = iter(self.fleet.ledgers)
        done = 0

        async def store() -> None:
            nonlocal done
            for ledger in waiting:
                await self._store(session, ledger)
                done += 1
                bar.show(done / self.devices, f"{done * self.states:,} states")

        async with trio.open_nursery() as nursery:
            for _ in range(session.connections_max):
                nursery.start_soon(store)
        bar.end(f"{self.devices * self.states:,} states")

    async def _store(self, session: Session, ledger: StateLedger) -> None:
        path = self.fleet.path(ledger.device_id, "/state")
        while (first := len(ledger.outcomes)) < self.states:
            count = min(STATES_PER_CALL, self.states - first)
            await session.call("POST", path, msgspec.Raw(body_of(first, count, ledger.first_ms)))
            ledger.settle(ledger.begin(count), count, ACKNOWLEDGED)

    async def perform(self, run: Run) -> None:
        await self._history_stages(run, "")
        await run.load("mean by time", self._means)
        await run.load("newest values", self._newest)
        await run.load(f"list of {PAGE} devices", partial(self._lists, "", {}))
        wanted = {"name": {"$startsWith": "bench-0000"}, "attributeName": "temperature"}
        await run.load("list by query", partial(self._lists, "", {"query": json.dumps(wanted)}))
        await run.load(f"newest values of {PAGE} devices", partial(self._lists, "/compositeState", {}))
        try:
            directory = data_directory(file_of(run.monitor))
        except BenchError as problem:
            run.notes.append(f"Histories were not read again after flushing: {problem}.")
            return
        run.bar.begin("flushing")
        await flush(directory)
        run.bar.end("")
        await self._history_stages(run, ", flushed")

    async def _history_stages(self, run: Run, suffix: str) -> None:
        states, first_ms = self.states, self.fleet.first_ms
        for limit in (1, 100, 1000):
            last = range(states - 1, max(-1, states - 1 - limit), -1)
            await run.load(f"last {limit:,} states{suffix}", partial(self._histories, last, {"limit": limit}))
        half = states // 2
        middle = range(half, min(half + PAGE, states))
        span = {
            "start": first_ms + middle.start,
            "end": first_ms + middle.stop - 1,
            "limit": 1000,
            "sortDirection": "asc",
        }
        await run.load(f"{len(middle)} states of a span{suffix}", partial(self._histories, middle, span))

    def _histories(self, numbers: Sequence[int], query: dict[str, object], rehearsal: bool) -> list[Caller]:
        tally = Tally("histories", "states")
        expected = [(self.fleet.first_ms + n, state_of(n)) for n in numbers]

        def check(entries: Any) -> bool:
            return len(entries) == len(expected) and all(
                to_ms(entry["time"]) == time_ms and same_data(data, entry["data"])
                for entry, (time_ms, data) in zip(entries, expected, strict=True)
            )

        return self._queries(tally, rehearsal, "/state", query, len(expected), check)

    def _means(self, rehearsal: bool) -> list[Caller]:
        """Time series queries, each over all states of some devices."""
        fleet, width_ms = self.fleet, max(1, self.states // BUCKETS)
        buckets: dict[int, list[float]] = {}
        for n in range(self.states):
            time_ms = fleet.first_ms + n
            buckets.setdefault(time_ms - time_ms % width_ms, []).append(state_of(n)["temperature"])
        wanted = {time_ms: math.fsum(values) / len(values) for time_ms, values in buckets.items()}
        span = {
            "start": fleet.first_ms,
            "end": fleet.first_ms + self.states - 1,
            "resolution": width_ms,
            "aggregation": "MEAN",
            "attributes": ["temperature"],
        }
        tally, path = Tally("means", "points"), f"/applications/{fleet.application_id}/data/time-series-query"
        queries = []
        for first in range(0, self.devices, SERIES_DEVICES):
            ids = fleet.device_ids[first : first + SERIES_DEVICES]
            check = partial(_same_series, dict.fromkeys(ids, wanted))
            raw = with_body(fleet.post(path), msgspec.json.encode({**span, "deviceIds": ids}))
            queries.append(Query(tally, path, raw, len(ids) * self.states, check))
        return self._kept(queries, rehearsal)

    def _newest(self, rehearsal: bool) -> list[Caller]:
        newest = state_of(self.states - 1)

        def check(values: Any) -> bool:
            return same_data(newest, {name: value["value"] for name, value in values.items()})

        return self._queries(Tally("newest values"), rehearsal, "/compositeState", {}, 1, check)

    def _lists(self, tail: str, query: dict[str, object], rehearsal: bool) -> list[Caller]:
        tally = Tally("lists")
        page = min(PAGE, self.devices)
        first = set(self.fleet.device_ids[:page])

        def check(answer: Any) -> bool:
            return {item["id"] for item in answer["items"]} == first

        path = f"/applications/{self.fleet.application_id}/devices{tail}"
        raw = self.fleet.get(path, perPage=page, sortField="name", **query)
        # All queries are the same; there are several so that many connections can send it at once.
        return self._kept([Query(tally, path, raw, 1, check) for _ in range(self.devices)], rehearsal)

    def _queries(
        self, tally: Tally, rehearsal: bool, tail: str, query: dict[str, object], units: int, check: Check
    ) -> list[Caller]:
        fleet = self.fleet
        paths = [fleet.path(one, tail) for one in fleet.device_ids]
        return self._kept(
            [Query(tally, path, fleet.get(path, **query), units, check) for path in paths], rehearsal
        )

    def _kept(self, queries: list[Query], rehearsal: bool) -> list[Caller]:
        if not rehearsal:
            self.asked += queries
        return list(queries)

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        for query in self.asked:
            query.audit(found)


def _same_series(wanted: dict[str, dict[int, float]], answer: Any) -> bool:
    """Whether a time series has these means of `temperature`, but for the rounding of sums."""
    found = {
        device_id: {to_ms(point["time"]): point["data"]["temperature"] for point in device["points"]}
        for device_id, device in answer["devices"].items()
    }
    return found.keys() == wanted.keys() and all(
        found[one].keys() == means.keys()
        and all(math.isclose(found[one][time_ms], mean, rel_tol=1e-9) for time_ms, mean in means.items())
        for one, means in wanted.items()
    )
