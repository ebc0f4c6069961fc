"""Groups of people that alarm rules tell: addresses and users by a name, for several rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.changes import Removable, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Description, Id, Name, RecordView
from trunkline.actors.fleet.alarms.index import AlarmIndex
from trunkline.actors.fleet.alarms.kind import ALARM_GROUP
from trunkline.actors.fleet.alarms.people import address_of, told_of
from trunkline.actors.people.accounts.messages import Email

_NAMED_MAX: Final = 5
"""Rules that a refusal names."""


class AlarmGroupPost(Body, frozen=True):
    """A new group: addresses, and users who may read the application."""

    name: Name
    description: Removable[Description] | UnsetType = UNSET
    emails: Annotated[list[Email], Meta(max_length=20)] = msgspec.field(default_factory=list)
    user_ids: Annotated[list[Id], Meta(max_length=20)] = msgspec.field(default_factory=list)


@changes_of(AlarmGroupPost)
class AlarmGroupPatch(Body, frozen=True):
    """Changes of a group; omitted fields stay as they are."""


class AlarmGroupPage(Page, frozen=True):
    """A page of groups."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None


class AlarmGroupView(RecordView, frozen=True, kw_only=True):
    """A group. `tells` are the addresses that are told now; `untoldUserIds` are users who may not read the application
    any more, or are no users any more.
    """

    alarm_group_id: Id
    application_id: Id
    name: str
    emails: list[str]
    user_ids: list[Id]
    tells: list[str]
    untold_user_ids: list[Id]
    description: str | None = None


def _check(change: Change) -> None:
    new, owner = change.new, change.owner
    new.setdefault("emails", [])
    new["userIds"] = list(dict.fromkeys(id.lower() for id in new.get("userIds", ())))
    if "userIds" in change.named and not change.is_import:
        # Who has left since may stay, so that a group can be sent back as it was read.
        check_users(owner, new["userIds"], "userIds", known=(change.old or {}).get("userIds", ()))


def check_users(owner: Actor, users: Iterable[str], field: str, *, known: Collection[str]) -> None:
    """Raise `Invalid` unless all these users, but for those who are `known`, may read the application."""
    for user in users:
        if user not in known and address_of(owner.system.journal, owner.ref.id, user) is None:
            raise Invalid(
                f"{field}: the user {user} may not read this application; give its owner, or a member of the "
                "organization that owns it."
            )


def _before_delete(owner: Actor, id: bytes, _doc: Doc) -> None:
    """Raise `Invalid` if a rule tells the group."""
    rules = owner.system.component(AlarmIndex).telling(owner.ref.id, id.hex())
    if rules:
        more = f" and {len(rules) - _NAMED_MAX} more" if len(rules) > _NAMED_MAX else ""
        raise Invalid(
            f"The group is told by the alarm rules {', '.join(rules[:_NAMED_MAX])}{more}; take it out of these first."
        )


def _joined(context: Any, _id: bytes, doc: Doc, _query: Any) -> Doc:
    application = context.ids["application"]
    return {
        "tells": told_of(context.snapshot, application, doc),
        "untoldUserIds": [
            user for user in doc["userIds"] if address_of(context.snapshot, application, user) is None
        ],
    }


ALARM_GROUPS: Final = Resource(
    name="alarmGroup",
    kind=ALARM_GROUP,
    post=AlarmGroupPost,
    patch=AlarmGroupPatch,
    page=AlarmGroupPage,
    view=AlarmGroupView,
    check=_check,
    before_delete=_before_delete,
    join=_joined,
)
