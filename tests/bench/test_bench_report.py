"""Reports show the same numbers everywhere, withhold misleading figures, and load no external resources."""

from __future__ import annotations

import io
import os
import re
from html.parser import HTMLParser

import msgspec
import psutil
import pytest
from rich.console import Console

from trunkline.bench import sampler
from trunkline.bench.bottleneck import generator_problem
from trunkline.bench.charts import Bar, Series, bars, lines, percentiles
from trunkline.bench.formatting import figure, milliseconds, size
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Tally
from trunkline.bench.page import page_of
from trunkline.bench.progress import ProgressBar
from trunkline.bench.report import print_result
from trunkline.bench.result import (
    AuditResult,
    Calls,
    Delay,
    Figure,
    Latency,
    Result,
    Sample,
    Server,
    Stage,
    machine,
)
from trunkline.bench.server_monitor import ServerMonitor


def recorded(*durations_s: float) -> LatencyRecorder:
    recorder = LatencyRecorder()
    for duration_s in durations_s:
        recorder.record(duration_s)
    return recorder


def stage(
    *, generator_cpu: float = 0.3, server_cpu: float | None = 0.9, null_rate: float | None = 900.0
) -> Stage:
    """A stage of 2 s with 1,000 calls that acknowledged 10,000 states, and 20 that were refused."""
    tally = Tally("arrays <of> 10", "states")
    tally.sent, tally.acknowledged, tally.units = 1020, 1000, 10_000
    tally.refused["429 TooManyRequests"] = 20
    tally.latency = recorded(*(n / 1000 for n in range(1, 1001)))
    return Stage(
        name="stage & one",
        elapsed_s=2.0,
        calls=[Calls.of(tally, 2.0)],
        delays=[Delay(name="until arrival", latency=Latency.of(recorded(0.5)))],
        figures=[Figure(name="memory", value=1_234_567, unit="bytes")],
        samples=[
            Sample(
                at_s=n / 2,
                unit_rate=5000.0 + n,
                refused_rate=10.0,
                generator_cpu=0.3,
                server_cpu=0.9,
                server_bytes=10**8,
            )
            for n in range(1, 4)
        ],
        generator_cpu=generator_cpu,
        server_cpu=server_cpu,
        null_rate=null_rate,
    )


def result(*stages: Stage, audit: Audit | None = None, **more: object) -> Result:
    given = {
        "scenario": "arrays",
        "title": "Arrays of states",
        "begun": "2026-01-01T00:00:00Z",
        "machine": machine(),
        "settings": {"devices": "1,000"},
        "stages": list(stages),
        "server": Server(
            pids=[1],
            begin_bytes=10**7,
            begin_private_bytes=10**6,
            end_bytes=2 * 10**7,
            end_private_bytes=2 * 10**6,
            peak_bytes=3 * 10**7,
        ),
        "audit": AuditResult.of(audit or Audit(acknowledged=10_000, read=10_000)),
        "verdict": "sound",
        "notes": ["A note."],
    }
    return msgspec.convert(given | more, Result)


def printed(one: Result) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    print_result(console, one)
    return " ".join(console.export_text().split())


