"""A report as a mail: an HTML part with the pictures attached to it, and a text part with the same numbers.

Everything that comes from data is escaped, and nothing is loaded from an address. Numbers and dates are written as the
locale of the reader demands (Babel), times in the reader's zone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage
from html import escape
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_datetime
from babel.numbers import format_percent

from trunkline.actors.core.outgoing.mail_head import head
from trunkline.actors.core.outgoing.mail_policy import MAIL_POLICY
from trunkline.actors.presentation.dashboards.report import (
    Address,
    Cell,
    Chart,
    Moment,
    Paragraph,
    Part,
    Places,
    Report,
    Section,
    Share,
    Status,
    Table,
    Value,
)
from trunkline.actors.presentation.dashboards.report_numbers import number_text

_CELL_LENGTH_MAX: Final = 300
_CID: Final = "chart-{}@trunkline"


class _Colors(NamedTuple):
    ink: str
    paper: str
    faint: str
    line: str
    problem: str


_COLORS: Final = {
    "light": _Colors("#22282f", "#ffffff", "#6b7480", "#dfe3e8", "#b3372f"),
    "dark": _Colors("#e3e7ec", "#1d232b", "#98a2ae", "#39424e", "#f08a80"),
}


def report_mail(report: Report, subject: str, pictures: list[bytes | None]) -> bytes:
    """The mail without its addressees. `pictures` are those of `report.charts`; None and missing ones are left out."""
    writer = _Writer(report, pictures)
    message = EmailMessage(policy=MAIL_POLICY)
    message.set_content(writer.text())
    message.add_alternative(writer.html(), subtype="html")
    html = message.get_payload()[1]  # type: ignore[index]
    for number, picture in writer.shown.items():
        html.add_related(  # type: ignore[union-attr]
            picture,
            "image",
            "png",
            cid=f"<{_CID.format(number)}>",
            filename=f"chart-{number + 1}.png",
            disposition="inline",
        )
    return head([("Subject", subject)]) + message.as_bytes()


class _Writer:
    """Writes one report."""

    def __init__(self, report: Report, pictures: list[bytes | None]) -> None:
        self.report = report
        self.shown = {number: each for number, each in enumerate(pictures) if each is not None}
        self._numbers = {id(chart): number for number, chart in enumerate(report.charts)}
        self._locale = Locale.parse(report.locale.replace("-", "_"))
        self._zone = ZoneInfo(report.timezone)
        self._colors = _COLORS[report.theme]

    # Cells.

    def cell(self, value: Cell) -> str:
        """A cell as text."""
        if value is None:
            return "–"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Moment):
            return self.time(value)
        if isinstance(value, Share):
            return format_percent(round(value.value, 4), locale=self._locale, decimal_quantization=False)
        if isinstance(value, int | float):
            return number_text(value, self._locale)
        text = " ".join(str(value).replace("\x00", "").split())
        return text if len(text) <= _CELL_LENGTH_MAX else text[: _CELL_LENGTH_MAX - 1] + "…"

    def time(self, moment: Moment) -> str:
        """A time in the zone of the reader."""
        at = datetime.fromtimestamp(moment.ms / 1000, UTC).astimezone(self._zone)
        return str(format_datetime(at, "medium", tzinfo=self._zone, locale=self._locale))

    def heading(self) -> str:
        """The moment of the report."""
        return f"{self.time(self.report.at)} ({self.report.timezone})"

    def more(self, table: Table) -> str:
        """How many rows are left out."""
        left = table.total - len(table.rows)
        return f"{self.cell(left)} more" if left > 0 else ""

    # The text part.

    def text(self) -> str:
        """The report as plain text."""
        report = self.report
        lines = [report.title, "=" * min(len(report.title), 78), self.heading(), ""]
        if report.message:
            lines += [report.message, ""]
        for section in report.sections:
            lines += self._text_of(section)
        return "\n".join(line.rstrip().replace("\r", "") for line in lines) + "\n"

    def _text_of(self, section: Section) -> list[str]:
        lines = []
        if section.title:
            lines += [section.title, "-" * min(len(section.title), 78)]
        if section.description:
            lines += [section.description]
        for part in section.parts:
            lines += self._text_part(part)
        return [*lines, ""]

    def _text_part(self, part: Part) -> list[str]:
        if isinstance(part, Paragraph):
            return [part.text.replace("\x00", "")]
        if isinstance(part, Address | Status):
            return [part.text] if part.text else []
        if isinstance(part, Value):
            at = "" if part.at is None else f"  ({self.time(part.at)})"
            return [f"{self.cell(part.label)}: {self._value(part)}{at}"]
        if isinstance(part, Chart | Places):
            return []
        rows = [tuple(map(self.cell, row)) for row in (part.columns, *part.rows)]
        widths = [min(40, max(len(row[column]) for row in rows)) for column in range(len(part.columns))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows
        ]
        return [lines[0], "  ".join("-" * width for width in widths), *lines[1:], self.more(part)]

    def _value(self, part: Value) -> str:
        return f"{self.cell(part.value)} {part.unit}".rstrip()

    # The HTML part.

    def html(self) -> str:
        """The report as HTML, with all styles inline, because programs for mail ignore others."""
        report, colors = self.report, self._colors
        parts = [
            f'<h1 style="font-size:22px;margin:0 0 4px">{escape(self.cell(report.title))}</h1>',
            f'<p style="margin:0 0 16px;color:{colors.faint}">{escape(self.heading())}</p>',
        ]
        if report.message:
            parts.append(_paragraph(report.message))
        parts += [self._html_of(section) for section in report.sections]
        language = self._locale.language
        return (
            f'<!DOCTYPE html><html lang="{escape(language)}"><head><meta charset="utf-8">'
            f'<meta name="color-scheme" content="{report.theme}"><title>{escape(report.title)}</title></head>'
            f'<body style="margin:0;padding:0;background:{colors.paper}">'
            f'<div style="max-width:680px;margin:0 auto;padding:24px 20px;background:{colors.paper};'
            f'color:{colors.ink};font:14px/1.45 -apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif">'
            + "".join(parts)
            + "</div></body></html>"
        )

    def _html_of(self, section: Section) -> str:
        colors = self._colors
        inner = []
        if section.title:
            inner.append(f'<h2 style="font-size:16px;margin:0 0 6px">{escape(self.cell(section.title))}</h2>')
        if section.description:
            inner.append(f'<div style="color:{colors.faint}">{_paragraph(section.description)}</div>')
        inner += [self._html_part(part) for part in section.parts]
        return f'<div style="border-top:1px solid {colors.line};padding:16px 0">{"".join(inner)}</div>'

    def _html_part(self, part: Part) -> str:
        colors = self._colors
        if isinstance(part, Paragraph):
            style = f' style="color:{colors.problem}"' if part.is_problem else ""
            return f"<div{style}>{_paragraph(part.text)}</div>"
        if isinstance(part, Address | Status):
            return f"<div>{_paragraph(part.text)}</div>"
        if isinstance(part, Value):
            at = "" if part.at is None else f"<br>{escape(self.time(part.at))}"
            return (
                f'<p style="margin:4px 0"><span style="font-size:24px">{escape(self._value(part))}</span> '
                f'<span style="color:{colors.faint}">{escape(self.cell(part.label))}{at}</span></p>'
            )
        if isinstance(part, Places):
            return ""
        if isinstance(part, Chart):
            return self._html_chart(part)
        return self._html_table(part)

    def _html_chart(self, chart: Chart) -> str:
        number = self._numbers[id(chart)]
        if number not in self.shown:
            return ""
        alt = escape(", ".join(self.cell(line.label) for line in chart.lines)[:_CELL_LENGTH_MAX])
        return (
            f'<img src="cid:{_CID.format(number)}" alt="{alt}" width="640" '
            f'style="display:block;width:100%;max-width:640px;height:auto;margin:4px 0">'
        )

    def _html_table(self, table: Table) -> str:
        colors = self._colors
        head = "".join(
            f'<th style="text-align:left;padding:4px 12px 4px 0;color:{colors.faint};font-weight:normal">'
            f"{escape(self.cell(name))}</th>"
            for name in table.columns
        )
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="padding:4px 12px 4px 0;border-top:1px solid {colors.line};vertical-align:top">'
                f"{escape(self.cell(value))}</td>"
                for value in row
            )
            + "</tr>"
            for row in table.rows
        )
        more = self.more(table)
        left = f'<p style="margin:4px 0;color:{colors.faint}">{escape(more)}</p>' if more else ""
        return f'<table style="border-collapse:collapse;font-size:13px"><tr>{head}</tr>{body}</table>{left}'


def _paragraph(text: str) -> str:
    """A text with its line breaks."""
    lines = escape(text.replace("\x00", "")).splitlines()
    return f'<p style="margin:0 0 8px">{"<br>".join(lines)}</p>'
