"""The short form of `python -m tests.e2e.fuzz`: a generated call to every operation, valid or invalid."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from tests.e2e.fuzz import fuzz
from tests.e2e.server_process import serving


@pytest.mark.slow
async def test_generated_calls_get_documented_answers(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", "--limits", "off") as server:
        calls = partial(fuzz, server.url, server.token, 1, short=True)
        found = await trio.to_thread.run_sync(calls)
        assert await server.terminate() == 0
    assert found.failures == {}
    assert found.calls > 150
    assert "Traceback" not in server.log
