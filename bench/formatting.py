"""Formatting of numbers, the same in the terminal and on the page."""

from __future__ import annotations

from trunkline.bench.result import DiskUse, Figure

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
    return f"{number(one.value)} {one.unit}".rstrip()


def number(value: float) -> str:
    """A number with three significant digits at least, or "< 0.0001"."""
    if 0 < value < 0.0001:
        return "< 0.0001"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def disk_bytes(use: DiskUse) -> str:
    """Bytes of the block device for each unit."""
    return f"{use.bytes / use.units:,.0f}" if use.units else ""


def disk_writes(use: DiskUse) -> str:
    """Writes of the block device for each unit."""
    return number(use.writes / use.units) if use.units else ""


def disk_flushes(use: DiskUse) -> str:
    """Flushes of the block device for each unit."""
    return number(use.flushes / use.units) if use.units else ""


def disk_lines(use: DiskUse) -> list[tuple[str, str]]:
    """Lines of a table: what each unit cost the device, how much others may have written, and what the server wrote."""
    units, one = max(use.units, 1), use.unit.removesuffix("s")
    idle = f"{size(use.idle_bytes / use.idle_s)} and {number(use.idle_writes / use.idle_s)} writes a second"
    total = f"{size(use.bytes)} in {use.writes:,} writes and {use.flushes:,} flushes for {units:,} {use.unit}"
    lines = [
        (
            f"block device, for each {one}",
            f"{disk_bytes(use)} bytes, {disk_writes(use)} writes, {disk_flushes(use)} flushes",
        ),
        (
            f"all of {use.device}",
            f"{total}, the warm-up included, in {use.elapsed_s:.1f} s; without load before: {idle}",
        ),
    ]
    if use.server_calls is not None and use.server_bytes is not None:
        lines.append(
            (
                "the server's write calls",
                f"{use.server_bytes / units:,.0f} bytes in {number(use.server_calls / units)} calls for each {one}",
            )
        )
    return lines
