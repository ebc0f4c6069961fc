"""Wills of MQTT clients that wait: their delay, restarts, and the right to be published."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.e2e.conftest import running_server
from tests.e2e.mqtt_house import VERSIONS, House, house, house_in
from tests.e2e.sse_client import until
from tests.e2e.test_mqtt_sessions import client_of, kept, opened
from trunkline.actors.data.topics.wills import Wills
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5, Publish, Will
from trunkline.http.mqtt.service import MqttService

__all__ = ["house"]  # the fixture


async def test_a_will_waits_for_its_time_unless_the_client_comes_back(house: House) -> None:
    will = Will("gone", b"bye", 1, properties={"will_delay_interval": 60, "message_expiry_interval": 5})
    wills = house.server.system.component(Wills)
    async with house.client("watcher") as watcher:
        await watcher.subscribe("gone")
        async with client_of(house) as client:
            await opened(client, house, "mortal", will=will, **kept())
        async with client_of(house) as client:
            assert await opened(client, house, "mortal", will=will, **kept())
        await until(lambda: len(house.server.system.component(MqttService).sessions) == 1)
        house.server.move_clock(61)
        await wills.publish_due()
        assert (await watcher.message()).payload == b"bye"
        async with client_of(house) as client:
            await opened(client, house, "mortal", will=will, **kept())
        async with client_of(house) as client:
            assert not await opened(client, house, "mortal", clean_start=True)
        assert (await watcher.message()).payload == b"bye", "its session has ended"
        house.server.move_clock(61)
        await wills.publish_due()
        await watcher.publish("gone", b"end", 1)
        assert (await watcher.message()).payload == b"end"


async def test_a_will_that_cannot_be_stored_at_once_is_published_later(tmp_path: Path) -> None:
    """Its publisher has room for one message that waits for a commit, which takes a while here."""
    limits = {"mailbox_length_max": 1}
    async with (
        house_in(tmp_path / "data", limits=limits, sync_delay_ms=100) as house,
        house.client("watcher") as watcher,
    ):
        await watcher.subscribe("gone")
        async with house.client("mortal", will=Will("gone", b"bye", 1)) as client:
            await client.send(writer.publish(V5, Publish("a", b"x", 1, packet_id=1)))
        assert (await watcher.message()).payload == b"bye"


def fail_next_sync(house: House, monkeypatch: pytest.MonkeyPatch) -> list[OSError]:
    """Let the next commit fail; the list is empty once it has."""
    faults = [OSError(errno.EIO, "told to fail")]

    def sync() -> float:
        if faults:
            raise faults.pop()
        return 0.0

    monkeypatch.setattr(house.server.system.store.journal, "_sync_delay_s", sync)
    return faults


async def test_a_will_whose_commit_fails_is_published_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.client("watcher") as watcher:
        await watcher.subscribe("gone")
        async with house.client("mortal", will=Will("gone", b"bye", 1)):
            faults = fail_next_sync(house, monkeypatch)
        assert (await watcher.message()).payload == b"bye"
        assert not faults


async def test_a_will_whose_commit_fails_is_published_also_where_its_client_goes_on_with_its_session(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.client("watcher") as watcher:
        await watcher.subscribe("gone")
        async with client_of(house) as client:
            await opened(client, house, "mortal", will=Will("gone", b"bye", 1), **kept())
            faults = fail_next_sync(house, monkeypatch)
        await until(lambda: not faults)
        async with client_of(house) as client:
            assert await opened(client, house, "mortal", **kept())
            assert (await watcher.message()).payload == b"bye"


async def test_a_will_that_waits_survives_a_restart(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house, client_of(house) as client:
        will = Will("gone", b"bye", 1, retain=True, properties={"will_delay_interval": 3600})
        await opened(client, house, "mortal", will=will, **kept())
    async with running_server(tmp_path / "data", mqtt_port=0) as server:
        house.server = server
        server.move_clock(3601)
        await server.system.component(Wills).publish_due()
        async with house.client("watcher") as watcher:
            await watcher.subscribe("gone")
            assert (await watcher.message()).payload == b"bye"


async def test_a_will_ends_with_the_key_of_its_client(house: House) -> None:
    will = Will("gone", b"bye", 1, properties={"will_delay_interval": 60})
    wills = house.server.system.component(Wills)
    made = await house.server.call("POST", f"{house.application}/keys", {})
    path = f"{house.application}/keys/{made['id']}"
    given = {"username": made["key"], "password": made["secret"].encode()}
    async with house.client("watcher") as watcher:
        await watcher.subscribe("gone")
        async with client_of(house) as client:
            assert (await client.connect("now", **given, will=Will("gone", b"now"))).code == 0
            async with client_of(house) as other:
                assert (await other.connect("later", **given, will=will, **kept())).code == 0
            await until(lambda: len(house.server.system.component(MqttService).sessions) == 2)
            await house.server.call("PATCH", path, {"status": "inactive"})
            assert await client.farewell() == packets.NOT_AUTHORIZED
        house.server.move_clock(61)
        await wills.publish_due()
        await watcher.publish("gone", b"end", 1)
        assert (await watcher.message()).payload == b"end"


async def test_wills_that_are_due_together_are_all_stored(house: House) -> None:
    async with client_of(house) as sleeper:
        await opened(sleeper, house, "sleeper", **kept())
        await sleeper.subscribe("gone/+", qos=1)
        await sleeper.goodbye()
        assert await sleeper.next() is None
    names = ["gone/1", "gone/2", "gone/3"]
    for topic in names:
        will = Will(topic, b"bye", 1, properties={"will_delay_interval": 5})
        async with client_of(house) as mortal:
            await opened(mortal, house, topic, will=will, **kept())
    wills = house.server.system.component(Wills)
    await until(lambda: len(wills._due) == 3)
    house.server.move_clock(6)
    await wills.publish_due()
    async with client_of(house) as sleeper:
        assert await opened(sleeper, house, "sleeper", **kept())
        assert sorted([(await sleeper.message()).topic for _ in names]) == names


@VERSIONS
async def test_a_will_that_cannot_be_retained_is_published_and_locks_nobody_out(
    tmp_path: Path, version: int
) -> None:
    """It was kept for ever, and what refused it was the answer to each later login of its client."""
    will = Will("gone", b"bye", 1, retain=True)
    async with (
        house_in(tmp_path / "data", limits={"retained_messages_max": 1}) as house,
        house.client("watcher") as watcher,
    ):
        await watcher.publish("full", b"x", 1, retain=True)
        await watcher.subscribe("gone")
        async with house.client(version=version, will=will):
            pass
        assert (await watcher.message()).payload == b"bye"
        async with house.client(version=version, will=will), house.client(version=version) as taker:
            assert (await watcher.message()).payload == b"bye", "a connection that is taken over is lost"
            await taker.goodbye()
        await watcher.publish("gone", b"end", 1)
        assert (await watcher.message()).payload == b"end", "each was published once"
        shown = await house.server.call("GET", f"{house.application}/overview")
        assert shown["traffic"]["refused"] == {"storage": 2}


async def test_a_delayed_will_that_cannot_be_retained_is_published_once(tmp_path: Path) -> None:
    will = Will("gone", b"bye", 1, retain=True, properties={"will_delay_interval": 5})
    async with (
        house_in(tmp_path / "data", limits={"retained_messages_max": 1}) as house,
        house.client("watcher") as watcher,
    ):
        await watcher.publish("full", b"x", 1, retain=True)
        await watcher.subscribe("gone")
        async with client_of(house) as client:
            await opened(client, house, "mortal", will=will, **kept())
        wills = house.server.system.component(Wills)
        await until(lambda: len(wills._due) == 1)
        house.server.move_clock(6)
        await wills.publish_due()
        assert (await watcher.message()).payload == b"bye"
        assert not wills._due, "it is not tried again"
