"""Applications, their access keys and API tokens: bodies, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.values.structs import Body, Message, View
from trunkline.actors.values.terms import (
    Description,
    FilterType,
    Id,
    Ids,
    IsoTime,
    Key,
    KeyQuery,
    Links,
    Name,
    Page,
    TagFilters,
)

# Applications.


class Global(Body, frozen=True):
    """A named JSON text that workflows of the application can read."""

    key: Key
    json: Annotated[str, Meta(min_length=1, max_length=32767)]
    cloud_only: bool = False
    description: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET


class FtueStep(Body, frozen=True):
    """A step of a client's introduction tour that was done or skipped."""

    name: Key
    version: int | float
    status: Literal["skipped", "completed"]


_Globals = Annotated[list[Global], Meta(max_length=100)]
_Slug = Annotated[str, Meta(min_length=3, max_length=63, pattern=r"^[0-9a-z-]*(?!\n)$")]
_ShortText = Annotated[str, Meta(max_length=1024)]
_BlobTtl = Annotated[int, Meta(ge=3600, le=604800)] | Annotated[float, Meta(ge=3600, le=604800)]


class ApplicationPost(Body, frozen=True):
    """A new application."""

    name: Name
    description: _ShortText | UnsetType = UNSET
    endpoint_slug: _Slug | UnsetType = UNSET
    exp_user_token_cutoff: str | UnsetType = UNSET
    endpoint_default_cors: bool | UnsetType = msgspec.field(default=UNSET, name="endpointDefaultCors")
    globals: _Globals | UnsetType = UNSET
    blob_url_ttl: _BlobTtl | UnsetType = msgspec.field(default=UNSET, name="blobUrlTTL")
    org_id: Id | UnsetType = UNSET
    application_template_id: Id | UnsetType = UNSET
    applied_template_ids: Ids | UnsetType = UNSET
    archive_config: dict[str, Any] | UnsetType = UNSET


class ApplicationPatch(Body, frozen=True):
    """Changes of an application; what is left out stays."""

    name: Name | UnsetType = UNSET
    description: _ShortText | UnsetType = UNSET
    endpoint_slug: _Slug | UnsetType = UNSET
    exp_user_token_cutoff: str | UnsetType = UNSET
    endpoint_default_cors: bool | UnsetType = msgspec.field(default=UNSET, name="endpointDefaultCors")
    globals: _Globals | UnsetType = UNSET
    blob_url_ttl: _BlobTtl | UnsetType = msgspec.field(default=UNSET, name="blobUrlTTL")
    ftue_tracking: Annotated[list[FtueStep], Meta(max_length=100)] | UnsetType = UNSET
    archive_config: dict[str, Any] | UnsetType | None = UNSET


