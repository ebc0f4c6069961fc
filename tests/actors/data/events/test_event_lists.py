"""Lists of events: every order, every query, and the most severe new event."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.event_house import BY, Events
from tests.actors.house import START_MS, at, running_house
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.events import reads as events
from trunkline.actors.data.events.kind import EVENT_STATES, LEVELS
from trunkline.actors.data.events.messages import DeleteEvent
from trunkline.store.backup import verify

UNKNOWN = bytes.fromhex("0123456789abcdef01234567")


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Events]:
    """Events in a house without throttles."""
    async with running_house(tmp_path / "data") as house:
        yield Events(house)


async def test_lists_sort_levels_by_severity_and_states_by_life(log: Events) -> None:
    for level in ("error", "info", "critical", "warning"):
        await log.create(level=level, subject=level)
    assert await log.subjects(sortField="level") == list(reversed(LEVELS))
    for level, state in (("error", "resolved"), ("info", "acknowledged")):
        await log.patch_many({"filterField": "subject", "filter": level}, state=state)
    states = [item["state"] for item in (await log.page(sortField="state", sortDirection="asc"))["items"]]
    assert states == ["new", "new", "acknowledged", "resolved"]


drafts = st.fixed_dictionaries(
    {
        "level": st.sampled_from(LEVELS),
        "state": st.sampled_from(EVENT_STATES),
        "subject": st.sampled_from(["a", "b", "B"]),
        "creationDate": st.integers(START_MS - 3, START_MS),
        "eventTags": st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"])),
    }
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "level": st.sampled_from(LEVELS),
        "state": st.sampled_from(EVENT_STATES),
        "subject": st.sampled_from(["a", "b", "B"]),
    },
)
RANK: dict[str, Any] = {
    "level": lambda item: LEVELS.index(item["level"]),
    "state": lambda item: EVENT_STATES.index(item["state"]),
    "subject": lambda item: (item["subject"].casefold(), item["subject"]),
}


# What a query bounds by an index, and the same by hand.
QUERIES: tuple[tuple[dict[str, Any], Any], ...] = (
    ({"level": "critical"}, lambda item: item["level"] == "critical"),
    ({"level": {"$in": ["info", "error"]}}, lambda item: item["level"] in ("info", "error")),
    ({"state": {"$ne": "new"}}, lambda item: item["state"] != "new"),
    ({"state": {"$gt": "new"}}, lambda item: item["state"] == "resolved"),
    ({"subject": "b"}, lambda item: item["subject"] == "b"),
    ({"subject": {"$startsWith": "B"}}, lambda item: item["subject"] == "B"),
    ({"subject": {"$eq": "B", "$ci": True}}, lambda item: item["subject"] in ("b", "B")),
    ({"creationDate": {"$gte": START_MS - 1}}, lambda item: item["creationDate"] >= at(-1)),
    ({"creationDate": {"$lt": at(-2)}}, lambda item: item["creationDate"] < at(-2)),
    ({"lastUpdated": {"$gt": START_MS}}, lambda item: item["lastUpdated"] > at(0)),
    (
        {"$or": [{"level": "info", "subject": "a"}, {"level": "critical", "state": "new"}]},
        lambda item: (
            (item["level"], item["subject"]) == ("info", "a")
            or (item["level"], item["state"]) == ("critical", "new")
        ),
    ),
    (
        {"level": "info", "$nor": [{"subject": "a"}]},
        lambda item: (item["level"], item["subject"]) in (("info", "b"), ("info", "B")),
    ),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(drafts, max_size=12), st.lists(st.tuples(st.integers(0, 11), changes | st.none()), max_size=8)
)
async def test_every_list_is_what_sorting_and_filtering_by_hand_gives(
    made: list[dict[str, Any]], history: list[tuple[int, dict[str, Any] | None]]
) -> None:
    with TemporaryDirectory() as path:
        async with running_house(Path(path) / "data") as house:
            log = Events(house)
            ids = [await log.create(**draft) for draft in made]
            kept = dict.fromkeys(ids)
            for number, patch in history:
                if number < len(ids) and ids[number] in kept:
                    house.clock.pass_s(0.001)
                    if patch is None:
                        await log.ask(DeleteEvent(event=ids[number]))
                        del kept[ids[number]]
                    else:
                        await log.patch(ids[number], **patch)
            items = [await log.get(id) for id in kept]
            for field in ("creationDate", "lastUpdated", "level", "state", "subject", "id"):
                rank = RANK.get(field, lambda item, field=field: item[field])
                ordered = sorted(items, key=lambda item: (rank(item), item["id"]))
                for state in (None, *EVENT_STATES):
                    wanted = [item for item in ordered if state in (None, item["state"])]
                    chosen = {} if state is None else {"state": state}
                    ways: list[dict[str, Any]] = [chosen, {"query": dict(chosen)}, {**chosen, "query": {}}]
                    for way in ways:
                        listed = await log.page(sortField=field, sortDirection="asc", **way)
                        assert listed["items"] == wanted
                        assert listed["totalCount"] == len(wanted)
            for query, fits in QUERIES:
                listed = await log.page(sortField="id", sortDirection="asc", query=query)
                assert listed["items"] == sorted(filter(fits, items), key=lambda item: item["id"]), query
            for id in ids:
                listed = await log.page(query={"id": {"$in": [id.hex(), UNKNOWN.hex()]}})
                assert listed["items"] == [item for item in items if item["id"] == id.hex()]
            new = [item for item in items if item["state"] == "new"]
            worst = max(
                new,
                key=lambda item: (LEVELS.index(item["level"]), item["creationDate"], item["id"]),
                default=None,
            )
            assert await log.most_recent() == (None if worst is None else worst["subject"], len(new))
            assert await log.most_recent(query={}) == await log.most_recent()
            assert verify(house.system.store, partial(records.index_keys, KINDS)).problems == []


async def test_queries_find_by_every_field(log: Events) -> None:
    device = await log.house.device()
    await log.create(subject="plain")
    log.house.clock.pass_s(10)
    id = await log.create(
        subject="rich", level="error", state="resolved", deviceId=device.hex(), eventTags={"site": "north"}
    )
    rich: list[dict[str, Any]] = [
        {"id": id.hex()},
        {"creationDate": {"$gt": at(5000)}},
        {"lastUpdated": {"$gte": {"$date": at(10_000)}}},
        {"level": "error"},
        {"state": {"$in": ["resolved"]}},
        {"subject": {"$startsWith": "R", "$ci": True}},
        {"deviceId": device.hex().upper()},
        {"deviceId": device.hex(), "state": "resolved"},
        {"deviceId": {"$ne": None}},
        {"eventTags": {"site": "north"}},
        {"eventTags": {"$tagKey": "site"}},
        {"eventTags": {"$tagValue": {"$in": ["north"]}}},
        {"eventTags": {"$ne": None}},
    ]
    for query in rich:
        assert await log.subjects(query=query) == ["rich"], query
    both: list[dict[str, Any]] = [
        {"sourceType": "user"},
        {"sourceId": BY.id},
        {"experienceUserId": None},
        {"experienceUserId": {"$ne": UNKNOWN.hex()}},
    ]
    for query in both:
        assert await log.subjects(query=query) == ["rich", "plain"], query
    none: list[dict[str, Any]] = [
        {"experienceUserId": UNKNOWN.hex()},
        {"experienceGroupId": {"$in": [UNKNOWN.hex()]}},
        {"deviceId": device.hex(), "state": "new"},
        {"state": "open"},
    ]
    for query in none:
        assert await log.subjects(query=query) == [], query
    assert await log.subjects(query={"eventTags": None}) == ["plain"]
    with pytest.raises(Invalid, match=r"query\.severity: there is no such field"):
        await log.page(query={"severity": "error"})


async def test_the_most_severe_new_event_may_be_narrowed(log: Events) -> None:
    assert await log.most_recent() == (None, 0)
    for subject, level in (("door open", "critical"), ("window open", "error"), ("door ajar", "error")):
        log.house.clock.pass_s(1)
        await log.create(subject=subject, level=level)
    await log.create(subject="old", level="error", creationDate=at(-1000))
    await log.create(subject="over", level="critical", state="resolved")
    assert await log.most_recent() == ("door open", 4)
    assert await log.most_recent(filter="window*") == ("window open", 1)
    assert await log.most_recent(query={"level": "error"}) == ("door ajar", 3)
    assert await log.most_recent(query={"level": "error"}, filter="*open") == ("window open", 1)
    assert await log.most_recent(query={"state": "resolved"}) == (None, 0)


async def test_events_are_read_one_by_one_in_order(log: Events) -> None:
    for number in (3, 1, 2):
        await log.create(subject=f"{number}", creationDate=START_MS - 1000 + number, level="error")
    await log.create(subject="other")
    with log.house.system.store.snapshot() as snapshot:
        found = events.events_in_order(snapshot, log.house.application, {"level": "error"})
        assert [event["subject"] for event in found] == ["1", "2", "3"]
        everything = list(events.events_in_order(snapshot, log.house.application))
    assert everything[-1] == (await log.page())["items"][0]
    assert len(everything) == 4
