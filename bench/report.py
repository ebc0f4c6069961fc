"""What the load tools print: tables of figures, findings, and progress that disturbs no measurement.

Owns the words and the layout. A rate is printed only by ``print_figures``, which is called after a clean
audit.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trunkline.bench.comparison import Account
from trunkline.bench.ledger import Audit
from trunkline.bench.measurements import Measurements
from trunkline.bench.state import Figures

BUSY_SHARE = 0.9
"""Share of a core: above it the load generator itself may be what limits the rate."""


def print_figures(console: Console, figures: Figures, found: Audit) -> None:
    """The result of a state load whose audit was clean."""
    table = _table("state posts")
    table.add_row("devices / connections", f"{figures.devices:,} / {figures.connections:,}")
    table.add_row(
        "acknowledged", f"{figures.acknowledged:,} of {figures.sent:,} sent in {figures.elapsed_s:.2f} s"
    )
    _add_counts(table, "refused", figures.refused)
    _add_counts(table, "failed", figures.failed)
    if figures.breaks:
        table.add_row("broken connections", f"{figures.breaks:,}")
    table.add_row("read back", f"{found.read:,} states; nothing acknowledged is missing or different")
    if found.unknown:
        table.add_row(
            "unknown", f"{found.unknown:,} without an answer, of which {found.unknown_found:,} are stored"
        )
    table.add_row("load generator", f"{figures.client_cpu_share:.0%} of one core")
    table.add_row(
        "p50 / p99 / max",
        " / ".join(f"{s * 1000:.2f} ms" for s in (figures.p50_s, figures.p99_s, figures.max_s)),
    )
    table.add_row("[bold]acknowledged a second", f"[bold]{figures.rate:,.0f}")
    console.print(table)
    if figures.client_cpu_share > BUSY_SHARE:
        console.print("The load generator was busy all the time: the server may be faster than this figure.")
    if any(reason.startswith("429") for reason in figures.refused):
        console.print(
            "The server throttles each device; with more devices, or with --limits off, it takes more."
        )


def print_loss(console: Console, found: Audit) -> None:
    """What a failed audit found; no rate."""
    console.print(
        f"[bold red]The audit failed: of {found.acknowledged:,} acknowledged states {found.missing:,} are "
        f"missing; {found.different:,} of those read differ; {found.unexpected:,} are stored that should not "
        "be. No rate is given."
    )
    _print_findings(console, found.examples, found.missing + found.different + found.unexpected)


def print_measurements(console: Console, found: Measurements) -> None:
    """What was read from the files."""
    for note in found.notes:
        console.print(escape(note))
    for reason, count in found.skipped.most_common():
        console.print(f"{count:,} rows are left out: {escape(reason)}.")
    if found.repeated:
        console.print(
            f"{found.repeated:,} rows have the device and the time of an earlier row; the later overwrites "
            "the values that both carry, so that fewer points than rows are read back."
        )


def print_account(
    console: Console, account: Account, found: Measurements, *, application_id: str, created: int
) -> None:
    """The result of a replay."""
    table = _table("replay")
    table.add_row("application", application_id)
    table.add_row("devices", f"{len(found.series):,} ({created:,} created)")
    table.add_row("rows in the files", f"{found.rows_read:,}, left out {sum(found.skipped.values()):,}")
    table.add_row("sent", f"{account.sent:,} rows in {account.calls:,} calls, {account.elapsed_s:.2f} s")
    table.add_row("acknowledged", f"{account.acknowledged:,}")
    table.add_row("refused", f"{account.refused:,}")
    _add_counts(table, "refused because", account.reasons)
    table.add_row("told to wait", f"{account.throttled_calls:,} calls (throttle), all sent again")
    if account.repeated_calls:
        table.add_row("sent again", f"{account.repeated_calls:,} calls without an answer")
    if account.acknowledged > account.points:
        table.add_row(
            "same device and time", f"{account.acknowledged - account.points:,} rows overwrote earlier ones"
        )
    table.add_row(
        "read back",
        f"{account.points_read:,} of {account.points:,} points, {account.values_equal:,} values equal",
    )
    if account.others:
        table.add_row("of others", f"{account.others:,} points on devices that existed before")
    console.print(table)
    if account.equal:
        console.print("Everything acknowledged was read back equal.")
    else:
        console.print(
            f"[bold red]The read-back differs: {account.missing:,} points missing, {account.different:,} "
            f"different, {account.unexpected:,} that were not sent."
        )
    _print_findings(
        console, account.examples, account.missing + account.different + account.unexpected + account.refused
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
