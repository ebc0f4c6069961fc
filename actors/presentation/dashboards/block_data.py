"""The data of a dashboard: what its blocks show, encoded for a client that draws them.

The blocks are those of a report, within other bounds. A block that cannot be read says so in its own answer. The upper
ones are read first; those for which no time or no space is left say that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.presentation.dashboards.block_messages import ReadBlocks
from trunkline.actors.presentation.dashboards.context import resolve_context
from trunkline.actors.presentation.dashboards.holder import Holder
from trunkline.actors.presentation.dashboards.report import (
    Address,
    Cell,
    Chart,
    Moment,
    Paragraph,
    Part,
    Places,
    Section,
    Share,
    Status,
    Table,
    Value,
)
from trunkline.actors.presentation.dashboards.report_blocks import section_of
from trunkline.actors.presentation.dashboards.report_scene import Bounds, Scene

_LINES_MAX: Final = 20
"""Lines of a chart: more cannot be told apart."""
_NO_TIME = "The blocks above took too long to read; ask for this one alone, with `blockIds`."
_NO_SPACE = "The answer would be too large with this block; ask for it alone, with `blockIds`."


def application_of(holder: Holder, block: Doc) -> bytes | None:
    """The application whose data a block shows, None if there is none."""
    if "applicationId" in block:
        return bytes.fromhex(block["applicationId"])
    return holder.id if holder.kind == "application" else None


def by_process(
    system: Host, holder: Holder, blocks: Sequence[Doc], positions: Iterable[int]
) -> dict[bytes | None, tuple[int, ...]]:
    """The positions of the blocks that are read here, under None, and of those of each application elsewhere."""
    peers = system.peers
    found: dict[bytes | None, list[int]] = {}
    for position in positions:
        application = application_of(holder, blocks[position])
        if application is not None and (peers is None or not peers.has_application(application)):
            application = None
        found.setdefault(application, []).append(position)
    if not found:
        found[None] = []  # whether the caller may read it is seen all the same
    return {application: tuple(of_it) for application, of_it in found.items()}


def read_blocks(reading: Reading, message: ReadBlocks) -> dict[int, msgspec.Raw]:
    """What the blocks of a dashboard show. Raises `InvalidContext` if a value that is given does not fit."""
    reading.check_time(is_long=True)
    limits, doc = reading.limits, message.doc
    end_s = monotonic() + limits.dashboard_data_s
    parameters = resolve_context(reading.snapshot, message.holder, doc, message.ctx, message.refusals)
    narrow = replace(limits, time_series_values_max=limits.dashboard_block_values_max)
    narrow_reading = Reading(reading.snapshot, narrow, in_loop=False, system=reading.system)
    dashboard = {name: doc[name] for name in ("name", "duration", "resolution") if name in doc}
    bounds = Bounds(
        limits.dashboard_rows_max,
        _LINES_MAX,
        limits.dashboard_line_points_max,
        downsampled=True,
        places_max=limits.dashboard_places_max,
    )

    blocks, found, size = doc["blocks"], {}, 0
    for position in sorted(message.positions, key=lambda each: _place(blocks[each])):
        block = blocks[position]
        if monotonic() > end_s:
            shown = _encoded(position, block, _problem(block, _NO_TIME), with_ids=False)
        else:
            scene = Scene(
                narrow_reading,
                application_of(message.holder, block),
                message.refusals,
                parameters,
                dashboard | message.range,
                message.time_ms,
                bounds,
            )
            shown = _encoded(position, block, section_of(scene, block), with_ids=message.with_ids)
            if size + len(shown) > limits.dashboard_data_bytes_max:
                shown = _encoded(position, block, _problem(block, _NO_SPACE), with_ids=False)
        size += len(shown)
        found[position] = msgspec.Raw(shown)
    return found


def _place(block: Doc) -> tuple[float, float]:
    return block["startY"], block["startX"]


def _problem(block: Doc, text: str) -> Section:
    return Section(str(block.get("title", "")), "", [Paragraph(text, is_problem=True)])


def _encoded(position: int, block: Doc, section: Section, *, with_ids: bool) -> bytes:
    shown: Doc = {"position": position}
    if "id" in block:
        shown["id"] = block["id"]
    shown |= {
        "blockType": block["blockType"],
        "title": section.title,
        "description": section.description,
        "parts": [],
    }
    for part in section.parts:
        if isinstance(part, Paragraph) and part.is_problem:
            shown["problem"] = part.text
        else:
            shown["parts"].append(_part(part, with_ids=with_ids))
    return msgspec.json.encode(shown)


def _part(part: Part, *, with_ids: bool) -> Doc:
    if isinstance(part, Table):
        rows = [_cells(row) for row in part.rows]
        ids = {"of": part.of, "ids": part.ids} if with_ids and part.ids else {}
        return {"kind": "table", "columns": part.columns, "rows": rows, "total": part.total, **ids}
    if isinstance(part, Paragraph):
        return {"kind": "text", "text": part.text}
    if isinstance(part, Value):
        at = None if part.at is None else iso(part.at.ms)
        unit = {"unit": part.unit} if part.unit else {}
        return {"kind": "value", "label": part.label, "value": _cell(part.value), "at": at, **unit}
    if isinstance(part, Status):
        return {"kind": "status", "text": part.text, "color": part.color}
    if isinstance(part, Address):
        return {"kind": "address", "label": part.label, "url": part.url}
    if isinstance(part, Places):
        columns = msgspec.structs.asdict(part)
        return {
            "kind": "places",
            **{name: each for name, each in columns.items() if with_ids or name != "ids"},
        }
    assert isinstance(part, Chart)
    return {"kind": "chart", **msgspec.structs.asdict(part)}


def _cells(row: Iterable[Cell]) -> list[Any]:
    return [_cell(each) for each in row]


def _cell(value: Cell) -> Any:
    if isinstance(value, Moment):
        return {"kind": "time", "time": iso(value.ms)}
    if isinstance(value, Share):
        return {"kind": "share", "share": value.value}
    return value
