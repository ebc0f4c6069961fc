"""Gauges and time series: of each device, and of devices that are taken together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.run_house import node_runs
from tests.actors.house import House, at, running_house

Json = dict[str, Any]
MINUTE = 60_000


async def result(house: House, type: str, config: Json, data: Json | None = None) -> Any:
    ran = await node_runs(house, type, {"resultPath": "data.result", **config}, data)
    assert ran.get("output") == 0, ran
    return ran["data"]["result"]


async def two(house: House) -> tuple[str, str]:
    """Two devices with a tag: values in two minutes, the first has 1, 2 and 6, the second 4 and 5."""
    tags = [{"key": "kind", "value": "pump"}]
    one, other = await house.device(name="one", tags=tags), await house.device(name="other", tags=tags)
    for device, offset, value in (
        (one, -3 * MINUTE, 1),
        (one, -3 * MINUTE + 30, 2),
        (one, -1 * MINUTE, 6),
        (other, -3 * MINUTE + 20, 4),
        (other, -2 * MINUTE, 5),
    ):
        await house.report(device, {"time": at(offset), "data": {"a": value, "label": f"v{value}"}})
    return one.hex(), other.hex()


BOTH = {"findMethod": "tagsIds", "deviceTags": [{"key": "kind", "value": "pump"}], "attribute": ["a"]}
RANGE = {"duration": 10 * MINUTE}


@pytest.mark.parametrize(
    ("aggregation", "value"),
    [
        ("MEAN", 3.6),
        ("SUM", 18),
        ("COUNT", 5),
        ("MIN", 1),
        ("MAX", 6),
        ("MEDIAN", 4),
        ("FIRST", 1),
        ("LAST", 6),
        ("{{data.how}}", 6),
    ],
)
async def test_a_gauge_takes_the_values_of_all_devices_together(
    tmp_path: Path, aggregation: str, value: float
) -> None:
    async with running_house(tmp_path / "d") as house:
        await two(house)
        found = await result(
            house, "GaugeNode", {**BOTH, **RANGE, "aggregation": aggregation}, {"how": "MAX"}
        )
        assert found == {"time": at(0), "value": pytest.approx(value)}


async def test_a_gauge_without_a_duration_has_the_newest_values(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one, other = await two(house)
        assert await result(house, "GaugeNode", BOTH) == {"time": at(-MINUTE), "value": 6}
        assert (await result(house, "GaugeNode", {**BOTH, "aggregation": "MEAN"}))["value"] == 5.5
        each = {**BOTH, "attribute": ["a", "label"], "perDeviceResults": True, "aggregation": "LAST"}
        assert await result(house, "GaugeNode", each) == {
            one: {
                "a": {"time": at(-MINUTE), "value": 6},
                "label": {"time": at(-MINUTE), "value": "v6"},
            },
            other: {
                "a": {"time": at(-2 * MINUTE), "value": 5},
                "label": {"time": at(-2 * MINUTE), "value": "v5"},
            },
        }
        single = {"attribute": "a", "deviceIdsPath": "data.ids", "findMethod": "tagsIds"}
        assert (await result(house, "GaugeNode", single, {"ids": other}))["value"] == 5
        assert (await result(house, "GaugeNode", single, {"ids": [other, "0" * 24]}))["value"] == 5
        assert await result(house, "GaugeNode", single, {"ids": ["0" * 24]}) == {}
        assert await result(house, "GaugeNode", {**BOTH, "attribute": "b"}) == {}
        by_query = {"findMethod": "query", "queryTemplate": '{"name": "other"}', "attribute": "a"}
        assert (await result(house, "GaugeNode", by_query))["value"] == 5
        no_parent = {"findMethod": "parentId", "attribute": "a", "end": "{{data.end}}"}
        assert (await result(house, "GaugeNode", no_parent, {"end": at(-2 * MINUTE)}))["value"] == 5


async def test_a_gauge_adds_the_times_at_a_value(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        ids = []
        for since in (4, 1):
            device = await house.device({"on": "boolean"})
            await house.report(device, {"time": at(-since * MINUTE), "data": {"on": True}})
            ids.append(device.hex())
        config = {
            "deviceIds": ids,
            "attribute": ["on"],
            "duration": 2 * MINUTE,
            "aggregation": "TIMEATVALUE",
            "aggregationOptions": [{"keyTemplate": "value", "valueTemplate": "true"}],
        }
        assert (await result(house, "GaugeNode", config))["value"] == 3 * MINUTE
        documented = {**config, "aggregationOptions": [{"key": "value", "valueTemplate": "true"}]}
        assert (await result(house, "GaugeNode", documented))["value"] == 3 * MINUTE
        each = await result(house, "GaugeNode", {**config, "perDeviceResults": True})
        assert [each[id]["value"] for id in ids] == [2 * MINUTE, MINUTE]
        ran = await node_runs(house, "GaugeNode", {**config, "duration": None})
        assert ran["error"][1] == "config.duration: is not set; TIMEATVALUE needs a range."


async def test_a_series_has_a_value_for_each_bucket(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one, other = await two(house)
        config = {**BOTH, **RANGE, "resolution": MINUTE, "aggregation": "MAX"}
        points = [
            {"time": at(-3 * MINUTE), "value": 4},
            {"time": at(-2 * MINUTE), "value": 5},
            {"time": at(-MINUTE), "value": 6},
        ]
        assert await result(house, "TimeSeriesNode", config) == points
        assert await result(house, "TimeSeriesNode", {**config, "orderTemplate": "desc"}) == points[::-1]
        several = {**config, "attribute": ["a", "label"], "aggregation": "COUNT"}
        found = await result(house, "TimeSeriesNode", several)
        assert [each["value"] for each in found["label"]] == [3, 1, 1]
        each = await result(house, "TimeSeriesNode", {**config, "perDeviceResults": True})
        assert [point["value"] for point in each[one]] == [2, 6]
        assert each[other] == [{"time": at(-3 * MINUTE), "value": 4}, points[1]]
        assert await result(house, "TimeSeriesNode", {**config, "attribute": "b"}) == []


async def test_raw_points_are_the_answer_of_the_api(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one, other = await two(house)
        config = {**BOTH, **RANGE, "aggregation": "NONE", "limitTemplate": "{{data.n}}"}
        found = await result(house, "TimeSeriesNode", config, {"n": 2})
        assert (found["aggregation"], found["limit"], found["resolution"]) == ("NONE", 2, None)
        assert [point["data"] for point in found["devices"][one]["points"]] == [{"a": 1}, {"a": 2}]
        assert found["devices"][one]["limitExceeded"] is True
        assert "limitExceeded" not in found["devices"][other]


async def test_an_error_fails_the_run_or_is_at_its_path(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        await two(house)
        config = {**BOTH, **RANGE, "aggregation": "AVERAGE"}
        name, message = (await node_runs(house, "GaugeNode", config))["error"]
        assert (name, message.partition(";")[0]) == ("Validation", "aggregation: 'AVERAGE' is none")
        told = {**config, "errorBehavior": "payloadPath", "errorPath": "data.problem"}
        ran = await node_runs(house, "GaugeNode", told)
        assert ran["data"] == {"problem": {"name": name, "message": message}}
        ran = await node_runs(house, "TimeSeriesNode", BOTH)
        assert ran["error"][1] == "config.duration: is not set; give the milliseconds of the range."
        ran = await node_runs(house, "GaugeNode", {**BOTH, "attribute": []})
        assert ran["error"][1].startswith("config.attribute: give the name")
        ran = await node_runs(house, "GaugeNode", {"attribute": ["a"]})
        assert ran["error"][1].endswith("choose the devices by one of them.")
