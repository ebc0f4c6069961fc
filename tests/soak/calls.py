"""The calls of a soak: how long each took by kind, how each was answered, and what went wrong.

Owns the figures of the load and the list of faults. Does not own what is called, or when.
"""

from __future__ import annotations

import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import trio

from tests.e2e.server_process import ServerProcess
from tests.patience import PATIENCE_S
from trunkline.bench.errors import ApiError
from trunkline.bench.session import Session

FAULTS_MAX: Final = 50
"""Faults that are told; the others are counted."""
JOB_PAUSE_S: Final = 0.2
READS: Final = frozenset({"rows queried", "data of a dashboard", "chart"})
"""Kinds of calls with a body that store nothing."""


class Calls:
    """Calls of one user to one server. Nothing is repeated: every refusal that is not expected is a fault."""

    def __init__(self, server: ServerProcess, mqtt_port: int) -> None:
        self.server = server
        self.mqtt_port = mqtt_port
        self.session = Session(server.url, token=server.token, patience_s=0, timeout_s=PATIENCE_S)
        self.latencies: dict[str, list[float]] = defaultdict(list)
        self.answers: Counter[tuple[str, int]] = Counter()
        self.acknowledged = 0
        """Writes that were acknowledged, each of which is in some ledger until it is read back."""
        self.read_back = 0
        self.faults: list[str] = []
        self.fault_count = 0

    async def call(
        self, kind: str, method: str, path: str, body: Any = None, *, query: dict[str, Any] | None = None
    ) -> Any:
        """Make a call of a kind; an error of the API is counted, and raised."""
        try:
            with self.timed(kind):
                answer = await self.session.call(method, path, body, query=query)
        except ApiError as refused:
            self.answers[kind, refused.status] += 1
            raise
        self.answers[kind, 200] += 1
        self.acknowledged += method != "GET" and kind not in READS
        return answer

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Measure a call that is made in another way. One that fails is not measured."""
        began_s = trio.current_time()
        yield
        self.latencies[kind].append(trio.current_time() - began_s)

    def taken(self) -> dict[str, list[float]]:
        """The durations by kind since the last time that they were taken, in seconds."""
        taken, self.latencies = self.latencies, defaultdict(list)
        return taken

    def fault(self, where: str, problem: BaseException) -> None:
        """Note what should not have happened."""
        self.fault_count += 1
        if len(self.faults) < FAULTS_MAX:
            lines = traceback.format_exception(problem)
            self.faults.append(f"{where}: {problem!r}\n{''.join(lines[-6:])}")

    async def job(self, application: str, queued: Any) -> dict[str, Any]:
        """Wait for the end of a job, which must have completed."""
        with trio.fail_after(PATIENCE_S), self.timed("job until its end"):
            while True:
                log: dict[str, Any] = await self.call(
                    "job log", "GET", f"{application}/jobLogs/{queued['jobId']}"
                )
                if "runCompletedAt" in log:
                    assert log["status"] == "completed", log
                    return log
                await trio.sleep(JOB_PAUSE_S)
