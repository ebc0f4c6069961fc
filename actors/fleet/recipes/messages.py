"""Creation of many devices from a recipe: body, message and answer."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import Message, View
from trunkline.actors.core.values.terms import Id
from trunkline.actors.platform.jobs.messages import NotifyBody

_Column = Annotated[str, Meta(min_length=1, max_length=255)]


class BulkCreate(NotifyBody, frozen=True):
    """The devices to create: a line of `csv` for each, or `count` of them that are all the same."""

    csv: str | UnsetType = UNSET
    count: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    name_column: _Column | UnsetType = UNSET
    description_column: _Column | UnsetType = UNSET
    gateway_id_column: _Column | UnsetType = UNSET
    parent_id_column: _Column | UnsetType = UNSET
    gateway_id: Id | UnsetType = UNSET
    parent_id: Id | UnsetType | None = UNSET
    make_unique_key_secret: bool = False


class OpenRecipe(Message, frozen=True):
    """The stored record of a device recipe."""

    application: bytes
    device_recipe: bytes


class BulkCreated(View, frozen=True):
    """How many devices were created, and the CSV with their ids, and with the reason for each line without a device."""

    created: int
    failed: int
    csv_result: str
