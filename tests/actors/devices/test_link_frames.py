"""States by frames of the link: the same as posted ones in everything that can be read, and each frame once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.actors.house import START_MS, House, at, running_again, running_house
from trunkline.actors.devices.link_messages import Columns, ReportFrame
from trunkline.actors.devices.messages import StateReport
from trunkline.actors.devices.state_feed import STATE_TOPIC
from trunkline.actors.values.errors import DomainError, Invalid, PayloadTooLarge, TooManyRequests
from trunkline.limits.table import Limits


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
    for settles in (False, True):
        async with running_again(tmp_path, house, 1000) as again:
            assert not await send(again, device, 9, StateReport(data={"a": 4}), session=8)
            assert not await send(again, device, 4, StateReport(data={"a": 4}), session=8, backlog=True)
            assert await again.states(device) == states
            if settles:
                await again.settle()
    async with running_again(tmp_path, house, 1000) as again:
        assert not await send(again, device, 9, StateReport(data={"a": 4}), session=8)
        assert await send(again, device, 10, StateReport(data={"a": 4}), session=8)


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


async def test_frames_are_told_to_streams_but_not_those_of_a_backlog(house: House) -> None:
    device = await house.device()
    stream = house.listen(device, STATE_TOPIC)
    await send(house, device, 1, columns([-9, -8], a=[1, 2]), backlog=True)
    await send(house, device, 1, columns([-2, -1], a=[3, None], label=["x", "y"]))
    heard = [msgspec.json.decode(event) for _, event in await stream.receive()]
    assert heard == [
        {"time": at(-2), "data": {"a": 3, "label": "x"}},
        {"time": at(-1), "data": {"label": "y"}},
    ]


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
