"""The event log: what is made and changed is found again as it was made and changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.actors.event_house import BY, Events
from tests.actors.house import START_MS, at, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import (
    Invalid,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    TooManyRequests,
)
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.events.kind import EVENT_STATES
from trunkline.actors.data.events.messages import DeleteEvent, EventPatch, PatchEvent
from trunkline.actors.fleet.devices.record.messages import DeleteDevice, DevicePatch, PatchDevice
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.platform.applications.payload_counts import CountPayloads, PayloadCountRange
from trunkline.limits.table import Limits

UNKNOWN = bytes.fromhex("0123456789abcdef01234567")


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Events]:
    """Events in a house without throttles."""
    async with running_house(tmp_path / "data") as house:
        yield Events(house)


# Creating.


async def test_an_event_is_shown_as_it_was_made(log: Events) -> None:
    device = await log.house.device(name="boiler")
    id = await log.create(
        level="critical",
        subject="pressure",
        state="acknowledged",
        message="It rises.",
        data={"bar": [1, None, {"deep": True}]},
        deviceId=device.hex().upper(),
        eventTags={"site": "north"},
        creationDate=at(-60_000),
        disableTagChangeTracking=True,
    )
    found = await log.get(id)
    etag = found.pop("_etag")
    assert len(etag) == 16
    assert found == {
        "id": id.hex(),
        "eventId": id.hex(),
        "applicationId": log.house.application.hex(),
        "creationDate": at(-60_000),
        "lastUpdated": at(0),
        "sourceType": "user",
        "sourceId": BY.id,
        "sourceName": "owner@example.com",
        "level": "critical",
        "state": "acknowledged",
        "subject": "pressure",
        "message": "It rises.",
        "data": {"bar": [1, None, {"deep": True}]},
        "deviceId": device.hex(),
        "deviceName": "boiler",
        "eventTags": {"site": "north"},
        "disableTagChangeTracking": True,
        "updates": [],
        "_type": "event",
    }


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (START_MS - 5000, at(-5000)),
        ((START_MS - 5000) // 1000, at(-5000)),
        (-5000, at(-5000)),
        ({"$date": at(-5000)}, at(-5000)),
        ("2024-05-01", "2024-05-01T00:00:00.000Z"),
        (START_MS + 86_400_000, at(86_400_000)),
    ],
)
async def test_the_date_of_creation_is_taken_in_every_form(log: Events, given: Any, shown: str) -> None:
    assert (await log.get(await log.create(creationDate=given)))["creationDate"] == shown


@pytest.mark.parametrize("given", ["yesterday", START_MS + 86_400_001, {"$date": "now"}, 10**17])
async def test_a_date_that_can_not_be_is_refused(log: Events, given: Any) -> None:
    with pytest.raises(Invalid, match="creationDate: "):
        await log.create(creationDate=given)
    assert (await log.page())["totalCount"] == 0


async def test_data_is_bounded_in_size_and_depth(log: Events) -> None:
    most = Limits().event_data_bytes_max
    id = await log.create(data="x" * (most - 2))
    for data, refusal in (("x" * (most - 1), PayloadTooLarge), (_nested(101), Invalid)):
        with pytest.raises(refusal, match="data: "):
            await log.create(data=data)
        with pytest.raises(refusal, match="data: "):
            await log.patch(id, data=data, state="resolved")
        with pytest.raises(refusal, match="data: "):
            await log.patch_many({}, data=data, state="resolved")
    await log.patch(id, data=_nested(100))
    found = await log.get(id)
    assert (found["state"], len(found["updates"])) == ("new", 1)


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


async def test_a_device_must_be_in_the_application(log: Events) -> None:
    gone = await log.house.device()
    await log.house.ask(gone, DeleteDevice())
    id = await log.create()
    for device in (UNKNOWN, gone):
        with pytest.raises(Invalid, match=f"deviceId: there is no device {device.hex()}"):
            await log.create(deviceId=device.hex())
        with pytest.raises(Invalid, match="deviceId: "):
            await log.patch(id, deviceId=device.hex())
        with pytest.raises(Invalid, match="deviceId: "):
            await log.patch_many({}, deviceId=device.hex())


async def test_the_name_of_the_device_is_the_one_it_has_now(log: Events) -> None:
    device = await log.house.device(name="boiler")
    id = await log.create(deviceId=device.hex())
    await log.house.ask(device, PatchDevice(body=DevicePatch(name="kettle")))
    assert (await log.get(id))["deviceName"] == "kettle"
    await log.house.ask(device, DeleteDevice())
    assert (await log.get(id))["deviceName"] == "kettle"
    await log.patch(id, deviceId=None)
    found = await log.get(id)
    assert "deviceId" not in found
    assert found["updates"][0]["deviceIdChange"] == {"old": device.hex(), "oldDeviceName": "kettle"}


async def test_creating_is_throttled_for_each_application_exactly(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data", limits=Limits()) as house:
        log = Events(house)
        ids = [await log.create() for _ in range(15)]
        with pytest.raises(TooManyRequests, match="event_create"):
            await log.create()
        await log.patch(ids[0], state="resolved")
        house.clock.pass_s(14.999)
        with pytest.raises(TooManyRequests):
            await log.create()
        house.clock.pass_s(0.001)
        await log.create()
        assert (await log.page())["totalCount"] == 16


# Updating.


async def test_only_the_last_updates_are_kept(log: Events) -> None:
    """At the bound the oldest goes: an event must always be open to an answer."""
    id = await log.create(message="kept")
    for number in range(103):
        await log.patch(id, comment=f"{number}", state=EVENT_STATES[number % 3])
    found = await log.get(id)
    assert [update["comment"] for update in found["updates"]] == [f"{number}" for number in range(3, 103)]
    assert found["state"] == EVENT_STATES[102 % 3]
    assert len(log.beside()) == 101
    await log.ask(DeleteEvent(event=id))
    assert log.beside() == {}


async def test_an_update_that_says_nothing_changes_nothing(log: Events) -> None:
    id = await log.create()
    before = await log.get(id)
    log.house.clock.pass_s(1)
    await log.patch(id)
    assert await log.get(id) == before


async def test_a_revision_is_changed_and_deleted_once(log: Events) -> None:
    id = await log.create()
    tag = (await log.get(id))["_etag"]
    await log.ask(PatchEvent(event=id, body=EventPatch(state="resolved"), by=BY, if_match=f'"{tag}"'))
    for message in (
        PatchEvent(event=id, body=EventPatch(state="new"), by=BY, if_match=tag),
        DeleteEvent(event=id, if_match=tag),
    ):
        with pytest.raises(PreconditionFailed):
            await log.ask(message)
    found = await log.get(id)
    assert (found["state"], len(found["updates"])) == ("resolved", 1)


async def test_an_event_that_is_not_there_is_not_found(log: Events) -> None:
    other = await log.create()
    await log.ask(DeleteEvent(event=other))
    for id in (UNKNOWN, other):
        with pytest.raises(NotFound, match=f"no event {id.hex()}"):
            await log.get(id)
        with pytest.raises(NotFound, match=f"no event {id.hex()}"):
            await log.patch(id, state="resolved")
        with pytest.raises(NotFound, match=f"no event {id.hex()}"):
            await log.ask(DeleteEvent(event=id))


# The application.


async def test_the_application_counts_its_events(log: Events) -> None:
    for _ in range(3):
        await log.create()
    await log.delete_many({})
    counted = await log.house.read(
        CountPayloads(
            application=log.house.application, query=PayloadCountRange(), now_ms=log.house.clock.wall_ms()
        )
    )
    assert counted["event"] == {"total": 3}


async def test_without_its_application_there_is_no_log(log: Events) -> None:
    id = await log.create()
    application = Ref("application", ROOT, log.house.application)
    await log.house.system.ask(application, DeleteApplication())
    with pytest.raises(NotFound, match="no application"):
        await log.create()
    with pytest.raises(NotFound, match="no application"):
        await log.patch(id, state="resolved")
    with pytest.raises(NotFound, match="no application"):
        await log.delete_many({})
