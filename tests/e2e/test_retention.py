"""kill -9 while states that are too old are removed: the next start goes on, and the newest state stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import ServerProcess, serving, trunkline
from tests.patience import PATIENCE_S

STATES = 10_000
BLOCKS = 10
"""The blocks that these states become."""
DAY_MS = 86_400_000
REMOVED = re.compile(r'^trunkline_expired_entries_total{kind="state"} (\d+)', re.MULTILINE)


async def removed(server: ServerProcess, at_least: int) -> None:
    """Wait until the server has removed so many states."""
    async with server.client() as client:
        with trio.fail_after(PATIENCE_S):
            while True:
                found = REMOVED.search((await client.get("/metrics")).text)
                assert found is not None
                if int(found[1]) >= at_least:
                    return
                await trio.sleep(0.01)


@pytest.mark.slow
async def test_a_removal_goes_on_after_a_kill(tmp_path: Path) -> None:
    """States are removed by whole blocks; the block of the newest state stays, and is not shown but for that state."""
    data_dir, limits = tmp_path / "data", tmp_path / "limits.toml"
    limits.write_text("arrival_flush_s = 0.05\n")
    async with serving(data_dir, "--limits", str(limits)) as server:
        device = await server.device(await server.application())
        times = range(-30 * DAY_MS, STATES - 30 * DAY_MS)
        await server.call("POST", f"{device}/state", [{"data": {"temp": 1}, "time": each} for each in times])
        before = await server.call("GET", f"{device}/compositeState")
        with trio.fail_after(PATIENCE_S):
            while await blocks(data_dir) < BLOCKS:
                pass
        assert await server.terminate() == 0
    often = (
        "state_keep_days = 7\npurge_interval_s = 0.05\nretention_interval_s = 0.05\nremoved_entries_max = 1\n"
    )
    limits.write_text(often + "retention_pause_s = 3600\n")
    async with serving(data_dir, "--limits", str(limits)) as server:
        await removed(server, 1)
        await server.kill()
    assert 1 < await blocks(data_dir) < BLOCKS, "it was killed in the middle"
    limits.write_text(often + "retention_pause_s = 0.001\n")
    async with serving(data_dir, "--limits", str(limits)) as server:
        (newest,) = await server.call("GET", f"{device}/state?limit=1000")
        assert newest["data"] == {"temp": 1}
        with trio.fail_after(PATIENCE_S):
            while await blocks(data_dir) > 1:
                pass
        assert await server.call("GET", f"{device}/state?limit=1000") == [newest]
        assert await server.call("GET", f"{device}/compositeState") == before
        assert await server.terminate() == 0
    assert await blocks(data_dir) == 1, "that of the newest state"


async def blocks(data_dir: Path) -> int:
    """Check the data directory; the number of its blocks of states."""
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout
    found = re.search(r"runs\D+(\d+)", done.stdout)
    assert found is not None
    return int(found[1])
