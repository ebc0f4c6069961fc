"""The main job on Hypercorn's stock connections: every run shows that `--engine stock` works.

The whole suite of this directory runs on it with `TRUNKLINE_ENGINE=stock`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.e2e import test_main_job as main_job
from tests.e2e.conftest import Server


@pytest.fixture
async def stock(start_server: Any) -> AsyncIterator[Server]:
    async with start_server(engine="stock") as running:
        assert running.settings.engine == "stock"
        yield running


async def test_a_device_sends_state_and_obeys_a_command(stock: Server) -> None:
    await main_job.test_a_device_sends_state_and_obeys_a_command(stock)


async def test_a_refusal_has_the_one_shape_of_errors(stock: Server) -> None:
    device = await stock.device(await stock.application())
    for status, body in ((400, {"data": 1}), (413, {"data": {"label": "x" * (1 << 20)}})):
        refused = await stock.call("POST", f"{device}/state", body, status=status)
        assert set(refused) == {"type", "message"}
