"""The audit logs of organizations and of persons: their kind of record, query strings, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from trunkline.actors.core.query.fields import ID_AS_TEXT, TEXT, TIME, Field, Fields
from trunkline.actors.core.records.kind import OTHER_OWNER, Kind
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.structs import FORM, Body, Message, View
from trunkline.actors.core.values.terms import Id, IsoTime, Links, QueryTime, SortDirection
from trunkline.store.batch import Completes

AUDIT_ENTRY: Final = Kind(
    name="auditLog",
    noun="audit log entry",
    home="root",
    indexes=("creationDate", "responseStatus", "actorName"),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""The parent of an entry is its organization, or the user who owns the application that it is about."""

AUDIT_NAMES: Final = "audited_as"
"""Stands in the schema of a name for all names of kinds, which the documents know (`http/openapi/document.py`)."""

AUDIT_FIELDS: Final = Fields(
    "auditLog",
    {
        "creationDate": TIME,
        "primaryTargetId": ID_AS_TEXT,
        "primaryTargetType": TEXT,
        "primaryTargetName": TEXT,
        "secondaryTargetId": ID_AS_TEXT,
        "secondaryTargetType": TEXT,
        "secondaryTargetName": TEXT,
        "actorId": ID_AS_TEXT,
        "actorType": TEXT,
        "actorName": TEXT,
        "requestResource": TEXT,
        "requestAction": TEXT,
        "responseStatus": Field("value", "number"),
    },
)
"""The fields that the filter of a list uses."""

AuditName = Annotated[
    str, Meta(extra={FORM: "the name of a kind of record"}, extra_json_schema={"enum": AUDIT_NAMES})
]
"""What entries call a part of an application (`Kind.audited_as`)."""
PrimaryTarget = Literal["Application", "Dashboard", "OrgInvite"]
ActorType = Literal["Application", "Device", "Flow", "User", "ApiToken"]
_Text = Annotated[str, Meta(max_length=1024)]
_Status = Annotated[int, Meta(ge=100, le=599)]
_CHOICES_MAX: Final = 100


# Query strings.


class PrimaryTargetChoice(Body, frozen=True):
    """What an entry is about: it must have all that is given here."""

    id: Id | msgspec.UnsetType = msgspec.UNSET
    type: PrimaryTarget | msgspec.UnsetType = msgspec.UNSET
    name: _Text | msgspec.UnsetType = msgspec.UNSET


class SecondaryTargetChoice(Body, frozen=True):
    """The part of an application that an entry is about: it must have all that is given here."""

    id: Id | msgspec.UnsetType = msgspec.UNSET
    type: AuditName | msgspec.UnsetType = msgspec.UNSET
    name: _Text | msgspec.UnsetType = msgspec.UNSET


class ActorChoice(Body, frozen=True):
    """Who made a call: the entry must have all that is given here."""

    id: Id | msgspec.UnsetType = msgspec.UNSET
    type: ActorType | msgspec.UnsetType = msgspec.UNSET
    name: _Text | msgspec.UnsetType = msgspec.UNSET


class RequestChoice(Body, frozen=True):
    """The two parts of the name of an operation, such as `device` and `patch`."""

    resource: _Text | msgspec.UnsetType = msgspec.UNSET
    action: _Text | msgspec.UnsetType = msgspec.UNSET


class AuditLogFilter(Body, frozen=True):
    """Entries that match one item of each list that is given."""

    primary_target: (
        Annotated[list[PrimaryTargetChoice], Meta(max_length=_CHOICES_MAX)] | msgspec.UnsetType
    ) = msgspec.UNSET
    secondary_target: (
        Annotated[list[SecondaryTargetChoice], Meta(max_length=_CHOICES_MAX)] | msgspec.UnsetType
    ) = msgspec.UNSET
    actor: Annotated[list[ActorChoice], Meta(max_length=_CHOICES_MAX)] | msgspec.UnsetType = msgspec.UNSET
    request: Annotated[list[RequestChoice], Meta(max_length=_CHOICES_MAX)] | msgspec.UnsetType = msgspec.UNSET
    response_code: Annotated[list[_Status], Meta(max_length=_CHOICES_MAX)] | msgspec.UnsetType = msgspec.UNSET


