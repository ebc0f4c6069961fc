"""kill -9 while jobs run: the next start does them again, each ends once, its file is whole, and people are told.

`pytest -m load tests/e2e/test_job_crash.py` runs the long form: twenty kills at random moments.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.receivers import CallbackReceiver, listening
from tests.e2e.server_process import OWNER, serving, trunkline
from tests.e2e.test_exports import ended, fetched
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk

STATES, PER_CALL = 20_000, 10_000
FIRST_MS = 1_700_000_000_000


def quick_logs(tmp_path: Path) -> tuple[str, str]:
    """Limits of a server whose job logs follow closely, without throttles."""
    file = tmp_path / "limits.toml"
    file.write_text('job_progress_s = 0.005\nsend_state = "off"\n')
    return "--limits", str(file)


@pytest.mark.slow
async def test_who_was_not_told_before_a_kill_is_told_after_it(tmp_path: Path) -> None:
    """The first server has done the work and could reach nobody."""
    data_dir = tmp_path / "data"
    env = {**OWNER, "TRUNKLINE_CALLBACK_PRIVATE_NETWORKS": "true"}
    receiver = CallbackReceiver()
    receiver.reserve()  # now its port is known, and nobody listens there
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


async def rounds(tmp_path: Path, kills: int, seed: int) -> tuple[int, int]:
    """Queue exports and kill the server, again and again. Returns how many jobs there were, and callbacks."""
    random, data_dir, limits = Random(seed), tmp_path / "data", quick_logs(tmp_path)
    env = {**OWNER, "TRUNKLINE_CALLBACK_PRIVATE_NETWORKS": "true"}
    queued: list[str] = []
    async with listening(CallbackReceiver()) as receiver:
        async with serving(data_dir, *limits, env=env) as server:
            application = await server.application()
            devices = [await server.device(application, f"pump {number}") for number in range(6)]
            for device in devices:
                states = [{"data": {"temp": number}, "time": FIRST_MS + number} for number in range(2000)]
                await server.call("POST", f"{device}/state", states)
            await server.terminate()
        for _ in range(kills):
            async with serving(data_dir, *limits, env=env) as server, server.client() as client:
                for device in devices:
                    answer = await client.post(f"{device}/export", json={"callbackUrl": receiver.url})
                    if answer.status_code == 202:
                        queued.append(answer.json()["jobId"])
                await trio.sleep(random.uniform(0, 0.3))
                await server.kill()
        async with serving(data_dir, *limits, env=env) as server:
            logs = [await ended(server, application, job) for job in queued]
            assert {log["status"] for log in logs} == {"completed"}
            ends = {log["id"]: log["runCompletedAt"] for log in logs}
            assert len(ends) == len(queued)
            for log in logs:
                token = log["output"]["file"]["url"].partition("?")[2]
                response = await fetched(server, f"{server.url}/downloads?{token}")
                assert hashlib.sha256(response.content).hexdigest() == log["output"]["file"]["sha256"]
                assert response.content.count(b"\r\n") == 2001
            calls = [call.body for call in await receiver.number(len(receiver))]
            assert {call["id"] for call in calls} == ends.keys(), "everybody is told, and of nothing else"
            assert {call["id"]: call["runCompletedAt"] for call in calls} == ends, "a job ends once"
            assert await server.terminate() == 0
        assert len(list((data_dir / "results").glob("?" * 48))) == len(queued)
        assert list((data_dir / "results" / "drafts").iterdir()) == []
        assert len(list((data_dir / "outbox").iterdir())) == len(queued)
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout
    return len(queued), len(calls)


@pytest.mark.slow
async def test_every_job_ends_once_and_is_told_of_across_kills(tmp_path: Path) -> None:
    jobs, _ = await rounds(tmp_path, 3, seed=7)
    assert jobs >= 6


@pytest.mark.load
@pytest.mark.timeout(900)
async def test_every_job_ends_once_and_is_told_of_across_twenty_kills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, calls = await rounds(tmp_path, 20, seed=8)
    with capsys.disabled():
        sys.stdout.write(
            f"\n20 kills: {jobs} jobs acknowledged, all whole and ended once, {calls} callbacks\n"
        )
