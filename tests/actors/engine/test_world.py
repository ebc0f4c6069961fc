"""Effects inside happen once, also if a run is repeated and reads something else than before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.actors.engine.flow_cases import BOUNDS, IDENTITY, NOW_MS
from tests.actors.house import House, running_house
from trunkline.actors.engine.visit import Run, Visit
from trunkline.actors.engine.world import RunWorld
from trunkline.actors.fleet.devices.record.messages import CommandPost, SendCommand
from trunkline.store import keys

SWITCH = SendCommand(body=CommandPost(name="switch"))


async def never(*_: Any, **__: Any) -> Any:
    """Stands for what these runs do not call."""
    raise AssertionError


def world_of(house: House, number: int = 1) -> RunWorld:
    """The world of a run, with what the runs before it have left in the store."""
    with house.system.store.snapshot() as snapshot:
        done = {bytes(key): bytes(raw) for key, raw in snapshot.range(keys.TRIGGERS, b"", None)}
    return RunWorld(
        house.system,
        house.application,
        b"f" * 12,
        "flow",
        hops=0,
        number=number,
        trigger="",
        done=done,
        flush=lambda: None,
    )


async def test_a_repetition_over_other_devices_changes_each_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        one, two, three = [await house.device() for _ in range(3)]
        first = world_of(house)
        for device in (one, two, one):
            await first.ask(3, house.ref(device), SWITCH)
        again = world_of(house)
        for device in (three, one, two, one, one):
            await again.ask(3, house.ref(device), SWITCH)
        assert [len(await house.commands(device)) for device in (one, two, three)] == [3, 1, 1]
        assert len(set(again.markers)) == len(again.markers) == 5


async def test_a_repetition_creates_records_with_the_same_ids(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:

        def new_ids(number: int) -> list[bytes]:
            run = Run(BOUNDS, NOW_MS, 0, never, IDENTITY, [])
            run.opened_world = world_of(house, number)
            visit = Visit(run, 0, 0, never, never)
            return [visit.new_id() for _ in range(3)]

        assert new_ids(1) == new_ids(1)
        assert len({*new_ids(1), *new_ids(2)}) == 6
