"""Every scenario runs against the real server, ends with figures, and its audit detects faults.

Knows the other rooms only to start a server; what runs against it speaks HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.patience import PATIENCE_S
from trunkline.bench.page import page_of
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Result
from trunkline.bench.run import Scenario, run_scenario
from trunkline.bench.scenarios.arrays import ArraysScenario
from trunkline.bench.scenarios.commands import CommandsScenario
from trunkline.bench.scenarios.mixed import MixedScenario
from trunkline.bench.scenarios.queries import QueriesScenario
from trunkline.bench.scenarios.state import StateScenario
from trunkline.bench.scenarios.storm import StormScenario
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan
from trunkline.http.serve import serve
from trunkline.limits.settings import Settings

EMAIL, PASSWORD = "bench@example.org", "Correct-horse-9!"
SHORT = Plan(connections=4, duration_s=0.3, warmup_s=0.1, ceiling=False)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("work_clock")]


@pytest.fixture
async def session(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Session]:
    """Signed in at a server whose throttles are lifted."""
    settings = Settings(
        data_dir=str(tmp_path / "data"), port=0, admin_email=EMAIL, admin_password=PASSWORD, log_level="error"
    )
    settings = replace(settings, limits=settings.limits.lifted())
    serving = await nursery.start(partial(serve, settings, shutdown=trio.sleep_forever))
    session = Session(serving.url, patience_s=20)
    await session.login(EMAIL, PASSWORD)
    yield session
    nursery.cancel_scope.cancel()


async def outcome(scenario: Scenario, session: Session, plan: Plan = SHORT) -> Result:
    with trio.fail_after(PATIENCE_S):
        result = await run_scenario(scenario, session, plan, ProgressBar())
    assert result.verdict == "sound"
    assert result.scenario == scenario.name
    assert page_of(result)
    return result


@pytest.mark.parametrize(
    ("make", "stages", "kinds"),
    [
        (lambda: StateScenario(devices=20), 1, ["state posts"]),
        (
            lambda: ArraysScenario(devices=5, per_call=[10, 100]),
            2,
            ["arrays of 10 states", "arrays of 100 states"],
        ),
        (lambda: CommandsScenario(devices=8, per_call=8), 1, ["commands"]),
        (lambda: CommandsScenario(devices=5, per_call=1), 1, ["commands"]),
        (
            lambda: MixedScenario(devices=30),
            1,
            ["state posts", "newest values", "history of 100", "list of devices", "commands"],
        ),
    ],
)
async def test_a_load_ends_with_figures_and_everything_read_back(
    session: Session, make: Callable[[], Scenario], stages: int, kinds: list[str]
) -> None:
    result = await outcome(make(), session)
    assert len(result.stages) == stages
    calls = [one for stage in result.stages for one in stage.calls]
    assert [one.name for one in calls] == kinds
    for one in calls:
        assert 0 < one.acknowledged == one.sent == one.latency.count
        assert one.latency.p50_ms <= one.latency.p99_ms <= one.latency.max_ms
        assert (one.refused, one.failed, one.breaks, one.unknown) == ({}, {}, 0, 0)
    assert result.audit.acknowledged == result.audit.read > 0
    assert result.audit.unknown == 0


async def test_commands_arrive_at_all_streams(session: Session) -> None:
    result = await outcome(CommandsScenario(devices=8, per_call=4), session)
    (stage,) = result.stages
    (calls,) = stage.calls
    assert [delay.name for delay in stage.delays] == [
        "from sending to arrival",
        "from acknowledgement to arrival",
    ]
    assert [delay.latency.count for delay in stage.delays] == [calls.units, calls.units]
    assert calls.units == calls.acknowledged * 4


async def test_an_open_loop_tells_both_latencies(session: Session) -> None:
    result = await outcome(
        StateScenario(devices=20), session, replace(SHORT, duration_s=0.1, warmup_s=0.05, rate=200)
    )
    (stage,) = result.stages
    (calls,) = stage.calls
    assert stage.rate == 200
    assert calls.service is not None
    assert 0 < calls.sent <= 200 * (stage.elapsed_s + 0.05)
    assert calls.latency.max_ms >= calls.service.max_ms


async def test_a_storm_serves_all_and_loses_nothing(session: Session) -> None:
    result = await outcome(StormScenario(devices=25), session)
    assert [stage.name for stage in result.stages] == ["first connection", "storm"]
    for stage in result.stages:
        served = stage.delays[-1]
        assert (served.name, served.latency.count) == ("until served", 25)
    # Two states and two commands of each device are in the histories.
    assert result.audit.acknowledged == result.audit.read == 100


async def test_queries_are_answered_with_what_was_stored(session: Session) -> None:
    scenario = QueriesScenario(devices=4, states=120)
    result = await outcome(scenario, session, replace(SHORT, duration_s=0.1, warmup_s=0))
    names = [stage.name for stage in result.stages]
    history = ["last 1 states", "last 100 states", "last 1,000 states", "60 states of a span"]
    assert names[:4] == history
    if len(names) == 9:
        assert any(note.startswith("Histories were not read again after flushing") for note in result.notes)
    else:
        assert names[9:] == [f"{name}, flushed" for name in history]
    assert all(one.acknowledged for stage in result.stages for one in stage.calls)
    assert result.audit.read > 0


async def test_the_server_is_found_by_its_port_and_watched(session: Session) -> None:
    result = await outcome(StateScenario(devices=5), session, replace(SHORT, duration_s=0.6))
    assert result.server is not None
    assert result.server.peak_bytes >= result.server.begin_bytes > 0
    (stage,) = result.stages
    assert stage.server_cpu is not None
    assert stage.server_cpu > 0
    assert stage.samples
    if stage.disk is None:
        assert any(note.startswith("Bytes and writes of the block device are not") for note in result.notes)
    else:
        assert stage.disk.units == result.audit.acknowledged
        assert stage.disk.bytes > 0


async def test_a_throttled_server_is_told_from_a_slow_one(nursery: trio.Nursery, tmp_path: Path) -> None:
    settings = Settings(
        data_dir=str(tmp_path / "data"), port=0, admin_email=EMAIL, admin_password=PASSWORD, log_level="error"
    )
    serving = await nursery.start(partial(serve, settings, shutdown=trio.sleep_forever))
    session = Session(serving.url)
    await session.login(EMAIL, PASSWORD)
    result = await outcome(StateScenario(devices=1), session, replace(SHORT, duration_s=0.15, warmup_s=0))
    (calls,) = result.stages[0].calls
    assert (calls.acknowledged, calls.refused) == (30, {"429 TooManyRequests": 1})
    assert result.audit.read == 30
    assert any("throttles each device" in note for note in result.notes)
    nursery.cancel_scope.cancel()
