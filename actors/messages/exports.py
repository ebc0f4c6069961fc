"""Exports: what a call asks to be written into a file."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.messages.account import Email
from trunkline.actors.messages.base import Body
from trunkline.actors.messages.terms import Key

CallbackUrl = Annotated[
    str,
    Meta(
        max_length=1024,
        pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+(?!\n)$",
        description="an http or https URL that a POST tells of the end of the job",
    ),
]


class Told(Body, frozen=True):
    """Who is told when the job has ended; by default the address of the caller's account."""

    email: Email | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET


class ToldQuery(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Who is told when the job has ended; by default the address of the caller's account."""

    email: Email | None = None
    callback_url: CallbackUrl | None = None


class DeviceExportOptions(Body, frozen=True):
    """Which columns stand beside the attributes, and whether attributes of the type blob are written."""

    include_date: bool = True
    include_id: bool = msgspec.field(default=True, name="includeID")
    include_blob_data: bool = False


class DeviceExport(Told, frozen=True):
    """Which states of a device are exported: times in ms, 0 is now, negative counts back from now."""

    attributes: Annotated[list[Key], Meta(max_length=256)] | UnsetType = UNSET
    start: int | float | UnsetType = UNSET
    end: int | float | UnsetType = UNSET
    options: DeviceExportOptions = DeviceExportOptions()


class DeviceExportQuery(ToldQuery, frozen=True):
    """The same in the query string: everything, unless it says otherwise."""

    start: int = 1
    end: int = 0
    include_blob_data: bool = False
