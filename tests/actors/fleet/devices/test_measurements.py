"""Time series and last values of a device: the same wherever its points lie, and ended when nobody waits for them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from tests.actors.fleet.devices.series_oracle import Rows, naive
from tests.actors.house import START_MS, House, at
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.fleet.devices.queries.measurement_messages import (
    Downsampling,
    LastValueQuery,
    QueryLastValues,
    QueryTimeSeries,
    TimeSeriesQuery,
)
from trunkline.actors.fleet.devices.queries.measurements import query_time_series
from trunkline.store.snapshot import Snapshot

RANGE_MS = 5000
ATTRIBUTES = {"a": "number", "b": "number", "label": "string", "on": "boolean"}
Model = dict[int, dict[str, Any]]


def time_series(house: House, query: dict[str, Any] | None = None, **body: Any) -> QueryTimeSeries:
    return QueryTimeSeries(
        application=house.application,
        body=msgspec.convert({"start": START_MS - RANGE_MS, **body}, TimeSeriesQuery),
        query=msgspec.convert(query or {}, Downsampling),
        now_ms=START_MS,
        reach=None,
    )


def last_value(house: House, **body: Any) -> QueryLastValues:
    return QueryLastValues(
        application=house.application, body=msgspec.convert(body, LastValueQuery), now_ms=START_MS, reach=None
    )


async def report(house: House, device: bytes, model: Model, dice: random.Random) -> None:
    """Report 60 points at random times, of which some were reported before."""
    for _ in range(6):
        states = []
        for _ in range(10):
            time_ms = START_MS - dice.randrange(RANGE_MS)
            values = {
                "a": dice.randrange(9),
                "b": dice.random(),
                "label": dice.choice("xyz"),
                "on": dice.random() < 0.5,
            }
            data = {name: values[name] for name in dice.sample(list(values), dice.randint(1, 4))}
            model.setdefault(time_ms, {}).update(data)
            states.append({"time": time_ms, "data": data})
        await house.report(device, *states)


async def check(house: House, device: bytes, model: Model) -> None:
    """Compare what is answered with what was reported."""
    rows: Rows = sorted(model.items())
    for kind in ("FIRST", "LAST", "COUNT", "MAX", "MIN", "MEDIAN", "MEAN", "SUM"):
        found = await points(house, device, time_series(house, resolution=700, aggregation=kind))
        assert found == shown(
            naive(kind=kind, points=rows, start_ms=0, end_ms=START_MS, resolution_ms=700)
        ), kind
    assert await points(house, device, time_series(house)) == shown(rows)
    newest = await points(house, device, time_series(house, order="desc", limit=7, attributes=["b"]))
    assert newest == shown(
        [(time_ms, {"b": data["b"]}) for time_ms, data in reversed(rows) if "b" in data][:7]
    )
    kept = await points(house, device, time_series(house, {"downsample": 10}, attributes=["a"]))
    assert len(kept) == 10
    assert all(model[START_MS + time_ms]["a"] == data["a"] for time_ms, data in unshown(kept))
    for end_ms in (START_MS, START_MS - 1, START_MS - RANGE_MS // 2, START_MS - RANGE_MS):
        last = await house.read(last_value(house, end=end_ms))
        assert last.get(device.hex()) == newest_of(rows, ATTRIBUTES, end_ms)
        last = await house.read(last_value(house, end=end_ms, attribute="a"))
        assert last.get(device.hex()) == newest_of(rows, {"a"}, end_ms)


async def points(house: House, device: bytes, message: QueryTimeSeries) -> list[Any]:
    found: list[Any] = (await house.read(message))["devices"][device.hex()]["points"]
    return found


def shown(rows: Rows) -> list[Any]:
    return [{"time": at(time_ms - START_MS), "data": data} for time_ms, data in rows]


def unshown(found: list[Any]) -> list[Any]:
    times = {at(-age_ms): -age_ms for age_ms in range(RANGE_MS + 1)}
    return [(times[point["time"]], point["data"]) for point in found]


def newest_of(rows: Rows, names: Any, end_ms: int) -> Any:
    """The last value query by its words: the newest value of each attribute, of which the newest are shown."""
    values: dict[str, Any] = {}
    for time_ms, data in rows:
        if time_ms <= end_ms:
            values.update({name: (time_ms, data[name]) for name in data if name in names})
    if not values:
        return None
    newest_ms = max(time_ms for time_ms, _ in values.values())
    data = {name: value for name, (time_ms, value) in values.items() if time_ms == newest_ms}
    return {"time": at(newest_ms - START_MS), "data": data}


async def test_answers_are_the_same_wherever_points_lie(house: House) -> None:
    """In what has arrived, in blocks, in both, and in blocks of several runs."""
    dice, model = random.Random(3), Model()
    device = await house.device(ATTRIBUTES)
    for _ in range(3):
        await report(house, device, model, dice)
        await check(house, device, model)
        await house.flush()
        await check(house, device, model)


class CallerLeft(Exception):
    pass


@pytest.mark.parametrize("is_flushed", [False, True])
async def test_a_query_ends_when_its_caller_has_left(house: House, is_flushed: bool) -> None:
    """However few points each of the devices has."""
    devices = [await house.device(ATTRIBUTES) for _ in range(3)]
    for device in devices:
        await house.report(device, {"data": {"a": 1}, "time": START_MS - 9})
    if is_flushed:
        await house.flush()
    asked = 0

    def leave() -> None:
        nonlocal asked
        asked += 1
        raise CallerLeft

    for message in (
        time_series(house),
        time_series(house, order="desc"),
        time_series(house, aggregation="MEAN", resolution=1),
        time_series(house, {"downsample": 2}),
    ):
        asked = 0
        with Snapshot(house.system.store.memory_map, on_step=leave) as snapshot, pytest.raises(CallerLeft):
            query_time_series(Reading(snapshot, house.system.limits, in_loop=False), message)
        assert asked == 1
