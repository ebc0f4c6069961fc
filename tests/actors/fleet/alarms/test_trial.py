"""The trial of an alarm rule over the last day: the alarms that it would have opened, and nothing is saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.actors.fleet.alarms.alarm_house import ABOVE_30, Alarms, Json
from tests.actors.house import House, at, running_house
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.alarms.messages import AlarmRulePost, TriedAlarmRule, TryAlarmRule
from trunkline.limits.table import Limits

HOUR_MS = 3_600_000


async def tried(house: House, condition: Json, **fields: Any) -> Json:
    body = msgspec.convert({"name": "tried", "condition": condition, **fields}, AlarmRulePost)
    message = TryAlarmRule(
        application=house.application,
        body=body,
        now_ms=house.clock.wall_ms(),
        scopes=frozenset({"all.Application"}),
    )
    found: Json = await house.read(message)
    msgspec.convert(found, TriedAlarmRule)
    return found


async def reported(house: House, *points: tuple[int, float]) -> bytes:
    """A device that has reported values, each so many minutes after the start."""
    device = await house.device({"t": "number"})
    for minutes, value in points:
        await house.report(device, {"data": {"t": value}, "time": at(minutes * 60_000)})
    return device


def spans(found: Json) -> list[tuple[str, str | None]]:
    return [(each["openedAt"], each.get("endedAt")) for each in reversed(found["items"])]


async def test_values_are_judged_as_live_ones_with_duration_and_hysteresis(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump = await reported(house, (0, 31), (1, 29), (2, 27), (10, 35), (14, 35), (20, 20), (30, 40))
        house.clock.set_wall(house.clock.wall_ms() + HOUR_MS)
        found = await tried(house, ABOVE_30)
        assert spans(found) == [
            (at(0), at(120_000)),
            (at(600_000), at(1_200_000)),
            (at(1_800_000), None),
        ]
        assert found["items"][0] == {
            "deviceId": pump.hex(),
            "deviceName": "pump",
            "openedAt": at(1_800_000),
            "value": 40,
        }
        assert (found["deviceCount"], found["stateCount"], found["isWhole"]) == (1, 7, True)
        found = await tried(house, ABOVE_30, durationSeconds=180)
        assert [start for start, _ in spans(found)] == [at(780_000), at(1_980_000)]
        assert await Alarms(house).open() == []


async def test_silence_and_changes_are_tried_as_well(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        await reported(house, (0, 1), (5, 1), (30, 9), (35, 9))
        house.clock.set_wall(house.clock.wall_ms() + HOUR_MS)
        found = await tried(house, {"type": "silence", "seconds": 600})
        assert spans(found) == [(at(15 * 60_000), at(30 * 60_000)), (at(45 * 60_000), None)]
        found = await tried(house, {"type": "change", "attribute": "t"})
        assert spans(found) == [(at(30 * 60_000), at(35 * 60_000))]


async def test_a_trial_is_about_the_last_day_and_the_devices_of_the_rule_and_is_bounded(
    tmp_path: Path,
) -> None:
    limits = replace(Limits.off(), tried_devices_max=2, tried_states_max=3)
    async with running_house(tmp_path / "d", limits=limits) as house:
        first = await reported(house, (0, 31), (60, 20))
        house.clock.set_wall(house.clock.wall_ms() + 24 * HOUR_MS + 60_000)
        found = await tried(house, ABOVE_30, deviceIds=[first.hex()])
        assert (found["totalCount"], found["stateCount"]) == (0, 1)
        await reported(house, (24 * 60, 31), (24 * 60 + 1, 31), (24 * 60 + 1, 31))
        await reported(house)
        found = await tried(house, ABOVE_30)
        assert (found["deviceCount"], found["isWhole"], found["totalCount"]) == (2, False, 1)


@pytest.mark.parametrize(
    ("condition", "fault"),
    [({"type": "disconnected"}, "is not tried"), ({"type": "silence"}, "condition.seconds: is missing")],
)
async def test_what_cannot_be_tried_is_refused(tmp_path: Path, condition: Json, fault: str) -> None:
    async with running_house(tmp_path / "d") as house:
        with pytest.raises(Invalid, match=fault):
            await tried(house, condition)
