"""The comparison in the terminal and on a page: figures side by side, and what each answer guarantees."""

from __future__ import annotations

import statistics
from html import escape

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table

from tests.bench.peers.comparison import ComparisonResult, Entry, Turn
from tests.bench.peers.series import SERIES
from trunkline.bench.charts import Bar, bars
from trunkline.bench.formatting import (
    disk_bytes,
    disk_flushes,
    disk_lines,
    disk_writes,
    milliseconds,
    share,
)
from trunkline.bench.page import document, table

_HEADINGS = (
    *("", "on disk first", "states a second", "Trunkline : peer", "p50", "p99", "server", "generator"),
    *("device: bytes a state", "writes", "flushes"),
)
_SERIES_HEADINGS = ("", "points a second", "Trunkline : peer", "median", "slowest")

_OWN, _DURABLE, _NOT_DURABLE = 0, 1, 5
"""Colours of the page."""


def print_comparison(console: Console, result: ComparisonResult) -> None:
    """Print the figures by load, then a description of each peer."""
    for work in _works(result):
        shown = Table(title=work, title_justify="left")
        for number, heading in enumerate(_HEADINGS):
            # In a narrow terminal a cell is wrapped, so that no figure is truncated.
            shown.add_column(heading, justify="right" if number else "left", overflow="fold")
        for entry, turn in _turns(result, work):
            shown.add_row(plain(entry.name), *_cells(entry, turn))
        console.print(shown)
    shown = Table(title=SERIES, title_justify="left")
    for number, heading in enumerate(_SERIES_HEADINGS):
        shown.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in _series_rows(result):
        shown.add_row(*map(plain, row))
    if shown.row_count:
        console.print(shown)
    for entry in result.entries:
        console.print(
            f"[bold]{plain(entry.name)}[/]: {plain(_about(entry))}", soft_wrap=True, highlight=False
        )


def page_of_comparison(result: ComparisonResult) -> str:
    """The page of a comparison."""
    title = "Trunkline compared with alternatives"
    parts = [f"<h1>{title}</h1>", f'<p class="dim">{escape(result.begun)}</p>']
    for work in _works(result):
        turns = _turns(result, work)
        parts.append(f"<h2>{escape(work)}: states a second</h2>")
        parts.append(bars([_bar(entry, turn) for entry, turn in turns if turn.stage.calls]))
        parts.append('<p class="dim">Grey: acknowledged before it is on disk.</p>')
        parts.append(table(_HEADINGS, [[entry.name, *_cells(entry, turn)] for entry, turn in turns]))
    if rows := _series_rows(result):
        parts.append(f"<h2>{escape(SERIES)}</h2>" + table(_SERIES_HEADINGS, rows))
    parts.append("<h2>Versions and guarantees</h2>")
    parts.append(table((), [[entry.name, _about(entry)] for entry in result.entries]))
    parts.append("<h2>The run</h2>" + table((), list({**result.settings, **result.machine}.items())))
    return document(title, "".join(parts))


def _works(result: ComparisonResult) -> list[str]:
    return list(dict.fromkeys(turn.work for entry in result.entries for turn in entry.turns))


def _turns(result: ComparisonResult, work: str) -> list[tuple[Entry, Turn]]:
    return [(entry, turn) for entry in result.entries for turn in entry.turns if turn.work == work]


def _bar(entry: Entry, turn: Turn) -> Bar:
    rate = turn.stage.calls[0].unit_rate
    colour = _OWN if turn.ratio is None else _DURABLE if entry.durable else _NOT_DURABLE
    return Bar(entry.name, rate, f"{rate:,.0f}", colour)


def _cells(entry: Entry, turn: Turn) -> list[str]:
    stage, durable = turn.stage, "yes" if entry.durable else "no"
    used = [share(stage.server_cpu), share(stage.generator_cpu)]
    disk = stage.disk
    used += [disk_bytes(disk), disk_writes(disk), disk_flushes(disk)] if disk else ["not available", "", ""]
    if not stage.calls:
        return [durable, "no figure", "", "", "", *used]
    (calls,) = stage.calls
    rate = f"{calls.unit_rate:,.0f}"
    if len(turn.rates) > 1:
        rate += f" ({min(turn.rates):,.0f} to {max(turn.rates):,.0f})"
    ratio = "" if turn.ratio is None else f"{turn.ratio:.2g} : 1"
    latency = calls.latency
    return [durable, rate, ratio, milliseconds(latency.p50_ms), milliseconds(latency.p99_ms), *used]


def _series_rows(result: ComparisonResult) -> list[list[str]]:
    rows = []
    for entry in result.entries:
        if (turn := entry.series) is not None:
            ratio = "" if turn.ratio is None else f"{turn.ratio:.2g} : 1"
            times = (statistics.median(turn.seconds), max(turn.seconds))
            shown = [milliseconds(seconds * 1000) for seconds in times]
            rows.append([entry.name, f"{turn.points_a_second:,.0f}", ratio, *shown])
    return rows


def _about(entry: Entry) -> str:
    if entry.problem is not None:
        return entry.problem
    sentences = [
        f"{entry.version}. Durability: {entry.durability}. It keeps {entry.keeps}; in this run {entry.kept}."
    ]
    sentences += [f"{turn.work}: {turn.stage.problem}" for turn in entry.turns if turn.stage.problem]
    for turn in entry.turns:
        if turn.stage.disk is not None:
            lines = "; ".join(f"{name}: {text}" for name, text in disk_lines(turn.stage.disk)[1:])
            sentences.append(f"{turn.work}: {lines}.")
    return " ".join(sentences)
