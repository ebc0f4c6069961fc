"""kill -9 while a job runs: the next start does it again from its beginning, and its file is whole."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

import pytest
import trio

from tests.e2e.receivers import CallbackReceiver, listening
from tests.e2e.server_process import OWNER, PATIENCE_S, serving, trunkline
from tests.e2e.test_exports import ended, fetched

STATES, PER_CALL = 60_000, 10_000
FIRST_MS = 1_700_000_000_000


def quick_logs(tmp_path: Path) -> tuple[str, str]:
    """Limits of a server whose job logs follow closely, without throttles."""
    file = tmp_path / "limits.toml"
    file.write_text('job_progress_s = 0.005\nsend_state = "off"\n')
    return "--limits", str(file)


@pytest.mark.slow
async def test_an_export_is_whole_after_a_kill_in_its_middle(tmp_path: Path) -> None:
    data_dir, limits = tmp_path / "data", quick_logs(tmp_path)
    async with serving(data_dir, *limits) as server:
        application = await server.application()
        device = await server.device(application)
        for first in range(0, STATES, PER_CALL):
            numbers = range(first, first + PER_CALL)
            states = [{"data": {"temp": number}, "time": FIRST_MS + number} for number in numbers]
            await server.call("POST", f"{device}/state", states)
        body = {"options": {"includeDate": False, "includeID": False}}
        job = (await server.call("POST", f"{device}/export", body, status=202))["jobId"]
        path = f"{application}/jobLogs/{job}"
        with trio.fail_after(PATIENCE_S):
            log = await server.call("GET", path)
            while log["status"] == "queued" or not log["progress"]["completed"]:
                log = await server.call("GET", path)
        assert log["status"] == "inProgress"
        await server.kill()
    assert [name.suffix for name in (data_dir / "results").iterdir()] == [".draft"]
    async with serving(data_dir, *limits) as server:
        after = await ended(server, application, job)
        assert after["status"] == "completed"
        assert after["jobExecutionId"] != log["jobExecutionId"]
        assert after["progress"]["completed"] == STATES
        token = after["output"]["file"]["url"].partition("?")[2]
        response = await fetched(server, f"{server.url}/downloads?{token}")
        assert hashlib.sha256(response.content).hexdigest() == after["output"]["file"]["sha256"]
        lines = list(csv.reader(io.StringIO(response.text, newline=""), strict=True))
        assert lines[1:] == [[str(FIRST_MS + number), str(number), "", ""] for number in range(STATES)]
        assert await server.terminate() == 0
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
async def test_who_was_not_told_before_a_kill_is_told_after_it(tmp_path: Path) -> None:
    """The first server has done the work and could reach nobody."""
    data_dir = tmp_path / "data"
    env = {**OWNER, "TRUNKLINE_CALLBACK_PRIVATE_NETWORKS": "true"}
    receiver = CallbackReceiver()
    async with listening(receiver):
        pass  # now its port is known, and nobody listens there
    async with serving(data_dir, env=env) as server:
        application = await server.application()
        device = await server.device(application)
        body = {"callbackUrl": receiver.url}
        job = (await server.call("POST", f"{device}/export", body, status=202))["jobId"]
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{application}/jobLogs/{job}"))["status"] != "completed":
                pass
        await server.kill()
    async with listening(receiver), serving(data_dir, env=env) as server:
        ((_, _, told),) = await receiver.number(1)
        assert told["jobId"] == (await ended(server, application, job))["id"]
