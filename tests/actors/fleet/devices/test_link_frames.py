"""States by frames of the link: the same as posted ones in everything that can be read, and each frame once."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import cbor2
import msgspec
import numpy as np
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import create_flow, kept_runs, runs_end, trigger
from tests.actors.fleet.devices.everything import everything
from tests.actors.house import START_MS, House, at, running_again, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.values.errors import (
    DomainError,
    Invalid,
    Overloaded,
    PayloadTooLarge,
    TooManyRequests,
)
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC
from trunkline.actors.fleet.devices.record.messages import StateReport
from trunkline.actors.fleet.devices.state.link_messages import REFUSED_MAX, Columns, ReportFrame
from trunkline.http.link.frames import States, decode_frame
from trunkline.limits.table import Limits
from trunkline.store.backup import verify


def columns(times: list[int], **given: Any) -> Columns:
    """States at these offsets to the clock's start."""
    return Columns(
        names=tuple(given), times=np.array(times, np.int64) + START_MS, columns=tuple(given.values())
    )


async def send(house: House, device: bytes, n: int, body: StateReport | Columns, **more: Any) -> bool:
    stored: bool = await house.ask(device, ReportFrame(**{"session": 7, "n": n, "body": body, **more}))
    return stored


async def test_a_frame_is_stored_once(tmp_path: Path) -> None:
    async with running_house(tmp_path) as house:
        device = await house.device()
        assert await send(house, device, 3, StateReport(data={"a": 1}))
        assert not await send(house, device, 3, StateReport(data={"a": 2}))
        assert not await send(house, device, 1, StateReport(data={"a": 2}))
        assert await send(house, device, 3, StateReport(data={"a": 3}, time=START_MS - 5), session=8)
        assert await send(house, device, 9, columns([-3, -2], a=[1, 2]), session=8)
        assert not await send(house, device, 9, columns([-3, -2], a=[3, 4]), session=8)
        assert await send(house, device, 4, columns([-9], a=[5]), session=8, backlog=True)
        house.forget()
        assert not await send(house, device, 9, columns([-1], a=[3]), session=8)
        assert not await send(house, device, 4, columns([-1], a=[3]), session=8, backlog=True)
        expected = [(-9, 5), (-5, 3), (-3, 1), (-2, 2), (0, 1)]
        states = await house.states(device)
        assert [(state["time"], state["data"]["a"]) for state in states] == [
            (at(offset), value) for offset, value in expected
        ]
        assert await house.payloads(device) == {"deviceState": 5}
    for flushes in (False, True):
        async with running_again(tmp_path, house, 1000) as again:
            assert not await send(again, device, 9, StateReport(data={"a": 4}), session=8)
            assert not await send(again, device, 4, StateReport(data={"a": 4}), session=8, backlog=True)
            assert await again.states(device) == states
            if flushes:
                await again.flush()
    async with running_again(tmp_path, house, 1000) as again:
        assert not await send(again, device, 9, StateReport(data={"a": 4}), session=8)
        assert await send(again, device, 10, StateReport(data={"a": 4}), session=8)


@pytest.mark.parametrize("flushes", [False, True])
async def test_a_crash_forgets_neither_states_nor_numbers(tmp_path: Path, *, flushes: bool) -> None:
    """The files are copied while the server runs, as `kill -9` would leave them."""
    async with running_house(tmp_path / "data") as house:
        device = await house.device()
        for n in range(1, 40):
            if n % 7:
                await send(house, device, n, StateReport(data={"a": n}, time=START_MS - 100_000 + 20 * n))
            else:
                offsets = [20 * n + at - 100_000 for at in range(12)]
                await send(house, device, n, columns(offsets, a=np.arange(12), b=[0.5] * 12))
            if flushes and n % 10 == 9:
                await house.flush()
            if n in (3, 14, 27, 39):
                expected = await everything(house, device)
                shutil.copytree(tmp_path / "data", tmp_path / str(n))
                async with running_again(tmp_path / str(n), house, 0) as again:
                    assert await everything(again, device) == expected
                    assert not await send(again, device, n, StateReport(data={"a": 0}))
                    await again.flush()
                    assert await everything(again, device) == expected
                async with running_again(tmp_path / str(n), house, 0) as again:
                    assert not await send(again, device, n, StateReport(data={"a": 0}))
                    assert await send(again, device, n + 1, StateReport(data={"a": 0}))


