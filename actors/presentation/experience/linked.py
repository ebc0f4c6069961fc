"""What refers to an endpoint or a view, or is referred to by it: what somebody has to look at before changing it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.resource import Resource, missing
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message, View
from trunkline.actors.core.values.terms import Id
from trunkline.actors.presentation.experience.content import all_in, find_in, find_version
from trunkline.actors.presentation.experience.endpoints import EndpointView
from trunkline.actors.presentation.experience.kind import ENDPOINT, VIEW
from trunkline.actors.presentation.experience.read_context import ExperienceContext
from trunkline.actors.presentation.experience.terms import REPLIES, VersionChoice, page_of
from trunkline.actors.presentation.experience.views import ViewView
from trunkline.actors.workflows.flows.kind import DEVELOP, FLOW, FLOW_VERSION
from trunkline.actors.workflows.flows.presenter import FlowPresenter, read_definition
from trunkline.actors.workflows.flows.versions import VersionFound
from trunkline.actors.workflows.flows.views import FlowVersionView, FlowView
from trunkline.store import keys


class ExperienceLinksChoice(VersionChoice, frozen=True):
    """The version, and whether workflows that are custom nodes count."""

    include_custom_nodes: bool = False


class GetExperienceLinks(Message, frozen=True):
    """Read what is linked with an endpoint or a view, which is the record of `resource` in `ids`."""

    resource: str
    ids: dict[str, Any]
    query: ExperienceLinksChoice


class LinkedViews(View, frozen=True):
    """Views, by name."""

    items: list[ViewView]
    count: int
    total_count: int
    application_id: Id


class LinkedEndpoints(View, frozen=True):
    """Endpoints, in the order in which they are tried."""

    items: list[EndpointView]
    count: int
    total_count: int
    application_id: Id


class ExperienceFlows(View, frozen=True):
    """Workflows, by name."""

    items: list[FlowView]
    count: int
    total_count: int
    application_id: Id


class ExperienceFlowVersions(View, frozen=True):
    """Versions of workflows, by the names of the workflows."""

    items: list[FlowVersionView]
    count: int
    total_count: int
    application_id: Id


class ExperienceLinks(View, frozen=True):
    """What is linked with an endpoint or a view. `flows` are those whose editable state names it."""

    experience_views: LinkedViews
    experience_endpoints: LinkedEndpoints
    flows: ExperienceFlows
    flow_versions: ExperienceFlowVersions


def get_linked(resources: Mapping[str, Resource], reading: Reading, message: GetExperienceLinks) -> Doc:
    """What is linked with one record, in one version of the experience."""
    resource, application = resources[message.resource], message.ids["application"]
    context = ExperienceContext(reading, message.ids, application, message.query)
    found = context.find(resource.kind, message.ids[resource.kind.name])
    if found is None:
        raise missing(resource.kind, message.ids[resource.kind.name])
    kinds = (ENDPOINT, VIEW, FLOW, FLOW_VERSION)
    counts = (records.total(reading.snapshot, kind, application) for kind in kinds)
    reading.check_time(is_long=context.version is not None or sum(counts) > SCAN_INLINE_MAX)
    if resource.kind is ENDPOINT:
        views, endpoints = list(_views_of(context, found.doc)), []
    else:
        views, endpoints = list(_views_with(context, found)), list(_endpoints_with(context, found))
    size = reading.answer_size()
    linked: Doc = {}
    for kind, each in ((VIEW, views), (ENDPOINT, endpoints)):
        each.sort(key=lambda found: (kind.sort_key(found.doc, kind.indexes[0]), found.id))
        for item in each:
            size.add(len(item.raw))
        shown = [resources[kind.name].shown(context, item, None) for item in each]
        linked[f"{kind.name}s"] = _page(application, shown)
    presenter = FlowPresenter(reading, application, with_custom_nodes=message.query.include_custom_nodes)
    flows, versions = [], []
    for flow, version in _flows_with(context, resource.kind, found.id.hex()):
        if version.id == ROOT:
            flows.append(presenter.flow(flow))
        else:
            versions.append(presenter.version(flow, version))
    return linked | {"flows": _page(application, flows), "flowVersions": _page(application, versions)}


def _page(application: bytes, items: list[Doc]) -> Doc:
    count = len(items)
    return {"items": items, "count": count, "totalCount": count, "applicationId": application.hex()}


def _flows_with(context: ExperienceContext, kind: Kind, id: str) -> Iterator[tuple[Found, VersionFound]]:
    """The workflows and their versions that an endpoint triggers, or that answer with a page; by name.

    Of the workflows of the experience only those of its version (of the same name) count.
    """
    snapshot, application = context.snapshot, context.parent
    flows = sorted(
        (
            found
            for each, _ in records.scan(snapshot, FLOW, application)
            if (found := context.find(FLOW, each))
        ),
        key=lambda flow: keys.sortable(flow.doc["name"]),
    )
    name = (
        DEVELOP
        if context.version is None
        else find_version(snapshot, application, context.version).doc["version"]
    )
    for flow in flows:
        stored = (
            records.find(snapshot, FLOW_VERSION, application, each) for each in _versions_of(context, flow)
        )
        named = (VersionFound(*each) for each in stored if each is not None)
        for each in (VersionFound(ROOT, {}, b""), *named):
            if flow.doc["flowClass"] == "experience" and each.name != name:
                continue
            definition = read_definition(snapshot, application, flow.id, each.id)
            if kind is ENDPOINT:
                is_linked = any(
                    trigger["type"] == "endpoint" and trigger.get("key", "").lower() == id
                    for trigger in definition.get("triggers", ())
                )
            else:
                is_linked = any(_names(node.get("config"), id) for node in definition.get("nodes", ()))
            if is_linked:
                yield flow, each


def _versions_of(context: ExperienceContext, flow: Found) -> Iterator[bytes]:
    return ids_of_facet(context.snapshot, FLOW_VERSION, context.parent, flow.id.hex())


def _names(config: Any, id: str) -> bool:
    """Whether a text anywhere in the settings of a node is this id. Their nesting was bounded when they were stored."""
    if isinstance(config, str):
        return config.lower() == id
    inner = config.values() if isinstance(config, dict) else config if isinstance(config, list) else ()
    return any(_names(each, id) for each in inner)


def _views_of(context: ExperienceContext, endpoint: Doc) -> Iterator[Found]:
    """The pages with which an endpoint answers, and their layouts."""
    wanted = {page_of(endpoint.get(field)) for field in REPLIES} - {None}
    for id in sorted(filter(None, wanted)):
        page = find_in(context.snapshot, VIEW, context.parent, context.version, bytes.fromhex(id))
        if page is not None:
            yield page
            wanted.add(page.doc.get("layoutId"))
    for id in sorted(filter(None, wanted)):
        layout = find_in(context.snapshot, VIEW, context.parent, context.version, bytes.fromhex(id))
        if layout is not None and layout.doc["viewType"] == "layout":
            yield layout


def _views_with(context: ExperienceContext, view: Found) -> Iterator[Found]:
    """The pages with a layout, and the layout of a page; the views that a component stands in."""
    id, type, name = view.id.hex(), view.doc["viewType"], re.escape(view.doc["name"])
    used = re.compile(r"\{\{\{?~?#?\s*component\s+[\"']" + name + r"[\"']") if type == "component" else None
    for other in all_in(context.snapshot, VIEW, context.parent, context.version):
        if (
            other.doc.get("layoutId") == id
            or view.doc.get("layoutId") == other.id.hex()
            or (used is not None and other.id != view.id and used.search(other.doc["body"]))
        ):
            yield other


def _endpoints_with(context: ExperienceContext, view: Found) -> Iterator[Found]:
    """The endpoints that answer with a page."""
    for endpoint in all_in(context.snapshot, ENDPOINT, context.parent, context.version):
        if any(page_of(endpoint.doc.get(field)) == view.id.hex() for field in REPLIES):
            yield endpoint
