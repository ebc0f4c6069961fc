"""The law of a removal: whatever comes between its turns, the composite state ends as the fold of what is left.

Reports and other removals come before, between and after the search for older values and the turn that puts them in.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.fleet.devices.test_device_laws import Oracle, turn
from tests.actors.house import START_MS, House, running_house
from trunkline.actors.fleet.devices.bulk.removal_jobs import newest_left
from trunkline.actors.fleet.devices.bulk.removal_messages import RemoveData, RestoreNewest
from trunkline.actors.fleet.devices.state.head import Head

times = st.sampled_from([START_MS + offset for offset in range(-5, 1)])
reports = st.fixed_dictionaries(
    {
        "data": st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9), min_size=1),
        "time": times,
    }
)
removals = st.tuples(st.integers(1, 3), st.none() | st.sampled_from([["a"], ["a", "b"]]))
"""How many of the newest points are removed, and which attributes of them (None: all)."""
changes = st.lists(reports | removals | st.sampled_from(["forget", "commit", "flush"]), max_size=4)
rounds = st.tuples(changes, removals, changes, st.just("search"), changes, st.just("put in"))
plans = st.lists(rounds, min_size=1, max_size=4)


def steps_of(plan: list[Any]) -> Iterator[Any]:
    """Removals, each with what comes before it and between its turns."""
    for before, removal, meanwhile, search, late, put_in in plan:
        yield from (*before, removal, *meanwhile, search, *late, put_in)


class Removal:
    """The part of the jobs: what was lost, and what the last search found."""

    def __init__(self, house: House, device: bytes) -> None:
        self._house = house
        self._device = device
        self._lost: set[int] = set()
        self._searched: set[int] = set()
        self._found: RestoreNewest | None = None

    async def remove(self, times: set[int], attributes: list[str] | None) -> None:
        message = RemoveData(points=sorted(times), attributes=attributes, commands=[], logs=[])
        lost = set(await self._house.ask(self._device, message))
        self._lost |= lost
        self._searched -= lost  # another job has lost it, and will search itself

    def search(self) -> None:
        self._house.system.journal.flush()
        with self._house.system.store.snapshot() as snapshot:
            self._found = newest_left(snapshot, self._device, self._lost)
        self._searched = set(self._lost)

    async def put_in(self) -> bool:
        if self._found is None:
            return False
        done = bool(await self._house.ask(self._device, self._found))
        if done:
            self._lost -= self._searched
        self._found = None
        return done


def remove(oracle: Oracle, times: set[int], attributes: list[str] | None) -> None:
    for time_ms in times & oracle.points.keys():
        point = oracle.points[time_ms]
        left = {
            name: value for name, value in point.items() if attributes is not None and name not in attributes
        }
        oracle.points.pop(time_ms)
        if left:
            oracle.points[time_ms] = left


@pytest.mark.slow
@given(plan=plans)
@settings(max_examples=40)
async def test_the_composite_state_is_the_fold_of_what_is_left(plan: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with running_house(Path(directory)) as house:
            device, oracle = await house.device(), Oracle()
            removal = Removal(house, device)
            for offset in range(-5, 1):
                first = {"data": {"a": offset, "b": offset}, "time": START_MS + offset}
                oracle.take(first)
                turn(house, device, first)
            for step in steps_of(plan):
                match step:
                    case dict():
                        oracle.take(step)
                        turn(house, device, step)
                    case "search":
                        removal.search()
                    case "put in":
                        await removal.put_in()
                    case "forget":
                        house.system.journal.flush()
                        house.forget()
                    case "flush":
                        await house.flush()
                    case "commit":
                        house.system.journal.flush()
                    case (number, attributes):
                        newest = set(sorted(oracle.points)[-number:])
                        await removal.remove(newest, attributes)
                        remove(oracle, newest, attributes)
            removal.search()
            assert await removal.put_in(), "nothing was removed since the search"
            assert await house.composite(device) == oracle.composite()
            house.forget()
            assert await house.composite(device) == oracle.composite()
            with house.system.store.snapshot() as snapshot:
                stored = Head.decoded(snapshot.head(device).head)
            assert stored.newest_ms == max(oracle.points, default=-1)