async def test_a_refused_frame_is_not_stored_and_its_number_neither(house: House) -> None:
    device = await house.device()
    for body, told in [
        (columns([0, 1], a=[1, "x"]), "[1].data.a: 'x' is not a number"),
        (columns([0], c=[1]), "data.c: the device declares no such attribute"),
        (columns([0, 1], a=[1, None], b=[2, None]), "[1].data: is empty"),
        (columns([0, 10**10], a=[1, 2]), "[1].time: "),
        (columns([0, 1], a=np.array([1.0, np.nan])), "[1].data.a: nan is not a number"),
        (columns([0, 1], label=["x", "y" * 10**6]), "[1].data.label: the text has"),
    ]:
        with pytest.raises(Invalid) as refusal:
            await send(house, device, 1, body)
        assert told in refusal.value.message
    with pytest.raises(PayloadTooLarge):
        await send(house, device, 1, columns(list(range(10_001)), a=[1] * 10_001))
    with pytest.raises(Invalid, match="a state of a backlog needs the time"):
        await send(house, device, 1, StateReport(data={"a": 1}), backlog=True)
    assert await house.states(device) == []
    assert await house.payloads(device) == {}
    assert await send(house, device, 1, columns([0], a=[1]))


async def test_a_refused_frame_is_remembered_over_frames_of_a_later_connection(house: House) -> None:
    """Of both lanes: its refusal may be lost, and a frame that comes again below a stored one is taken for stored."""
    device = await house.device()
    body = StateReport(data={"a": 1}, time=START_MS - 9)
    assert await send(house, device, 3, body, backlog=True, refused=(1, 2))
    assert await send(house, device, 1, body), "one of the other lane, which the next connection brings again"
    for _ in range(2):
        with pytest.raises(Overloaded, match="Frame 2 was refused before"):
            await send(house, device, 2, body, backlog=True)
        assert not await send(house, device, 3, body, backlog=True)
        house.forget()
    assert await send(house, device, 4, body, refused=(2,), answered=1)
    assert await send(house, device, 5, body, answered=4)
    assert not await send(house, device, 2, body, backlog=True), "no client sends what it has the answer to"


async def test_refused_frames_are_remembered_up_to_a_bound(house: House) -> None:
    device = await house.device()
    body = StateReport(data={"a": 1}, time=START_MS - 9)
    for n in range(64, REFUSED_MAX + 1, 64):
        assert await send(house, device, 2 * n, body, refused=tuple(range(n, n + 64)))
    n = 2 * REFUSED_MAX + 1
    with pytest.raises(Overloaded, match=f"{REFUSED_MAX + 1} frames of this session were refused"):
        await send(house, device, n, body, refused=(n - 1,))
    assert await send(house, device, n, body, refused=(n - 1,), answered=REFUSED_MAX)


async def test_frames_are_told_to_streams_but_not_those_of_a_backlog(house: House) -> None:
    device = await house.device()
    stream = house.listen(device, STATE_TOPIC)
    many = list(range(-40, -20))
    await send(house, device, 1, columns([-9, -8], a=[1, 2]), backlog=True)
    await send(house, device, 2, columns(many[::-1], a=np.arange(20)), backlog=True)
    await send(house, device, 1, columns([-2, -1], a=[3, None], label=["x", "y"]))
    await send(house, device, 2, columns(many, b=[0.5] * 20, label=[None, "z"] * 10))
    heard: list[Any] = []
    with trio.fail_after(PATIENCE_S):
        while len(heard) < 22:
            heard += [msgspec.json.decode(event) for _, event in await stream.receive()]
    assert heard == [
        {"time": at(-2), "data": {"a": 3, "label": "x"}},
        {"time": at(-1), "data": {"label": "y"}},
        *({"time": at(each), "data": {"b": 0.5} | ({"label": "z"} if each % 2 else {})} for each in many),
    ]
    found = {state["time"]: state["data"] for state in await house.states(device)}
    assert [found[at(each)]["a"] for each in many] == list(range(20))[::-1]
    assert (await house.composite(device))["a"] == (at(-2), 3)
    await house.flush()
    assert {state["time"]: state["data"] for state in await house.states(device)} == found


async def test_frames_are_counted_by_the_throttle_but_not_those_of_a_backlog(tmp_path: Path) -> None:
    limits = Limits.off().override({"send_state": {"calls": 2, "window_s": 15}})
    async with running_house(tmp_path, limits=limits) as house:
        device = await house.device()
        for n in range(1, 4):
            await send(house, device, n, columns([-n], a=[1]), backlog=True)
        await send(house, device, 1, columns([0], a=[1]))
        await send(house, device, 2, columns([1], a=[1]))
        with pytest.raises(TooManyRequests) as refusal:
            await send(house, device, 3, columns([2], a=[1]))
        assert isinstance(refusal.value, DomainError)
        assert refusal.value.bucket == "send_state"


TYPES = {"n": "number", "b": "boolean", "s": "string", "g": "gps", "blob": "blob"}

numbers = st.integers(-3, 3) | st.sampled_from([2**40, 2**64, 0.5, -0.0, 1e300, 1.5])
fitting: dict[str, list[st.SearchStrategy[Any]]] = {
    "n": [
        st.integers(-3, 300),
        st.floats(allow_nan=False, allow_infinity=False),
        numbers | st.booleans(),
        st.just("7"),
    ],
    "b": [
        st.booleans(),
        st.integers(0, 1),
        st.sampled_from([0.0, 1.0]),
        st.sampled_from(["true", "0", True, 1]),
    ],
    "s": [st.text(max_size=3), numbers, st.booleans(), st.sampled_from(["x", 1, True, "y" * 300])],
    "g": [st.sampled_from(["1,2", "3,4"])],
    "blob": [st.text(max_size=2)],
}
wrong = st.sampled_from([("n", "x"), ("b", 2), ("g", 1), ("blob", True), ("s", "y" * 40_000), ("zz", 1)])


