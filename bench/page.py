"""The report as one HTML file: tables and inline charts, without scripts and external resources.

Owns the layout of a page. Does not own the numbers (``result``) or the charts (``charts``).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from trunkline.bench.charts import Series, lines, percentiles
from trunkline.bench.formatting import disk_lines, figure, milliseconds, share, size
from trunkline.bench.result import Calls, Latency, Result, Stage

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #66707e; --rule: #d9dee5; --paper: #fff; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --dim: #98a2b0; --rule: #36404e; --paper: #151a21; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin-bottom: 0; }
table { border-collapse: collapse; margin: .8rem 0; } td, th { padding: .2rem .8rem .2rem 0; text-align: left;
  border-bottom: 1px solid var(--rule); font-variant-numeric: tabular-nums; vertical-align: top; }
th { font-weight: 600; } .bad { color: var(--bad); font-weight: 600; } .dim { color: var(--dim); }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; } svg text { fill: var(--dim); }
svg text.label { fill: var(--ink); } .grid { stroke: var(--rule); } .line { fill: none; stroke-width: 1.8; }
.legend span { margin-right: 1.2rem; } .legend i { display: inline-block; width: .8rem; height: .8rem;
  border-radius: 2px; margin-right: .35rem; vertical-align: -1px; }
"""
_PALETTE = ("#2f6fde", "#e07b00", "#1d9a6c", "#b4449c", "#7a6ff0", "#8a8f98")
_COLOURS = "".join(
    f"rect.c{n} {{ fill: {colour}; }} .line.c{n} {{ stroke: {colour}; }} i.c{n} {{ background: {colour}; }}\n"
    for n, colour in enumerate(_PALETTE)
)
LATENCY_HEADINGS = ("p50", "p90", "p99", "p99.9", "max")


def page_of(result: Result) -> str:
    """The page of one run."""
    parts = [f"<h1>{escape(result.title)}</h1>", f'<p class="dim">{escape(result.begun)}</p>']
    parts.append(_verdict(result))
    parts += (_stage(stage) for stage in result.stages)
    if server := result.server:
        parts.append("<h2>The server's memory</h2>")
        parts.append(
            table(
                ("", "resident", "of it private"),
                [
                    ("at the beginning", size(server.begin_bytes), size(server.begin_private_bytes)),
                    ("at the end", size(server.end_bytes), size(server.end_private_bytes)),
                    ("at most", size(server.peak_bytes), ""),
                ],
            )
        )
    parts.append("<h2>The run</h2>" + table((), list({**result.settings, **result.machine}.items())))
    parts += (f"<p>{escape(note)}</p>" for note in result.notes)
    return document(result.title, "".join(parts))


def document(title: str, body: str) -> str:
    """A complete HTML page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}{_COLOURS}</style></head><body>{body}</body></html>\n"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; all cells are text."""
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join("<tr>" + "".join(f"<td>{_cell(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _cell(text: str) -> str:
    # A number and its unit stay on one line.
    return escape(text).replace(" ms", "&nbsp;ms")


def latency_row(latency: Latency) -> list[str]:
    """The cells under LATENCY_HEADINGS."""
    values = (latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.p999_ms, latency.max_ms)
    return [milliseconds(value) for value in values]


def _verdict(result: Result) -> str:
    audit = result.audit
    if result.verdict == "loss":
        examples = "".join(f"<li>{escape(example)}</li>" for example in audit.examples)
        return (
            f'<p class="bad">The audit failed: of {audit.acknowledged:,} acknowledged {audit.missing:,} are missing, '
            f"{audit.different:,} differ, {audit.unexpected:,} should not be there. No figure is given.</p>"
            f"<ul>{examples}</ul>"
        )
    unknown = f", {audit.unknown:,} without an answer" if audit.unknown else ""
    return (
        f"<p>The audit read {audit.read:,} back{unknown}: nothing acknowledged is missing or different "
        f"({audit.acknowledged:,} acknowledged).</p>"
    )


def _stage(stage: Stage) -> str:
    parts = [f"<h2>{escape(stage.name)}</h2>"]
    if stage.problem:
        return parts[0] + f'<p class="bad">{escape(stage.problem)} No figure is given.</p>'
    if stage.calls:
        of_calls = ("", "acknowledged", "a second", "refused", *LATENCY_HEADINGS)
        parts.append(table(of_calls, [_calls_row(one) for one in stage.calls]))
    distributions = [(one.name, one.latency) for one in stage.delays]
    if distributions:
        of_delays = ("", "count", *LATENCY_HEADINGS)
        rows = [(name, f"{latency.count:,}", *latency_row(latency)) for name, latency in distributions]
        parts.append(table(of_delays, rows))
    loop = f"open loop, {stage.rate:,.0f} calls a second wanted" if stage.rate else "closed loop"
    null = f", {stage.null_rate:,.0f} calls a second against a null server" if stage.null_rate else ""
    facts = [(one.name, figure(one)) for one in stage.figures]
    if stage.disk is not None:
        facts += disk_lines(stage.disk)
    facts.append(
        ("processor", f"server {share(stage.server_cpu)}, generator {share(stage.generator_cpu)} of a core")
    )
    facts.append(("load", f"{loop}, {stage.elapsed_s:.2f} s{null}"))
    parts.append(table((), facts))
    parts.append(_charts(stage))
    return "".join(parts)


def _calls_row(calls: Calls) -> list[str]:
    rate = f"{calls.unit_rate:,.0f} {calls.unit}"
    if calls.units != calls.acknowledged:
        rate += f" in {calls.rate:,.0f} calls"
    refused = sum(calls.refused.values()) + sum(calls.failed.values())
    return [calls.name, f"{calls.acknowledged:,}", rate, f"{refused:,}", *latency_row(calls.latency)]


def _charts(stage: Stage) -> str:
    parts = []
    samples = stage.samples
    if len(samples) > 1:
        series = [Series("acknowledged a second", [(one.at_s, one.unit_rate) for one in samples])]
        if any(one.refused_rate for one in samples):
            series.append(Series("refused a second", [(one.at_s, one.refused_rate) for one in samples]))
        parts.append("<h3>Over time</h3>" + lines(series, x_label="seconds", y_format="{:,.0f}".format))
        cores = [Series("generator", [(one.at_s, one.generator_cpu) for one in samples])]
        if served := [(one.at_s, one.server_cpu) for one in samples if one.server_cpu is not None]:
            cores.append(Series("server", served))
        parts.append("<h3>Share of a core</h3>" + lines(cores, x_label="seconds", y_format="{:.0%}".format))
        if memory := [(one.at_s, float(one.server_bytes)) for one in samples if one.server_bytes is not None]:
            parts.append(
                "<h3>Server memory</h3>"
                + lines([Series("resident", memory)], x_label="seconds", y_format=size)
            )
    curves = [(one.name, one.latency.curve) for one in stage.calls]
    curves += [
        (f"{one.name}, from its actual start", one.service.curve) for one in stage.calls if one.service
    ]
    curves += [(one.name, one.latency.curve) for one in stage.delays]
    drawn = [Series(name, curve) for name, curve in curves if curve]
    if drawn:
        parts.append("<h3>Latency by percentile</h3>" + percentiles(drawn, y_format=milliseconds))
    return "".join(parts)
