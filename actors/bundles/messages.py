"""Bodies and answers of the operations on bundles."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.accounts.messages import Email
from trunkline.actors.jobs.messages import CallbackUrl
from trunkline.actors.values.structs import Body, View


class ApplicationExport(Body, frozen=True):
    """What an export of an application has beside its records, and who is told of its end."""

    include_files: bool = False
    include_private_files: bool = False
    include_data_table_rows: bool = False
    include_devices: bool = False
    email: Email | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET
    force_job: bool = False
    export_type: Literal["zip", "repo"] = "zip"
    credential_name: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    repo: dict[str, Any] | UnsetType = UNSET


class ApplicationExportResult(View, frozen=True):
    """Where the bundle can be downloaded until it expires. No token is needed."""

    url: str
