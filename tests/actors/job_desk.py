"""A system that does jobs of a test's own, and short ways to ask for them.

Owns no test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.actors.house import ManualClock
from tests.patience import PATIENCE_S
from trunkline.actors import boot, readers
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.messages import GetJobLog, JobLogPage, ListJobLogs, QueueJob
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits

BY = Creator("a" * 24, "user", "somebody")
QUICK = {"job_pause_s": 0.001, "job_progress_s": 0.001}
Run = Callable[[Job], Awaitable[Doc | None]]


class Desk:
    """A system with jobs that the tests know, and short ways to ask for them."""

    def __init__(self, system: System) -> None:
        self.system = system

    async def application(self, name: str = "house", owner: bytes = ROOT) -> bytes:
        ref = Ref("application", ROOT, self.system.ids.new(self.system.clock.wall_ms()))
        body = ApplicationPost(name=name)
        await self.system.ask(ref, CreateApplication(body=body, user=owner))
        return ref.id

    async def queue(self, application: bytes, operation: str = "job", **more: Any) -> bytes:
        fields = {"resource": application, "input": {}, "by": BY, **more}
        ref = Ref("application", ROOT, application)
        answer = await self.system.ask(ref, QueueJob(operation=operation, **fields))
        id: bytes = answer.value
        return id

    async def log(self, application: bytes, id: bytes) -> dict[str, Any]:
        found: dict[str, Any] = await readers.read(self.system, GetJobLog(application=application, job=id))
        return found

    async def logs(self, application: bytes, **query: Any) -> list[dict[str, Any]]:
        listed = ListJobLogs(application=application, query=JobLogPage(**query))
        items: list[dict[str, Any]] = (await readers.read(self.system, listed))["items"]
        return items

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        with trio.fail_after(PATIENCE_S):
            while not await holds():
                await trio.lowlevel.checkpoint()

    async def ended(self, application: bytes, id: bytes) -> dict[str, Any]:
        """The log of the job when it has ended."""

        async def has_ended() -> bool:
            return "runCompletedAt" in await self.log(application, id)

        await self.until(has_ended)
        return await self.log(application, id)


@asynccontextmanager
async def desk(
    path: Path, run: Run, limits: dict[str, Any] | None = None, **kind: Any
) -> AsyncIterator[Desk]:
    """A system that does one kind of job, `job`, by `run`."""
    settings = Settings(data_dir=str(path), limits=Limits.off().override(QUICK | (limits or {})))
    with boot.opened(settings, ManualClock()) as system:
        system.component(JobQueue).kinds["job"] = JobKind("job", "application", run, **kind)
        async with boot.running(system):
            yield Desk(system)


async def nothing(_job: Job) -> None:
    """A job that is done at once."""


class Held:
    """A job that waits to be let go, and says when it began."""

    def __init__(self) -> None:
        self.begun: list[Job] = []
        self.began = trio.Event()
        self.go = trio.Event()

    async def __call__(self, job: Job) -> Doc:
        self.begun.append(job)
        self.began.set()
        await self.go.wait()
        return {"attempt": job.attempt}
