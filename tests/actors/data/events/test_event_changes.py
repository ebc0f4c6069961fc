"""Changes of many events: each is one change, whatever else is going on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.actors.event_house import Events
from tests.actors.house import running_house
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.values.errors import ChangeTooLarge
from trunkline.actors.data.events.kind import EVENT, EVENT_STATES, LEVELS
from trunkline.limits.table import Limits
from trunkline.store.backup import verify


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Events]:
    """Events in a house without throttles."""
    async with running_house(tmp_path / "data") as house:
        yield Events(house)


async def test_many_are_updated_by_filter_state_and_query(log: Events) -> None:
    for number in range(6):
        await log.create(subject=f"n{number}", level=LEVELS[number % 2], state=EVENT_STATES[number % 3])
    choice = {"filterField": "subject", "filter": "n*", "state": "new", "query": {"level": "warning"}}
    assert await log.patch_many(choice, state="resolved", comment="all well") == 1
    found = (await log.page(query={"subject": "n3"}))["items"][0]
    assert found["updates"][0]["stateChange"] == {"old": "new", "new": "resolved"}
    assert await log.patch_many({"state": "new"}, level="critical") == 1
    assert await log.patch_many({"filter": "n1"}, comment="a filter without a field is none") == 6
    assert await log.delete_many({"state": "resolved"}) == 3
    assert await log.subjects(sortField="subject", sortDirection="asc") == ["n0", "n1", "n4"]
    assert await log.delete_many({}) == 3
    assert log.beside() == {}
    with log.house.system.store.snapshot() as snapshot:
        assert [
            records.total(snapshot, EVENT, log.house.application, part) for part in (None, *EVENT_STATES)
        ] == [0] * 4


async def test_a_change_of_too_many_changes_nothing(tmp_path: Path) -> None:
    limits = Limits.off().override({"changed_events_max": 3, "changed_events_bytes_max": 20_000})
    async with running_house(tmp_path / "data", limits=limits) as house:
        log = Events(house)
        for number in range(4):
            await log.create(subject=f"n{number}")
        before = (await log.page())["items"]
        for change in (log.patch_many({}, state="resolved"), log.delete_many({})):
            with pytest.raises(ChangeTooLarge, match="More than 3 events match"):
                await change
        with pytest.raises(ChangeTooLarge, match="more than 20000 bytes"):
            await log.patch_many({"query": {"subject": {"$ne": "n0"}}}, comment="x" * 10_000)
        assert (await log.page())["items"] == before
        assert await log.delete_many({"subject": {"$ne": "n0"}}) == 3


async def test_a_change_of_many_and_single_ones_do_not_mix(log: Events) -> None:
    """Whichever order they are taken in, each event has every update once, and the chain has no gap."""
    ids = [await log.create(subject=f"n{number}") for number in range(30)]

    async def all_of_them(state: str) -> None:
        counts.append(await log.patch_many({"query": {"state": {"$ne": state}}}, state=state))

    async def one(id: bytes, state: str) -> None:
        await log.patch(id, state=state, comment="single")

    counts: list[int] = []
    async with trio.open_nursery() as nursery:
        for turn in range(5):
            nursery.start_soon(all_of_them, EVENT_STATES[turn % 3])
            for id in ids[:10]:
                nursery.start_soon(one, id, EVENT_STATES[(turn + 1) % 3])
    found = [await log.get(id) for id in ids]
    assert sum(len(event["updates"]) for event in found) == sum(counts) + 50
    for event in found:
        state = "new"
        for update in event["updates"]:
            change = update.get("stateChange", {"old": state, "new": state})
            assert change["old"] == state
            state = change["new"]
        assert state == event["state"]
        times = [update["creationDate"] for update in event["updates"]]
        assert times == sorted(set(times))
        # What the change of many was decided on held when it was made, not just when it was looked for.
        assert all("stateChange" in update for update in event["updates"] if "comment" not in update)
    assert verify(log.house.system.store, partial(records.index_keys, KINDS)).problems == []
