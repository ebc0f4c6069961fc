"""The figures of a quiet tenant beside the attacks: as tables for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from trunkline.bench.neighbours.attacks import ATTACKS
from trunkline.bench.neighbours.cell import P99_MS_MAX, RATIO_MAX, Beside, Spread

NAMES: dict[Spread, str] = {
    "one": "one application",
    "thirty": "thirty applications of one owner",
    "owners": "thirty owners",
}


class Report(msgspec.Struct, kw_only=True, rename="camel"):
    """All measurements of a run."""

    begun: str
    machine: dict[str, str]
    server: str
    seconds: float
    measured: list[Beside]

    @property
    def passed(self) -> bool:
        """Whether the quiet tenant was neither slowed down too much nor refused, beside each attack."""
        return all(one.passed for one in self.measured)


def print_report(console: Console, report: Report) -> None:
    """A table for each way in which the attacks are spread, and the verdict."""
    for spread, title in NAMES.items():
        if found := [one for one in report.measured if one.spread == spread]:
            console.print(_table(title, found))
    for one in report.measured:
        where = f"{one.attack}, {NAMES[one.spread]}"
        for kind, errors in one.errors().items():
            console.print(f"{where}: {kind} of the quiet tenant had errors: {_counts(errors)}.")
        if not one.answers.ran:
            console.print(
                f"{where}: the attack did nothing. {_counts(one.answers.counts)} {one.answers.refusals}"
            )
    slow = sum(bool(one.slow()) for one in report.measured)
    failed = sum(bool(one.errors()) for one in report.measured)
    console.print(
        f"Beside {len(report.measured)} attacks the quiet tenant had errors in {failed}, and in {slow} a p99 above "
        f"{P99_MS_MAX:g} ms and {RATIO_MAX:g} times its own alone."
    )


def outcome(found: Beside) -> str:
    """One measurement in a few words."""
    slowest = max(found.beside, key=lambda kind: found.beside[kind].p99_ms / found.bound_ms(kind))
    errors = sum(sum(each.values()) for each in found.errors().values())
    verdict = "passed" if found.passed else "FAILED"
    return f"{verdict}: {slowest} p99 {found.beside[slowest].p99_ms:,.0f} ms, {errors} errors"


def _table(title: str, found: Sequence[Beside]) -> Table:
    table = Table(title=f"p99 in ms beside attacks from {title} (alone); ! is too slow", title_justify="left")
    table.add_column("attack")
    kinds = list(found[0].beside)
    for kind in kinds:
        table.add_column(kind, justify="right")
    table.add_column("errors", justify="right")
    table.add_column("answers of the attack")
    for one in found:
        slow = one.slow()
        cells = [
            f"{one.beside[kind].p99_ms:,.0f} ({one.alone[kind].p99_ms:,.0f}){'!' if kind in slow else ''}"
            for kind in kinds
        ]
        errors = sum(sum(each.values()) for each in one.errors().values())
        table.add_row(one.attack, *cells, str(errors), _counts(one.answers.counts))
    return table


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def described() -> str:
    """The attacks, a line for each."""
    return "\n".join(f"{attack.name}: {attack.about}" for attack in ATTACKS)
