"""Attacks by reading and writing: long queries, histories, lists, exports, arrays of states, many records."""

from __future__ import annotations

import time

from trunkline.bench.ledger import DAY_MS, body_of
from trunkline.bench.neighbours.attacker import Client
from trunkline.bench.neighbours.place import Place, callers

ROWS = 20_000
STATES = 20_000
STATES_PER_CALL = 1_000
DEVICES = 300
EXPORTS = ("devices/export", "data/export", "events/export", "export")
CONDITIONS = {
    "$or": [{"$or": [{"a": {"$contains": f"{one}-{two}"}} for two in range(90)]} for one in range(4)]
}
"""Matches no row, and looks at 360 conditions for each."""
VALUES = 18_000


async def _queries(place: Place) -> list[Client]:
    table = await place.tenant.table(place.application, place.part(ROWS))
    return callers(place, [place.tenant.request("POST", f"{table}/rows/query", CONDITIONS)])


async def _full_device(place: Place) -> str:
    """A device with a day of states."""
    device = await place.tenant.device(place.application)
    first_ms = time.time_ns() // 1_000_000 - DAY_MS
    for first in range(0, place.part(STATES), STATES_PER_CALL):
        raw = place.tenant.raw(
            "POST", f"{device}/state?backlog=true", body_of(first, STATES_PER_CALL, first_ms)
        )
        async with place.tenant.session.connection() as connection:
            await connection.exchange(raw)
    return device


async def _histories(place: Place) -> list[Client]:
    device = await _full_device(place)
    id = device.rpartition("/")[2]
    series = {"duration": 2 * DAY_MS, "resolution": 1000, "aggregation": "MEDIAN", "deviceIds": [id]}
    return callers(
        place,
        [
            place.tenant.request("GET", f"{device}/state?limit=1000"),
            place.tenant.request("POST", f"{place.application}/data/time-series-query", series),
        ],
    )


async def _lists(place: Place) -> list[Client]:
    for number in range(place.part(DEVICES)):
        await place.tenant.device(place.application, f"device {number}")
    path = f"{place.application}/devices"
    return callers(
        place,
        [
            place.tenant.request("GET", f"{path}?perPage=1000&sortField=lastUpdated"),
            place.tenant.request("GET", f"{path}/compositeState?perPage=1000"),
        ],
    )


async def _exports(place: Place) -> list[Client]:
    table = await place.tenant.table(place.application, place.part(ROWS))
    await _full_device(place)
    paths = [f"{table}/rows/export", *(f"{place.application}/{each}" for each in EXPORTS)]
    now_ms = time.time_ns() // 1_000_000
    span = {"start": now_ms - 2 * DAY_MS, "end": now_ms}
    return callers(
        place,
        [place.tenant.request("POST", path, span if path.endswith("data/export") else {}) for path in paths],
    )


async def _states(place: Place) -> list[Client]:
    """Arrays of a thousand states of one millisecond each, always the same."""
    first_ms = time.time_ns() // 1_000_000 - DAY_MS
    body = body_of(0, STATES_PER_CALL, first_ms)
    clients = []
    for client in callers(place, [b""]):
        device = await place.tenant.device(place.application)
        client.requests = [
            place.tenant.raw("POST", f"{device}/state?backlog=true", body),
            place.tenant.raw("POST", f"{device}/state", body),
        ]
        clients.append(client)
    return clients


async def _bodies(place: Place) -> list[Client]:
    """Bodies with as many values as one may have, for a dry run of nothing."""
    trigger = {"type": "timer", "key": "t", "config": {"seconds": 3600}, "outputIds": [[]]}
    path = await place.tenant.flow(place.application, trigger, [])
    body = {"data": {f"k{at}": [at] for at in range(VALUES // 2)}}
    return callers(place, [place.tenant.request("POST", f"{path}/test", body)])


async def _records(place: Place) -> list[Client]:
    body = {"name": "one of many", "tags": [{"key": f"k{at}", "value": "v"} for at in range(20)]}
    return callers(place, [place.tenant.request("POST", f"{place.application}/devices", body)])


ATTACKS = (
    ("queries", f"queries of {ROWS:,} rows with 360 conditions", _queries),
    ("histories", f"histories and series of {STATES:,} states", _histories),
    ("lists", f"lists of {DEVICES} devices", _lists),
    ("exports", "exports of rows, devices, states, events and the application", _exports),
    ("states", "arrays of a thousand states, live and as backlogs", _states),
    ("bodies", f"bodies with {VALUES:,} values", _bodies),
    ("records", "new devices as fast as they are answered", _records),
)
