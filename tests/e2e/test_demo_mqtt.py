"""Two devices of the demo live on MQTT: they report, execute commands, come back, and stop when they are deleted."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.e2e.mqtt_house import House, house
from tests.e2e.sse_client import until
from tests.patience import PATIENCE_S
from trunkline.bench import demo
from trunkline.bench.demo import DEVICES_KEY, MQTT_DEVICES, DemoReady, run_demo
from trunkline.bench.errors import ConnectFailed
from trunkline.bench.mqtt_client import open_mqtt
from trunkline.http.mqtt.service import MqttService

__all__ = ["house"]  # the fixture


class Farm:
    """A demo that runs on the server of a house."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.lines: list[str] = []
        self.ready: DemoReady | None = None

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        def on_ready(ready: DemoReady) -> None:
            self.ready = ready
            task_status.started()

        server = self.house.server
        await run_demo(
            server.url,
            server.token,
            on_ready=on_ready,
            on_event=self.lines.append,
            mqtt=("127.0.0.1", server.mqtt_ports[0]),
        )

    def path(self, name: str) -> str:
        assert self.ready is not None
        return f"{self.application}/devices/{self.ready.device_ids[name]}"

    @property
    def application(self) -> str:
        assert self.ready is not None
        return f"/applications/{self.ready.application_id}"

    async def clients(self) -> list[str]:
        """The names of the devices that are connected by MQTT."""
        assert self.ready is not None
        names = {id: name for name, id in self.ready.device_ids.items()}
        found = await self.house.server.call("GET", f"{self.application}/mqttClients")
        return sorted(names[each["deviceId"]] for each in found["items"])

    async def says(self, line: str) -> None:
        await until(lambda: any(line in each for each in self.lines))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PERIOD_S", 0.05)
    monkeypatch.setattr(demo, "PAUSE_MIN_S", 0.01)


async def test_two_devices_of_the_demo_use_mqtt(house: House) -> None:
    call: Any = house.server.call
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            farm = Farm(house)
            await nursery.start(farm.run)
            assert await farm.clients() == sorted(MQTT_DEVICES)
            assert len(await call("GET", f"{farm.path('pump-1')}/state")) > 0
            keys = (await call("GET", f"{farm.application}/keys"))["items"]
            assert [each["name"] for each in keys] == [DEVICES_KEY]
            body = {"name": "switch", "payload": {"on": False}, "ttlSeconds": 60}
            await call("POST", f"{farm.path('pump-1')}/command", body)
            await farm.says("pump-1: switch: pump is off")
            # They come back after their connections were lost.
            service = house.server.system.component(MqttService)
            for session in list(service.sessions):
                session.disconnect(0x98, "for the test")  # type: ignore[attr-defined] # all are MqttSession
            await farm.says("All devices reach the server again.")
            assert await farm.clients() == sorted(MQTT_DEVICES)
            # What a device has acknowledged does not come again.
            await call("POST", f"{farm.path('pump-1')}/command", {**body, "payload": {"on": True}})
            await farm.says("pump-1: switch: pump is on")
            assert sum("pump is off" in each for each in farm.lines) == 1
            await call("DELETE", farm.path("pump-1"))
            await farm.says("pump-1 was deleted and stops")
            assert await farm.clients() == ["meter-plant"]
            nursery.cancel_scope.cancel()


async def test_a_client_says_what_the_server_refuses(house: House) -> None:
    refused: list[str] = []
    stored: list[None] = []
    address = ("127.0.0.1", house.server.mqtt_ports[0])
    async with open_mqtt(
        address,
        house.id,
        (house.key, house.secret),
        f"losant/{house.id}/command",
        on_stored=lambda: stored.append(None),
        on_refused=refused.append,
        on_message=lambda _payload: None,
    ) as client:
        await client.publish(f"losant/{house.id}/state", b'{"data": {"nothing": 1}}')
        await client.publish(f"losant/{house.id}/state", b'{"data": {"temp": 1}}')
        with trio.move_on_after(PATIENCE_S) as waiting:
            while not stored:
                await client.read_until(trio.current_time() + 0.01)
        assert not waiting.cancelled_caught
    assert len(refused) == 1
    assert refused[0].startswith("0x99: ")
    assert await house.states() == [{"temp": 1}]


async def test_no_server_is_told_as_such(house: House) -> None:
    with pytest.raises(ConnectFailed):
        async with open_mqtt(
            ("127.0.0.1", 1), "", ("", ""), "a", on_stored=list, on_refused=list, on_message=list
        ):
            raise AssertionError
