"""Views of an experience: layouts, the pages in them, and components that both use. `rendering.py` renders them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.records.page import Match, Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.changes import Fixed, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Description, Id, Name, RecordView
from trunkline.actors.data.files.messages import usable_type
from trunkline.actors.presentation.experience.content import check_number
from trunkline.actors.presentation.experience.kind import DEVELOP, ENDPOINT, VIEW
from trunkline.actors.presentation.experience.read_context import ExperienceContext
from trunkline.actors.presentation.experience.terms import REPLIES, By, TagMap, VersionChoice, page_of
from trunkline.store import keys

ViewType = Literal["layout", "page", "component"]
_Text = Annotated[str, Meta(max_length=131_072)]


class ViewHeaders(Body, frozen=True):
    """The headers with which a page is sent."""

    content_type: Name | UnsetType = msgspec.field(default=UNSET, name="content-type")


class ViewPost(Body, frozen=True):
    """A new view. Only a page has a layout."""

    name: Name
    view_type: Fixed[ViewType]
    description: Description | UnsetType = UNSET
    layout_id: Id | UnsetType | None = UNSET
    body: _Text | UnsetType = UNSET
    view_tags: TagMap | UnsetType = UNSET
    headers: ViewHeaders | UnsetType = UNSET


@changes_of(ViewPost)
class ViewPatch(Body, frozen=True):
    """Changes of a view; omitted fields stay as they are. Null removes the layout. The type never changes."""


class ViewPage(Page, frozen=True):
    """A page of views."""

    sort_field: Literal["id", "creationDate", "name", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    view_type: ViewType | None = None
    version: Name = "develop"


class ViewView(RecordView, frozen=True, kw_only=True):
    """A view. `layoutName` is that of its layout."""

    experience_view_id: Id
    application_id: Id
    created_by_id: Id
    created_by_type: By
    last_updated_by_id: Id
    last_updated_by_type: By
    name: str
    view_type: ViewType
    body: str
    view_tags: dict[str, str]
    headers: dict[str, str]
    description: str | None = None
    layout_id: Id | None = None
    layout_name: str | None = None


def _check(change: Change) -> None:
    """Check the number of views, the name, which is unique for its type, the layout and the type of the content."""
    owner, new, named = change.owner, change.new, change.named
    if change.old is None:
        raw = Staged(owner).get(keys.COUNTS, keys.total_key(VIEW.name, owner.ref.id))
        check_number(raw, owner.system.limits.experience_views_max, "views")
    if "name" in named and view_of_name(owner, new["viewType"], new["name"]) not in (None, change.id):
        raise Invalid(f"name: there is a {new['viewType']} {new['name']} already; choose another name.")
    if named.get("layoutId") is not None:
        new["layoutId"] = new["layoutId"].lower()
        if new["viewType"] != "page":
            raise Invalid(f"layoutId: a {new['viewType']} has no layout; only a page has one.")
        layout = records.find(Staged(owner), VIEW, owner.ref.id, bytes.fromhex(new["layoutId"]))
        if layout is None or layout.doc["viewType"] != "layout":
            raise Invalid(f"layoutId: {new['layoutId']} is not a layout of this application.")
    type = named.get("headers", {}).get("content-type")
    if type is not None and not change.is_import and usable_type(type) is None:
        raise Invalid("headers.content-type: is not a media type; give one such as text/html or text/css.")
    new.setdefault("body", "")
    new.setdefault("viewTags", {})
    new.setdefault("headers", {})


def view_of_name(owner: Actor, type: str, name: str) -> bytes | None:
    """The id of the view of this type and name; None if there is none."""
    _, low, high = index_range(VIEW, owner.ref.id, "name", keys.sortable(name))
    assert high is not None
    for key, _ in Staged(owner).range(keys.INDEXES, low, high):
        found = records.find(Staged(owner), VIEW, owner.ref.id, key[-keys.ID_BYTES :])
        if found is not None and (found.doc["viewType"], found.doc["name"]) == (type, name):
            return found.id
    return None


def _before_delete(owner: Actor, id: bytes, doc: Doc) -> None:
    """Refuse the deletion of a layout that pages have, and of a page with which endpoints or `develop` answer."""
    journal, application = Staged(owner), owner.ref.id
    if doc["viewType"] == "layout":
        _, low, high = index_range(VIEW, application, "layoutId", keys.sortable(id.hex()))
        assert high is not None
        pages = journal.range(keys.INDEXES, low, high)
        if pages:
            raise Invalid(f"{len(pages)} pages have this layout; give them another one first.")
    if doc["viewType"] == "page":
        develop = records.find(journal, DEVELOP, application, application)
        for field in REPLIES:
            if develop is not None and page_of(develop.doc.get(field)) == id.hex():
                raise Invalid(f"The {field} of the version develop is this page; change that first.")
        for endpoint in records.all_of_kind(journal, ENDPOINT, application):
            if any(page_of(endpoint.doc.get(field)) == id.hex() for field in REPLIES):
                raise Invalid(
                    f"The endpoint {endpoint.id.hex()} ({endpoint.doc['method']} {endpoint.doc['route']}) answers with "
                    "this page; change its replies first."
                )


def _join(context: ExperienceContext, _id: bytes, doc: Doc, _query: object) -> Doc:
    layout = None if doc.get("layoutId") is None else context.record(VIEW, doc["layoutId"])
    return {} if layout is None else {"layoutName": layout["name"]}


def _narrow(_context: ExperienceContext, query: ViewPage) -> list[Match]:
    return [] if query.view_type is None else [lambda doc: doc["viewType"] == query.view_type]


def _around(_context: ExperienceContext, query: ViewPage) -> Doc:
    return {} if query.view_type is None else {"viewType": query.view_type}


VIEWS: Final = Resource(
    name="experienceView",
    kind=VIEW,
    post=ViewPost,
    patch=ViewPatch,
    page=ViewPage,
    view=ViewView,
    choice=VersionChoice,
    only_get_chooses=True,
    check=_check,
    before_delete=_before_delete,
    context=ExperienceContext,
    join=_join,
    narrow=_narrow,
    around=_around,
    beside={"viewType": str},
)
