"""The laws of a device's states: the composite state is the fold of all reports, a history what lies in its window.

Whatever the plan: calls of several states, calls that meet in one commit, an actor that is forgotten between
them. The oracle is a dict of points.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.house import START_MS, House, at, running_house
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record.terms import Attribute
from trunkline.actors.fleet.devices.state.head import POINTS_AHEAD_MAX, Head

TIMES = range(-12, 3)
reports = st.fixed_dictionaries(
    {
        "data": st.dictionaries(
            st.sampled_from(["a", "b", "label"]), st.integers(0, 9), min_size=1, max_size=3
        ),
        "time": st.sampled_from(TIMES).map(lambda offset: START_MS + offset),
    }
)
steps = st.lists(
    st.lists(reports, min_size=1, max_size=4) | st.sampled_from(["forget", "flush", "at once"]),
    min_size=1,
    max_size=12,
)


class Oracle:
    """All reports, folded the naive way."""

    def __init__(self) -> None:
        self.points: dict[int, dict[str, Any]] = {}

    def take(self, report: dict[str, Any]) -> None:
        data = {name: str(value) if name == "label" else value for name, value in report["data"].items()}
        self.points.setdefault(report["time"], {}).update(data)

    def composite(self, start_ms: int = 0, end_ms: int = 1 << 60) -> dict[str, tuple[str, Any]]:
        newest: dict[str, tuple[str, Any]] = {}
        for time_ms, data in sorted(self.points.items()):
            if start_ms <= time_ms <= end_ms:
                newest |= {name: (at(time_ms - START_MS), value) for name, value in data.items()}
        return newest

    def history(self, start_ms: int, end_ms: int, limit: int, direction: str) -> list[dict[str, Any]]:
        found = [
            {"time": at(time_ms - START_MS), "data": data}
            for time_ms, data in sorted(self.points.items(), reverse=direction == "desc")
            if start_ms <= time_ms <= end_ms
        ]
        return found[:limit]


async def played(house: House, plan: list[Any]) -> tuple[bytes, Oracle]:
    """Do what the plan says; `at once` sends the calls that follow it in one group."""
    device, oracle = await house.device(), Oracle()
    async with trio.open_nursery() as nursery:
        at_once = False
        for step in plan:
            if step == "forget":
                house.forget()
            elif step == "flush":
                await house.flush()
            elif step == "at once":
                at_once = True
            else:
                for report in step:
                    oracle.take(report)
                if at_once:
                    # Started, so that its turn is over: the order is the plan's, the commit comes later.
                    await nursery.start(turn_over, house, device, step)
                else:
                    await house.report(device, *step)
    return device, oracle


async def turn_over(
    house: House, device: bytes, step: list[dict[str, Any]], task_status: trio.TaskStatus[None]
) -> None:
    """Report, and be started as soon as the turn is over, which is before the commit."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.report, device, *step)
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        task_status.started()


