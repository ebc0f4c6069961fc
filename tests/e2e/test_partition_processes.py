"""What operators are told by a server with several partitions, each with a process, while one of these is away."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, ServerProcess, processes, serving
from tests.e2e.test_partition_figures import by_process, families, page
from tests.partitions import make_partitions
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


async def told(server: ServerProcess) -> dict[str, float]:
    """Which processes have told their metrics."""
    return by_process((await families(server))["trunkline_process_up"])


async def test_an_owner_that_hangs_or_dies_is_shown_by_the_others(tmp_path: Path) -> None:
    make_partitions(tmp_path / "data", 2)
    env = {**OWNER, "TRUNKLINE_LOG_FORMAT": "json"}
    async with serving(tmp_path / "data", env=env) as server:
        application = await server.application()
        both = dict.fromkeys(("partition-0", "partition-1"), 1)
        assert await told(server) == both
        counted = by_process((await families(server))["trunkline_applications"])
        assert counted == {"partition-0": 0, "partition-1": 1}
        other = processes(server)["partition-1"]
        os.kill(other, signal.SIGSTOP)
        try:
            with trio.fail_after(PATIENCE_S):
                assert await told(server) == {"partition-0": 1, "partition-1": 0}
        finally:
            os.kill(other, signal.SIGCONT)
        with trio.fail_after(PATIENCE_S):
            while await told(server) != both:
                pass
        os.kill(other, signal.SIGKILL)
        with trio.fail_after(PATIENCE_S):
            while (answer := await page(server, "/readyz")).status_code == 200:
                pass
            assert answer.json()["status"] == "incomplete"
            assert answer.json()["partitions"] in (["partition-0"], ["partition-1"])
            while (await page(server, "/readyz")).status_code != 200 or await told(server) != both:
                pass
        assert (await server.call("GET", application))["name"] == "house"
        assert await server.terminate() == 0
    lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    listening = [line["process"] for line in lines if line["event"] == "listening"]
    assert sorted(listening) == ["partition-0", "partition-1", "partition-1"]
