"""The short form of `python -m tests.e2e.link_fuzz`; `-m load` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.link_fuzz import faults, fuzz
from tests.e2e.server_process import serving

GROWTH_BYTES_MAX = 32 << 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "cases",
    [400, pytest.param(100_000, marks=[pytest.mark.load, pytest.mark.timeout(3600)])],
)
async def test_every_mutated_frame_is_answered(tmp_path: Path, cases: int) -> None:
    async with serving(tmp_path / "data", "--limits", "off", cold=True) as server:
        found = await fuzz(server, cases, seed=15)
        assert await server.terminate() == 0
    assert found.problems == []
    assert found.cases >= cases
    assert {1002, 4400} <= set(found.codes)
    assert found.refusals["Validation"] > 0
    assert found.open_links == 0
    assert found.grown_bytes < GROWTH_BYTES_MAX
    assert faults(server) == []
