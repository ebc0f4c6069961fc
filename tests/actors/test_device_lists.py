"""Lists of devices: a page is the same, whether it is cut out of an index or found by a scan."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.actors.house import House, running_house
from trunkline.actors.messages import devices, reads

FIELDS = ("name", "id", "creationDate", "lastUpdated", "connectionStatus", "deletedAt")

# Names that agree so far that an index cuts them off, that differ in case alone, that are a beginning of others.
texts = st.one_of(
    st.text(min_size=1, max_size=4),
    st.sampled_from(["a", "A", "ab", "a\x00", "a\x01", "ß", "ss", "ẞ", "é", "e\u0301", "🛰", "x" * 255]),
    st.text(alphabet="xX", min_size=195, max_size=255),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("create"), texts),
        st.tuples(st.just("rename"), texts),
        st.tuples(st.just("connect"), st.sampled_from(["connected", "disconnected"])),
        st.tuples(st.just("delete"), st.just("")),
    ),
    min_size=1,
    max_size=14,
)


async def built(house: House, plan: list[tuple[str, str]]) -> None:
    """Devices that were created, renamed, connected and deleted as the plan says, some in one millisecond."""
    living: list[bytes] = []
    for number, (verb, text) in enumerate(plan):
        house.clock.pass_s(0.001 * (number % 2))
        chosen = living[number % len(living)] if living else None
        if verb == "create" or chosen is None:
            living.append(await house.device({}, name=text or "first"))
        elif verb == "rename":
            await house.ask(chosen, devices.PatchDevice(body=devices.DevicePatch(name=text)))
        elif verb == "connect":
            status: Any = devices.Connected() if text == "connected" else devices.Disconnected()
            await house.ask(chosen, devices.SetConnectionStatus(body=status))
        else:
            await house.ask(chosen, devices.DeleteDevice())
            living.remove(chosen)


async def page(house: House, **query: Any) -> tuple[list[str], int]:
    found = await house.read(
        reads.ListDevices(
            application=house.application, query=msgspec.convert(query, devices.DevicePage), reach=None
        )
    )
    return [device["id"] for device in found["items"]], found["totalCount"]


@pytest.mark.slow
@given(plan=steps)
@example(plan=[("create", "x" * 199 + end) for end in "cab"] + [("create", "x" * 250), ("create", "X" * 250)])
@settings(max_examples=50)
async def test_the_index_and_the_scan_give_the_same_pages(plan: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with running_house(Path(directory)) as house:
            await built(house, plan)
            for field in FIELDS:
                for direction in ("asc", "desc"):
                    for deleted in (False, True):
                        order = {"sortField": field, "sortDirection": direction, "queryDeleted": deleted}
                        everything, total = await page(house, **order, query={})
                        assert len(everything) == total
                        assert len(set(everything)) == total
                        assert await page(house, **order) == (everything, total)
                        for number in range(total // 3 + 1):
                            part = everything[3 * number : 3 * number + 3]
                            cut = {**order, "page": number, "perPage": 3}
                            assert await page(house, **cut) == (part, total)
                            assert await page(house, **cut, query={}) == (part, total)


async def test_names_are_sorted_without_regard_to_case(house: House) -> None:
    for name in ("beta", "Alpha", "alpha", "GAMMA"):
        await house.device({}, name=name)
    found = await house.read(
        reads.ListDevices(application=house.application, query=devices.DevicePage(), reach=None)
    )
    assert [device["name"] for device in found["items"]] == ["Alpha", "alpha", "beta", "GAMMA"]
