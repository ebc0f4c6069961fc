"""Formatting of numbers, the same in the terminal and on the page."""

from __future__ import annotations

from trunkline.bench.result import Figure

_SIZES = ("bytes", "kB", "MB", "GB", "TB")


def milliseconds(value: float) -> str:
    """Three significant digits, in ms or in seconds."""
    if value >= 10_000:
        return f"{value / 1000:,.1f} s"
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def size(value: float) -> str:
    """Bytes with a decimal prefix."""
    for unit in _SIZES:
        if abs(value) < 1000 or unit == _SIZES[-1]:
            break
        value /= 1000
    return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"


def share(value: float | None) -> str:
    """A share of one core, in percent."""
    return "unknown" if value is None else f"{value:.0%}"


def figure(one: Figure) -> str:
    """The value of a figure with its unit."""
    if one.unit == "bytes":
        return size(one.value)
    if one.unit == "s":
        return milliseconds(one.value * 1000)
    if one.unit == "share":
        return share(one.value)
    return f"{one.value:,.0f} {one.unit}".rstrip()
