"""A server with one device for tests of the link. Owns no test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Server, running_server

BASE_MS = 1_700_000_000_000
LOOSE = {"send_state": "off", "send_command": "off", "set_connection_status": "off"}


class House:
    """A server with one device and its token."""

    def __init__(self, server: Server, application: str, device: str, token: str, key: str) -> None:
        self.server = server
        self.application = application
        self.device = device
        self.token = token
        self.key = key

    async def states(self, device: str = "") -> list[Any]:
        """All states, oldest first."""
        query = {"limit": 1000, "sortDirection": "asc", "start": 1}
        found: list[Any] = await self.server.call("GET", f"{device or self.device}/state", params=query)
        return found

    async def values(self, name: str = "temp", device: str = "") -> list[Any]:
        return [state["data"].get(name) for state in await self.states(device)]


@asynccontextmanager
async def house_in(data_dir: Path, **limits: Any) -> AsyncIterator[House]:
    async with running_server(data_dir, engine="fast", limits={**LOOSE, **limits}) as server:
        application = await server.application()
        device = await server.device(application)
        token, key = await server.device_token(device)
        yield House(server, application, device, token, key)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with house_in(tmp_path / "data") as made:
        yield made
