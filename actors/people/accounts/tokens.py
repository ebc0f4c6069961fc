"""API tokens: tokens of an application or of a user for programs. Scopes and expiry are fixed at creation.

A token is valid while its record is active. The token itself is signed by `http/`, shown once, and stored nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import GIVES_ACCESS, Doc, Kind
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.read_context import Ids
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.values.changes import Fixed, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Description, Id, IsoText, IsoTime, Links, Name, RecordView


class TokenPost(Body, frozen=True):
    """A new API token. Scopes and expiry are fixed at creation. Without `scope`: everything its owner may."""

    name: Name
    description: Description | UnsetType = UNSET
    expiration_date: Fixed[IsoText] | UnsetType = UNSET
    scope: Fixed[Annotated[list[str], Meta(max_length=500)]] | UnsetType = UNSET
    status: Literal["active", "inactive"] = "active"
    default_role: Literal["admin", "edit", "collaborate", "view", "none"] | UnsetType = UNSET
    org_roles: Annotated[list[dict[str, Any]], Meta(max_length=25)] | UnsetType = UNSET


@changes_of(TokenPost)
class TokenPatch(Body, frozen=True):
    """Changes of an API token; `inactive` revokes it."""


class TokenPage(Page, frozen=True):
    """A page of API tokens."""

    sort_field: Literal["name", "status", "id", "creationDate", "lastUpdated", "expirationDate"] = "name"
    filter_field: Literal["name", "status"] | None = None


class TokenView(RecordView, frozen=True, kw_only=True):
    """An API token. `token` is shown once, in the answer to its creation."""

    api_token_id: Id
    owner_id: Id
    owner_type: Literal["application", "user"]
    creator_id: Id
    creator_type: Literal["apiToken", "user", "flow"]
    name: str
    scope: list[str]
    status: Literal["active", "inactive"]
    creator_name: str | None = None
    application_id: Id | None = None
    description: str | None = None
    expiration_date: IsoTime | None = None
    token: str | None = None
    links: Links | None = msgspec.field(default=None, name="_links")


def _check(change: Change) -> None:
    """Refuse an expiry in the past, and features that are not supported."""
    if change.new.pop("defaultRole", None) not in (None, "admin"):
        raise Invalid("defaultRole: a token has the roles of its user; restrict it by scope.")
    if change.new.pop("orgRoles", None):
        raise Invalid("orgRoles: a token has the roles of its user in organizations; restrict it by scope.")
    if change.old is None and change.new.get("expirationDate", change.now_ms + 1) <= change.now_ms:
        raise Invalid("expirationDate: lies in the past; such a token would never be valid.")


def _owner_fields(ids: Ids) -> Doc:
    """The fields for the owner of the token."""
    owner_type = "application" if "application" in ids else "user"
    return {"ownerId": ids[owner_type].hex(), "ownerType": owner_type}


def _owner_and_creator(ids: Ids, doc: Doc, _query: object) -> Doc:
    """The fields for the owner and the creator of the token."""
    return {
        **_owner_fields(ids),
        "creatorId": doc["createdById"],
        "creatorType": doc["createdByType"],
        "creatorName": doc["createdByName"],
    }


API_TOKEN: Final = Kind(
    name="apiToken",
    noun="API token",
    home="owner",
    counted_as="apiTokenCount",
    ends_access=frozenset({"status", "name"}),
    audited_as="ApiToken",
    not_portable=GIVES_ACCESS,
)
"""The name of a token is stored in the records that it creates. It is in `ends_access`, so that a new name applies
from the next call."""

APPLICATION_TOKENS: Final = Resource(
    name="applicationApiToken",
    kind=API_TOKEN,
    post=TokenPost,
    patch=TokenPatch,
    page=TokenPage,
    view=TokenView,
    shows_once=True,
    check=_check,
    derive=_owner_and_creator,
    around=lambda context, _query: _owner_fields(context.ids),
    beside={"ownerId": str, "ownerType": str},
)

USER_TOKENS: Final = replace(APPLICATION_TOKENS, name="userApiToken", parent="user")
