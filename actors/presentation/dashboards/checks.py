"""The check of a dashboard that is about to be stored, beyond what its types say.

It refuses queries that cannot be run, regular expressions that cannot be used, and references to records that do not
exist. A reference that the stored dashboard has already is not refused: the device may have been deleted since, and
the rest of the dashboard must remain changeable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import re2

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.query.fields import Fields
from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.resource import Change
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.core.values.template import has_template
from trunkline.actors.data.events.messages import EVENT_FIELDS
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.actors.presentation.dashboards.holder import Holder, reaches
from trunkline.limits.table import Limits
from trunkline.store.snapshot import Snapshot

_GRID_COLUMNS: Final = 8
_EVENT_BLOCKS: Final = frozenset({"event-list", "open-event-indicator"})
_KIND_OF: Final[Mapping[str, Kind]] = {
    "deviceIds": DEVICE,
    "deviceId": DEVICE,
    "ids": DEVICE,
    "dataTableId": DATA_TABLE,
}
"""The fields of configurations that name records. `id` alone is an id within the dashboard."""


def check_blocks(change: Change, holder: Holder) -> None:
    """Check the blocks of a dashboard. Raises `Invalid` naming the field."""
    limits = change.owner.system.limits
    blocks = change.new["blocks"]
    if len(blocks) > limits.dashboard_blocks_max:
        raise Invalid(
            f"blocks: {len(blocks)} are too many; a dashboard has at most {limits.dashboard_blocks_max}."
        )
    if "blocks" not in change.named:
        return
    if not change.is_import:
        _check_layout(blocks, [] if change.old is None else change.old["blocks"])
    known = set() if change.old is None else {each[1:] for each in _references(change.old["blocks"], holder)}
    for position, block in enumerate(blocks):
        check_nesting(block.get("config"), f"blocks[{position}].config")
        for at, kind, text in _queries(block, f"blocks[{position}].config"):
            check_query(text, kind, at)
    _check_references(change, holder, known, limits)


def _check_layout(blocks: list[Doc], old: list[Doc]) -> None:
    """Refuse ids that stand twice, and places outside the grid, unless the stored blocks have them already."""
    first: dict[str, int] = {}
    old_ids = [each.get("id") for each in old]
    old_places = [_place(each) for each in old]
    for position, block in enumerate(blocks):
        at, id = f"blocks[{position}]", block.get("id")
        if id is not None and first.setdefault(id, position) != position and old_ids.count(id) < 2:
            raise Invalid(f"{at}.id: {id!r} is also the id of blocks[{first[id]}]; give each block its own.")
        x, y, width, height = place = _place(block)
        is_within = x >= 0 and y >= 0 and width > 0 and height > 0 and x + width <= _GRID_COLUMNS
        if not is_within and place not in old_places:
            raise Invalid(
                f"{at}: startX {x}, startY {y}, width {width} and height {height} are no place in the grid; startX "
                f"and startY begin at 0, width and height are more than 0, and startX plus width is at most "
                f"{_GRID_COLUMNS}."
            )


def _place(block: Doc) -> tuple[float, ...]:
    return tuple(block[name] for name in ("startX", "startY", "width", "height"))


def _check_references(change: Change, holder: Holder, known: set[tuple[Any, ...]], limits: Limits) -> None:
    new: dict[tuple[Any, ...], str] = {}
    for at, *reference in _references(change.new["blocks"], holder):
        if tuple(reference) not in known:
            new.setdefault(tuple(reference), at)
    if len(new) > limits.dashboard_references_max:
        raise Invalid(
            f"blocks: name {len(new)} devices and data tables; "
            f"at most {limits.dashboard_references_max} can be named at a time."
        )
    with change.owner.system.store.snapshot() as snapshot:
        for (kind, parent, id), at in new.items():
            if kind is APPLICATION:
                check_application(snapshot, holder, id, at)
            elif change.is_import:
                continue  # it stays, as in a stored dashboard when the device is deleted
            elif parent is not None and not records.exists(snapshot, kind, parent, id):
                raise Invalid(f"{at}: there is no {kind.noun} {id.hex()} in the application {parent.hex()}.")


def check_application(snapshot: Snapshot, holder: Holder, id: bytes, at: str) -> None:
    """Raise `Invalid` if a dashboard may not show the application."""
    if reaches(snapshot, holder, id):
        return
    if holder.kind == "application":
        raise Invalid(f"{at}: is another application than that of the dashboard; leave it out.")
    raise Invalid(f"{at}: there is no application {id.hex()} that the owner of the dashboard reaches.")


def _references(blocks: list[Doc], holder: Holder) -> Iterator[tuple[str, Kind, bytes | None, bytes]]:
    """Yield every record that the blocks name: where, its kind, its application if that is known, and its id."""
    for position, block in enumerate(blocks):
        parent = holder.id if holder.kind == "application" else None
        if "applicationId" in block:
            parent = bytes.fromhex(block["applicationId"])
            yield f"blocks[{position}].applicationId", APPLICATION, None, parent
        for at, name, value in _fields(block.get("config"), f"blocks[{position}].config"):
            kind = _KIND_OF.get(name)
            if kind is not None and is_id(value):
                yield at, kind, parent, bytes.fromhex(value)


def applications_named(doc: Doc) -> set[bytes]:
    """The applications that the blocks and the parameters of a dashboard name."""
    parts = (part for name in ("blocks", "contextConfiguration") for part in doc.get(name) or ())
    return {bytes.fromhex(part["applicationId"]) for part in parts if "applicationId" in part}


def _fields(node: Any, at: str, name: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield place, name and value of every text within a configuration."""
    if isinstance(node, str):
        yield at, name, node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from _fields(value, f"{at}.{key}", key)
    elif isinstance(node, list):
        for position, value in enumerate(node):
            yield from _fields(value, f"{at}[{position}]", name)


def _queries(block: Doc, at: str) -> Iterator[tuple[str, str, str]]:
    """Yield place, subject (devices, events, rows) and text of every query of a block."""
    config = block.get("config", {})
    type = block["blockType"]
    subject = "rows" if type == "data-table" else "events" if type in _EVENT_BLOCKS else "devices"
    nodes = [(config, at, subject)]
    if isinstance(config.get("segment"), Mapping):
        nodes.append((config["segment"], f"{at}.segment", subject))
    for position, segment in enumerate(config.get("segments", ())):
        of = {"data-table": "rows", "events": "events"}.get(segment.get("queryType"), subject)
        nodes.append((segment, f"{at}.segments[{position}]", of))
    for position, control in enumerate(config.get("controls", ())):
        nodes.append((control, f"{at}.controls[{position}]", subject))
        nodes.append((control.get("defaultQuery", {}), f"{at}.controls[{position}].defaultQuery", subject))
    for node, place, of in nodes:
        if isinstance(node.get("query"), str):
            yield f"{place}.query", of, node["query"]


def check_query(text: str, subject: str, at: str) -> None:
    """Check a query that is JSON text. One with templates is checked when they are filled in."""
    if not text.strip() or has_template(text):
        return
    query = parse_query(text, at)
    fields: Fields | None = {"devices": DEVICE_FIELDS, "events": EVENT_FIELDS}.get(subject)
    if fields is not None and query:
        compile_query(query, fields, at=at)


def check_parameters(change: Change, holder: Holder) -> None:
    """Check the parameters of a dashboard. Raises `Invalid` naming the field."""
    if "contextConfiguration" not in change.named:
        return
    names: set[str] = set()
    for position, parameter in enumerate(change.new["contextConfiguration"]):
        at = f"contextConfiguration[{position}]"
        name = parameter["name"]
        if name in names:
            raise Invalid(
                f"contextConfiguration: {name} appears twice in the list; name each parameter once."
            )
        names.add(name)
        if parameter["type"] == "number" and not change.is_import:
            try:
                as_number(parameter["defaultValue"])
            except Invalid as refusal:
                raise Invalid(f"{at}.defaultValue: {refusal.message}") from None
        if "applicationId" in parameter:
            with change.owner.system.store.snapshot() as snapshot:
                id = bytes.fromhex(parameter["applicationId"])
                check_application(snapshot, holder, id, f"{at}.applicationId")
        config = parameter.get("validationConfig", {})
        if "min" in config and "max" in config and config["min"] > config["max"]:
            raise Invalid(f"{at}.validationConfig: min {config['min']} is greater than max {config['max']}.")
        if config.get("regExp"):
            compile_pattern(config["regExp"], f"{at}.validationConfig.regExp")
        if isinstance(config.get("query"), str):
            check_query(config["query"], "devices", f"{at}.validationConfig.query")


def as_number(value: Any) -> int | float:
    """A number, or the number that a text says. Raises `Invalid` without the field."""
    if isinstance(value, str):
        try:
            value = float(value) if not value.strip().lstrip("-").isdigit() else int(value)
        except ValueError:
            raise Invalid(f"{value[:100]!r} is not a number.") from None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value != value
        or abs(value) == float("inf")
    ):
        raise Invalid("must be a number.")
    return value


def compile_pattern(pattern: str, at: str) -> Any:
    """Compile a regular expression whose search takes a time linear in the text. Raises `Invalid`."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error
        raise Invalid(
            f"{at}: is not a regular expression of RE2, which has no backreferences and no lookaround: {reason}."
        ) from None