@pytest.mark.slow
@given(plan=steps)
@settings(max_examples=60)
async def test_the_composite_state_is_the_fold_of_all_reports(plan: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with running_house(Path(directory)) as house:
            device, oracle = await played(house, plan)
            assert await house.composite(device) == oracle.composite()
            for start, end in ((-5, -2), (-12, -12), (-3, 2), (0, 2), (-12, 2), (-2, -5)):
                shown = await house.composite(device, start=START_MS + start, end=START_MS + end)
                assert shown == oracle.composite(START_MS + start, START_MS + end)
            house.forget()
            assert await house.composite(device) == oracle.composite()


offsets = st.none() | st.integers(-14, 4)


@pytest.mark.slow
@given(
    plan=steps,
    windows=st.lists(
        st.tuples(
            offsets,
            offsets,
            st.none() | st.integers(0, 15),
            offsets,
            st.integers(1, 6),
            st.sampled_from(["asc", "desc"]),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    ),
)
@settings(max_examples=60)
async def test_every_window_of_the_history_is_the_oracles(plan: list[Any], windows: list[Any]) -> None:
    """`start`, `end`, `since` absolute and relative to now, `duration`, `limit` and direction, all mixed."""
    with tempfile.TemporaryDirectory() as directory:
        async with running_house(Path(directory)) as house:
            device, oracle = await played(house, plan)
            for start, end, duration, since, limit, direction, relative in windows:
                given = {"start": start, "end": end, "since": since}
                query: dict[str, Any] = {
                    name: (offset if relative and offset <= 0 else START_MS + offset)
                    for name, offset in given.items()
                    if offset is not None
                }
                if duration is not None:
                    query["duration"] = duration
                low = START_MS + start if start is not None else 0
                high = START_MS + end if end is not None else 1 << 60
                if duration is not None:
                    low = (START_MS if end is None else high) - duration
                if since is not None:
                    low = max(low, START_MS + since + 1)
                found = await house.states(device, limit=limit, sortDirection=direction, **query)
                assert found == oracle.history(low, high, limit, direction), query


# What a stored head does not know yet.

HOUR_S = 3600
OFFSETS_MS = {"now": 0, "late": -1500, "ahead": 700}
lives = st.lists(
    st.sampled_from(
        ["refused", "command", "connect", "declare", "forget", "flush", "late", "ahead", 0.001, 0.5, HOUR_S]
    )
    | st.sampled_from(["now", 0.001, "commit"]),
    max_size=40,
)


def turn(house: House, device: bytes, report: dict[str, Any]) -> None:
    """Have a report handled. Nothing else runs meanwhile, so it waits for its commit with those that follow."""
    body = msgspec.convert(report, devices.StateOrStates)
    assert house.system.begin(house.ref(device), devices.SendState(body=body)) is not None


@pytest.mark.slow
@given(life=lives)
@settings(max_examples=150)
async def test_a_head_is_what_all_reports_say_however_few_times_it_is_stored(life: list[Any]) -> None:
    """Reports that move forward within an hour mostly store no head; whatever comes between, nothing is lost."""
    with tempfile.TemporaryDirectory() as directory:
        async with running_house(Path(directory)) as house:
            device, oracle, counts = await house.device(), Oracle(), Counter[str]()
            for number, step in enumerate(life):
                if isinstance(step, float | int):
                    house.clock.pass_s(step)
                elif step in OFFSETS_MS:
                    time_ms = house.clock.wall_ms() + OFFSETS_MS[step]
                    report = {"data": {"ab"[number % 2]: number}}
                    if step == "now":
                        time_ms = max([time_ms, *(newest_ms + 1 for newest_ms in oracle.points)])
                    oracle.take({**report, "time": time_ms})
                    counts["deviceState"] += 1
                    turn(house, device, report if step == "now" else {**report, "time": time_ms})
                elif step == "refused":
                    with pytest.raises(Invalid):
                        turn(house, device, {"data": {"a": "no number"}})
                elif step == "command":
                    await house.command(device, "on")
                    counts["deviceCommand"] += 1
                elif step == "connect":
                    status = devices.Connected()
                    await house.ask(device, devices.SetConnectionStatus(body=status))
                    counts["deviceConnect"] += 1
                elif step == "declare":
                    attribute = msgspec.convert({"name": f"x{number}", "dataType": "number"}, Attribute)
                    await house.ask(device, devices.AddAttribute(body=attribute))
                elif step == "forget":
                    house.forget()
                elif step == "flush":
                    await house.flush()
                else:
                    house.system.journal.flush()
            house.system.journal.flush()
            assert await house.composite(device) == oracle.composite()
            assert await house.payloads(device) == counts
            with house.system.store.snapshot() as snapshot:
                head = Head.read(snapshot, device)
                behind = snapshot.head(device).reports
            assert len(behind) >= head.points_ahead <= POINTS_AHEAD_MAX
            house.forget()
            await house.command(device, "stores a head")
            with house.system.store.snapshot() as snapshot:
                again = Head.decoded(snapshot.head(device).head)
            assert (again.values, again.newest_ms) == (head.values, head.newest_ms)
