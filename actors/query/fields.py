"""The fields that an advanced query may name, and what a document holds at each.

Owns `Field` and `Fields`. The table of a resource stands with the resource, in its own package; that of the rows of
a data table is made from its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

FieldKind = Literal["value", "values", "id", "ids", "time", "tags"]
Holds = Literal["any", "string", "number", "boolean", "id"]


@dataclass(frozen=True, slots=True)
class Field:
    """What a document holds at a field, where None always means the same as left out.

    - `value`: a string, number or boolean; `values`: a list of these
    - `id`: 24 lower-case hex digits; `ids`: a list of these
    - `time`: whole milliseconds since the epoch
    - `tags`: a list of `{"key": str, "value": str}`, of which either may be left out, or a map of key to value

    `holds` says which type `value` and `values` are of, if that is known. A `value` that holds an id takes every
    operator, several at once, and any text (rows of data tables and events use it), while the kind `id` takes one
    operator and whole identifiers only.
    """

    kind: FieldKind
    holds: Holds = "any"


class Fields(dict[str, Field]):
    """The fields of one resource by name. Not changed after it is made.

    `resource` names the resource in sentences and gives the schema its name. Where the table is `open`, documents
    have more fields than it names (the columns of a data table).
    """

    def __init__(self, resource: str, fields: Mapping[str, Field], *, open: bool = False) -> None:
        super().__init__(fields)
        self.resource = resource
        self.open = open


ID: Final = Field("id")
IDS: Final = Field("ids")
TIME: Final = Field("time")
TAGS: Final = Field("tags")
TEXT: Final = Field("value", "string")
TEXTS: Final = Field("values", "string")
ID_AS_TEXT: Final = Field("value", "id")
"""An identifier that is compared like any text."""
