"""Charts as inline SVG, drawn from plain numbers: lines over time, latency by percentile, bars.

Owns scales, ticks and marks. Colours are the page's CSS classes ``c0`` to ``c5``, so that a chart uses the
reader's light or dark theme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 14, 40
_BAR = 26
_LABEL = 260
_BAR_TEXT = 90
_TICKS = 5
_COLOURS = 6

Format = Callable[[float], str]


class Series(NamedTuple):
    """A named sequence of points."""

    name: str
    points: Sequence[tuple[float, float]]


def lines(
    series: Sequence[Series], *, x_label: str, y_format: Format, x_format: Format = "{:g}".format
) -> str:
    """Lines over linear axes that begin at zero."""
    x_max = max((x for one in series for x, _ in one.points), default=0) or 1
    y_max = _round_up(
        max((y for one in series for _, y in one.points), default=0) or 1, (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    )
    step = _round_up(x_max / _TICKS, (1, 2, 5, 10))
    x_ticks = [(n * step, x_format(n * step)) for n in range(int(x_max / step) + 1)]
    y_ticks = [(y_max * n / _TICKS, y_format(y_max * n / _TICKS)) for n in range(_TICKS + 1)]
    return _plot(series, (0, x_max), (0, y_max), x_ticks, y_ticks, x_label)


def percentiles(series: Sequence[Series], *, y_format: Format) -> str:
    """Latencies by percentile; both axes are logarithmic, so that the slowest calls can be told apart."""
    values = [y for one in series for _, y in one.points if y > 0] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    drawn = [
        Series(one.name, [(_rarity(x), math.log10(max(y, 10.0**low))) for x, y in one.points])
        for one in series
    ]
    x_ticks = [(_rarity(p), f"{p:g}%") for p in (0, 50, 90, 99, 99.9, 99.99)] + [(_rarity(100), "max")]
    y_ticks = [(float(n), y_format(10.0**n)) for n in range(low, high + 1)]
    return _plot(drawn, (0, _rarity(100)), (low, high), x_ticks, y_ticks, "percentile")


class Bar(NamedTuple):
    """A bar with the text beside it; ``colour`` is the number of a colour of the page."""

    label: str
    value: float
    text: str
    colour: int


def bars(rows: Sequence[Bar]) -> str:
    """Bars from zero, one below the other."""
    top = max((one.value for one in rows), default=0) or 1
    height = len(rows) * _BAR + 8
    room = WIDTH - _LABEL - _BAR_TEXT
    parts = []
    for index, (label, value, text, colour) in enumerate(rows):
        y = 4 + index * _BAR
        length = max(1.0, value / top * room)
        parts.append(
            f'<text class="label" x="{_LABEL - 8}" y="{y + 16}" text-anchor="end">{escape(label)}</text>'
            f'<rect class="c{colour}" x="{_LABEL}" y="{y + 3}" width="{length:.1f}" height="{_BAR - 8}" rx="2"/>'
            f'<text x="{_LABEL + length + 6:.1f}" y="{y + 16}">{escape(text)}</text>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def _plot(
    series: Sequence[Series],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    x_ticks: Sequence[tuple[float, str]],
    y_ticks: Sequence[tuple[float, str]],
    x_label: str,
) -> str:
    def across(x: float) -> float:
        return _LEFT + (x - x_range[0]) / (x_range[1] - x_range[0]) * (WIDTH - _LEFT - _RIGHT)

    def down(y: float) -> float:
        return HEIGHT - _BOTTOM - (y - y_range[0]) / (y_range[1] - y_range[0]) * (HEIGHT - _TOP - _BOTTOM)

    parts = []
    for y, text in y_ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{down(y):.1f}" y2="{down(y):.1f}"/>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{down(y) + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    for x, text in x_ticks:
        parts.append(
            f'<text x="{across(x):.1f}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{escape(text)}</text>'
        )
    for index, one in enumerate(series):
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in one.points)
        name = escape(one.name)
        parts.append(
            f'<polyline class="c{index % _COLOURS} line" points="{path}"><title>{name}</title></polyline>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    drawing = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'
    return drawing + _legend(series)


def _legend(series: Sequence[Series]) -> str:
    keys = (
        f'<span><i class="c{index % _COLOURS}"></i>{escape(one.name)}</span>'
        for index, one in enumerate(series)
    )
    return f'<p class="legend">{"".join(keys)}</p>'


def _rarity(percent: float) -> float:
    """The position of a percentile on the axis: its number of nines; the maximum is at 5.5."""
    return math.log10(100 / (100 - percent)) if percent < 99.9995 else 5.5


def _round_up(value: float, steps: Sequence[float]) -> float:
    """Round up to one of these steps times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in steps if step * power >= value * 0.999)
