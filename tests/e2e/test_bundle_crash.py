"""kill -9 while an application is exported: the next start writes the bundle anew, and nothing else is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, serving, trunkline
from tests.e2e.test_bundles import ALL, Bundle
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended, fetched
from tests.e2e.whole_application import whole_application
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk


@pytest.mark.slow
async def test_an_export_that_is_killed_is_made_anew(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    results = data_dir / "results"
    async with serving(data_dir, program=FAULTY, env={**OWNER, "CRASH_HELD_JOB": "9"}) as server:
        whole = await whole_application(server)
        queued = await server.call("POST", f"{whole.path}/export", {**ALL, "forceJob": True}, status=202)
        with trio.fail_after(PATIENCE_S):
            while not list((results / "drafts").iterdir()):
                await server.call("GET", f"{whole.path}/jobLogs/{queued['jobId']}")
        await server.kill()
    async with serving(data_dir) as server:
        log = await ended(server, whole.path, queued["jobId"])
        assert (log["status"], log["progress"]["status"]) == ("completed", "completed")
        bundle = Bundle(await fetched(server, log["output"]["file"]["url"]))
        assert [path.name for path in results.iterdir() if len(path.name) == 48] == [
            whole.ids["application"] + log["id"]
        ]
        assert not list((results / "drafts").iterdir())
        again = await server.call("POST", f"{whole.path}/export", ALL, status=200)
        assert Bundle(await fetched(server, again["url"])).entries() == bundle.entries()
        assert await server.terminate() == 0
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout
