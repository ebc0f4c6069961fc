"""Arrays of states: stored as columns or state by state, they are the same in everything that can be read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import create_flow, kept_runs, runs_end, trigger
from tests.actors.fleet.devices.everything import everything
from tests.actors.house import START_MS, House, at, running_again, running_house
from tests.rounds import examples
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import parse_report_time
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC
from trunkline.actors.fleet.devices.record.messages import SendBacklog, StateOrStates, StateReport
from trunkline.actors.fleet.devices.state.array_columns import COLUMNS_FROM, PLACES_MAX, columns_of
from trunkline.store.backup import verify

TYPES = {"n": "number", "b": "boolean", "s": "string", "g": "gps", "blob": "blob"}
KINDS: dict[str, list[st.SearchStrategy[Any]]] = {
    "n": [
        st.integers(-3, 300),
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(-3, 3) | st.sampled_from([2**40, 2**63, 2**64, 0.5, -0.0, 1e300]),
        st.booleans() | st.just("7"),
    ],
    "b": [st.booleans(), st.integers(0, 1), st.sampled_from(["true", "0", True, 1, 0.0])],
    "s": [st.text(max_size=3), st.integers(-3, 3), st.sampled_from(["x", 1, 0.5, True, "y" * 300])],
    "g": [st.sampled_from(["1,2", "3,4"])],
    "blob": [st.text(max_size=2)],
}
TIMES: dict[str, Callable[[int], Any]] = {
    "ms": lambda offset: START_MS + offset,
    "seconds": lambda offset: (START_MS + offset) / 1000,
    "text": at,
    "ago": lambda offset: min(offset, -1),
}
OTHER_TIMES: st.SearchStrategy[Any] = st.sampled_from(
    [None, "yesterday", START_MS + 2 * 86_400_000, at(90_000_000), {"$date": at(-7)}]
)
WRONG_VALUES: st.SearchStrategy[tuple[str, Any]] = st.sampled_from(
    [("n", "x"), ("n", None), ("n", [1]), ("b", 2), ("g", 1), ("s", "y" * 40_000), ("s", {}), ("zz", 1)]
)


@st.composite
def arrays(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An array: mostly such that it becomes columns, sometimes with something that has to be refused."""
    count = draw(st.integers(COLUMNS_FROM, COLUMNS_FROM + 8))
    time_of = TIMES[draw(st.sampled_from(["ms", "ms", *TIMES]))]
    offsets = draw(
        st.just([10 * place - 5000 for place in range(count)])
        | st.lists(st.integers(-9000, 0), min_size=count, max_size=count)
    )
    states: list[dict[str, Any]] = [{"time": time_of(offset), "data": {}} for offset in offsets]
    for name in draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, unique=True)):
        values, missing = draw(st.sampled_from(KINDS[name])), draw(st.integers(0, 3)) == 0
        for state in states:
            if not missing or draw(st.booleans()):
                state["data"][name] = draw(values)
    match draw(st.integers(0, 11)):
        case 0 | 1:
            name, value = draw(WRONG_VALUES)
            draw(st.sampled_from(states))["data"][name] = value
        case 2:
            draw(st.sampled_from(states))["time"] = draw(OTHER_TIMES)
        case 3:
            draw(st.sampled_from(states))["meta"] = draw(st.sampled_from([None, {"a": [1]}, "x"]))
        case 4:
            version = draw(st.sampled_from(["v1", "v2"]))
            for state in states:
                state["flowVersion"] = version
        case 5:
            draw(st.sampled_from(states))["flowVersion"] = "v1"
    return states


async def refusal(house: House, device: bytes, states: list[dict[str, Any]]) -> str | None:
    """The refusal of the first state that is refused alone, as an array says it; None if all are stored."""
    for place, state in enumerate(states):
        try:
            await house.report(device, state)
        except Invalid as refused:
            return f"[{place}].{refused.message}"
    return None