class Checker(HTMLParser):
    """Notes every tag, and those that were not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing() -> None:
    page = page_of(result(stage()))
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert not checker.tags & {"script", "link", "img", "iframe", "object", "embed"}
    assert not checker.attributes & {"src", "href", "onload", "onclick"}
    assert not re.search(r"https?://|url\(|@import", page)
    assert "arrays &lt;of&gt; 10" in page
    assert "stage &amp; one" in page
    assert page.count("<svg") == 4


def test_page_terminal_and_json_tell_the_same() -> None:
    one = result(stage())
    text, page = printed(one), page_of(one)
    for told in ("5,000 states in 500 calls", "1.2 MB", "A note."):
        assert told in text
        assert told in page
    plain = msgspec.json.decode(msgspec.json.encode(one))
    calls = plain["stages"][0]["calls"][0]
    assert (calls["unitRate"], calls["rate"], calls["refused"]) == (5000, 500, {"429 TooManyRequests": 20})
    assert calls["latency"]["p50Ms"] == pytest.approx(500, rel=0.01)
    assert "p50 50" in text
    keys = set(re.findall(r'"(\w+)":', msgspec.json.encode(plain["stages"]).decode()))
    assert not [key for key in keys if "_" in key]


@pytest.mark.parametrize(
    ("generator_cpu", "server_cpu", "null_rate", "problem"),
    [
        (0.3, 0.99, 900.0, None),
        (0.95, 0.85, 900.0, None),
        (0.95, 0.5, 900.0, "The load generator used 95% of a core and the server 50%"),
        (0.95, None, 900.0, "the server an unknown share"),
        (0.3, None, None, None),
        (0.3, 0.99, 600.0, "510 calls a second are 85% of what the generator reaches"),
        (0.3, 0.99, 640.0, None),
    ],
)
def test_a_stage_that_measured_the_generator_is_found(
    generator_cpu: float, server_cpu: float | None, null_rate: float | None, problem: str | None
) -> None:
    found = generator_problem(stage(generator_cpu=generator_cpu, server_cpu=server_cpu, null_rate=null_rate))
    if problem is None:
        assert found is None
    else:
        assert problem in str(found)
        assert str(found).endswith("the generator was the bottleneck.")


def test_what_is_withheld_is_told_nowhere() -> None:
    audit = Audit(acknowledged=10_000, read=9_999, missing=1, examples=["missing: <device> 7"])
    lost = result(stage().withheld("Lost."), audit=audit, verdict="loss")
    slow = result(stage().withheld("The generator was the bottleneck."), verdict="generatorBound")
    for one, reason in ((lost, "1 are missing"), (slow, "The generator was the bottleneck.")):
        for text in (printed(one), page_of(one), msgspec.json.encode(one).decode()):
            assert "5,000" not in text
            assert "5000" not in text
            assert "p50" not in text.replace('"p50"', "")
        assert reason in printed(one)
        assert reason in page_of(one)
    assert "missing: &lt;device&gt; 7" in page_of(lost)


def test_charts_keep_their_marks_inside() -> None:
    series = [Series("a", [(0.0, 0.0), (3.0, 17.0)]), Series("b", [(0.0, 4.0)])]
    drawings = [
        lines(series, x_label="s", y_format="{:g}".format),
        lines([], x_label="s", y_format="{:g}".format),
        percentiles([Series("c", [(0.0, 0.0), (50.0, 0.4), (100.0, 1234.0)])], y_format=milliseconds),
        percentiles([Series("flat", [(0.0, 1.0), (100.0, 1.0)])], y_format=milliseconds),
    ]
    for drawing in drawings:
        for x, y in re.findall(r"([-\d.]+),([-\d.]+)(?=[ \"])", drawing):
            assert 0 <= float(x) <= 720
            assert 0 <= float(y) <= 260
    assert bars([Bar("one", 5.0, "five", 0), Bar("none", 0.0, "nothing", 5)]).count("<rect") == 2
    assert bars([]).startswith("<svg")


def test_numbers_as_text() -> None:
    assert [milliseconds(value) for value in (0.0123, 4.5678, 123.4, 9_999, 12_345)] == [
        "0.0123 ms",
        "4.57 ms",
        "123 ms",
        "9,999 ms",
        "12.3 s",
    ]
    assert [size(value) for value in (0, 999, 1_234_567, 2.5e12, -1500)] == [
        "0 bytes",
        "999 bytes",
        "1.2 MB",
        "2.5 TB",
        "-1.5 kB",
    ]
    assert figure(Figure(name="n", value=1234.4, unit="a second")) == "1,234 a second"
    assert figure(Figure(name="n", value=0.25, unit="s")) == "250 ms"


def test_a_process_is_watched_with_those_that_it_started() -> None:
    monitor = ServerMonitor([os.getpid()])
    usage = monitor.usage()
    assert os.getpid() in monitor.pids
    assert usage.cpu_s > 0
    assert 0 < usage.private_bytes <= usage.bytes <= monitor.peak_bytes
    assert usage.bytes <= psutil.virtual_memory().total


def test_a_tick_right_after_the_beginning_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rate would be 0 and its generator at 100 %, as if the generator were the bottleneck."""
    now_s = 100.0
    monkeypatch.setattr(sampler, "clock", lambda: now_s)
    tally = Tally("states")
    sampled = sampler.Sampler([tally], None, ProgressBar(), 10.0)
    for later_s, units in ((0.0005, 0), (0.5, 5000), (0.5, 5000)):
        now_s += later_s
        tally.units += units
        sampled.tick()
    rates = [(round(each.at_s, 4), round(each.unit_rate)) for each in sampled.samples]
    assert rates == [(0.5005, 9990), (1.0005, 10_000)]
