"""Lists of devices: a page is the same, whether it is cut out of an index or found by a scan."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.actors.house import START_MS, House, running_house
from trunkline.actors.core.records import listing
from trunkline.actors.fleet.devices.queries.lists import device_listing
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record import read_messages

EVERY: dict[str, Any] = {"$nor": [{"id": None}]}
"""A query that every device matches and that no index serves."""

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
        read_messages.ListDevices(
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
                        everything, total = await page(house, **order, query=EVERY)
                        assert len(everything) == total
                        assert len(set(everything)) == total
                        assert await page(house, **order) == (everything, total)
                        for number in range(total // 3 + 1):
                            part = everything[3 * number : 3 * number + 3]
                            cut = {**order, "page": number, "perPage": 3}
                            assert await page(house, **cut) == (part, total)
                            assert await page(house, **cut, query=EVERY) == (part, total)


some_times = st.integers(START_MS - 2, START_MS + 12)
name_conditions = st.one_of(
    texts,
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "$in": st.lists(texts, max_size=4),
            "$startsWith": texts,
            "$gt": texts,
            "$ci": st.booleans(),
        },
    ).filter(lambda condition: condition.keys() - {"$ci"}),
)
time_conditions = st.one_of(
    some_times,
    st.fixed_dictionaries({"$gte": some_times}, optional={"$lt": some_times, "$ne": some_times}),
)
conditions = st.fixed_dictionaries(
    {},
    optional={
        "name": name_conditions,
        "creationDate": time_conditions,
        "lastUpdated": time_conditions,
        "deletedAt": st.one_of(st.none(), time_conditions),
        "connectionStatus": st.sampled_from(["connected", "notConnected", None]),
    },
)
filters = st.one_of(
    st.fixed_dictionaries({"query": conditions}),
    st.fixed_dictionaries(
        {"query": st.lists(conditions, min_size=1, max_size=3).map(lambda parts: {"$or": parts})}
    ),
    st.tuples(texts, st.sampled_from(["", "*"])).map(
        lambda parts: {"filterField": "name", "filter": "".join(parts)}
    ),
)


@pytest.mark.slow
@given(plan=steps, filters=st.lists(filters, min_size=1, max_size=8), data=st.data())
@settings(max_examples=60)
async def test_an_index_finds_what_a_scan_finds(plan: Any, filters: list[dict[str, Any]], data: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with running_house(Path(directory)) as house:
            await built(house, plan)
            known = [*(await page(house))[0], "0" * 24]
            one, few = data.draw(st.sampled_from(known)), data.draw(st.lists(st.sampled_from(known)))
            by_id = [{"id": one}, {"id": {"$in": few}}, {"id": {"$gt": one}}, {"id": {"$lte": one.upper()}}]
            for asked in [*filters, *({"query": query} for query in by_id)]:
                for deleted in (False, True):
                    # Twice "not" means the same and tells nothing of where the matches lie.
                    twice = {"$nor": [{"$nor": [asked.get("query", {})]}]}
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(listing, "INDEX_SHARE", 1)
                        found = await page(house, **asked, queryDeleted=deleted)
                        patch.setattr(listing, "INDEX_SHARE", 1_000_000)
                        assert await page(house, **asked, queryDeleted=deleted) == found
                    if "query" in asked:
                        assert await page(house, query=twice, queryDeleted=deleted) == found


async def test_a_status_is_found_though_its_index_holds_something_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that was never heard of is `notConnected` to a query, and null to the order of a list."""
    monkeypatch.setattr(listing, "INDEX_SHARE", 1)
    new, known, gone = [(await house.device({})) for _ in range(3)]
    await house.ask(known, devices.SetConnectionStatus(body=devices.Connected()))
    await house.ask(gone, devices.SetConnectionStatus(body=devices.Disconnected()))
    for condition, expected in (
        ("notConnected", {new}),
        ("connected", {known}),
        ({"$in": ["connected", "notConnected"]}, {new, known}),
        ({"$startsWith": "d"}, {gone}),
        ({"$eq": "NOTCONNECTED", "$ci": True}, {new}),
        (None, set()),
    ):
        found, total = await page(house, query={"connectionStatus": condition})
        assert set(found) == {id.hex() for id in expected}, condition
        assert total == len(expected)


async def test_a_filter_and_a_query_narrow_a_list_together(house: House) -> None:
    def ways(**query: Any) -> list[int]:
        """For each way to what matches, in how many ranges of keys it lies."""
        asked = msgspec.convert(query, devices.DevicePage)
        message = read_messages.ListDevices(application=house.application, query=asked, reach=None)
        with house.system.store.snapshot() as snapshot:
            return [len(way) for way in device_listing(snapshot, message).access_paths]

    by_name = {"filterField": "name", "filter": "pump*"}
    two_names = {"name": {"$in": ["PUMP 7", "lamp"]}}
    assert ways() == ways(filterField="name", filter="*") == ways(query={"tags": None}) == []
    assert ways(**by_name) == [1]
    assert ways(query={"creationDate": {"$gt": 5}}) == [1]
    assert ways(**by_name, query={"creationDate": {"$gt": 5}}) == [1, 1]
    assert ways(query=two_names) == [2]
    assert ways(**by_name, query=two_names) == [1]
    assert ways(query={"id": {"$in": ["0" * 24, "1" * 24]}, "connectionStatus": "connected"}) == [2, 1]


async def test_a_selection_by_query_goes_by_an_index_and_one_by_tag_does_not(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices that a tag means need not lie where those lie that the query means."""
    monkeypatch.setattr(listing, "INDEX_SHARE", 1)
    pump = await house.device({}, name="pump")
    lamp = await house.device({}, name="lamp", tags=[{"key": "floor", "value": "1"}])
    await house.device({}, name="fan")

    async def chosen(**body: Any) -> set[bytes]:
        command = msgspec.convert({"name": "go", **body}, devices.CommandToMany)
        message = read_messages.SelectDevices(application=house.application, body=command, reach=None)
        return set(await house.read(message))

    by_name, by_tag = {"deviceQuery": {"name": "pump"}}, {"deviceTags": [{"key": "floor"}]}
    assert await chosen(**by_name) == {pump}
    assert await chosen(**by_tag) == {lamp}
    assert await chosen(**by_name, **by_tag) == {pump, lamp}
    assert await chosen(**by_name, deviceIds=[lamp.hex()]) == {pump, lamp}
    assert len(await chosen(deviceQuery={})) == 3


async def test_names_are_sorted_without_regard_to_case(house: House) -> None:
    for name in ("beta", "Alpha", "alpha", "GAMMA"):
        await house.device({}, name=name)
    found = await house.read(
        read_messages.ListDevices(application=house.application, query=devices.DevicePage(), reach=None)
    )
    assert [device["name"] for device in found["items"]] == ["Alpha", "alpha", "beta", "GAMMA"]
