"""Endpoints: the routes at which an experience answers. Owns the records and their rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.page import Match, Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.changes import changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import FORM, Body, Query, View
from trunkline.actors.core.values.terms import Description, Id, Ids, Name, RecordView
from trunkline.actors.presentation.experience.access import check_device_template
from trunkline.actors.presentation.experience.content import check_address, check_reply
from trunkline.actors.presentation.experience.kind import ENDPOINT, NO_ENDPOINT
from trunkline.actors.presentation.experience.read_context import ExperienceContext
from trunkline.actors.presentation.experience.relations import GROUPS_OF_ENDPOINT, relate, unrelate
from trunkline.actors.presentation.experience.routes import RouteTree
from trunkline.actors.presentation.experience.terms import REPLIES, By, Reply, TagMap, VersionChoice

Method = Literal["delete", "get", "options", "patch", "post", "put"]
Access = Literal["public", "authenticated", "group", "device"]
_Route = Annotated[str, Meta(min_length=1, max_length=1024)]
_Template = Annotated[str, Meta(max_length=255)]
_Milliseconds = Annotated[int, Meta(ge=1, le=31 * 86_400_000, extra={FORM: "milliseconds, at most 31 days"})]


class EndpointPost(Body, frozen=True):
    """A new endpoint. `access` is `public` if it is left out."""

    route: _Route
    method: Method
    description: Description | UnsetType = UNSET
    enabled: bool = True
    access: Access = "public"
    device_id_template: _Template | UnsetType = UNSET
    endpoint_tags: TagMap | UnsetType = UNSET
    experience_group_ids: Ids | UnsetType = UNSET
    static_reply: Reply | UnsetType | None = UNSET
    unauthorized_reply: Reply | UnsetType | None = UNSET


@changes_of(EndpointPost)
class EndpointPatch(Body, frozen=True):
    """Changes of an endpoint; omitted fields stay as they are. Lists and maps are replaced, null removes a reply."""


class EndpointPage(Page, frozen=True):
    """A page of endpoints. `order` is the order in which routes are tried: the most specific first."""

    sort_field: Literal["order", "method", "route", "id", "creationDate", "requestCount", "lastUpdated"] = (
        "order"
    )
    filter_field: Literal["method", "route"] | None = None
    experience_group_id: Id | None = None
    request_count_duration: _Milliseconds | None = None
    version: Name = "develop"


class EndpointRemoval(Query, frozen=True):
    """`includeWorkflows`: also delete the workflows that the endpoint triggers."""

    include_workflows: bool = False


class GroupName(View, frozen=True):
    """A group by id and name."""

    id: Id
    name: Name


class EndpointView(RecordView, frozen=True, kw_only=True):
    """An endpoint. `requestCount` is shown in a list with `requestCountDuration`."""

    experience_endpoint_id: Id
    application_id: Id
    created_by_id: Id
    created_by_type: By
    last_updated_by_id: Id
    last_updated_by_type: By
    route: str
    method: Method
    enabled: bool
    access: Access
    experience_groups: list[GroupName]
    endpoint_tags: dict[str, str]
    description: str | None = None
    device_id_template: str | None = None
    static_reply: dict[str, Any] | None = None
    unauthorized_reply: dict[str, Any] | None = None
    request_count: int | None = None


def _check(change: Change) -> None:
    """Refuse a route that clashes with that of another endpoint, and too many endpoints."""
    owner, new, named = change.owner, change.new, change.named
    if change.old is None or "route" in named or "method" in named:
        others = {each.id: each.doc for each in records.all_of_kind(Staged(owner), ENDPOINT, owner.ref.id)}
        most = owner.system.limits.experience_endpoints_max
        if change.old is None and len(others) >= most:
            raise Invalid(
                f"The experience has {most} endpoints already, which is the limit; delete one first."
            )
        tree = RouteTree((id, doc["method"], doc["route"]) for id, doc in others.items() if id != change.id)
        clash = tree.clashing(new["method"], new["route"])
        if clash is not None:
            raise Invalid(
                f"route: {new['method']} {new['route']} could match the same requests as the endpoint {clash.hex()} "
                f"({others[clash]['method']} {others[clash]['route']}); choose another route or method."
            )
    new.setdefault("endpointTags", {})
    for field in REPLIES:
        if field in named:
            check_reply(owner, field, new.get(field))
            if not change.is_import:
                check_address(field, new.get(field))
    is_about_device = new["access"] == "device" and ("access" in named or "deviceIdTemplate" in named)
    if is_about_device and not change.is_import:
        check_device_template(new.get("deviceIdTemplate", ""))
    relate(change, GROUPS_OF_ENDPOINT)


def _before_delete(owner: Actor, id: bytes, doc: Doc) -> None:
    unrelate(owner, GROUPS_OF_ENDPOINT, id, doc)


def _join(context: ExperienceContext, id: bytes, doc: Doc, query: object) -> Doc:
    shown: Doc = {
        "experienceGroups": [
            {"id": each, "name": group["name"]} for each, group in context.groups(doc["experienceGroupIds"])
        ]
    }
    duration_ms = getattr(query, "request_count_duration", None)
    if duration_ms is not None:
        shown["requestCount"] = context.requests(duration_ms)[id.hex()]
    return shown


def _narrow(_context: ExperienceContext, query: EndpointPage) -> list[Match]:
    group = query.experience_group_id
    return [] if group is None else [lambda doc: group.lower() in doc["experienceGroupIds"]]


def _sort(context: ExperienceContext, query: EndpointPage) -> Callable[[Found], int] | None:
    """The requests of an endpoint, if a list is sorted by them."""
    if query.sort_field != "requestCount":
        return None
    return lambda each: context.requests(query.request_count_duration)[each.id.hex()]


def _around(context: ExperienceContext, query: EndpointPage) -> Doc:
    """The group of a list, and the number of requests that no endpoint served."""
    shown: Doc = {}
    if query.experience_group_id is not None:
        shown["experienceGroupId"] = query.experience_group_id
    if query.request_count_duration is not None:
        shown["notFoundRequestCount"] = context.requests(query.request_count_duration)[NO_ENDPOINT.hex()]
    return shown


ENDPOINTS: Final = Resource(
    name="experienceEndpoint",
    kind=ENDPOINT,
    post=EndpointPost,
    patch=EndpointPatch,
    page=EndpointPage,
    view=EndpointView,
    choice=VersionChoice,
    only_get_chooses=True,
    check=_check,
    before_delete=_before_delete,
    context=ExperienceContext,
    join=_join,
    narrow=_narrow,
    sort=_sort,
    around=_around,
    beside={"experienceGroupId": str, "notFoundRequestCount": int},
)
