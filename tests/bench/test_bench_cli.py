"""The commands end with the right exit code, and no rate is printed if anything acknowledged is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import typer
from typer.testing import CliRunner

from tests.patience import PATIENCE_S
from trunkline.bench import cli
from trunkline.bench.cli import bench_app

RATE = "acknowledged a second"

pytestmark = pytest.mark.usefixtures("work_clock")


async def invoke(api: Any, arguments: Sequence[str], *, code: int) -> str:
    """Run a command as the shell would: in a thread with an event loop of its own."""
    login = {"TRUNKLINE_ADMIN_EMAIL": api.email, "TRUNKLINE_ADMIN_PASSWORD": api.password}
    runner = CliRunner(env={**login, "COLUMNS": "200", "TERM": "dumb"})
    with trio.fail_after(PATIENCE_S):
        result = await trio.to_thread.run_sync(
            lambda: runner.invoke(bench_app, [*arguments[:1], "--url", api.url, *arguments[1:]])
        )
    assert result.exit_code == code, result.output
    return result.output


LOAD = ("state", "--devices", "3", "--connections", "2", "--duration", "0.1", "--warmup", "0", "--no-ceiling")


async def test_state_prints_a_rate_after_a_clean_audit(fake_api: Any, tmp_path: Path) -> None:
    files = ("--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html"))
    output = await invoke(fake_api, (*LOAD, *files), code=0)
    assert RATE in output
    assert "p50 " in output
    assert "nothing acknowledged is missing or different" in output
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["scenario"], result["verdict"]) == ("state", "sound")
    (calls,) = result["stages"][0]["calls"]
    assert result["audit"]["read"] == calls["acknowledged"] == calls["latency"]["count"] > 0
    assert "<h1>Single state posts</h1>" in (tmp_path / "r.html").read_text()


async def test_state_prints_no_rate_where_something_acknowledged_is_missing(
    fake_api: Any, tmp_path: Path
) -> None:
    fake_api.keep = lambda device, time, data: None if data["sequence"] == 2 else data
    files = ("--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html"))
    output = await invoke(fake_api, (*LOAD, *files), code=1)
    assert RATE not in output
    assert "p50" not in output
    assert "3 are missing" in " ".join(output.split())
    assert output.count("missing: device ") == 3
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["verdict"], result["stages"][0]["calls"]) == ("loss", [])
    assert "The audit failed" in (tmp_path / "r.html").read_text()


async def test_no_rate_is_told_where_the_generator_was_the_bottleneck(
    fake_api: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("trunkline.bench.bottleneck.CEILING_SHARE", 0.0)
    report = ("--json", str(tmp_path / "r.json"))
    output = await invoke(fake_api, (*LOAD, "--ceiling", *report), code=3)
    assert RATE not in output
    assert "p50" not in output
    assert "the generator was the bottleneck" in " ".join(output.split())
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["verdict"] == "generatorBound"
    assert [stage["calls"] for stage in result["stages"]] == [[]]


async def test_state_that_nobody_acknowledged_is_no_rate(fake_api: Any) -> None:
    fake_api.answer_state = lambda device, states, number: fake_api.refusal(403, "Forbidden", "Not yours.")
    output = await invoke(fake_api, LOAD, code=2)
    assert RATE not in output
    assert "acknowledged nothing. 403 Forbidden: Not yours." in output


async def test_replay_ends_with_its_account(fake_api: Any, tmp_path: Path) -> None:
    file = tmp_path / "probe.csv"
    file.write_text("date,temp\n2010/01/01 00:00,39.4\n2010/01/01 01:00,39.2\nsoon,1\n", encoding="utf-8")
    output = await invoke(fake_api, ("replay", str(file), "--time", "date"), code=0)
    flat = " ".join(output.split())
    assert "1 rows are left out: no readable time." in flat
    assert "2 of 2 points, 2 values equal" in flat
    assert "Everything acknowledged was read back equal." in flat
    (states,) = fake_api.states.values()
    assert states == {1_262_304_000_000: {"temp": 39.4}, 1_262_307_600_000: {"temp": 39.2}}
    fake_api.keep = lambda device, time, data: {"temp": 39.0}
    output = await invoke(fake_api, ("replay", str(file), "--time", "date"), code=1)
    assert "The read-back differs" in output


async def test_replay_writes_the_reports_that_the_loads_write(fake_api: Any, tmp_path: Path) -> None:
    file = tmp_path / "probe.csv"
    file.write_text("date,temp\n2010/01/01 00:00,39.4\n2010/01/01 01:00,39.2\nsoon,1\n", encoding="utf-8")
    command = ("replay", str(file), "--time", "date")
    files = ("--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html"))
    await invoke(fake_api, (*command, *files), code=0)
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["scenario"], result["verdict"]) == ("replay", "sound")
    assert (result["audit"]["acknowledged"], result["audit"]["read"]) == (2, 2)
    figures = {each["name"]: each["value"] for each in result["stages"][0]["figures"]}
    assert (figures["rows in the files"], figures["rows left out"], figures["rows acknowledged"]) == (3, 1, 2)
    assert "<h1>Replay of measurements</h1>" in (tmp_path / "r.html").read_text()
    fake_api.keep = lambda device, time, data: {"temp": 39.0}
    await invoke(fake_api, (*command, *files), code=1)
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["verdict"], result["stages"][0]["figures"], result["audit"]["different"]) == (
        "loss",
        [],
        2,
    )
    assert "The audit failed" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("replay", "/nowhere.csv", "--time", "date"), "/nowhere.csv cannot be read"),
        ((*LOAD, "--password", "guess"), "401 Unauthorized: Wrong e-mail or password."),
        ((*LOAD, "--url", "http://127.0.0.1:1"), "127.0.0.1:1 cannot be reached: connection refused."),
        ((*LOAD, "--password", ""), "Give --email and --password"),
        (
            (*LOAD, "--json", "/nowhere/r.json"),
            "/nowhere/r.json cannot be written: No such file or directory.",
        ),
        (("arrays", "--per-call", "0"), "--per-call takes between 1 and 10,000 states."),
    ],
)
async def test_what_cannot_be_done_is_a_sentence(
    fake_api: Any, arguments: Sequence[str], sentence: str
) -> None:
    output = await invoke(fake_api, arguments, code=2)
    assert sentence in output
    assert "Traceback" not in output


def test_the_demo_can_be_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()
    app.command("demo")(cli.demo)
    app.add_typer(bench_app)
    output = CliRunner().invoke(app, ["demo", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "obey commands" in output
    seen: list[Any] = []

    async def run(*arguments: Any) -> int:
        seen.append(arguments)
        return 0

    monkeypatch.setattr(cli, "_demo", run)
    result = CliRunner().invoke(app, ["demo", "http://10.0.0.1:80", "--token", "t"])
    assert (result.exit_code, seen) == (0, [("http://10.0.0.1:80", "", "", "t", None)])
