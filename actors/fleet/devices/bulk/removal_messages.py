"""Removing what devices reported: query string, bodies, and messages to the device actor."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import Message, Query
from trunkline.actors.core.values.terms import Key, QueryTime
from trunkline.actors.fleet.devices.record.terms import DeviceQuery
from trunkline.actors.platform.jobs.messages import NotifyBody


class DataRange(Query, frozen=True):
    """The range of the data that is removed; by default all up to now."""

    start: QueryTime = 1
    end: QueryTime = 0


class DataRemoval(NotifyBody, frozen=True, kw_only=True):
    """The devices whose data is removed (`{}`: all), the range, and what is kept.

    With `attributes` only the values of these are removed, and then the histories are kept unless the body says
    otherwise.
    """

    query: DeviceQuery
    start: QueryTime | UnsetType = UNSET
    end: QueryTime | UnsetType = UNSET
    attributes: Annotated[list[Key], Meta(min_length=1, max_length=256)] | UnsetType | None = UNSET
    keep_command_history: bool | UnsetType = UNSET
    keep_connection_history: bool | UnsetType = UNSET


# Messages to the device actor.


class RemoveData(Message, frozen=True):
    """Remove the points of these times in ms, of `attributes` only if given, and entries of the two logs by key.

    The answer are the numbers of the attributes that thereby lost their newest value.
    """

    points: list[int]
    attributes: list[str] | None
    commands: list[bytes]
    logs: list[bytes]


class RestoreNewest(Message, frozen=True):
    """Take values that are older than removed ones into the composite state.

    `values` are numbers of attributes, each with the time in ms of its newest point that is left; `newest_ms` is the
    time of the newest point of all, -1 if none is left. The answer is False if one of these points was removed since.
    """

    values: list[tuple[int, int]]
    newest_ms: int
