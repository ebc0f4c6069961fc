"""kill -9 while a job changes events: the next start goes on with it, and each event is changed once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, serving, trunkline
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S

EVENTS, CONNECTIONS = 1_000, 10


@pytest.mark.slow
async def test_a_change_of_many_events_is_whole_after_a_kill_in_its_middle(tmp_path: Path) -> None:
    data_dir, limits = tmp_path / "data", tmp_path / "limits.toml"
    limits.write_text('event_create = "off"\nchanged_events_max = 10\njob_progress_s = 0.005\n')
    held = {**OWNER, "CRASH_HELD_JOB": "3"}
    async with serving(data_dir, "--limits", str(limits), program=FAULTY, env=held) as server:
        application = await server.application()
        events = f"{application}/events"

        async def create() -> None:
            async with server.client() as client:
                for _ in range(EVENTS // CONNECTIONS):
                    made = await client.post(events, json={"level": "info", "subject": "it is hot"})
                    assert made.status_code == 201, made.text

        async with trio.open_nursery() as nursery:
            for _ in range(CONNECTIONS):
                nursery.start_soon(create)
        change = {"state": "resolved", "comment": "by a job"}
        job = (await server.call("PATCH", events, change, status=202))["jobId"]
        with trio.fail_after(PATIENCE_S):
            while not (await server.call("GET", f"{events}?state=resolved&perPage=1"))["totalCount"]:
                pass
        log = await server.call("GET", f"{application}/jobLogs/{job}")
        await server.kill()
    async with serving(data_dir, "--limits", str(limits)) as server:
        after = await ended(server, application, job)
        assert (after["status"], after["output"]["changed"]) == ("completed", EVENTS)
        assert after["jobExecutionId"] != log["jobExecutionId"], "the job was over before the kill"
        found = (await server.call("GET", f"{events}?perPage={EVENTS}"))["items"]
        assert Counter((event["state"], len(event["updates"])) for event in found) == {
            ("resolved", 1): EVENTS
        }
        assert await server.terminate() == 0
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout
