"""The quiet tenant beside attacks: each attack takes place, nobody else gets its refusals, and the verdict tells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from typer.testing import CliRunner

from tests.e2e.conftest import EMAIL, PASSWORD, running_server
from tests.patience import PATIENCE_S
from trunkline.actors import server_users
from trunkline.bench.cli import bench_app
from trunkline.bench.client import Connection
from trunkline.bench.neighbours import cell, flow_attacks
from trunkline.bench.neighbours.attacker import Answers
from trunkline.bench.neighbours.attacks import ATTACKS
from trunkline.bench.neighbours.cell import Beside, Spread, measure
from trunkline.bench.neighbours.place import Place
from trunkline.bench.neighbours.quiet import Measured
from trunkline.bench.neighbours.report import Report, described, print_report
from trunkline.bench.neighbours.tenant import Account, Tenant
from trunkline.bench.report import output

QUIET, GREEDY = Account("quiet@example.com", PASSWORD), Account(EMAIL, PASSWORD)
KINDS = {"state", "read", "query", "workflow", "script", "file", "command", "login"}
BY_NAME = {attack.name: attack for attack in ATTACKS}
PERIOD_S = 0.5

pytestmark = pytest.mark.slow


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """A server with a quiet user and a greedy one."""
    async with running_server(tmp_path / "data", trust_forwarded_for=True) as server:
        await server_users.add_user(server.system, QUIET.email, QUIET.password)
        yield server.url


async def test_each_attack_is_taken_by_the_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of each: what it makes is accepted, and so are its calls."""
    monkeypatch.setattr(flow_attacks, "DELAY_S", 0)
    with trio.fail_after(PATIENCE_S):
        tenant = await Tenant.sign_in(url, GREEDY, "10.2.0.1", len(ATTACKS))
        for attack, application in zip(ATTACKS, tenant.applications, strict=True):
            clients = await attack.prepare(Place(tenant, application, 100))
            assert clients, attack.name
            async with Connection(tenant.session.origin) as connection:
                for client in clients:
                    if client.way == "calls":
                        statuses = [(await connection.exchange(each)).status for each in client.requests]
                        assert max(statuses) < 300, attack.name
        tenant.close()


@pytest.mark.parametrize(
    ("name", "spread"),
    [
        ("downloads", "one"),
        ("uploads", "thirty"),
        ("scripts", "one"),
        ("waiting", "one"),
        ("logins", "one"),
    ],
)
async def test_what_fills_the_places_of_the_server_refuses_nothing_to_the_quiet_tenant(
    url: str, name: str, spread: Spread
) -> None:
    with trio.fail_after(PATIENCE_S):
        found = await measure(url, QUIET, [GREEDY], BY_NAME[name], spread, PERIOD_S)
    assert found.answers.ran
    assert found.errors() == {}
    assert found.beside.keys() == found.alone.keys() == KINDS
    assert all(one.calls >= 1 for one in found.beside.values())


def measured(p99_ms: float, **errors: int) -> Measured:
    return Measured(calls=100, errors=errors, p50_ms=1, p99_ms=p99_ms, max_ms=p99_ms)


def beside(p99_ms: float, alone_ms: float = 1.0, counts: Any = None, **errors: int) -> Beside:
    return Beside(
        attack="calls",
        spread="one",
        alone={"state": measured(alone_ms)},
        beside={"state": measured(p99_ms, **errors)},
        answers=Answers({"200": 1} if counts is None else counts, {}),
    )


@pytest.mark.parametrize(
    ("found", "passed", "told"),
    [
        (beside(49), True, "had errors in 0, and in 0 a p99 above 50 ms"),
        (beside(51), False, "51 (1)!"),
        (beside(149, alone_ms=50), True, "149 (50) "),
        (beside(151, alone_ms=50), False, "151 (50)!"),
        (beside(1, **{"503": 2}), False, "state of the quiet tenant had errors: 503 2."),
        (beside(1, counts={"404": 3}), False, "the attack did nothing. 404 3"),
        (beside(1, counts={"held": 3}), True, "held 3"),
        (beside(1, counts={"503": 1, "open": 3}), True, "503 1, open 3"),
    ],
)
def test_the_verdict(found: Beside, passed: bool, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(begun="", machine={}, server="", seconds=1, measured=[found])
    assert report.passed is passed
    print_report(output(), report)
    assert told in capsys.readouterr().out


def test_the_command_lists_the_attacks_and_refuses_unknown_names() -> None:
    run = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
    listed = run.invoke(bench_app, ["neighbours", "--list"])
    assert listed.output.strip() == described()
    assert len(listed.output.splitlines()) == len(ATTACKS) == len(BY_NAME)
    for options in (["--attack", "kindness"], ["--spread", "two"]):
        refused = run.invoke(bench_app, ["neighbours", *options])
        assert refused.exit_code == 2
        assert f"{' '.join(options)} is none of" in refused.output


def test_the_command_measures_a_server_of_its_own(tmp_path: Path) -> None:
    """Whole, but short: users, a server in a process, an attack, and the file with the figures."""
    run = CliRunner(env={"COLUMNS": "250", "TERM": "dumb"})
    options = ["--attack", "delays", "--spread", "one", "--duration", "1", "--json", str(tmp_path / "found")]
    done = run.invoke(bench_app, ["neighbours", *options])
    assert done.exit_code in (0, 1), done.output
    assert "Beside 1 attacks the quiet tenant had errors in 0" in done.output
    assert '"attack": "delays"' in (tmp_path / "found").read_text()
    assert cell.MANY == 30
