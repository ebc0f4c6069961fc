"""The fields that an advanced query may name, and the type of each in a document.

Owns `Field` and `Fields`. The table of a resource is in the resource's own package; that of the rows of a data
table is made from its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

FieldKind = Literal["value", "values", "id", "ids", "time", "tags", "parts"]
Holds = Literal["any", "string", "number", "boolean", "id"]


@dataclass(frozen=True, slots=True)
class Field:
    """The type of a field in a document. None always means the same as a missing field.

    - `value`: a string, number or boolean; `values`: a list of these
    - `id`: 24 lower-case hex digits; `ids`: a list of these
    - `time`: whole milliseconds since the epoch
    - `tags`: a list of `{"key": str, "value": str}`, either of which may be missing, or a map of key to value
    - `parts`: a list of objects with `type`, `key` and `config` (the triggers and the nodes of a workflow)

    `holds` is the type of the elements of `value` and `values`, if it is known. A `value` that holds an id accepts
    every operator, several at once, and any text (rows of data tables and events use it), while the kind `id`
    accepts one operator and only whole identifiers.
    """

    kind: FieldKind
    holds: Holds = "any"


class Fields(dict[str, Field]):
    """The fields of one resource by name. Never changed after construction.

    `resource` is the name of the resource in messages and in the name of the schema. If the table is `open`,
    documents have more fields than it names (the columns of a data table).
    """

    def __init__(self, resource: str, fields: Mapping[str, Field], *, open: bool = False) -> None:
        super().__init__(fields)
        self.resource = resource
        self.open = open


ID: Final = Field("id")
IDS: Final = Field("ids")
TIME: Final = Field("time")
TAGS: Final = Field("tags")
PARTS: Final = Field("parts")
TEXT: Final = Field("value", "string")
TEXTS: Final = Field("values", "string")
ID_AS_TEXT: Final = Field("value", "id")
"""An identifier that is compared like a text."""
