"""Queries over many devices: time series with every aggregation against an oracle, and last values."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from typing import Any

import pytest

from tests.actors.house import START_MS, ManualClock, at
from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of

MINUTE_MS = 60_000
ORACLES: dict[str, Callable[[list[float]], float]] = {
    "FIRST": lambda values: values[0],
    "LAST": lambda values: values[-1],
    "COUNT": len,
    "MAX": max,
    "MIN": min,
    "MEDIAN": statistics.median,
    "MEAN": statistics.fmean,
    "SUM": math.fsum,
    "STD_DEV": statistics.pstdev,
}


@pytest.fixture
async def server(start_server: Any) -> Any:
    """A server whose clock stands still."""
    async with start_server(clock=ManualClock(), limits={"send_state": "off"}) as running:
        yield running


def series(seed: int, count: int) -> list[tuple[int, float]]:
    """Values at random moments of the hour before now, oldest first."""
    dice = random.Random(seed)
    moments = sorted(dice.sample(range(-60 * MINUTE_MS, 0), count))
    return [(moment, round(dice.uniform(-40, 60), 3)) for moment in moments]


async def report(server: Server, device: str, values: list[tuple[int, float]]) -> None:
    states = [{"time": START_MS + moment, "data": {"temp": value}} for moment, value in values]
    await server.call("POST", f"{device}/state", states)


async def query(server: Server, application: str, status: int = 200, **body: Any) -> Any:
    return await server.call("POST", f"{application}/data/time-series-query", body, status=status)


def bucketed(values: list[tuple[int, float]], resolution_ms: int) -> dict[int, list[float]]:
    """Values by the start of their bucket; buckets are aligned to the epoch."""
    buckets: dict[int, list[float]] = {}
    for moment, value in values:
        start_ms = (START_MS + moment) // resolution_ms * resolution_ms
        buckets.setdefault(start_ms - START_MS, []).append(value)
    return buckets


@pytest.mark.slow
async def test_every_aggregation_agrees_with_the_oracle(server: Server) -> None:
    application = await server.application()
    one, two = await server.device(application, "one"), await server.device(application, "two")
    data = {one: series(1, 500), two: series(2, 300)}
    for device, values in data.items():
        await report(server, device, values)
    for kind, oracle in ORACLES.items():
        for resolution_ms in (MINUTE_MS, 7 * MINUTE_MS, 60 * MINUTE_MS):
            for aggregation in (kind, {"type": kind}):
                found = await query(
                    server,
                    application,
                    duration=60 * MINUTE_MS,
                    resolution=resolution_ms,
                    aggregation=aggregation,
                )
                assert (found["resolution"], found["aggregation"]) == (resolution_ms, aggregation)
                for device, values in data.items():
                    expected = {
                        at(bucket): pytest.approx(oracle(inside), rel=1e-9, abs=1e-9)
                        for bucket, inside in bucketed(values, resolution_ms).items()
                    }
                    points = found["devices"][id_of(device)]["points"]
                    assert {point["time"]: point["data"]["temp"] for point in points} == expected, kind
                    assert [point["time"] for point in points] == sorted(expected)


async def test_a_series_says_what_it_is(server: Server) -> None:
    application = await server.application()
    device = await server.device(application, tags=[{"key": "floor", "value": "1"}])
    await report(server, device, [(-2, 1.5), (-1, 2)])
    found = await query(server, application)
    assert found == {
        "start": at(-86_400_000),
        "end": at(0),
        "resolution": None,
        "aggregation": "NONE",
        "limit": None,
        "order": "asc",
        "devices": {
            id_of(device): {
                "name": "pump",
                "tags": {"floor": ["1"]},
                "points": [
                    {"time": at(-2), "data": {"temp": 1.5}},
                    {"time": at(-1), "data": {"temp": 2}},
                ],
            }
        },
    }


async def test_the_range_limit_and_order_of_raw_points(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    await report(server, device, [(offset, offset) for offset in range(-9, 1)])
    for body, expected in (
        ({}, list(range(-9, 1))),
        ({"order": "desc"}, list(range(0, -10, -1))),
        ({"limit": 2}, [-9, -8]),
        ({"limit": 2, "order": "desc"}, [0, -1]),
        ({"start": START_MS - 3}, [-3, -2, -1, 0]),
        ({"start": -3, "end": START_MS - 2}, [-3, -2]),
        ({"end": -7}, [-9, -8, -7]),
        ({"duration": 2}, [-2, -1, 0]),
        ({"duration": 2, "end": START_MS - 5, "start": 1}, [-7, -6, -5]),
        ({"start": START_MS, "end": START_MS - 1}, []),
        ({"attributes": ["temp"]}, list(range(-9, 1))),
        ({"attributes": ["label"]}, []),
        ({"start": START_MS - 3.0, "limit": 1.0}, [-3]),
    ):
        found = await query(server, application, **body)
        points = found["devices"][id_of(device)]["points"]
        assert [point["data"]["temp"] for point in points] == expected, body


async def test_time_at_value(server: Server) -> None:
    """A switch that was on before the range, off for two minutes in it, and on until now."""
    application = await server.application()
    device = await server.device(application)
    for minutes, on in ((-30, True), (-8, False), (-6, True)):
        body = {"data": {"on": on, "label": "x"}, "time": START_MS + minutes * MINUTE_MS}
        await server.call("POST", f"{device}/state", body)
    for value, expected in (
        (True, {-10: 2, -5: 5}),
        (False, {-10: 2, -5: 0}),
        ("x", {-10: 0, -5: 0}),
    ):
        found = await query(
            server,
            application,
            duration=10 * MINUTE_MS,
            resolution=5 * MINUTE_MS,
            attributes=["on"],
            aggregation={"type": "TIMEATVALUE", "options": {"value": value}},
        )
        points = found["devices"][id_of(device)]["points"]
        minutes_at = {point["time"]: point["data"]["on"] / MINUTE_MS for point in points}
        wanted = {at(start * MINUTE_MS): minutes for start, minutes in expected.items()}
        if value is True:
            wanted[at(-10 * MINUTE_MS)] = 3
        assert minutes_at == wanted, value


async def test_devices_are_chosen_by_id_tag_and_query(server: Server) -> None:
    application, other = await server.application(), await server.application("shed")
    floor = [{"key": "floor", "value": "1"}]
    one, two, three = [
        await server.device(application, name, tags=tags)
        for name, tags in (("one", []), ("two", floor), ("three", []))
    ]
    stranger = await server.device(other)
    for device in (one, two, three, stranger):
        await report(server, device, [(-1, 1)])
    for body, expected in (
        ({}, [one, two, three]),
        ({"deviceIds": []}, [one, two, three]),
        ({"deviceIds": [id_of(one), id_of(one).upper()]}, [one]),
        ({"deviceTags": [{"key": "floor"}]}, [two]),
        ({"deviceQuery": {"name": {"$startsWith": "t"}}}, [two, three]),
        ({"deviceIds": [id_of(one)], "deviceTags": floor}, [one, two]),
        ({"deviceQuery": {"name": "nobody"}}, []),
    ):
        found = await query(server, application, **body)
        assert sorted(found["devices"]) == sorted(id_of(device) for device in expected), body
        last = await server.call(
            "POST", f"{application}/data/last-value-query", {"attribute": "temp", **body}
        )
        assert sorted(last) == sorted(id_of(device) for device in expected), body
    for path in ("time-series-query", "last-value-query"):
        refused = await server.call(
            "POST", f"{application}/data/{path}", {"deviceIds": [id_of(stranger)]}, status=400
        )
        assert refused["message"].startswith("deviceIds: there is no device")
    token, _ = await server.device_token(one, filterType="whitelist", deviceIds=[id_of(one), id_of(two)])
    for path in ("time-series-query", "last-value-query"):
        data = f"{application}/data/{path}"
        found = await server.call("POST", data, {}, token=token)
        assert sorted(found.get("devices", found)) == sorted([id_of(one), id_of(two)])
        await server.call("POST", data, {"deviceIds": [id_of(three)]}, token=token, status=403)


REFUSED: list[tuple[Any, str]] = [
    ({"aggregation": "AVERAGE"}, "aggregation"),
    ({"aggregation": {"type": "AVERAGE"}}, "aggregation.type: "),
    ({"aggregation": {}}, "aggregation.type: is missing"),
    ({"aggregation": {"type": "MEAN", "options": {"value": 1}}}, "aggregation.options: "),
    ({"aggregation": {"type": "TIMEATVALUE"}}, "aggregation.options: "),
    (
        {"aggregation": {"type": "TIMEATVALUE", "options": {"value": "x" * 256}}},
        "aggregation.options.value: ",
    ),
    ({"resolution": -1}, "resolution: "),
    ({"start": 10**30}, "start: "),
    ({"end": "now"}, "end: "),
    ({"duration": -1}, "duration: "),
    ({"limit": 0}, "limit: "),
    ({"limit": 1.5}, "limit: "),
    ({"limit": -5}, "limit: "),
    ({"order": "up"}, "order: "),
    ({"attributes": ["a b"]}, "attributes[0]: "),
    ({"deviceIds": [1]}, "deviceIds[0]: "),
    ({"deviceQuery": {"colour": 1}}, "deviceQuery.colour: "),
    ({"colour": 1}, "colour: "),
    ([], "The body: "),
]


async def test_a_wrong_query_is_refused_by_the_name_of_its_field(server: Server) -> None:
    application = await server.application()
    await server.device(application)
    for body, sentence in REFUSED:
        refused = await server.call("POST", f"{application}/data/time-series-query", body, status=400)
        assert refused["message"].startswith(sentence), (body, refused["message"])
    for body, sentence in (
        ({"attribute": "a b"}, "attribute: "),
        ({"end": "soon"}, "end: "),
        ({"x": 1}, "x: "),
    ):
        refused = await server.call("POST", f"{application}/data/last-value-query", body, status=400)
        assert refused["message"].startswith(sentence), (body, refused["message"])


async def test_more_than_the_bound_is_refused_with_a_way_out(start_server: Any) -> None:
    limits = {"time_series_bytes_max": 20_000}
    async with start_server(clock=ManualClock(), limits=limits) as server:
        application = await server.application()
        one, two = await server.device(application), await server.device(application)
        for device in (one, two):
            await report(server, device, [(-number, 1.25) for number in range(300, 0, -1)])
        fits = await query(server, application, deviceIds=[id_of(one)])
        assert len(fits["devices"][id_of(one)]["points"]) == 300
        refused = await query(server, application, 413)
        assert refused["type"] == "PayloadTooLarge"
        assert refused["message"].startswith("the query finds more data than one answer may hold")
        assert "ask for a shorter range" in refused["message"]
        await query(server, application, limit=100)
        await query(server, application, aggregation="MEAN", resolution=100)
        await server.call("POST", f"{one}/state", {"data": {"label": "x" * 30_000}})
        await query(server, application, 413, deviceIds=[id_of(one)], attributes=["label"])


async def test_raw_points_are_downsampled_for_charts(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    values = series(3, 400)
    await report(server, device, values)
    await server.call("POST", f"{device}/state", {"data": {"label": "x", "on": True}, "time": START_MS})
    raw = {at(moment): value for moment, value in values}

    async def downsampled(parameters: str, **body: Any) -> tuple[list[Any], list[Any]]:
        path = f"{application}/data/time-series-query?{parameters}"
        found = await server.call("POST", path, {"duration": 60 * MINUTE_MS, **body})
        points = found["devices"][id_of(device)]["points"]
        assert all(point["data"]["on"] == 1 for point in points if "temp" not in point["data"])
        kept = [point for point in points if "temp" in point["data"]]
        return [point["time"] for point in kept], [point["data"]["temp"] for point in kept]

    for parameters in ("downsample=50", "downsample=50&method=LTTB"):
        times, found = await downsampled(parameters)
        assert len(times) == 50
        assert (times[0], times[-1]) == (at(values[0][0]), at(values[-1][0]))
        assert [raw[time] for time in times] == found
    assert await downsampled("downsample=50", order="desc") == (times[::-1], found[::-1])
    times, found = await downsampled("downsample=50&method=M4")
    assert 40 < len(times) <= 48
    assert [raw[time] for time in times] == found
    assert (max(found), min(found)) == (max(raw.values()), min(raw.values()))
    for method, oracle in (("MIN", min), ("MAX", max), ("MEAN", statistics.fmean)):
        times, found = await downsampled(f"downsample=6&method={method}", attributes=["temp"])
        width = 600_001
        buckets = [
            [
                value
                for moment, value in values
                if place * width <= moment + 60 * MINUTE_MS < (place + 1) * width
            ]
            for place in range(6)
        ]
        assert times == [at(place * width - 60 * MINUTE_MS) for place in range(6)]
        assert found == [pytest.approx(oracle(inside)) for inside in buckets], method
    assert (await downsampled("downsample=1000"))[1] == [value for _, value in values]
    assert (await downsampled("downsample=0"))[1] == [value for _, value in values]


async def test_downsampling_that_makes_no_sense_is_refused(server: Server) -> None:
    application = await server.application()
    await server.device(application)
    for parameters, body, sentence in (
        ("downsample=1", {}, "downsample: give 2 to 10000 points for LTTB."),
        ("downsample=3&method=M4", {}, "downsample: give 4 to 10000 points for M4."),
        ("downsample=10001", {}, "downsample: give 2 to 10000 points for LTTB."),
        ("downsample=-1", {}, "downsample: "),
        ("downsample=many", {}, "downsample: "),
        ("downsample=50&method=MEDIAN", {}, "method: is 'MEDIAN'; give one of LTTB, "),
        ("method=M4", {}, "method: is for `downsample` only"),
        ("downsample=50", {"aggregation": "MEAN"}, "downsample: is for raw points"),
        ("downsample=50", {"aggregation": {"type": "MAX"}}, "downsample: is for raw points"),
        ("downsample=50", {"limit": 5}, "downsample: is itself the limit"),
        ("downsample=50", {"resolution": 1000}, "downsample: is itself the limit"),
    ):
        path = f"{application}/data/time-series-query?{parameters}"
        refused = await server.call("POST", path, body, status=400)
        assert refused["message"].startswith(sentence), (parameters, refused["message"])


async def test_last_values(server: Server) -> None:
    application = await server.application()
    one, two, empty = [await server.device(application, name) for name in ("one", "two", "empty")]
    states = [
        {"data": {"temp": 1, "label": "old"}, "time": START_MS - 100},
        {"data": {"temp": 2, "on": True}, "time": START_MS - 50},
        {"data": {"on": False}, "time": START_MS + 500},
    ]
    await server.call("POST", f"{one}/state", states)
    await server.call("POST", f"{two}/state", {"data": {"label": "long" * 1000}, "time": START_MS - 7})

    async def last(**body: Any) -> Any:
        found = await server.call("POST", f"{application}/data/last-value-query", body)
        return {device: found[id_of(device)] for device in (one, two, empty) if id_of(device) in found}

    assert await last(attribute="temp") == {one: {"time": at(-50), "data": {"temp": 2}}}
    assert await last(attribute="label") == {
        one: {"time": at(-100), "data": {"label": "old"}},
        two: {"time": at(-7), "data": {"label": "long" * 1000}},
    }
    assert await last(attribute="temp", end=START_MS - 51) == {one: {"time": at(-100), "data": {"temp": 1}}}
    assert await last(attribute="temp", end=-101) == {}
    assert await last(attribute="on") == {one: {"time": at(500), "data": {"on": False}}}
    assert await last(attribute="on", end=-1) == {one: {"time": at(-50), "data": {"on": True}}}
    assert await last(attribute="nothing") == {}
    assert await last(deviceIds=[id_of(one)], end=-10) == {
        one: {"time": at(-50), "data": {"temp": 2, "on": True}}
    }
    assert await last(deviceIds=[id_of(empty)]) == {}
