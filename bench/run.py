"""The run that all scenarios share: prepare, load stage by stage, audit, and a verdict.

Owns the order of these steps, the thread of the load, monitoring, and withholding figures that do not measure the
server. Does not own any load: a scenario defines the calls and what must be stored afterwards.
"""

from __future__ import annotations

import resource
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

import msgspec
import trio

from trunkline.bench.bottleneck import generator_problem
from trunkline.bench.disk_meter import DiskMeter, meter_of
from trunkline.bench.errors import BenchError
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Caller
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor
from trunkline.bench.result import AuditResult, Result, Server, Stage, Verdict, machine, shown_settings
from trunkline.bench.server_monitor import ServerMonitor, find_server
from trunkline.bench.session import Session
from trunkline.bench.stage import AnyLoad, LoadObserver, Plan, measure, measure_load, null_rate

FILES_SPARE = 200
"""Files: that a process opens in addition to its connections."""

T = TypeVar("T")


class Scenario(ABC):
    """One load and its audit."""

    name: ClassVar[str]
    title: ClassVar[str]
    writes: ClassVar[bool] = True
    """Whether its loads write, so that what they write to the block device is measured."""

    staged: ClassVar[bool] = True
    """Whether the connections, the duration and the rate of the plan apply."""

    def connections(self, plan: Plan) -> int:
        """The number of sockets that are open at the same time."""
        return plan.connections

    @abstractmethod
    def settings(self) -> dict[str, object]:
        """The options chosen by the user, for the report."""

    @abstractmethod
    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        """Create what the load needs."""

    @abstractmethod
    async def perform(self, run: Run) -> None:
        """Load the server, stage by stage, through ``run``."""

    @abstractmethod
    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        """Read back what was written and add all differences to ``found``."""


class Run:
    """One run of one scenario against one server."""

    def __init__(self, session: Session, plan: Plan, bar: ProgressBar) -> None:
        self.session = session
        self.plan = plan
        self.bar = bar
        self.stages: list[Stage] = []
        self.notes: list[str] = []
        self.monitor: ServerMonitor | None = None
        self.disk: DiskMeter | None = None

    async def load(
        self,
        name: str,
        callers: Callable[[bool], Sequence[Caller]],
        *,
        make_observer: Callable[[Reactor], LoadObserver] | None = None,
    ) -> None:
        """Run one stage of calls.

        ``callers`` creates the callers: with True those for the rehearsal against the null server.
        """
        plan, origin, reference = self.plan, self.session.origin, None
        if plan.ceiling:
            reference = await self.in_thread(lambda: null_rate(callers(True), plan.connections))
        await self._measured(
            name,
            lambda: measure(
                name,
                callers(False),
                origin,
                plan,
                monitor=self.monitor,
                bar=self.bar,
                make_observer=make_observer,
                null_rate=reference,
            ),
        )

    async def load_with(self, name: str, make_load: Callable[[Reactor], AnyLoad]) -> None:
        """Run one stage of another kind of load."""
        await self._measured(
            name, lambda: measure_load(name, make_load, self.plan, monitor=self.monitor, bar=self.bar)
        )

    async def _measured(self, name: str, work: Callable[[], Stage]) -> None:
        self.bar.begin(name)
        begun = await self.disk.begin() if self.disk else None
        stage = await self.in_thread(work)
        if self.disk and begun:
            self.bar.show(1.0, "waiting until everything is written")
            calls = stage.calls[0]
            disk = await self.disk.end(begun, calls.unit, calls.units_in_all)
            stage = msgspec.structs.replace(stage, disk=disk)
        self.add(stage)
        self.bar.end(f"{stage.elapsed_s:.1f} s")

    def add(self, stage: Stage) -> None:
        """Keep a stage, without its figures if the generator was the bottleneck."""
        problem = generator_problem(stage)
        self.stages.append(stage.withheld(problem) if problem else stage)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run a load in a thread. A cancelled caller does not wait for the thread."""
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)


async def run_scenario(scenario: Scenario, session: Session, plan: Plan, bar: ProgressBar) -> Result:
    """Run a scenario and return its result; raises BenchError if it cannot be run."""
    _allow_files(scenario.connections(plan))
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = Run(session, plan, bar)
    notes = run.notes
    run.monitor = monitor = find_server(session.origin, plan.server_pid)
    begin = monitor.usage() if monitor else None
    if monitor is None:
        notes.append(
            "The server's process was not found on this machine, so its processor time and memory are unknown."
        )
    await scenario.prepare(session, bar)
    if scenario.writes and scenario.staged:
        try:
            run.disk = meter_of(monitor)
        except BenchError as problem:
            notes.append(f"Bytes and writes of the block device are not available: {problem}.")
    await scenario.perform(run)
    end = monitor.usage() if monitor else None
    found = Audit()
    await scenario.audit(session, found, bar)
    stages = run.stages
    verdict: Verdict = "generatorBound" if any(stage.problem for stage in stages) else "sound"
    if not found.clean:
        verdict = "loss"
        stages = [stage.withheld("Something that was acknowledged was lost.") for stage in stages]
    elif not any(
        stage.problem or stage.delays or any(one.acknowledged for one in stage.calls) for stage in stages
    ):
        refusals = [one.first_refusal for stage in stages for one in stage.calls if one.first_refusal]
        raise BenchError(f"The server acknowledged nothing. {' '.join(refusals[:1])}".strip())
    if any(reason.startswith("429") for stage in stages for one in stage.calls for reason in one.refused):
        notes.append(
            "The server throttles each device; with more devices, or with --limits off, it takes more."
        )
    staged = _plan_settings(plan) if scenario.staged else {}
    server = None
    if monitor and begin and end:
        server = Server(
            pids=monitor.pids,
            begin_bytes=begin.bytes,
            begin_private_bytes=begin.private_bytes,
            end_bytes=end.bytes,
            end_private_bytes=end.private_bytes,
            peak_bytes=monitor.peak_bytes,
        )
    return Result(
        scenario=scenario.name,
        title=scenario.title,
        begun=begun,
        machine=machine(),
        settings=shown_settings({"server": session.url, **scenario.settings(), **staged}),
        stages=stages,
        server=server,
        audit=AuditResult.of(found),
        verdict=verdict,
        notes=notes,
    )


def _plan_settings(plan: Plan) -> dict[str, object]:
    return {
        "connections": plan.connections,
        "seconds a stage": plan.duration_s,
        "seconds of warming up": plan.warmup_s,
        "calls a second wanted": plan.rate,
    }


def _allow_files(connections: int) -> None:
    """Raise the limit of open files to what the load needs; raises BenchError if that is not permitted."""
    needed = connections + FILES_SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed:
        return
    if hard < needed:
        raise BenchError(
            f"{connections:,} connections need {needed:,} open files and this user may have {hard:,}: "
            f"raise the limit (ulimit -n {needed})."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
