"""The records of webhooks: addresses of an application that other systems call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.connections.webhooks.address import new_token
from trunkline.actors.connections.webhooks.connections import GOING_AWAY, WebhookConnections
from trunkline.actors.connections.webhooks.kind import WEBHOOK
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.values.changes import Removable, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body, Query
from trunkline.actors.core.values.terms import Description, Id, Name, RecordView

if TYPE_CHECKING:
    from trunkline.actors.core.records.kind import Doc
    from trunkline.actors.core.runtime.actor import Actor

_Code = Annotated[int, Meta(ge=100, le=599)]
_Text = Annotated[str, Meta(max_length=255)]
_Verification = Literal["facebook", "fitbit", "none", "twilio", "alexa"]
_NEED_CODE: Final = frozenset({"facebook", "fitbit", "twilio"})
_ADMITS: Final = (
    "enabled",
    "isWebsocket",
    "basicAuthUsername",
    "basicAuthPassword",
    "verificationType",
    "verificationCode",
)
"""The fields that decide who may connect: a change of one closes the connections."""
_Buffers = Literal["array", "binary", "utf8", "base64", "hex"]


class WebhookPost(Body, frozen=True):
    """A new webhook."""

    name: Name
    description: Removable[Description] | UnsetType = UNSET
    response_code: _Code = 200
    verification_type: _Verification = "none"
    verification_code: Removable[Description] | UnsetType = UNSET
    wait_for_reply: bool = False
    basic_auth_username: Removable[_Text] | UnsetType = UNSET
    basic_auth_password: Removable[_Text] | UnsetType = UNSET
    is_websocket: bool = False
    cast_buffers_as: Removable[_Buffers] | UnsetType = UNSET
    annotate_multipart: bool = False
    enabled: bool = True


@changes_of(WebhookPost)
class WebhookPatch(Body, frozen=True):
    """Changes of a webhook; omitted fields stay as they are, null removes a field."""


class WebhookPage(Page, frozen=True):
    """A page of webhooks."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None


class WebhookRemoval(Query, frozen=True):
    """`includeWorkflows`: also delete the workflows that the webhook triggers."""

    include_workflows: bool = False


class WebhookView(RecordView, frozen=True, kw_only=True):
    """A webhook. `token` is the last part of its address. The basic-auth password is never shown."""

    webhook_id: Id
    application_id: Id
    name: str
    token: str
    response_code: int
    verification_type: _Verification
    wait_for_reply: bool
    is_websocket: bool
    annotate_multipart: bool
    enabled: bool
    description: str | None = None
    verification_code: str | None = None
    basic_auth_username: str | None = None
    cast_buffers_as: str | None = None


def _check(change: Change) -> None:
    """Give a new webhook its token. Check that what it verifies senders with is complete."""
    new = change.new
    if change.old is None:
        signatures = change.owner.system.component(Contents).signatures
        new["token"] = new_token(signatures, change.owner.ref.id, change.id)
    if new.get("basicAuthUsername") and new.get("basicAuthPassword") is None:
        raise Invalid(
            "basicAuthPassword: is needed with basicAuthUsername; give both, or remove both with null."
        )
    if new["isWebsocket"] and new["verificationType"] == "alexa":
        raise Invalid(
            "verificationType: Alexa opens no WebSocket connections; give none, or leave isWebsocket out."
        )
    if change.old is not None and any(change.old.get(name) != new.get(name) for name in _ADMITS):
        _close_connections(change.owner, change.id, "The webhook was changed; connect again.")
    if new["verificationType"] in _NEED_CODE and not new.get("verificationCode"):
        raise Invalid(f"verificationCode: the verification type {new['verificationType']} needs it.")


def _before_delete(owner: Actor, id: bytes, _doc: Doc) -> None:
    _close_connections(owner, id, "The webhook was deleted.")


def _close_connections(owner: Actor, id: bytes, reason: str) -> None:
    connections = owner.system.component(WebhookConnections)
    owner.after_commit(partial(connections.close, owner.ref.id, id, GOING_AWAY, reason))


WEBHOOKS: Final = Resource(
    name="webhook",
    kind=WEBHOOK,
    post=WebhookPost,
    patch=WebhookPatch,
    page=WebhookPage,
    view=WebhookView,
    sealed=frozenset({"basicAuthPassword"}),
    check=_check,
    before_delete=_before_delete,
)
