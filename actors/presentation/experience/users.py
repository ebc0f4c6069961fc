"""Users of an experience: people who log in to its pages, not to this API."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.fields import ID, IDS, TAGS, TEXT, TIME, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.records.page import Match, Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.source import Source, Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.changes import changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body, View
from trunkline.actors.core.values.terms import Id, Ids, IsoText, IsoTime, RecordView
from trunkline.actors.core.values.timestamps import check_cutoff
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.people.accounts.passwords import hash_password
from trunkline.actors.presentation.experience.content import looks_like_id
from trunkline.actors.presentation.experience.kind import GROUP, USER
from trunkline.actors.presentation.experience.read_context import ExperienceContext
from trunkline.actors.presentation.experience.relations import GROUPS_OF_USER, relate, unrelate
from trunkline.actors.presentation.experience.terms import TagMap
from trunkline.store import keys

USER_FIELDS: Final = Fields(
    "experience user",
    {
        "id": ID,
        "creationDate": TIME,
        "lastUpdated": TIME,
        "firstName": TEXT,
        "lastName": TEXT,
        "email": TEXT,
        "lastLogin": TIME,
        "passwordLastUpdated": TIME,
        "userTags": TAGS,
        "experienceGroupId": IDS,
    },
)

UserQuery = Annotated[dict[str, Any], query_over(USER_FIELDS)]
_Text = Annotated[str, Meta(max_length=1024)]
_Password = Annotated[str, Meta(min_length=8, max_length=2048)]


class ExperienceUserPost(Body, frozen=True):
    """A new user."""

    email: Email
    password: _Password
    first_name: _Text | UnsetType = UNSET
    last_name: _Text | UnsetType = UNSET
    token_cutoff: IsoText | UnsetType = UNSET
    user_tags: TagMap | UnsetType = UNSET
    experience_group_ids: Ids | UnsetType = UNSET


@changes_of(ExperienceUserPost)
class ExperienceUserPatch(Body, frozen=True):
    """Changes of a user; omitted fields stay as they are. Lists and maps are replaced."""

    password: _Password | UnsetType = UNSET


class ExperienceUserPage(Page, frozen=True):
    """A page of users. `query` takes the place of `filter`."""

    sort_field: Literal[
        "firstName", "lastName", "email", "id", "creationDate", "lastLogin", "lastUpdated"
    ] = "email"
    filter_field: Literal["firstName", "lastName", "email"] | None = None
    experience_group_id: Id | None = None
    include_ancestor_groups: bool = False
    query: UserQuery | None = None


class GroupOfUser(View, frozen=True):
    """A group by id and name, with its parent."""

    id: Id
    name: str
    parent_id: Id | None = None


class ExperienceUserView(RecordView, frozen=True, kw_only=True):
    """A user. The password is never shown."""

    experience_user_id: Id
    application_id: Id
    email: str
    password_last_updated: IsoTime
    user_tags: dict[str, str]
    experience_groups: list[GroupOfUser]
    first_name: str | None = None
    last_name: str | None = None
    last_login: IsoTime | None = None
    token_cutoff: IsoTime | None = None


async def _hash(body: ExperienceUserPost | ExperienceUserPatch) -> ExperienceUserPost | ExperienceUserPatch:
    """Return the body with the hash of the password instead of the password, so that no actor sees the password."""
    if isinstance(body.password, str):
        return msgspec.structs.replace(body, password=await hash_password(body.password))
    return body


def _check(change: Change) -> None:
    """Check the e-mail address, which no other user of the application has, and the cutoff; store the hash of the
    password."""
    new, named = change.new, change.named
    if "password" in named:
        new["passwordHash"] = new.pop("password")
        new["passwordLastUpdated"] = change.now_ms
    if "email" in named:
        other = user_with_email(Staged(change.owner), change.owner.ref.id, named["email"])
        if other is not None and other.id != change.id:
            raise Invalid(
                f"email: {named['email']} belongs to another user of this application; use another address."
            )
    if "tokenCutoff" in named and not change.is_import:
        check_cutoff(new["tokenCutoff"], change.now_ms, field="tokenCutoff")
    new.setdefault("userTags", {})
    relate(change, GROUPS_OF_USER)


def user_with_email(source: Source, application: bytes, email: str) -> Found | None:
    """The user with this e-mail address, regardless of case; None if there is none."""
    _, low, high = index_range(USER, application, "email", keys.sortable_folded(email))
    assert high is not None
    for key, _ in source.range(keys.INDEXES, low, high):
        found = records.find(source, USER, application, bytes(key[-keys.ID_BYTES :]))
        # The index holds only the beginning of a long address.
        if found is not None and found.doc["email"].casefold() == email.casefold():
            return found
    return None


def find_user(source: Source, application: bytes, email_or_id: str) -> Found | None:
    """The user with this e-mail address or id; None if there is none."""
    if looks_like_id(email_or_id):
        return records.find(source, USER, application, bytes.fromhex(email_or_id))
    return user_with_email(source, application, email_or_id)


def _before_delete(owner: Actor, id: bytes, doc: Doc) -> None:
    unrelate(owner, GROUPS_OF_USER, id, doc)


def _join(context: ExperienceContext, _id: bytes, doc: Doc, _query: object) -> Doc:
    groups = []
    for id, group in context.groups(doc["experienceGroupIds"]):
        parent = group.get("parentId")
        groups.append({"id": id, "name": group["name"], **({} if parent is None else {"parentId": parent})})
    return {"experienceGroups": groups}


def _narrow(context: ExperienceContext, query: ExperienceUserPage) -> list[Match]:
    """The condition of being in a group, or also in one of the groups above it."""
    if query.experience_group_id is None:
        return []
    wanted = query.experience_group_id.lower()
    group = context.record(GROUP, wanted)
    groups = {wanted}
    if group is not None and query.include_ancestor_groups:
        groups.update(context.ancestors(group))
    return [lambda doc: not groups.isdisjoint(doc["experienceGroupIds"])]


def _around(_context: ExperienceContext, query: ExperienceUserPage) -> Doc:
    return {} if query.experience_group_id is None else {"experienceGroupId": query.experience_group_id}


EXPERIENCE_USERS: Final = Resource(
    name="experienceUser",
    kind=USER,
    post=ExperienceUserPost,
    patch=ExperienceUserPatch,
    page=ExperienceUserPage,
    view=ExperienceUserView,
    query_replaces_filter=True,
    fields=USER_FIELDS,
    hidden=frozenset({"passwordHash"}),
    check=_check,
    prepare=_hash,
    before_delete=_before_delete,
    context=ExperienceContext,
    join=_join,
    narrow=_narrow,
    derived={"experienceGroupId": lambda _context, doc: doc["experienceGroupIds"]},
    around=_around,
    beside={"experienceGroupId": str},
)
