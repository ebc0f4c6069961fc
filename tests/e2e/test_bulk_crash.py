"""kill -9 while a job changes devices: the next start goes on with it, and each device is changed once."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, serving, trunkline
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S

DEVICES, CONNECTIONS, PART = 60, 6, 7


@pytest.mark.slow
async def test_devices_that_a_job_deletes_are_deleted_once_across_a_kill(tmp_path: Path) -> None:
    data_dir, limits = tmp_path / "data", tmp_path / "limits.toml"
    limits.write_text(f"changed_devices_max = {PART}\njob_progress_s = 0.005\n")
    held = {**OWNER, "CRASH_HELD_JOB": "3"}
    async with serving(data_dir, "--limits", str(limits), program=FAULTY, env=held) as server:
        application = await server.application()
        devices = f"{application}/devices"

        async def create() -> None:
            async with server.client() as client:
                for number in range(DEVICES // CONNECTIONS):
                    made = await client.post(devices, json={"name": f"d{number}"})
                    assert made.status_code == 201, made.text

        async with trio.open_nursery() as nursery:
            for _ in range(CONNECTIONS):
                nursery.start_soon(create)
        job = (await server.call("POST", f"{devices}/delete", {"query": {}}, status=202))["jobId"]
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{devices}?perPage=1"))["totalCount"] > DEVICES - 3 * PART:
                pass
        await server.kill()
    async with serving(data_dir, "--limits", str(limits)) as server:
        after = await ended(server, application, job)
        assert (after["status"], after["output"]["removed"]) == ("completed", DEVICES)
        assert after["output"]["failed"] == 0, "a device was deleted twice"
        counts = await server.call("GET", f"{application}/deviceCounts")
        assert (counts["counts"][-1]["deleted"], counts["counts"][-1]["total"]) == (DEVICES, 0)
        assert (await server.call("GET", f"{devices}?queryDeleted=true&perPage=1"))["totalCount"] == DEVICES
        queued = await server.call("POST", f"{devices}/restore", {"query": {}}, status=202)
        assert (await ended(server, application, queued["jobId"]))["output"]["restored"] == DEVICES
        assert await server.terminate() == 0
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout
