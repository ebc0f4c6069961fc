"""The lines of a CSV as new devices of a recipe.

Columns that the call names give the name, the description, the gateway and the parent of a device. Each other column
is a tag: its header is the key, and a field replaces the tags of the recipe with this key. An empty field leaves what
the recipe says. Pure functions; whether a gateway exists is found out when the device is created.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.csv_text import fault
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.names import listed
from trunkline.actors.core.values.terms import Tag
from trunkline.actors.fleet.devices.record.messages import DevicePost
from trunkline.actors.fleet.recipes.messages import BulkCreate
from trunkline.limits.table import Limits

_KEY: Final = re.compile(r"[0-9a-zA-Z_-]{1,255}\Z")
_ID: Final = re.compile(r"[0-9A-Fa-f]{24}\Z")
_NAME_CHARS_MAX: Final = 255
_DESCRIPTION_CHARS_MAX: Final = 32767
_TAGS_MAX: Final = 100
"""The API's bounds; the message types have the same numbers."""
_COLUMNS_MAX: Final = _TAGS_MAX + 4

_RECIPE_FIELDS: Final = (
    "tags",
    "attributes",
    "deviceClass",
    "gatewayId",
    "parentId",
    "systemInterval",
    "keepDuplicates",
    "expectedIntervalSeconds",
)


class Rows:
    """The devices to create. `header` and `lines` are those of the CSV; without one each line is empty.

    Raises `Invalid` for a CSV that cannot be used as a whole, `PayloadTooLarge` for one with too many lines.
    """

    __slots__ = ("_columns", "_template", "header", "lines")

    def __init__(self, recipe: Doc, body: BulkCreate, limits: Limits) -> None:
        self.header, self.lines = _table(body, limits.recipe_rows_max)
        self._columns = _columns(self.header, body)
        fields = device_fields(recipe)
        if body.gateway_id is not UNSET:
            fields["gatewayId"] = body.gateway_id
        if body.parent_id is not UNSET:
            fields["parentId"] = body.parent_id
        self._template = msgspec.convert(fields, DevicePost)

    def __len__(self) -> int:
        return len(self.lines)

    def device(self, row: int) -> DevicePost:
        """Return the device of a line, counted from 0. Raises `Invalid` with what is wrong with the line."""
        line = self.lines[row]
        if len(line) != len(self.header):
            raise Invalid(f"The line has {len(line)} fields, and the header has {len(self.header)}.")
        changes: dict[str, Any] = {}
        tags: dict[str, str] = {}
        for column, role, text in zip(self.header, self._columns, line, strict=True):
            if not text:
                continue
            match role:
                case "name":
                    changes["name"] = _short(column, text, _NAME_CHARS_MAX)
                case "description":
                    changes["description"] = _short(column, text, _DESCRIPTION_CHARS_MAX)
                case "gatewayId":
                    changes["gateway_id"] = _id(column, text)
                case "parentId":
                    changes["parent_id"] = _id(column, text)
                case _:
                    tags[column] = _short(column, text, _NAME_CHARS_MAX)
        if tags:
            own = self._template.tags or ()
            kept = [tag for tag in own if tag.key not in tags]
            changes["tags"] = [*kept, *(Tag(key=key, value=value) for key, value in tags.items())]
            if len(changes["tags"]) > _TAGS_MAX:
                raise Invalid(
                    f"The device would have {len(changes['tags'])} tags; a device has at most {_TAGS_MAX}."
                )
        return msgspec.structs.replace(self._template, **changes)


RECIPE_TAG: Final = "DeviceRecipe"
"""The key of the tag that names the recipe of a device; it may be changed and removed as any other."""


def device_fields(recipe: Doc) -> Doc:
    """What a recipe gives its devices, with the names of a body: also a tag that names the recipe."""
    fields = {name: recipe[name] for name in _RECIPE_FIELDS if recipe.get(name) is not None}
    tags = recipe.get("tags") or []
    if len(tags) < _TAGS_MAX and all(tag["key"] != RECIPE_TAG for tag in tags):
        fields["tags"] = [*tags, {"key": RECIPE_TAG, "value": recipe["name"]}]
    fields["name"] = recipe.get("deviceName") or recipe["name"]
    if recipe.get("deviceDescription"):
        fields["description"] = recipe["deviceDescription"]
    return fields


def _table(body: BulkCreate, rows_max: int) -> tuple[list[str], list[list[str]]]:
    """Return the header, without blanks around its names, and the lines. Blank lines are left out."""
    if (body.csv is UNSET) == (body.count is UNSET):
        raise Invalid("csv or count: say by exactly one of them which devices are created.")
    if body.count is not UNSET:
        _check_rows(body.count, rows_max)
        return [], [[]] * body.count
    assert body.csv is not UNSET
    lines = list(islice(_lines(body.csv.removeprefix("\ufeff")), rows_max + 2))
    if len(lines) < 2:
        raise Invalid(
            "csv: has no line with a device; give a line with the names of the columns, then one for each device."
        )
    _check_rows(len(lines) - 1, rows_max)
    if len(lines[0]) > _COLUMNS_MAX:
        raise Invalid(f"csv: the header has {len(lines[0])} columns; give at most {_COLUMNS_MAX}.")
    return [name.strip() for name in lines[0]], lines[1:]


def _lines(text: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    begun = 1
    try:
        for line in reader:
            if line:
                yield line
            begun = reader.line_num + 1
    except csv.Error as error:
        raise Invalid(f"csv: {fault(error, begun, reader.line_num)}") from None


def _check_rows(rows: int, rows_max: int) -> None:
    if rows > rows_max:
        raise PayloadTooLarge(f"More than {rows_max} devices in one call; create at most so many a call.")


def _columns(header: list[str], body: BulkCreate) -> list[str | None]:
    """Return for each column the field of the device that it gives; None for a tag."""
    roles: dict[str, str] = {}
    for field, column in (
        ("name", body.name_column),
        ("description", body.description_column),
        ("gatewayId", body.gateway_id_column),
        ("parentId", body.parent_id_column),
    ):
        if column is UNSET:
            continue
        parameter, column = f"{field}Column", column.strip()
        if column not in header:
            known = listed(map(repr, header)) or "none"
            raise Invalid(f"{parameter}: the CSV has no column {column[:255]!r}; it has {known}.")
        if column in roles:
            raise Invalid(
                f"{parameter}: the column {column[:255]!r} is named twice; each field has a column of its own."
            )
        roles[column] = field
    for column in header:
        if header.count(column) > 1:
            raise Invalid(f"csv: the column {column[:255]!r} stands in the header twice.")
        if column not in roles and not _KEY.match(column):
            raise Invalid(
                f"csv: the column {column[:255]!r} is not a valid key of a tag (1 to 255 letters, digits, _ and -); "
                "rename it, or name it in nameColumn, descriptionColumn, gatewayIdColumn or parentIdColumn."
            )
    return [roles.get(column) for column in header]


def _short(column: str, text: str, chars_max: int) -> str:
    if len(text) > chars_max:
        raise Invalid(f"{column}: the text has {len(text)} characters; give at most {chars_max}.")
    return text


def _id(column: str, text: str) -> str:
    if not _ID.match(text):
        raise Invalid(f"{column}: {text[:100]!r} is not a valid id; give 24 hexadecimal digits.")
    return text
