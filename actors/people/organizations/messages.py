"""Organizations and their members: bodies, query strings, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.core.values.changes import changes_of
from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import Description, Id, Links, Name, RecordView
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.people.organizations.roles import ResourceRole, Role

MfaMode = Literal["notRequired", "adminRequired", "required"]

_Text = Annotated[str, Meta(max_length=1024)]

# Bodies.


class OrgPost(Body, frozen=True):
    """A new organization. Its creator becomes the first administrator."""

    name: Name
    description: Description | UnsetType = UNSET
    billing_email: Email | UnsetType = UNSET
    icon_color: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    mfa_mode: MfaMode = "notRequired"
    plan_id: _Text | UnsetType = UNSET
    card_token: _Text | UnsetType = UNSET


@changes_of(OrgPost)
class OrgPatch(Body, frozen=True):
    """Changes of an organization; omitted fields stay as they are."""


class RoleIn(Body, frozen=True):
    """The role of a member in a single application or dashboard."""

    resource_id: Id
    role: ResourceRole


ResourceRoles = Annotated[list[RoleIn], Meta(max_length=100)]


class MemberPatch(Body, frozen=True):
    """Changes of a member. The roles in single applications and dashboards replace those from before."""

    user_id: Id
    role: Role | UnsetType = UNSET
    application_roles: ResourceRoles | UnsetType = UNSET
    dashboard_roles: ResourceRoles | UnsetType = UNSET


# Query strings.


class OrgPage(Page, frozen=True):
    """A page of the user's organizations."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    summary_exclude: str | None = None
    summary_include: str | None = None


class MemberRemoval(Query, frozen=True):
    """Which member is removed."""

    user_id: Id
    summary_exclude: str | None = None
    summary_include: str | None = None


# Messages to the actor.


class CreateOrg(Message, frozen=True):
    """Create an organization; `user` becomes an administrator."""

    body: OrgPost
    user: bytes


class PatchOrg(Message, frozen=True):
    """Change an organization."""

    body: OrgPatch
    user: bytes
    if_match: str | None = None


class DeleteOrg(Message, frozen=True):
    """Delete an organization that owns nothing any more, with its members and invitations."""

    if_match: str | None = None


class ModifyMember(Message, frozen=True):
    """Change the roles of a member."""

    body: MemberPatch


class RemoveMember(Message, frozen=True):
    """Remove a member."""

    member: bytes


# Messages of reads.


class GetOrg(Message, frozen=True):
    """One organization, as `user` sees it."""

    org: bytes
    user: bytes
    query: SummaryChoice | MemberRemoval


class GetAccess(Message, frozen=True):
    """What the caller may do in an application or with a dashboard: `level`. `owner` is the user or the organization
    that owns it.
    """

    owner: bytes
    level: int


class ListOrgs(Message, frozen=True):
    """The organizations that `user` belongs to."""

    user: bytes
    query: OrgPage


# Answers.


class AccessView(View, frozen=True):
    """What a caller may do in an application or with a dashboard. The name and the administrators are those of the
    organization.
    """

    role: Literal["owner", "admin", "edit", "collaborate", "view"]
    organization_name: str | None = None
    administrators: list[str] | None = None


class MemberView(View, frozen=True):
    """A member of an organization."""

    user_id: Id
    email: str
    role: Role
    application_roles: list[RoleIn]
    dashboard_roles: list[RoleIn]
    two_factor_auth_enabled: bool
    first_name: str | None = None
    last_name: str | None = None


class OrgView(RecordView, frozen=True, kw_only=True):
    """An organization. `members` are shown to those who may read its applications."""

    org_id: Id
    name: str
    mfa_mode: MfaMode
    description: str | None = None
    billing_email: str | None = None
    icon_color: str | None = None
    members: list[MemberView] | None = None
    summary: dict[str, Any] | None = None
    links: Links | None = msgspec.field(default=None, name="_links")
