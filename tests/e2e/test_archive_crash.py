"""kill -9 in the middle of a backfill: it goes on, every day is archived whole, and no draft is left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, serving
from tests.e2e.test_archives import DAY_MS, configure, manifest
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk

DEVICES, DAYS, KILLS = 4, 6, 3


@pytest.mark.slow
async def test_a_backfill_survives_three_kills(tmp_path: Path) -> None:
    """A day is five files and a note. Each server gets no further than eight steps: to the middle of a day."""
    data_dir, job = tmp_path / "data", ""
    archives = data_dir / "archives"
    first_ms = (int(time.time() * 1000) // DAY_MS - 40 - DAYS) * DAY_MS
    limits = tmp_path / "limits.toml"
    limits.write_text("archive_put_files_max = 1\n")
    for kill in range(KILLS):
        held = {**OWNER, "CRASH_HELD_JOB": "8"}
        async with serving(data_dir, "--limits", str(limits), program=FAULTY, env=held) as server:
            if kill == 0:
                application = await server.application()
                for number in range(DEVICES):
                    device = await server.device(application, f"pump {number}")
                    days = range(0, DAYS * DAY_MS, DAY_MS)
                    states = [{"data": {"temp": 1}, "time": first_ms + offset} for offset in days]
                    await server.call("POST", f"{device}/state", states)
                await configure(server, application)
                queued = await server.call("GET", f"{application}/backfillArchiveData", status=202)
                job = queued["jobId"]
            path = f"{application}/jobLogs/{job}"
            with trio.fail_after(PATIENCE_S):
                while files(archives) < (DEVICES + 1) * (kill + 1) + 2:
                    assert (await server.call("GET", path))["status"] in ("queued", "inProgress")
            assert (await server.call("GET", path))["status"] == "inProgress"
            await server.kill()
        assert any((archives / ".drafts").iterdir())
    async with serving(data_dir, env=OWNER) as server:
        log = await ended(server, application, job)
        assert log["status"] == "completed", log
        assert await server.terminate() == 0
    lines = [line for path in archives.rglob("*.jsonl") for line in manifest(path).values()]
    assert len(lines) == DEVICES * DAYS
    assert files(archives) == (DEVICES + 1) * DAYS
    assert not any((archives / ".drafts").iterdir())


def files(archives: Path) -> int:
    """The number of files that have their names."""
    return sum(path.is_file() and path.parent.name != ".drafts" for path in archives.rglob("*"))
