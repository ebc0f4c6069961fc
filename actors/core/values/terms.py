"""The constrained types that the messages share: ids, names, tags, timestamps."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from trunkline.actors.core.values.structs import FORM, Body, View

DeviceClass = Literal["standalone", "gateway", "peripheral", "floating", "edgeCompute", "system", "embedded"]


Id = Annotated[
    str,
    Meta(
        pattern=r"^[A-Fa-f0-9]{24}$",
        max_length=24,
        description="24 hexadecimal digits",
        extra={FORM: "an id of 24 hexadecimal digits"},
    ),
]
"""`$` also matches before a final line feed, so `max_length` and, in `Key`, a lookahead exclude that."""
OptionalTemplateId = Annotated[
    str,
    Meta(
        pattern=r"^([A-Fa-f0-9]{24}(?!\n)|.*\{\{.+\}\}.*)$",
        max_length=255,
        description="24 hexadecimal digits, or a text with a template",
        extra={FORM: "an id of 24 hexadecimal digits, or a text with a template {{path}}"},
    ),
]
"""An id, or a template that gives one when it is filled in."""
Name = Annotated[str, Meta(min_length=1, max_length=255)]
Description = Annotated[str, Meta(max_length=32767)]
Key = Annotated[
    str,
    Meta(pattern=r"^[0-9a-zA-Z_-]{1,255}(?!\n)$", extra={FORM: "1 to 255 letters, digits, _ and -"}),
]
"""The name of an attribute or the key of a tag."""

TOPICS_OF_DEVICES: Final = ("losant/", "trunkline/")
"""What the topics of devices begin with."""
RESERVED_TOPICS: Final = (*TOPICS_OF_DEVICES, "$")
"""What no topic and no filter of an application begins with: the topics of devices and of the server itself."""
TOPIC_FILTER_PATTERN: Final = (
    r"^(?:(?:[^/+#\x00-\x1f\x7f-\x9f]*|\+)/)*(?:[^/+#\x00-\x1f\x7f-\x9f]*|\+|#)(?!\n)$"
)
TOPIC_FILTER_FORM: Final = "a topic, which may have wildcards: + and # for whole levels, # at the end"
TopicFilter = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1024,
        pattern=TOPIC_FILTER_PATTERN,
        extra={FORM: TOPIC_FILTER_FORM},
    ),
]
"""A filter of topics, as MQTT has them."""

Timestamp = Annotated[
    str | int | float | dict[Literal["$date"], str],
    Meta(
        extra={
            FORM: 'ISO 8601 text such as 2024-05-01T12:00:00.000Z (also as {"$date": text}), a number of seconds or '
            "milliseconds since 1970, or a negative number of milliseconds before now"
        }
    ),
]
"""A time as callers give it: ISO text, seconds or milliseconds since the epoch, `{"$date": iso}`, or a negative
number of milliseconds before now."""

_QUERY_TIME = "ISO 8601 text, or milliseconds since 1970; 0 is now, a negative number counts back from now"
QueryTime = Annotated[str | int | float, Meta(description=_QUERY_TIME, extra={FORM: _QUERY_TIME})]
"""A bound of a query as callers give it."""

IsoText = Annotated[str, Meta(extra={FORM: "ISO 8601 text such as 2024-05-01T12:00:00.000Z"})]
"""A time as callers give it where only ISO text is taken."""

IsoTime = Annotated[str, Meta(description="ISO 8601, UTC, milliseconds")]
Scalar = str | int | float | bool
SortDirection = Literal["asc", "desc"]

Links = Annotated[dict[str, dict[str, str]], Meta(description="`self` and parents, each as {href}")]


class Tag(Body, frozen=True):
    """A key and a value for finding devices."""

    key: Key
    value: Annotated[str, Meta(min_length=1, max_length=255)]


class AnyTag(Body, frozen=True):
    """A tag with this key, with this value, or with both; without both it is any."""

    key: Key | msgspec.UnsetType = msgspec.UNSET
    value: Annotated[str, Meta(min_length=1, max_length=255)] | msgspec.UnsetType = msgspec.UNSET


class TagFilter(AnyTag, frozen=True):
    """Matches a device that has a tag with this key, with this value, or with both."""

    hint: ClassVar[str] = "a choice by tag needs a key, a value, or both"

    def __post_init__(self) -> None:
        if self.key is msgspec.UNSET and self.value is msgspec.UNSET:
            raise ValueError(self.hint)


Tags = Annotated[list[Tag], Meta(max_length=100)]
TagFilters = Annotated[list[TagFilter], Meta(max_length=100)]
Ids = Annotated[list[Id], Meta(max_length=1000)]


class Success(View, frozen=True):
    """The call succeeded."""

    success: Literal[True]


class RecordView(View, frozen=True):
    """The fields of every record. A record also has its id under the name of its kind, such as `deviceId`."""

    id: Id
    creation_date: IsoTime
    last_updated: IsoTime
    etag: str | None = msgspec.field(default=None, name="_etag")
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")