class AuditPage(Page, frozen=True):
    """A page of entries, the newest first unless asked otherwise. `start` and `end` bound their time."""

    sort_field: Literal["creationDate", "responseStatus", "actorName"] = "creationDate"
    sort_direction: SortDirection = "desc"
    start: QueryTime | None = None
    end: QueryTime | None = None
    audit_log_filter: AuditLogFilter | None = None


# Messages.


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One call that changed something, or that tried to.

    Ids are in hexadecimal. The author is who the actor, a workflow, acted for. Bodies and parameters contain no
    secrets. `previous` are the values before the call of the fields that the call changed, as they were read just
    before it.
    """

    primary_target_id: str | None = None
    primary_target_type: PrimaryTarget | None = None
    primary_target_name: str | None = None
    secondary_target_id: str | None = None
    secondary_target_type: AuditName | None = None
    secondary_target_name: str | None = None
    actor_id: str | None = None
    actor_type: ActorType
    actor_name: str
    on_behalf_of_id: str | None = None
    on_behalf_of_type: ActorType | None = None
    on_behalf_of_name: str | None = None
    ip_address: str
    request_id: str | None = None
    request_resource: str
    request_action: str
    request_path_params: dict[str, Any]
    request_query_params: dict[str, Any]
    request_body: dict[str, Any] | None = None
    previous: dict[str, Any] | None = None
    response_status: int
    response_body: dict[str, Any] | None = None


class AddEntry(Message, frozen=True):
    """Add an entry to the audit log.

    `completes` says what the call has done: the entry is stored also where a full disk has room for nothing new,
    because the call is acknowledged when it has an entry.
    """

    entry: AuditEntry
    completes: Completes = None


class ExpireEntries(Message, frozen=True):
    """Remove entries that are too old, at most `most`. The answer is their number, in a list."""

    most: int


class GetAuditLog(Message, frozen=True):
    """Read one entry."""

    org: bytes
    audit_log: bytes


class ListAuditLogs(Message, frozen=True):
    """Read a page of entries."""

    org: bytes
    query: AuditPage
    now_ms: int


class GetOwnAuditLog(Message, frozen=True):
    """Read one entry about applications of a user."""

    user: bytes
    audit_log: bytes


class ListOwnAuditLogs(Message, frozen=True):
    """Read a page of the entries about applications of a user."""

    user: bytes
    query: AuditPage
    now_ms: int


# Answers.


class AuditLogView(View, frozen=True, kw_only=True):
    """One call that changed something, or that tried to: who, what, when and from where.

    It is of an organization, or else of the applications of a user.
    """

    id: Id
    audit_log_id: Id
    creation_date: IsoTime
    actor_type: ActorType
    actor_name: str
    ip_address: str
    request_resource: str
    request_action: str
    request_path_params: dict[str, Any]
    request_query_params: dict[str, Any]
    response_status: int
    actor_id: Id | None = None
    on_behalf_of_id: Id | None = None
    on_behalf_of_type: ActorType | None = None
    on_behalf_of_name: str | None = None
    org_id: Id | None = None
    user_id: Id | None = None
    request_id: str | None = None
    request_body: dict[str, Any] | None = None
    previous: dict[str, Any] | None = None
    response_body: dict[str, Any] | None = None
    primary_target_id: Id | None = None
    primary_target_type: PrimaryTarget | None = None
    primary_target_name: str | None = None
    secondary_target_id: Id | None = None
    secondary_target_type: AuditName | None = None
    secondary_target_name: str | None = None
    etag: str | None = msgspec.field(default=None, name="_etag")
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")
