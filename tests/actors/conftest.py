"""A running actor system for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.actors.house import House, running_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A system without throttles, whose clock stands still."""
    async with running_house(tmp_path / "data") as running:
        yield running
