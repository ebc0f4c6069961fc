"""Registered devices cost disk, not memory: only those that are active are in it.

`pytest -m load tests/e2e/test_scale.py` prints the figures up to 100,000 registered devices.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.scale import measure, print_figures, register

pytestmark = pytest.mark.disk

FEW, MANY, ACTIVE = 2_000, 22_000, 200
GROWTH_BYTES_MAX = 6_000_000
"""An actor in memory costs more than 500 bytes: 20,000 more of them would be 10 MB."""


@pytest.mark.slow
async def test_memory_does_not_grow_with_registered_devices(tmp_path: Path) -> None:
    figures = []
    for count in (FEW, MANY):
        data_dir = tmp_path / str(count)
        await register(data_dir, count)
        figures.append(await measure(data_dir, ACTIVE))
    few, many = figures
    assert many.idle.own - few.idle.own < GROWTH_BYTES_MAX
    assert many.active.own - few.active.own < GROWTH_BYTES_MAX


@pytest.mark.load
@pytest.mark.timeout(900)
async def test_how_a_server_with_many_devices_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        await print_figures([0, 10_000, 100_000], [1000])
