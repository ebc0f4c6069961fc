"""The output of the load tools in the terminal: tables of figures and findings.

Owns text and layout. Does not own which figures may be reported (``run``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trunkline.bench.formatting import disk_lines, figure, milliseconds, share, size
from trunkline.bench.measurements import Measurements
from trunkline.bench.replay_audit import ReplayCounts
from trunkline.bench.result import Calls, Latency, Result, Stage

PIPE_COLUMNS = 150
"""The width of the tables if the output is no terminal."""


def output() -> Console:
    """Standard output; for a file or a pipe PIPE_COLUMNS wide, unless `COLUMNS` is set."""
    chosen = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if chosen else PIPE_COLUMNS)


def print_result(console: Console, result: Result) -> None:
    """Print the result of a run; figures only if the audit was clean and the generator fast enough."""
    for stage in result.stages:
        _print_stage(console, stage)
    audit = result.audit
    if result.verdict == "loss":
        console.print(
            f"[bold red]The audit failed: of {audit.acknowledged:,} acknowledged {audit.missing:,} are missing, "
            f"{audit.different:,} differ, {audit.unexpected:,} should not be there. No rate is given."
        )
        _print_findings(console, audit.examples, audit.missing + audit.different + audit.unexpected)
    else:
        console.print(f"Read back: {audit.read:,}; nothing acknowledged is missing or different.")
    if audit.unknown:
        console.print(f"Without an answer: {audit.unknown:,}, of which {audit.unknown_found:,} are stored.")
    if server := result.server:
        console.print(
            f"Server memory: {size(server.begin_bytes)} at the beginning (private {size(server.begin_private_bytes)}), "
            f"{size(server.end_bytes)} at the end (private {size(server.end_private_bytes)})."
        )
    for note in result.notes:
        console.print(escape(note))


def _print_stage(console: Console, stage: Stage) -> None:
    table = _table(stage.name)
    if stage.problem:
        table.add_row("no figures", escape(stage.problem))
        console.print(table)
        return
    for one in stage.calls:
        _add_calls(table, one, open_loop=stage.rate is not None)
    for delay in stage.delays:
        table.add_row(delay.name, _latency(delay.latency))
    for one_figure in stage.figures:
        table.add_row(one_figure.name, figure(one_figure))
    if stage.disk is not None:
        for name, text in disk_lines(stage.disk):
            table.add_row(name, text)
    generator = f"generator {share(stage.generator_cpu)} of a core"
    if stage.null_rate is not None:
        generator += f", {stage.null_rate:,.0f} calls a second against a server that does nothing"
    table.add_row("used", f"server {share(stage.server_cpu)}, {generator}")
    console.print(table)


def _add_calls(table: Table, calls: Calls, *, open_loop: bool) -> None:
    table.add_row(
        f"[bold]{escape(calls.name)}", f"{calls.acknowledged:,} acknowledged of {calls.sent:,} sent"
    )
    _add_counts(table, "refused", calls.refused)
    _add_counts(table, "failed", calls.failed)
    if calls.first_refusal:
        table.add_row("the first refusal", escape(calls.first_refusal))
    if calls.breaks:
        table.add_row("broken connections", f"{calls.breaks:,}")
    table.add_row("latency from the intended start" if open_loop else "latency", _latency(calls.latency))
    if calls.service is not None:
        table.add_row("latency from the actual start", _latency(calls.service))
    text = f"{calls.unit_rate:,.0f} {calls.unit}"
    if calls.units != calls.acknowledged:
        text += f" in {calls.rate:,.0f} calls"
    table.add_row("[bold]acknowledged a second", f"[bold]{text}")


def _latency(latency: Latency) -> str:
    values = (latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.p999_ms, latency.max_ms)
    named = zip(("p50", "p90", "p99", "p99.9", "max"), values, strict=True)
    return ", ".join(f"{name} {milliseconds(value)}" for name, value in named)


def print_measurements(console: Console, found: Measurements) -> None:
    """Print what was read from the files."""
    for note in found.notes:
        console.print(escape(note))
    for reason, count in found.skipped.most_common():
        console.print(f"{count:,} rows are left out: {escape(reason)}.")
    if found.repeated:
        console.print(
            f"{found.repeated:,} rows have the device and the time of an earlier row; the later row overwrites "
            "the values that both have, so fewer points than rows are read back."
        )


def print_replay(
    console: Console, counts: ReplayCounts, found: Measurements, *, application_id: str, created: int
) -> None:
    """Print the result of a replay."""
    table = _table("replay")
    table.add_row("application", application_id)
    table.add_row("devices", f"{len(found.series):,} ({created:,} created)")
    table.add_row("rows in the files", f"{found.rows_read:,}, left out {sum(found.skipped.values()):,}")
    table.add_row("sent", f"{counts.sent:,} rows in {counts.calls:,} calls, {counts.elapsed_s:.2f} s")
    table.add_row("acknowledged", f"{counts.acknowledged:,}")
    table.add_row("refused", f"{counts.refused:,}")
    _add_counts(table, "refused because", counts.reasons)
    table.add_row("throttled", f"{counts.throttled_calls:,} calls, all sent again")
    if counts.repeated_calls:
        table.add_row("sent again", f"{counts.repeated_calls:,} calls without an answer")
    if counts.acknowledged > counts.points:
        table.add_row(
            "same device and time", f"{counts.acknowledged - counts.points:,} rows overwrote earlier ones"
        )
    table.add_row(
        "read back",
        f"{counts.points_read:,} of {counts.points:,} points, {counts.values_equal:,} values equal",
    )
    if counts.others:
        table.add_row("of others", f"{counts.others:,} points on devices that existed before")
    console.print(table)
    if counts.equal:
        console.print("Everything acknowledged was read back equal.")
    else:
        console.print(
            f"[bold red]The read-back differs: {counts.missing:,} points missing, {counts.different:,} "
            f"different, {counts.unexpected:,} that were not sent."
        )
    _print_findings(
        console, counts.examples, counts.missing + counts.different + counts.unexpected + counts.refused
    )


def _table(title: str) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(justify="left", no_wrap=True)
    table.add_column(justify="left", overflow="fold")
    return table


def _add_counts(table: Table, title: str, counts: Mapping[str, int]) -> None:
    for reason, count in sorted(counts.items()):
        table.add_row(title, f"{count:,} x {escape(reason)}")


def _print_findings(console: Console, examples: list[str], total: int) -> None:
    for example in examples:
        console.print(escape(f"  {example}"), soft_wrap=True)
    if total > len(examples):
        console.print(f"  and {total - len(examples):,} more.")
