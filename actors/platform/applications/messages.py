"""Applications: bodies, query strings, messages and answers. Access keys: `platform/applications/keys.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.core.values.changes import Fixed, Removable, changes_of
from trunkline.actors.core.values.structs import BLANK, FORM, Body, Message
from trunkline.actors.core.values.terms import (
    Id,
    Ids,
    IsoText,
    IsoTime,
    Key,
    Links,
    Name,
    RecordView,
)
from trunkline.actors.platform.applications.archive_config import ArchiveConfig

# Bodies.


class Global(Body, frozen=True):
    """A named JSON text that the application's workflows can read."""

    key: Key
    json: Annotated[str, Meta(min_length=1, max_length=32767)]
    cloud_only: bool = False
    description: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET


class GlobalPatch(Body, frozen=True):
    """A change of one global. A `json` of null removes it; fields that are left out stay as they are."""

    key: Key
    json: Annotated[str, Meta(min_length=1, max_length=32767)] | UnsetType | None = UNSET
    cloud_only: bool | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET


class FtueStep(Body, frozen=True):
    """A step of a client's introduction tour that was completed or skipped."""

    name: Key
    version: int | float
    status: Literal["skipped", "completed"]


_Globals = Annotated[list[Global], Meta(max_length=100)]
Slug = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=63,
        pattern=r"^[0-9a-z-]*(?!\n)$",
        extra={FORM: "3 to 63 lower-case letters, digits and -"},
    ),
]
_ShortText = Annotated[str, Meta(max_length=1024)]
BlobTtl = Annotated[int, Meta(ge=3600, le=604800)] | Annotated[float, Meta(ge=3600, le=604800)]


class ApplicationPost(Body, frozen=True):
    """A new application."""

    name: Name
    description: _ShortText | UnsetType = UNSET
    endpoint_slug: Slug | UnsetType = UNSET
    exp_user_token_cutoff: IsoText | UnsetType = UNSET
    endpoint_default_cors: bool | UnsetType = msgspec.field(default=UNSET, name="endpointDefaultCors")
    globals: _Globals | UnsetType = UNSET
    blob_url_ttl: BlobTtl | UnsetType = msgspec.field(default=UNSET, name="blobUrlTTL")
    org_id: Fixed[Id] | UnsetType = UNSET
    application_template_id: Fixed[Id] | UnsetType = UNSET
    applied_template_ids: Fixed[Ids] | UnsetType = UNSET
    archive_config: Removable[ArchiveConfig] | UnsetType = UNSET


@changes_of(ApplicationPost)
class ApplicationPatch(Body, frozen=True):
    """Changes of an application; omitted fields stay as they are."""

    archive_config: ArchiveConfig | UnsetType | None = UNSET
    ftue_tracking: Annotated[list[FtueStep], Meta(max_length=100)] | UnsetType = UNSET


# Query strings.


IdOrBlank = Annotated[
    str,
    Meta(pattern=r"^([A-Fa-f0-9]{24}|)$", extra={FORM: "an id of 24 hexadecimal digits", BLANK: True}),
]


class ApplicationPage(Page, frozen=True):
    """A page of the applications that the user can read. With a blank `orgId` only those that belong to the user."""

    sort_field: Literal["name", "id", "creationDate", "ownerId", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    org_id: IdOrBlank | None = None
    summary_exclude: str | None = None
    summary_include: str | None = None


# Messages to the actor.


class CreateApplication(Message, frozen=True):
    """Create an application, owned by the organization `org`, or else by the user `user`.

    `job`: the job (its owner and its id) that builds the application. Nobody owns it, so nobody sees it, until a
    `TransferApplication` gives it to its owner. If the job ends before that, the sweep removes it.
    """

    body: ApplicationPost
    user: bytes
    org: bytes | None = None
    job: tuple[bytes, bytes] | None = None


class PatchApplication(Message, frozen=True):
    """Change an application."""

    body: ApplicationPatch
    if_match: str | None = None


class PatchGlobals(Message, frozen=True):
    """Change some globals of an application by their keys; the others stay."""

    body: Annotated[list[GlobalPatch], Meta(max_length=100)]
    if_match: str | None = None


class ExpireCounts(Message, frozen=True):
    """Remove the payload counts of hours (since the epoch). The answer is their number, in a list."""

    hours: list[int]


class NoteTemplate(Message, frozen=True):
    """A template was applied. An application without a readme gets that of the template."""

    template: str
    readme: str
    by: Creator


class DeleteApplication(Message, frozen=True):
    """Delete an application and, in the background, everything in it."""

    if_match: str | None = None


class TransferApplication(Message, frozen=True):
    """Give an application of `owner` to another owner. Raises `Invalid` if it belongs to somebody else."""

    owner: bytes
    new_owner: bytes
    new_owner_type: Literal["user", "organization"]


# Messages of reads.


class GetApplication(Message, frozen=True):
    """One application."""

    application: bytes
    query: SummaryChoice


class ListApplications(Message, frozen=True):
    """The applications that a user can read: those that belong to the user, and those of organizations."""

    user: bytes
    query: ApplicationPage


# Answers.


class ApplicationView(RecordView, frozen=True, kw_only=True):
    """An application."""

    application_id: Id
    owner_id: Id
    owner_type: Literal["user", "organization"]
    name: str
    organization_name: str | None = None
    organization_icon_color: str | None = None
    description: str | None = None
    endpoint_slug: str | None = None
    exp_user_token_cutoff: IsoTime | None = None
    endpoint_default_cors: bool | None = msgspec.field(default=None, name="endpointDefaultCors")
    globals: list[Any] | None = None
    blob_url_ttl: int | float | None = msgspec.field(default=None, name="blobUrlTTL")
    ftue_tracking: list[Any] | None = None
    archive_config: ArchiveConfig | None = None
    applied_template_ids: list[Id] | None = None
    summary: dict[str, Any] | None = None
    links: Links | None = msgspec.field(default=None, name="_links")
