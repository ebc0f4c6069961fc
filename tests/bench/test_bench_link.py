"""The loads of the device link: their frames are as the document says, and what they store is audited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest
import trio

from tests.http.link.link_document import check_frame
from tests.patience import PATIENCE_S
from trunkline.bench.ledger import state_of
from trunkline.bench.link_states import FORMS, Form, frame_of
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Result
from trunkline.bench.run import Scenario, run_scenario
from trunkline.bench.scenarios import link as link_scenario
from trunkline.bench.scenarios.link import LinkScenario
from trunkline.bench.scenarios.link_connections import (
    IdleLinksScenario,
    LinkCommandsScenario,
    LinkStormScenario,
)
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan
from trunkline.http.serve import serve
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits

THROTTLES = ("send_state", "send_command", "set_connection_status")
EMAIL, PASSWORD = "bench@example.org", "Correct-horse-9!"
FIRST_MS = 1_700_000_000_000


def states_of(frame: list[Any]) -> list[tuple[int, dict[str, Any]]]:
    """The states of a frame, each with its time."""
    if frame[0] == 1:
        return [(frame[2], frame[3])]
    if frame[0] == 2:
        return [(time, dict(zip(frame[2], values, strict=True))) for time, *values in frame[3]]
    types = {70: "<u4", 86: "<f8"}
    columns = {
        name: np.frombuffer(column.value, types[column.tag]).tolist()
        if isinstance(column, cbor2.CBORTag)
        else column
        for name, column in {**frame[4], "": frame[3]}.items()
    }
    deltas = columns.pop("")
    return [
        (frame[2] + delta, {name: column[at] for name, column in columns.items()})
        for at, delta in enumerate(deltas)
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 2, 300])
def test_a_frame_has_the_states_of_the_ledger(form: Form, count: int) -> None:
    data = frame_of(form, 7, 990, count, FIRST_MS)
    check_frame("client", data)
    frame = cbor2.loads(data)
    assert frame[:2] == [1 if (form, count) == ("rows", 1) else 2 + FORMS.index(form), 7]
    assert states_of(frame) == [(FIRST_MS + n, state_of(n)) for n in range(990, 990 + count)]


@pytest.fixture
async def session(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Session]:
    settings = Settings(
        data_dir=str(tmp_path / "data"),
        port=0,
        admin_email=EMAIL,
        admin_password=PASSWORD,
        log_level="error",
        limits=Limits().override(dict.fromkeys(THROTTLES, "off")),
    )
    serving = await nursery.start(partial(serve, settings, shutdown=trio.sleep_forever))
    session = Session(serving.url, patience_s=20)
    await session.login(EMAIL, PASSWORD)
    yield session
    session.close()
    nursery.cancel_scope.cancel()


async def run(scenario: Scenario, session: Session) -> Result:
    plan = Plan(connections=2, duration_s=0.2, warmup_s=0, ceiling=False)
    with trio.fail_after(PATIENCE_S):
        return await run_scenario(scenario, session, plan, ProgressBar())


@pytest.mark.slow
@pytest.mark.parametrize("read_back_max", [1_000_000, 0], ids=["read back", "counted"])
async def test_everything_acknowledged_over_links_is_found(
    session: Session, read_back_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_scenario, "READ_BACK_MAX", read_back_max)
    scenario = LinkScenario(devices=3, links=[1, 2], sizes=[1, 10], forms=FORMS, rest=True)
    result = await run(scenario, session)
    audit = result.audit
    assert (audit.missing, audit.different, audit.unexpected, audit.unknown) == (0, 0, 0, 0)
    sent = sum(ledger.outcomes.count(1) for ledger in scenario.fleet.ledgers)
    assert audit.acknowledged == audit.read == sent > 0
    assert [stage.name for stage in result.stages][:3] == [
        "REST, arrays of 1",
        "1 link, 1 by rows",
        "1 link, 1 by columns",
    ]
    assert len(result.stages) == 10


@pytest.mark.slow
@pytest.mark.parametrize("lost", [1, -1])
async def test_a_count_that_differs_is_found(
    session: Session, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger of a device is changed after the load: it says one state more, or one less, than was stored."""
    monkeypatch.setattr(link_scenario, "READ_BACK_MAX", 0)
    scenario = LinkScenario(devices=1, links=[1], sizes=[10], forms=["rows"], rest=False)
    perform = scenario.perform

    async def with_a_loss(run: Any) -> None:
        await perform(run)
        (ledger,) = scenario.fleet.ledgers
        if lost > 0:
            ledger.settle(ledger.begin(), 1, 1)
        else:
            del ledger.outcomes[-1]

    monkeypatch.setattr(scenario, "perform", with_a_loss)
    result = await run(scenario, session)
    assert (result.verdict, result.audit.missing + result.audit.unexpected) == ("loss", 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [IdleLinksScenario(links=5), LinkStormScenario(links=5), LinkCommandsScenario(links=5, rounds=3)],
    ids=lambda one: one.name,
)
async def test_many_links(session: Session, scenario: Any) -> None:
    result = await run(scenario, session)
    assert result.verdict in ("sound", "generatorBound")
    audit = result.audit
    states, commands = {"link idle": (5, 0), "link storm": (10, 0), "link commands": (0, 15)}[scenario.name]
    assert audit.acknowledged == audit.read == states + commands
    last = result.stages[-1]
    if last.problem is None:
        names = {one.name for one in last.figures} | {one.name for one in last.delays}
        assert {
            "link idle": "server memory a link",
            "link storm": "until a state was stored",
            "link commands": "until the last link has it",
        }[scenario.name] in names
