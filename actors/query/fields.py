"""The fields that a query may name, and what a document holds at each: one table for each resource.

Owns `Field` and the tables of the resources whose fields are fixed. The fields of the rows of a data table
are its columns as well: whoever has the columns makes the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["value", "values", "id", "ids", "time", "tags"]
Holds = Literal["any", "string", "number", "boolean", "id"]


@dataclass(frozen=True, slots=True)
class Field:
    """What a document holds at a field, where None always means the same as left out.

    - `value`: a string, number or boolean; `values`: a list of these
    - `id`: 24 lower-case hex digits; `ids`: a list of these
    - `time`: whole milliseconds since the epoch
    - `tags`: a list of `{"key": str, "value": str}`, of which either may be left out, or a map of key to value

    `holds` says more of `value` and `values`: which type they are of, if that is known. An `id` among them
    takes every operator, several at once, and any text (so do the rows of data tables and events), while the
    kind `id` takes one operator and whole identifiers only.
    """

    kind: Kind
    holds: Holds = "any"


_ID: Final = Field("id")
_IDS: Final = Field("ids")
_TIME: Final = Field("time")
_TAGS: Final = Field("tags")
_TEXT: Final = Field("value", "string")
_TEXTS: Final = Field("values", "string")

DEVICE_FIELDS: Final[Mapping[str, Field]] = {
    "id": _ID,
    "creationDate": _TIME,
    "lastUpdated": _TIME,
    "deletedAt": _TIME,
    "name": _TEXT,
    "deviceClass": _TEXT,
    "gatewayId": _ID,
    "parentId": _ID,
    "ancestorId": _IDS,
    "attributeName": _TEXTS,
    # No device belongs to an experience yet, so these are missing from all of them.
    "experienceUserId": _IDS,
    "experienceGroupId": _IDS,
    "tags": _TAGS,
    "connectedAt": _TIME,
    "disconnectedAt": _TIME,
    "connectionStatus": _TEXT,
}

APPLICATION_KEY_FIELDS: Final[Mapping[str, Field]] = {
    "id": _ID,
    "creationDate": _TIME,
    "lastUpdated": _TIME,
    "status": _TEXT,
    "deviceIds": _IDS,
    "deviceTags": _TAGS,
    "key": _TEXT,
    "name": _TEXT,
    "description": _TEXT,
    "filterType": _TEXT,
    "pubTopics": _TEXTS,
    "subTopics": _TEXTS,
    "addressFilterType": _TEXT,
    "addresses": _TEXTS,
}

EVENT_FIELDS: Final[Mapping[str, Field]] = {
    "id": Field("value", "id"),
    "creationDate": _TIME,
    "lastUpdated": _TIME,
    "sourceId": Field("value", "id"),
    "sourceType": _TEXT,
    "level": _TEXT,
    "state": _TEXT,
    "subject": _TEXT,
    "deviceId": Field("value", "id"),
    # No event is of an experience yet, so these are missing from all of them.
    "experienceUserId": _ID,
    "experienceGroupId": _ID,
    "eventTags": _TAGS,
}

JOB_LOG_FIELDS: Final[Mapping[str, Field]] = {
    "id": _ID,
    "name": _TEXT,
    "status": _TEXT,
    "resourceType": _TEXT,
    "resourceId": _ID,
    "runQueuedAt": _TIME,
    "runStartedAt": _TIME,
    "runCompletedAt": _TIME,
}

ROW_FIELDS: Final[Mapping[str, Field]] = {"id": Field("value", "id"), "createdAt": _TIME, "updatedAt": _TIME}
"""What every row has beside its columns."""

RESOURCES: Final[Mapping[str, Mapping[str, Field]]] = {
    "device": DEVICE_FIELDS,
    "access key": APPLICATION_KEY_FIELDS,
    "event": EVENT_FIELDS,
    "job": JOB_LOG_FIELDS,
    "row": ROW_FIELDS,
}
"""The tables by what they are about."""
