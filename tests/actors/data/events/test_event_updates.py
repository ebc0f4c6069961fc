"""The history of an event: each update says what changed, and all of them together give what is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.data.events.kind import EVENT_STATES, LEVELS
from trunkline.actors.data.events.messages import EventPatch
from trunkline.actors.data.events.updates import apply_update

BY = Creator("0123456789abcdef01234567", "apiToken", "robot")
DEVICES = {"a" * 24: "pump", "b" * 24: "fan", "c" * 24: None}
Doc = dict[str, Any]

tags = st.dictionaries(st.sampled_from(["site", "floor", "room"]), st.sampled_from(["1", "2"]))
patches = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(EVENT_STATES),
        "level": st.sampled_from(LEVELS),
        "subject": st.sampled_from(["hot", "cold"]),
        "deviceId": st.sampled_from([*DEVICES, "A" * 24, None]),
        "comment": st.text(max_size=3),
        "data": st.none() | st.lists(st.integers(), max_size=2),
        "eventTags": tags,
    },
)


def event(**fields: Any) -> Doc:
    return {
        "creationDate": 1000,
        "lastUpdated": 1000,
        "level": "info",
        "state": "new",
        "subject": "hot",
        "eventTags": {},
        "updates": [0, 0],
        **fields,
    }


def patched(doc: Doc, patch: Doc, now_ms: int = 5000) -> tuple[Doc, Doc | None]:
    before = deepcopy(doc)
    after, update = apply_update(doc, msgspec.convert(patch, EventPatch), BY, now_ms, DEVICES.get)
    assert doc == before
    return after, update


def replay(doc: Doc, updates: list[Doc]) -> Doc:
    """Play a history on an event, and check on the way that each update begins where the last one ended."""
    now = deepcopy(doc)
    for update in updates:
        for field in ("state", "level", "subject"):
            change = update.get(f"{field}Change")
            if change is not None:
                assert change["old"] == now[field]
                now[field] = change["new"]
        if "deviceIdChange" in update:
            change = update["deviceIdChange"]
            assert change.get("old") == now.get("deviceId")
            now["deviceId"] = change.get("new")
        for key, change in update.get("tagsChange", {}).items():
            assert change.get("old") == now["eventTags"].get(key)
            now["eventTags"][key] = change.get("new")
    now["eventTags"] = {key: value for key, value in now["eventTags"].items() if value is not None}
    return {key: value for key, value in now.items() if value is not None}


@given(st.lists(patches, max_size=12), st.booleans(), tags)
def test_the_history_played_on_the_event_as_it_was_gives_the_event_as_it_is(
    history: list[Doc], tracked: bool, first_tags: dict[str, str]
) -> None:
    start = event(eventTags=first_tags, **({} if tracked else {"disableTagChangeTracking": True}))
    doc, updates = start, []
    for number, patch in enumerate(history):
        doc, update = patched(doc, patch, 2000 + number)
        if update is not None:
            updates.append(update)
    told = replay(start, updates)
    for field in ("state", "level", "subject", "deviceId"):
        assert told.get(field) == doc.get(field), field
    if tracked:
        assert told["eventTags"] == doc["eventTags"]
        assert len(updates) == len([patch for patch in history if patch])
    else:
        assert told["eventTags"] == first_tags
        assert len(updates) == len([patch for patch in history if patch.keys() - {"eventTags"}])
    named = [patch["eventTags"] for patch in history if "eventTags" in patch]
    assert doc["eventTags"] == (named[-1] if named else first_tags)


@given(patches, st.integers(0, 3000))
def test_every_patch_that_says_something_is_a_new_revision(patch: Doc, now_ms: int) -> None:
    """Also where the clock was set back."""
    doc, update = patched(event(), patch, now_ms)
    if not patch:
        assert (doc, update) == (event(), None)
    else:
        assert doc["lastUpdated"] == max(now_ms, 1001)
        assert update is not None
        assert update["creationDate"] == doc["lastUpdated"]
        assert (update["sourceType"], update["sourceId"], update["sourceName"]) == (
            "apiToken",
            BY.id,
            "robot",
        )


def test_only_what_differs_is_a_change() -> None:
    doc = event(deviceId="a" * 24, eventTags={"site": "1"})
    same = {
        "state": "new",
        "level": "info",
        "subject": "hot",
        "deviceId": "A" * 24,
        "eventTags": {"site": "1"},
    }
    _, update = patched(doc, same)
    assert update is not None
    assert update["state"] == "new"
    assert not [field for field in update if field.endswith("Change")]


def test_comment_and_data_belong_to_the_update() -> None:
    doc, update = patched(event(), {"comment": "on my way", "data": {"eta": 5}})
    assert {**doc, "lastUpdated": 1000} == event()
    assert update is not None
    assert (update["comment"], update["data"]) == ("on my way", {"eta": 5})


def test_a_change_of_the_device_names_both() -> None:
    doc, update = patched(event(deviceId="a" * 24), {"deviceId": "b" * 24})
    assert doc["deviceId"] == "b" * 24
    assert update is not None
    assert update["deviceIdChange"] == {
        "old": "a" * 24,
        "oldDeviceName": "pump",
        "new": "b" * 24,
        "newDeviceName": "fan",
    }
    doc, update = patched(doc, {"deviceId": None})
    assert "deviceId" not in doc
    assert update is not None
    assert update["deviceIdChange"] == {"old": "b" * 24, "oldDeviceName": "fan"}
    _, update = patched(doc, {"deviceId": "c" * 24})
    assert update is not None
    assert update["deviceIdChange"] == {"new": "c" * 24}


def test_tags_are_replaced_as_a_whole() -> None:
    doc, update = patched(
        event(eventTags={"site": "1", "floor": "1"}), {"eventTags": {"floor": "2", "room": "9"}}
    )
    assert doc["eventTags"] == {"floor": "2", "room": "9"}
    assert update is not None
    assert update["tagsChange"] == {
        "floor": {"old": "1", "new": "2"},
        "room": {"new": "9"},
        "site": {"old": "1"},
    }