@st.composite
def drawn_frames(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Lists of states; in each one the values of an attribute are nearly always of one type."""
    frames: list[list[dict[str, Any]]] = []
    for _ in range(draw(st.integers(1, 5))):
        count = draw(st.integers(1, 20))
        offsets = draw(
            st.just([10 * at - 5000 for at in range(count)])
            | st.lists(st.integers(-9000, 0), min_size=count, max_size=count)
        )
        names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, unique=True))
        states: list[dict[str, Any]] = [{"time": START_MS + offset, "data": {}} for offset in offsets]
        for name in names:
            values = draw(st.sampled_from(fitting[name]))
            missing = draw(st.booleans())
            for state in states:
                if not missing or draw(st.booleans()):
                    state["data"][name] = draw(values)
        if draw(st.integers(0, 5)) == 0:
            name, value = draw(wrong)
            draw(st.sampled_from(states))["data"][name] = value
        frames.append(states)
    return frames


def frame_of(n: int, states: list[dict[str, Any]], form: str) -> bytes:
    names = list({name: None for state in states for name in state["data"]}) or ["n"]
    rows = [[state["time"], *(state["data"].get(name) for name in names)] for state in states]
    if form == "rows":
        return cbor2.dumps([2, n, names, rows])
    columns: dict[str, Any] = {}
    times, *values = zip(*rows, strict=True)
    for name, column in zip(names, values, strict=True):
        columns[name] = list(column)
        if form == "typed" and len(kinds := set(map(type, column))) == 1:
            if kinds == {float}:
                columns[name] = cbor2.CBORTag(86, np.array(column, "<f8").tobytes())
            elif kinds == {int} and all(-(2**63) <= value < 2**63 for value in column):
                columns[name] = cbor2.CBORTag(79, np.array(column, "<i8").tobytes())
    base = min(times)
    return cbor2.dumps([3, n, base, [time - base for time in times], columns])


@pytest.mark.slow
@given(frames=drawn_frames(), form=st.sampled_from(["rows", "columns", "typed"]), flushes=st.booleans())
@settings(max_examples=40, deadline=None)
async def test_frames_are_as_good_as_posts(
    frames: list[list[dict[str, Any]]], form: str, flushes: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        async with running_house(path) as house:
            posted, framed = await house.device(TYPES), await house.device(TYPES)
            for n, states in enumerate(frames, 1):
                accepted = []
                frame = decode_frame(frame_of(n, states, form), text=False)
                assert isinstance(frame, States)
                for sent in (
                    house.report(posted, *states, as_array=True),
                    send(house, framed, n, frame.body),
                ):
                    try:
                        await sent
                        accepted.append(True)
                    except Invalid:
                        accepted.append(False)
                assert accepted[0] == accepted[1]
                if flushes and n % 2:
                    await house.flush()
            expected = await everything(house, posted)
            assert await everything(house, framed) == expected
            house.forget()
            assert await everything(house, framed) == expected
        async with running_again(path, house, 0) as again:
            assert await everything(again, framed) == expected
            await again.flush()
            assert await everything(again, framed) == expected
            assert verify(again.system.store).problems == []


@pytest.mark.parametrize("count", [3, 30])
async def test_frames_trigger_workflows_as_arrays_do(house: House, count: int) -> None:
    offsets = list(range(-count, 0))
    values: dict[str, Any] = {"a": [*range(count)], "label": ["x", *[None] * (count - 1)]}
    wrong = {**values, "b": [None, "x", *[None] * (count - 2)]}
    told: list[Any] = []
    for is_frame in (True, False):
        device = await house.device()
        config = {"allowInvalid": True, "batchBehavior": "once"}
        flow = await create_flow(
            house, [trigger("deviceId", ["d"], device.hex(), config=config)], [node("d", "DebugNode")]
        )
        for n, states in enumerate((columns(offsets, **values), columns(offsets, **wrong)), 1):
            with pytest.raises(Invalid) if n == 2 else nullcontext():
                if is_frame:
                    await send(house, device, n, states)
                else:
                    await house.report(device, *bodies(states), as_array=True)
        await runs_end(house)
        payloads = [run.debug[0][3] for run in kept_runs(house, flow)]
        told.append([(each["data"], each.get("original")) for each in payloads])
    assert len(told[0]) == 2
    assert len(told[0][0][0]) == count
    assert told[0] == told[1]


def bodies(states: Columns) -> list[dict[str, Any]]:
    """The states as an array of a post."""
    return [{"time": report.time, "data": report.data} for report in states.reports()]