@pytest.mark.slow
@given(sent=st.lists(arrays(), min_size=1, max_size=3), flushes=st.booleans())
@settings(max_examples=examples(25), deadline=None)
async def test_an_array_is_as_good_as_its_states(sent: list[list[dict[str, Any]]], *, flushes: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        async with running_house(path) as house:
            one_by_one, whole = await house.device(TYPES), await house.device(TYPES)
            for states in sent:
                expected = await refusal(house, await house.device(TYPES), states)
                if expected is None:
                    await house.report(whole, *states, as_array=True)
                    await refusal(house, one_by_one, states)
                else:
                    with pytest.raises(Invalid) as refused:
                        await house.report(whole, *states, as_array=True)
                    assert refused.value.message == expected
                if flushes:
                    await house.flush()
            told = await everything(house, one_by_one)
            assert await everything(house, whole) == told
            house.forget()
            assert await everything(house, whole) == told
        async with running_again(path, house, 0) as again:
            assert await everything(again, whole) == told
            await again.flush()
            assert await everything(again, whole) == told
            assert verify(again.system.store).problems == []


def array(count: int = COLUMNS_FROM, **fields: Any) -> list[dict[str, Any]]:
    return [{"time": START_MS + place, "data": {"n": 0.5, "s": "x"}, **fields} for place in range(count)]


def changed(**fields: Any) -> list[dict[str, Any]]:
    states = array()
    states[3] |= fields
    return states


@pytest.mark.parametrize(
    ("states", "is_columns"),
    [
        (array(), True),
        (array(flowVersion="v1"), True),
        (changed(time=at(3)), True),
        (changed(data={"n": 1}), True),
        (changed(data={"s": "x", "n": 1}), True),
        (changed(time=None), False),
        (changed(meta=None), False),
        (changed(flowVersion="v1"), False),
        (changed(data={"n": None, "s": "x"}), False),
        (changed(data={"n": None}), False),
        (changed(data={"n": [1], "s": "x"}), False),
        ([{"time": START_MS, "data": {}} for _ in range(COLUMNS_FROM)], False),
        ([{"time": START_MS, "data": {f"a{place}": 1}} for place in range(PLACES_MAX + 1)], False),
    ],
)
def test_what_says_the_same_in_every_state_becomes_columns(
    states: list[dict[str, Any]], *, is_columns: bool
) -> None:
    reports = msgspec.convert(states, list[StateReport])
    found = columns_of(reports, START_MS + 1000, parse_report_time)
    assert (found is not None) == is_columns
    if found is not None:
        assert [report.data for report in found.reports()] == [state["data"] for state in states]
        assert found.times.tolist() == [START_MS + place for place in range(len(states))]
        assert isinstance(found.columns[0], np.ndarray) == (states[3]["data"] == states[0]["data"])


async def test_an_array_is_told_to_streams_and_workflows_state_by_state(house: House) -> None:
    device = await house.device()
    stream = house.listen(device, STATE_TOPIC)
    flow = await create_flow(
        house,
        [trigger("deviceId", ["d"], device.hex(), config={"batchBehavior": "once"})],
        [node("d", "DebugNode")],
    )
    states = [{"time": at(place - 50), "data": {"a": place, "label": "x"}} for place in range(COLUMNS_FROM)]
    await house.report(device, *states, as_array=True)
    await runs_end(house)
    (run,) = kept_runs(house, flow)
    assert [each["data"] for each in run.debug[0][3]["data"]] == [each["data"] for each in states]
    heard: list[Any] = []
    while len(heard) < len(states):
        heard += [msgspec.json.decode(event) for _, event in await stream.receive()]
    assert heard == states


async def test_an_array_of_a_backlog_is_told_to_nobody_and_needs_all_times(house: House) -> None:
    device = await house.device()
    stream = house.listen(device, STATE_TOPIC)
    states = [{"time": at(place - 50), "data": {"a": place}} for place in range(COLUMNS_FROM)]
    await house.ask(device, SendBacklog(body=msgspec.convert(states, StateOrStates)))
    body = msgspec.convert([*states[:2], {"data": {"a": 0}}, *states[3:]], StateOrStates)
    with pytest.raises(Invalid, match=r"^\[2\]\.time: is missing"):
        await house.ask(device, SendBacklog(body=body))
    await house.report(device, {"data": {"a": 99}})
    assert [msgspec.json.decode(event)["data"] for _, event in await stream.receive()] == [{"a": 99}]
    assert [state["data"]["a"] for state in await house.states(device)] == [*range(COLUMNS_FROM), 99]
