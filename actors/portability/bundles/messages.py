"""Bodies and answers of the operations on bundles."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import Body, View
from trunkline.actors.core.values.terms import Id
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.platform.applications.messages import ApplicationView
from trunkline.actors.platform.jobs.messages import CallbackUrl


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


class ApplicationClone(Body, frozen=True):
    """What a clone of an application has beside its records, who owns it, and who is told of its end.

    By default the owner is that of the application.
    """

    dry_run: bool = False
    include_files: bool = False
    include_private_files: bool = False
    include_data_table_rows: bool = False
    include_devices: bool = False
    owner_id: Id | UnsetType | None = UNSET
    owner_type: Literal["user", "organization"] | UnsetType = UNSET
    email: Email | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET
    force_job: bool = False


class CloneCheck(View, frozen=True):
    """The application can be cloned. `requiresJob`: it is large, so the call will not wait for the clone."""

    success: Literal[True]
    requires_job: bool


class PartProblem(View, frozen=True):
    """Why a resource is not acceptable: its name in bundles, what people call it, its id, and a sentence."""

    type: str
    name: str
    id: str
    message: str


class NewApplication(View, frozen=True):
    """An application that was made. `validationErrors` is always empty: with errors nothing is made."""

    application: ApplicationView
    validation_errors: list[PartProblem]


class PartProblems(View, frozen=True):
    """What is not acceptable. Nothing was changed."""

    type: str
    message: str
    validation_errors: list[PartProblem]