class SummaryChoice(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Which counts the summary holds (comma-separated field names; default all)."""

    summary_exclude: str | None = None
    summary_include: str | None = None


class ApplicationPage(Page, frozen=True):
    """A page of the applications that the token reaches."""

    sort_field: Literal["name", "id", "creationDate", "ownerId", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    org_id: Annotated[str, Meta(pattern=r"^([A-Fa-f0-9]{24}|)$")] | None = None
    summary_exclude: str | None = None
    summary_include: str | None = None


class ApplicationView(View, frozen=True):
    """An application."""

    id: Id
    application_id: Id
    creation_date: IsoTime
    last_updated: IsoTime
    owner_id: Id
    owner_type: Literal["user", "organization"]
    name: str
    description: str | None = None
    endpoint_slug: str | None = None
    exp_user_token_cutoff: IsoTime | None = None
    endpoint_default_cors: bool | None = msgspec.field(default=None, name="endpointDefaultCors")
    globals: list[Any] | None = None
    blob_url_ttl: int | float | None = msgspec.field(default=None, name="blobUrlTTL")
    ftue_tracking: list[Any] | None = None
    summary: dict[str, Any] | None = None
    etag: str | None = msgspec.field(default=None, name="_etag")
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


class CreateApplication(Message, frozen=True):
    """Create the application behind the ref for the user `owner_id`."""

    body: ApplicationPost
    owner_id: bytes


class PatchApplication(Message, frozen=True):
    """Change the application's record."""

    body: ApplicationPatch
    if_match: str | None = None


class DeleteApplication(Message, frozen=True):
    """Delete the application and, in the background, everything in it."""

    if_match: str | None = None


class CountRange(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Which days are counted: ms, 0 is now, negative counts back from now (default: 30 days)."""

    start: int | None = None
    end: int | None = None


class PayloadCountRange(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Which hours are counted (default: 30 days); `asBytes` asks for bytes, which are not measured yet."""

    start: int = -2592000000
    end: int = 0
    as_bytes: bool = False


class DayCount(View, frozen=True):
    """Devices created and deleted in the day that begins at `date` (UTC), and how many there were at its end."""

    date: IsoTime
    created: int
    deleted: int
    total: int


class DeviceCounts(View, frozen=True):
    """Devices per day."""

    start: IsoTime
    end: IsoTime
    counts: list[DayCount]


class PayloadStats(View, frozen=True):
    """Payloads by kind; within a kind by source (`total` where no finer source is known)."""

    app_file: dict[str, int]
    data_table: dict[str, int]
    device_create: dict[str, int]
    device_command: dict[str, int]
    device_connect: dict[str, int]
    device_disconnect: dict[str, int]
    device_state: dict[str, int]
    endpoint: dict[str, int]
    event: dict[str, int]
    flow_error: dict[str, int]
    inbound_email: dict[str, int]
    integration: dict[str, int]
    mqtt_in: dict[str, int]
    mqtt_out: dict[str, int]
    notebook: dict[str, int]
    resource_job: dict[str, int]
    timer: dict[str, int]
    virtual_button: dict[str, int]
    webhook: dict[str, int]


# Access keys.

_Topics = list[Annotated[str, Meta(min_length=1, max_length=1024)]]
_Addresses = Annotated[list[Annotated[str, Meta(max_length=48)]], Meta(max_length=100)]
_AddressFilter = Literal["all", "whitelist", "blacklist"]


class KeyPost(Body, frozen=True):
    """A new access key. Without `filterType`: all devices, or the whitelist where devices are named."""

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    filter_type: FilterType | UnsetType = UNSET
    pub_topics: _Topics | UnsetType = UNSET
    sub_topics: _Topics | UnsetType = UNSET
    address_filter_type: _AddressFilter | UnsetType = UNSET
    addresses: _Addresses | UnsetType = UNSET


class KeyPatch(Body, frozen=True):
    """Changes of an access key. `inactive` ends the device tokens that were made with it."""

    status: Literal["active", "inactive"] | UnsetType = UNSET
    name: Name | UnsetType | None = UNSET
    description: Description | UnsetType = UNSET
    filter_type: FilterType | UnsetType = UNSET
    pub_topics: _Topics | UnsetType = UNSET
    sub_topics: _Topics | UnsetType = UNSET
    address_filter_type: _AddressFilter | UnsetType = UNSET
    addresses: _Addresses | UnsetType = UNSET


class KeyPage(Page, frozen=True):
    """A page of the application's access keys."""

    sort_field: Literal["key", "status", "id", "creationDate", "lastUpdated", "name"] = "creationDate"
    sort_direction: Literal["asc", "desc"] = "desc"
    filter_field: Literal["key", "status", "name"] | None = None
    query: KeyQuery | None = None


class KeyView(View, frozen=True):
    """An access key. `secret` is shown once, in the answer to its creation."""

    id: Id
    application_key_id: Id
    application_id: Id
    creation_date: IsoTime
    last_updated: IsoTime
    created_by_id: Id
    created_by_type: Literal["flow", "user", "apiToken"]
    last_updated_by_id: Id
    last_updated_by_type: Literal["flow", "user", "apiToken"]
    key: str
    status: Literal["active", "inactive"]
    filter_type: FilterType
    address_filter_type: _AddressFilter
    device_ids: list[Id]
    device_tags: list[Any]
    pub_topics: list[str]
    sub_topics: list[str]
    addresses: list[str]
    secret: str | None = None
    name: str | None = None
    description: str | None = None
    etag: str | None = msgspec.field(default=None, name="_etag")
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


# API tokens.


class TokenPost(Body, frozen=True):
    """A new API token. Scopes and expiry are fixed at creation. Without `scope`: everything its owner may."""

    name: Name
    description: Description | UnsetType = UNSET
    expiration_date: str | UnsetType = UNSET
    scope: Annotated[list[str], Meta(max_length=500)] | UnsetType = UNSET
    status: Literal["active", "inactive"] = "active"
    default_role: Literal["admin", "edit", "collaborate", "view", "none"] | UnsetType = UNSET
    org_roles: Annotated[list[dict[str, Any]], Meta(max_length=25)] | UnsetType = UNSET


class TokenPatch(Body, frozen=True):
    """Changes of an API token; `inactive` ends access with it."""

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    status: Literal["active", "inactive"] | UnsetType = UNSET
    default_role: Literal["admin", "edit", "collaborate", "view", "none"] | UnsetType = UNSET
    org_roles: Annotated[list[dict[str, Any]], Meta(max_length=25)] | UnsetType = UNSET


class TokenPage(Page, frozen=True):
    """A page of API tokens."""

    sort_field: Literal["name", "status", "id", "creationDate", "lastUpdated", "expirationDate"] = "name"
    filter_field: Literal["name", "status"] | None = None


class TokenView(View, frozen=True):
    """An API token. `token` is shown once, in the answer to its creation."""

    id: Id
    api_token_id: Id
    owner_id: Id
    owner_type: Literal["application", "user"]
    creator_id: Id
    creator_type: Literal["apiToken", "user", "flow"]
    creation_date: IsoTime
    last_updated: IsoTime
    name: str
    scope: list[str]
    status: Literal["active", "inactive"]
    creator_name: str | None = None
    application_id: Id | None = None
    description: str | None = None
    expiration_date: IsoTime | None = None
    token: str | None = None
    etag: str | None = msgspec.field(default=None, name="_etag")
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


# The generic messages of the plain kinds (keys, tokens): the owner of the records handles them.


class Creator(msgspec.Struct, frozen=True):
    """Who made or changed a record: `type` is user or apiToken."""

    id: str
    type: Literal["flow", "user", "apiToken"]
    name: str = ""


class CreateRecord(Message, frozen=True):
    """Create a record of `kind` from `body`. Answers with the record's id and what is shown once."""

    kind: str
    body: Any
    by: Creator


class PatchRecord(Message, frozen=True):
    """Change the record `id` of `kind`."""

    kind: str
    id: bytes
    body: Any
    by: Creator
    if_match: str | None = None


class DeleteRecord(Message, frozen=True):
    """Delete the record `id` of `kind`."""

    kind: str
    id: bytes
    if_match: str | None = None
