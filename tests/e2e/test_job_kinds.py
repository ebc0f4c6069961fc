"""Every kind of job: its progress is shown, it ends with its application, and kill -9 at any point changes nothing.

All kinds run at the same time in one server that holds each of them at a chosen step (`crash_program.py`), so each is
killed where the test wants it, however fast the machine is.

`pytest -m load tests/e2e/test_job_kinds.py` runs the long form: kills at three points, three times each.
"""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Json
from tests.e2e.job_cases import CASES, LIMITS, MIDDLE, Order
from tests.e2e.server_process import OWNER, ServerProcess, serving, trunkline
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S
from trunkline.actors.catalogue import JOB_KINDS

pytestmark = pytest.mark.disk

QUEUED, BEFORE_END = "0", "1000000"
"""Hold each job at its first step, and at its end."""


def test_every_kind_has_a_case() -> None:
    assert CASES.keys() == {kind.operation for kind in JOB_KINDS}


class Jobs:
    """A data directory in which a job of each kind can be queued."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self.limits = folder / "limits.toml"
        self.limits.write_text(LIMITS)
        self.orders: dict[str, Order] = {}
        self.ids: dict[str, str] = {}

    def serving(self, **options: Any) -> Any:
        return serving(self.data_dir, "--limits", str(self.limits), **options)

    def holding(self, steps: str) -> Any:
        """A server in which each job gets no further than so many steps."""
        return self.serving(program=FAULTY, env={**OWNER, "CRASH_HELD_JOB": steps})

    async def prepare(self) -> None:
        async with self.serving() as server:
            for operation, case in CASES.items():
                self.orders[operation] = await case.prepare(server)
            assert await server.terminate() == 0

    async def queue(self, server: ServerProcess) -> None:
        self.ids = {}
        for operation, order in self.orders.items():
            if order.configure is not None:
                await order.configure(server)
            answer = await server.call(order.method, order.path, order.body, files=order.files)
            if "jobId" in answer:
                id = base64.urlsafe_b64decode(answer["jobId"]).hex()
            else:
                (log,) = (await server.call("GET", f"{order.application}/jobLogs"))["items"]
                id = log["id"]
            self.ids[operation] = id

    async def held(self, server: ServerProcess) -> None:
        for operation in self.orders:
            await server.prints(rf"held {operation} ")

    async def finished(self, server: ServerProcess) -> list[str]:
        """Wait until each job has ended, and check what it did; the ids of the jobs that made a file."""
        with_file = []
        for operation, order in self.orders.items():
            log: Json = {"output": {"file": "of a user"} if order.has_file else {}}
            if order.application:
                log = await ended(server, order.application, self.ids[operation])
                assert (log["name"], log["status"]) == (operation, "completed"), log
            await order.outcome(server, log)
            if "file" in log["output"]:
                with_file.append(self.ids[operation])
        return sorted(with_file)


async def jobs_running(server: ServerProcess) -> int:
    async with server.client() as client:
        text = (await client.get("/metrics")).text
    return sum(
        int(float(line.split()[-1]))
        for line in text.splitlines()
        if line.startswith(("trunkline_jobs_running ", "trunkline_jobs_waiting "))
    )


async def idle(server: ServerProcess) -> None:
    with trio.fail_after(PATIENCE_S):
        while await jobs_running(server):  # noqa: ASYNC110 - another process
            await trio.sleep(0.01)


async def checked(data_dir: Path) -> None:
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout


def files(data_dir: Path, folder: str) -> list[str]:
    """The names of all files in one of the folders of the data directory, drafts included."""
    return sorted(
        file.name for file in (data_dir / folder).rglob("*") if file.is_file() and file.name != "lock"
    )


def result_ids(data_dir: Path) -> list[str]:
    """The ids of the jobs whose files are there, and the names of drafts."""
    return sorted(name[24:] or name for name in files(data_dir, "results"))


async def killed(jobs: Jobs, steps: str) -> None:
    """Kill the server while all jobs are held, and let another one finish them."""
    async with jobs.holding(steps) as server:
        await jobs.queue(server)
        if steps != QUEUED:
            await jobs.held(server)
        await server.kill()
    async with jobs.serving() as server:
        with_file = await jobs.finished(server)
        await idle(server)
        with trio.fail_after(PATIENCE_S):
            while result_ids(jobs.data_dir) != with_file:  # noqa: ASYNC110 - a folder has no event
                await trio.sleep(0.01)
        assert await server.terminate() == 0
    assert files(jobs.data_dir, "archives/.drafts") == files(jobs.data_dir, "contents/drafts") == []
    await checked(jobs.data_dir)


@pytest.mark.slow
async def test_jobs_are_whole_after_a_kill_in_their_middle(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    await jobs.prepare()
    await killed(jobs, MIDDLE)


@pytest.mark.load
@pytest.mark.timeout(900)
async def test_jobs_are_whole_after_a_kill_at_any_point_three_times(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    await jobs.prepare()
    shutil.copytree(jobs.data_dir, tmp_path / "prepared")
    for steps in (QUEUED, MIDDLE, BEFORE_END):
        for _ in range(3):
            shutil.rmtree(jobs.data_dir)
            shutil.copytree(tmp_path / "prepared", jobs.data_dir)
            await killed(jobs, steps)


@pytest.mark.slow
async def test_jobs_show_their_progress_and_end_with_their_application(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    await jobs.prepare()
    jobs.orders = {operation: order for operation, order in jobs.orders.items() if order.application}
    async with jobs.holding(MIDDLE) as server:
        await jobs.queue(server)
        await jobs.held(server)
        for operation, order in jobs.orders.items():
            await progressed(server, f"{order.application}/jobLogs/{jobs.ids[operation]}")
        for order in jobs.orders.values():
            await server.call("DELETE", order.application)
        await idle(server)
        # What was uploaded before its job was queued is removed later, at the next look at the folder.
        uploaded = {jobs.ids[operation] for operation, order in jobs.orders.items() if order.files}
        with trio.fail_after(PATIENCE_S):
            while not uploaded.issuperset(result_ids(jobs.data_dir)):  # noqa: ASYNC110 - a folder has no event
                await trio.sleep(0.01)
        assert await server.terminate() == 0
    await checked(jobs.data_dir)


async def progressed(server: ServerProcess, path: str) -> None:
    """Wait until the log of a held job shows what it has done, or of how much work."""
    with trio.fail_after(PATIENCE_S):
        log = await server.call("GET", path)
        while not (log["progress"]["completed"] or log["progress"].get("total")):
            await trio.sleep(0.01)
            log = await server.call("GET", path)
    assert log["status"] == "inProgress", log
