"""Clients of an application that is moved: they are told to connect again, and find everything as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers import running_broker
from tests.e2e.link_house import BASE_MS
from tests.e2e.link_peer import connected, linked
from tests.e2e.mqtt_house import House, house_in
from tests.e2e.sse_client import opened_stream, until
from tests.e2e.test_integrations import QUICK, arrived, mqtt, send
from tests.e2e.test_integrations import connected as integration_connected
from tests.e2e.test_mqtt_sessions import client_of, kept, opened
from tests.e2e.webhook_clients import closing
from tests.e2e.webhook_clients import connected as webhook_connected
from trunkline.actors import moving
from trunkline.actors.connections.integrations.connections import Connections
from trunkline.actors.data.topics.wills import Wills
from trunkline.http.link.session import DRAINING
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import Will
from trunkline.http.mqtt.service import MqttService
from trunkline.store import keys


async def leave(house: House) -> None:
    await moving.leave(house.server.system, bytes.fromhex(house.application.rpartition("/")[2]))


async def come(house: House) -> None:
    await moving.come(house.server.system, bytes.fromhex(house.application.rpartition("/")[2]))


async def test_calls_get_503_and_when_to_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        server = house.server
        other = await server.application()
        elsewhere = await server.device(other)
        await leave(house)
        async with server.client() as client:
            refused = await client.post(f"{house.device}/state", json={"data": {"temp": 1}})
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert "is being moved to another partition" in refused.json()["message"]
            stream = await client.get(f"{house.device}/commandStream")
            assert (stream.status_code, stream.headers["retry-after"]) == (503, "1")
        await server.call("POST", f"{elsewhere}/state", {"data": {"temp": 1}})
        await come(house)
        await server.call("POST", f"{house.device}/state", {"data": {"temp": 1}})
        assert len(await house.states()) == 1


async def test_a_stream_ends_and_goes_on_where_it_was(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        server = house.server

        async def command(name: str) -> None:
            await server.call("POST", f"{house.device}/command", {"name": name})

        async with opened_stream(server, house.device) as reader:
            await command("one")
            event = await reader.event()
            assert event is not None
            await leave(house)
            assert await reader.event() is None
        await come(house)
        await command("two")
        async with opened_stream(server, house.device, last_id=event.id) as reader:
            assert await reader.names(1) == ["two"]


async def test_a_link_is_closed_and_opened_again(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        server = house.server
        token, _ = await server.device_token(house.device)
        async with (
            linked(server, house.device, token) as (peer, _),
            connected(server, house.device, token) as late,
        ):
            await peer.send(1, 1, BASE_MS, {"temp": 1})
            await peer.until_stored(1)
            await leave(house)
            code, reason = await peer.close_code()
            assert (code, "connect again in a second" in reason) == (DRAINING, True)
            await late.send(0, {"session": 8})
            assert (await late.close_code())[0] == DRAINING
        await come(house)
        async with linked(server, house.device, token) as (peer, facts):
            assert facts["n"] == 1
            await server.call("POST", f"{house.device}/command", {"name": "go"})
            assert (await peer.next())[0] == 3
        assert len(await house.states()) == 1


async def test_mqtt_clients_come_back_to_their_sessions_and_wills_are_published_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house_in(tmp_path / "data") as house:
        service = house.server.system.component(MqttService)
        async with client_of(house) as watcher:
            await opened(watcher, house, "watcher", **kept())
            await watcher.subscribe("#")
            async with house.client("mortal", will=Will("gone", b"bye", 1)) as mortal:
                await mortal.publish("a", b"1", 1)
                assert (await watcher.message()).topic == "a"
                await watcher.unsubscribe("x")  # its answer comes after the acknowledgement was received
                await leave(house)
                assert await mortal.farewell() == packets.SERVER_SHUTTING_DOWN
            assert await watcher.farewell() == packets.SERVER_SHUTTING_DOWN
        await until(lambda: not service.sessions)
        with house.server.system.store.snapshot() as snapshot:
            wills = keys.wills_prefix(bytes.fromhex(house.application.rpartition("/")[2]))
            assert len(list(snapshot.keys(keys.MESSAGES, wills, keys.prefix_end(wills)))) == 1
        codes, recover = list[int](), Wills.recover

        async def connect_early(self: Wills, application: bytes = b"") -> None:
            async with client_of(house) as early:
                codes.append((await early.connect("watcher", **house.credentials)).code)
            await recover(self, application)

        monkeypatch.setattr(Wills, "recover", connect_early)
        await come(house)
        assert codes == [packets.SERVER_BUSY]
        async with client_of(house) as watcher:
            assert await opened(watcher, house, "watcher", **kept())
            message = await watcher.message()
            assert (message.topic, message.payload) == ("gone", b"bye")
            async with house.client("mortal") as mortal:
                await mortal.publish("b", b"2", 1)
            assert (await watcher.message()).topic == "b"


async def test_the_connections_of_webhooks_are_closed_and_opened_again(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        body = {"name": "hook", "isWebsocket": True}
        hook = await house.server.call("POST", f"{house.application}/webhooks", body, status=201)
        async with webhook_connected(house.server, hook) as socket:
            await leave(house)
            code, _ = await closing(socket)
            assert code == 1012
        await come(house)
        async with webhook_connected(house.server, hook) as socket:
            await socket.send_message("x")


@pytest.mark.slow
async def test_an_integration_is_connected_again(tmp_path: Path) -> None:
    with running_broker(tmp_path) as ports:
        async with house_in(tmp_path / "data", limits=QUICK, callback_private_networks=True) as house:
            server = house.server
            path = await mqtt(server, house.application, ports.v3, "news")
            await integration_connected(server, path)
            await send(ports.v3, "news", "one")
            await until(lambda: arrived(server) == 1)
            connections = server.system.component(Connections)
            await leave(house)
            assert connections.enabled == 0
            await come(house)
            await integration_connected(server, path)
            await send(ports.v3, "news", "two")
            await until(lambda: arrived(server) == 2)
            assert connections.counts["ended"] == 0
