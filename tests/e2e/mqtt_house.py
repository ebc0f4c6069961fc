"""A server with MQTT and one device, for tests. Owns no test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Server, running_server
from tests.e2e.mqtt_client import MqttClient, mqtt_client
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import V3_1_1, V5

THROTTLES = (
    "send_state",
    "send_command",
    "set_connection_status",
    "mqtt_client",
    "mqtt_topic",
    "mqtt_connect",
)
LOOSE = dict.fromkeys(THROTTLES, "off")
VERSIONS = pytest.mark.parametrize("version", [V3_1_1, V5])


class House:
    """A server with MQTT, one device, and a key for all."""

    def __init__(
        self, server: Server, application: str, device: str, key: str, secret: str, key_path: str
    ) -> None:
        self.server = server
        self.application = application
        self.device = device
        self.id = device.rpartition("/")[2]
        self.key = key
        self.secret = secret
        self.key_path = key_path

    @property
    def credentials(self) -> dict[str, Any]:
        return {"username": self.key, "password": self.secret.encode()}

    @asynccontextmanager
    async def client(
        self, client_id: str = "", version: int = V5, **fields: Any
    ) -> AsyncIterator[MqttClient]:
        """A connected client: the device, or another one by its id."""
        async with mqtt_client(self.server.mqtt_ports[0], version) as client:
            answer = await client.connect(client_id or self.id, **{**self.credentials, **fields})
            assert answer.code == packets.SUCCESS, answer
            yield client

    async def key_of(self, **fields: Any) -> dict[str, Any]:
        made = await self.server.call("POST", f"{self.application}/keys", fields)
        return {"username": made["key"], "password": made["secret"].encode()}

    async def states(self, device: str = "") -> list[dict[str, Any]]:
        query = {"limit": 1000, "sortDirection": "asc", "start": 1}
        found: list[Any] = await self.server.call("GET", f"{device or self.device}/state", params=query)
        return [state["data"] for state in found]


@asynccontextmanager
async def house_in(data_dir: Path, **settings: Any) -> AsyncIterator[House]:
    limits = {**LOOSE, **settings.pop("limits", {})}
    async with running_server(data_dir, mqtt_port=0, engine="fast", limits=limits, **settings) as server:
        application = await server.application()
        device = await server.device(application)
        made = await server.call("POST", f"{application}/keys", {})
        path = f"{application}/keys/{made['id']}"
        yield House(server, application, device, made["key"], made["secret"], path)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with house_in(tmp_path / "data") as made:
        yield made
