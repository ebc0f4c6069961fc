"""The pictures of a report, drawn by matplotlib in a process of its own.

Drawing holds the interpreter for tenths of a second, and the library takes some 100 MB: both would be felt by the
server. So this module is also a program, started for each report: it reads one JSON array of charts, and writes one
JSON array of pictures (PNG in base64, null for one that could not be drawn). It is ended after `report_draw_s`, and its
address space is bounded by `report_draw_bytes`.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
import structlog
import trio

from trunkline.actors.presentation.dashboards.report import COLORS, Chart, Report
from trunkline.limits.table import Limits

_PROGRAM: Final = "trunkline.actors.presentation.dashboards.report_charts"
_WIDTH_IN: Final = 6.4
_HEIGHTS_IN: Final = {"gauge": 1.2}
_HEIGHT_IN: Final = 3.2
_DPI: Final = 150
"""Pictures are shown 640 points wide; screens with small pixels show 960."""

_log = structlog.get_logger("trunkline.reports")


class _Order(msgspec.Struct):
    """What the program reads."""

    charts: list[Chart]
    timezone: str
    locale: str
    theme: str


async def draw(report: Report, limits: Limits) -> list[bytes | None]:
    """Draw the charts of a report as PNG, at most `report_charts_max` of them; None where that failed.

    The report is sent without pictures if the process fails: all numbers are in its texts.
    """
    charts = report.charts[: limits.report_charts_max]
    if not charts:
        return []
    order = msgspec.json.encode(_Order(charts, report.timezone, report.locale, report.theme))
    command = [sys.executable, "-m", _PROGRAM, str(limits.report_draw_bytes)]
    with tempfile.TemporaryDirectory(prefix="trunkline-charts-") as scratch:
        environment = {**os.environ, "MPLCONFIGDIR": scratch, "OPENBLAS_NUM_THREADS": "1"}
        with trio.move_on_after(limits.report_draw_s) as timeout:
            done = await trio.run_process(
                command, stdin=order, capture_stdout=True, capture_stderr=True, check=False, env=environment
            )
    if timeout.cancelled_caught or done.returncode != 0:
        reason = "it took too long" if timeout.cancelled_caught else _last_line(done)
        _log.warning("charts of a report not drawn", reason=reason, charts=len(charts))
        return [None] * len(charts)
    pictures = msgspec.json.decode(done.stdout, type=list[str | None])
    return [None if each is None else base64.b64decode(each) for each in pictures]


def _last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or b"").decode("utf-8", "replace").strip().splitlines()
    return f"exit code {done.returncode}: {lines[-1][:200] if lines else ''}"


# The program.


def _main(address_space_bytes: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # a stricter limit of the system holds already
        resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes, address_space_bytes))
    import matplotlib as mpl

    mpl.use("Agg")
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=_Order)
    pictures: list[str | None] = []
    for chart in order.charts:
        try:
            pictures.append(base64.b64encode(_picture(chart, order)).decode())
        except Exception as error:  # noqa: BLE001 - the other pictures are still of use
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            pictures.append(None)
    sys.stdout.buffer.write(msgspec.json.encode(pictures))


def _picture(chart: Chart, order: _Order) -> bytes:
    from matplotlib.figure import Figure

    dark = order.theme == "dark"
    ink, paper, grid = ("#d7dce2", "#1d232b", "#39424e") if dark else ("#333a42", "#ffffff", "#e3e6ea")
    height = _HEIGHTS_IN.get(chart.type, _HEIGHT_IN)
    figure = Figure(figsize=(_WIDTH_IN, height), dpi=_DPI, facecolor=paper, layout="constrained")
    axes: Any = figure.add_subplot(facecolor=paper)
    axes.tick_params(colors=ink, labelsize=8)
    for spine in axes.spines.values():
        spine.set_color(grid)
    axes.grid(color=grid, linewidth=0.6)
    axes.set_axisbelow(True)
    drawers = {
        "graph": _draw_graph,
        "timeline": _draw_timeline,
        "bar": _draw_bars,
        "pie": _draw_pie,
        "gauge": _draw_gauge,
        "map": _draw_places,
        "plane": _draw_places,
    }
    drawers[chart.type](axes, chart, order, ink)
    if chart.type in ("graph", "bar"):
        axes.yaxis.set_major_formatter(_number_format(order.locale))
    elif chart.type == "gauge":
        axes.xaxis.set_major_formatter(_number_format(order.locale))
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor=paper)
    return file.getvalue()


def _draw_graph(axes: Any, chart: Chart, order: _Order, ink: str) -> None:
    from matplotlib import dates

    zone = ZoneInfo(order.timezone)
    for line in chart.lines:
        if not line.points:
            continue
        times = [datetime.fromtimestamp(ms / 1000, UTC) for ms, _ in line.points]
        values = [value for _, value in line.points]
        options = {"color": _color(line.color), "label": _plain(line.label)}
        if line.style == "bar":
            width = (times[-1] - times[0]) / max(len(times), 1) * 0.8
            axes.bar(times, values, width=width, **options)
        else:
            style = "steps-post" if line.style == "step" else "default"
            marker = "o" if len(times) == 1 else None
            axes.plot(
                times, values, linewidth=max(line.weight, 0.5), drawstyle=style, marker=marker, **options
            )
            if line.style == "area":
                axes.fill_between(times, values, alpha=0.2, color=options["color"])
    _draw_marks(axes, chart, ink)
    _set_bounds(axes, chart)
    if chart.span is not None:
        axes.set_xlim(*(datetime.fromtimestamp(ms / 1000, UTC) for ms in chart.span))
    locate: Any = dates.AutoDateLocator
    concise: Any = dates.ConciseDateFormatter
    locator = locate(tz=zone)
    axes.xaxis.set_major_locator(locator)
    # Digits only: the names of months would be in one language.
    days = ["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%S.%f"]
    whole = ["", "%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d %H:%M"]
    axes.xaxis.set_major_formatter(
        concise(locator, tz=zone, formats=days, zero_formats=["", *days[:-1]], offset_formats=whole)
    )
    _add_legend(axes, len(chart.lines), ink)


def _draw_timeline(axes: Any, chart: Chart, order: _Order, ink: str) -> None:
    from matplotlib import dates

    assert chart.span is not None
    to_number: Any = dates.date2num
    formatter: Any = dates.DateFormatter
    zone = ZoneInfo(order.timezone)
    start, end = (to_number(datetime.fromtimestamp(ms / 1000, UTC)) for ms in chart.span)
    named: set[int] = set()
    for row, line in enumerate(chart.lines):
        times = [to_number(datetime.fromtimestamp(ms / 1000, UTC)) for ms, _ in line.points]
        for at, until, (_, category) in zip(times, [*times[1:], end], line.points, strict=True):
            number = int(category)
            label = None if number in named else _plain(chart.categories[number], 24)
            named.add(number)
            color = COLORS[number % len(COLORS)]
            axes.barh([row], [until - at], left=at, height=0.6, color=color, label=label)
    axes.set_xlim(start, end)
    axes.set_yticks(
        range(len(chart.lines)), [_plain(line.label, 24) for line in chart.lines], color=ink, fontsize=7
    )
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(formatter("%m-%d %H:%M", tz=zone))
    _add_legend(axes, len(named), ink)


def _draw_marks(axes: Any, chart: Chart, ink: str) -> None:
    for mark in chart.marks:
        values = [y for _, y in mark.points]
        if mark.style == "area" and len(values) == 2:
            axes.axhspan(*values, color=_color(mark.color), alpha=0.15)
        else:
            axes.axhline(values[0], color=_color(mark.color), linewidth=1, linestyle="--")
        if mark.label:
            axes.annotate(
                _plain(mark.label),
                (0.01, values[0]),
                xycoords=("axes fraction", "data"),
                color=ink,
                fontsize=7,
            )


def _set_bounds(axes: Any, chart: Chart) -> None:
    low, high = chart.low, chart.high
    if low is None or high is None or low < high:
        axes.set_ylim(bottom=low, top=high)


def _draw_bars(axes: Any, chart: Chart, _order: _Order, ink: str) -> None:
    values = [line.points[0][1] for line in chart.lines]
    axes.bar(range(len(values)), values, width=0.6, color=[_color(line.color) for line in chart.lines])
    axes.set_xlim(-0.7, max(len(values), 4) - 0.3)
    _set_bounds(axes, chart)
    axes.set_xticks(range(len(values)), [_plain(name, 18) for name in chart.categories], color=ink)
    axes.grid(visible=False, axis="x")


def _draw_pie(axes: Any, chart: Chart, _order: _Order, ink: str) -> None:
    values = [line.points[0][1] for line in chart.lines]
    names = [_plain(name, 24) for name in chart.categories]
    colors = [_color(line.color) for line in chart.lines]
    axes.pie(values, labels=names, colors=colors, textprops={"color": ink, "fontsize": 8}, startangle=90)


def _draw_gauge(axes: Any, chart: Chart, _order: _Order, ink: str) -> None:
    (line,) = chart.lines
    value = line.points[0][1]
    low, high = chart.low or 0.0, chart.high or 1.0
    shown = min(max(value, low), high)
    axes.barh([0], [high - low], left=low, height=0.6, color=ink, alpha=0.12)
    axes.barh([0], [shown - low], left=low, height=0.6, color=_color(line.color))
    axes.set_xlim(low, high)
    axes.set_yticks([])
    axes.grid(visible=False)


def _draw_places(axes: Any, chart: Chart, _order: _Order, ink: str) -> None:
    for line in chart.lines:
        x, y = [a for a, _ in line.points], [b for _, b in line.points]
        color = _color(line.color)
        if len(x) > 1:
            axes.plot(x, y, color=color, linewidth=1, alpha=0.7)
        axes.plot(x[-1:], y[-1:], "o", color=color, markersize=6, label=_plain(line.label))
        axes.annotate(
            _plain(line.label, 24), (x[-1], y[-1]), (5, 5), textcoords="offset points", color=ink, fontsize=7
        )
    axes.margins(0.15)
    if chart.type == "map":
        axes.set_xlabel("Longitude", color=ink, fontsize=8)
        axes.set_ylabel("Latitude", color=ink, fontsize=8)
    axes.ticklabel_format(useOffset=False)


def _add_legend(axes: Any, lines: int, ink: str) -> None:
    if lines > 1:
        legend = axes.figure.legend(fontsize=7, frameon=False, loc="outside lower center", ncols=3)
        for text in legend.get_texts():
            text.set_color(ink)


def _number_format(locale: str) -> Any:
    """Writes the numbers of an axis as the reader expects them."""
    from babel import Locale
    from matplotlib.ticker import FuncFormatter

    from trunkline.actors.presentation.dashboards.report_numbers import number_text

    parsed = Locale.parse(locale.replace("-", "_"))

    def write(value: float, _position: int | None = None) -> str:
        return number_text(value, parsed)

    return FuncFormatter(write)


def _color(text: str) -> str:
    """A colour that matplotlib knows; a client may know others."""
    from matplotlib import colors

    return text if colors.is_color_like(text) else "#3b82c4"


def _plain(text: str, length: int = 40) -> str:
    """A text without the signs that matplotlib would read as a formula, and no longer than `length`."""
    short = text if len(text) <= length else text[: length - 1] + "…"
    return short.replace("\\", "\\\\").replace("$", r"\$").lstrip("_")


if __name__ == "__main__":
    _main(int(sys.argv[1]))
