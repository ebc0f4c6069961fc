"""Reads of workflows: one, a page, the versions of one name, the palette. Pure reads of a snapshot.

A list is found from records alone; the definitions are read for the workflows that are shown, and for those that a
query about triggers or nodes compares.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, get_args

from trunkline.actors.core.query.compile import Bounds, Query, compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import (
    Listing,
    candidates,
    find_access_paths,
    ids_of_facet,
    index_range,
    read_page,
)
from trunkline.actors.core.records.page import Match, all_of, envelope, glob_match, glob_range
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.workflows.flows.bodies import FlowClass
from trunkline.actors.workflows.flows.kind import DEFAULT, DEVELOP, FLOW, FLOW_VERSION, TRIGGER_KEYS
from trunkline.actors.workflows.flows.messages import (
    FLOW_BY_VERSION_FIELDS,
    FLOW_FIELDS,
    FLOW_VERSION_FIELDS,
    FlowByVersionPage,
    FlowPage,
    GetFlow,
    GetFlowVersion,
    GetImported,
    GetPalette,
    ListFlows,
    ListFlowsByVersion,
    ListFlowVersions,
    SelectTriggered,
    SelectVersions,
    TriggerFilter,
)
from trunkline.actors.workflows.flows.presenter import FlowPresenter, find_flow, read_definition
from trunkline.actors.workflows.flows.triggers import TYPES
from trunkline.actors.workflows.flows.versions import (
    VersionFound,
    default_version,
    find_version,
    no_version,
    version_by_id,
)
from trunkline.store import keys
from trunkline.store.snapshot import Snapshot

_FLOW_CLASSES = get_args(FlowClass)
_IN_DEFINITION = frozenset({"triggers", "nodes"})


# One.


FindProblems = Callable[[Doc], list[Doc]]
"""The nodes of a definition that cannot run here or ignore something, as `NodeProblem`s."""


def _with_problems(find: FindProblems, shown: Doc) -> Doc:
    found = find(shown)
    return {**shown, "problems": found} if found else shown


def get_flow(find_problems: FindProblems, reading: Reading, message: GetFlow) -> Doc:
    """One workflow."""
    found = find_flow(reading.snapshot, message.application, message.flow)
    presenter = FlowPresenter(
        reading, message.application, with_custom_nodes=message.query.include_custom_nodes
    )
    return _with_problems(find_problems, presenter.flow(found))


def get_flow_version(find_problems: FindProblems, reading: Reading, message: GetFlowVersion) -> Doc:
    """One version."""
    snapshot, application = reading.snapshot, message.application
    flow = find_flow(snapshot, application, message.flow)
    version = find_version(snapshot.get, application, flow.id, flow.doc, message.flow_version)
    if version is None:
        raise no_version(message.flow_version)
    presenter = FlowPresenter(reading, application, with_custom_nodes=message.query.include_custom_nodes)
    return _with_problems(find_problems, presenter.version(flow, version))


def get_imported(find_problems: FindProblems, reading: Reading, message: GetImported) -> Doc:
    """What an import has created. What was deleted in between is left out."""
    snapshot, application = reading.snapshot, message.application
    presenter = FlowPresenter(reading, application)
    flows = {id: records.find(snapshot, FLOW, application, id) for id in message.flows}
    versions = (records.find(snapshot, FLOW_VERSION, application, id) for id in message.versions)
    shown_versions = []
    for each in versions:
        flow = None if each is None else flows.get(bytes.fromhex(each.doc["flowId"]))
        if each is not None and flow is not None:
            shown = presenter.version(flow, VersionFound(*each))
            shown_versions.append(_with_problems(find_problems, shown))
    return {
        "flows": [
            _with_problems(find_problems, presenter.flow(each)) for each in flows.values() if each is not None
        ],
        "flowVersions": shown_versions,
    }


# Lists.


class _Filter(NamedTuple):
    """What a list keeps: a predicate of the stored document with its `id`, and the bounds of indexed fields."""

    match: Match | None
    bounds: Mapping[str, Bounds]


def list_flows(reading: Reading, message: ListFlows) -> Doc:
    """A page of workflows. A query replaces the other filters."""
    query, application = message.query, message.application
    if query.query is None:
        matches = [*glob_match(query, query.filter_field), *_trigger_match(query.trigger_filter)]
        filter = _Filter(all_of(matches), glob_range(query, query.filter_field))
    else:
        filter = _flow_query(reading.snapshot, application, query)
    facet = None if query.query is not None else query.flow_class
    listing = Listing.of(
        query,
        FLOW,
        application,
        match=filter.match,
        facet=facet,
        access_paths=tuple(find_access_paths(FLOW, application, filter.bounds)),
    )
    found, total = read_page(reading, listing)
    presenter = FlowPresenter(reading, application, with_custom_nodes=query.include_custom_nodes)
    shown = envelope("flows", [presenter.flow(each) for each in found], total, query)
    return shown | {"applicationId": application.hex()} | ({} if facet is None else {"flowClass": facet})


def _flow_query(snapshot: Snapshot, application: bytes, page: FlowPage) -> _Filter:
    query = compile_query(page.query, FLOW_FIELDS, at="query")
    with_parts = bool(query.fields & _IN_DEFINITION)

    def one(flow: bytes, version: bytes, doc: Doc) -> bool:
        parts = read_definition(snapshot, application, flow, version) if with_parts else {}
        return query.matches({**doc, "defaultVersion": doc.get("defaultVersionId"), **parts})

    def match(doc: Mapping[str, Any]) -> bool:
        flow = bytes.fromhex(doc["id"])
        if one(flow, ROOT, dict(doc)):
            return True
        if not page.all_versions:
            return False
        versions = (
            records.find(snapshot, FLOW_VERSION, application, id)
            for id in ids_of_facet(snapshot, FLOW_VERSION, application, doc["id"])
        )
        # A version differs from its workflow in what it defines, and in whether it is enabled.
        return any(
            one(flow, each.id, {**doc, "enabled": each.doc["enabled"]})
            for each in versions
            if each is not None
        )

    bounds = {name: each for name, each in query.bounds.items() if name not in ("enabled", "defaultVersion")}
    return _Filter(match if page.query else None, bounds)


def _trigger_match(filters: list[TriggerFilter] | None) -> list[Match]:
    """The triggers that a workflow must have in its default version: any one of them."""
    if not filters:
        return []
    wanted = [(each.type or None, each.key or None) for each in filters]

    def match(doc: Mapping[str, Any]) -> bool:
        return any(
            (type is None or type == has_type) and (key is None or key == has_key)
            for type, key in wanted
            for has_type, has_key in doc[TRIGGER_KEYS]
        )

    return [match]


_TRIGGER_TYPES: Final = {
    "resourceJob": ("resourceJobIteration", "resourceJobIterationTimeout", "resourceJobComplete")
}
"""The types of the triggers of a source, if they have other names than it."""


def select_triggered(reading: Reading, message: SelectTriggered) -> list[bytes]:
    """The ids of the workflows whose version that runs has a trigger of the source, in order."""
    snapshot, application = reading.snapshot, message.application
    reading.check_time(is_long=records.total(snapshot, FLOW, application) > SCAN_INLINE_MAX // 8)
    source, types = message.source.hex(), _TRIGGER_TYPES.get(message.type, (message.type,))

    def is_triggered(id: bytes, doc: Doc) -> bool:
        found: list[list[str]] = doc[TRIGGER_KEYS]
        if any(type in types and key.lower() == source for type, key in found):
            return True
        if message.type != "integration" or all(type != "mqttTopic" for type, _ in found):
            return False
        # The key of such a trigger is a topic; its integration is in the definition.
        running = default_version(snapshot.get, application, id, doc)
        triggers = read_definition(snapshot, application, id, running.id).get("triggers", [])
        brokers = [each.get("config", {}).get("integrationId", "") for each in triggers]
        return any(broker.lower() == source for broker in brokers)

    return [id for id, doc in records.scan(snapshot, FLOW, application) if is_triggered(id, doc)]


def list_flow_versions(reading: Reading, message: ListFlowVersions) -> Doc:
    """A page of the versions of a workflow. A query replaces the filter."""
    query, application = message.query, message.application
    flow = find_flow(reading.snapshot, application, message.flow)
    if query.query is None:
        match = all_of(glob_match(query, query.filter_field))
    else:
        match = _version_query(reading.snapshot, application, flow, query.query)
    listing = Listing.of(query, FLOW_VERSION, application, match=match, facet=flow.id.hex())
    found, total = read_page(reading, listing)
    presenter = FlowPresenter(reading, application, with_custom_nodes=query.include_custom_nodes)
    items = [presenter.version(flow, VersionFound(*each)) for each in found]
    shown = envelope("flowVersions", items, total, query)
    return shown | {"applicationId": application.hex(), "flowId": flow.id.hex()}


def select_versions(reading: Reading, message: SelectVersions) -> list[bytes]:
    """The ids of the versions that a query matches, in order."""
    flow = find_flow(reading.snapshot, message.application, message.flow)
    return matching_versions(reading, message.application, flow, message.body.query)


def matching_versions(reading: Reading, application: bytes, flow: Found, query: Doc) -> list[bytes]:
    """The ids of the versions of a workflow that an advanced query matches, in order. Raises `QueryError`."""
    snapshot = reading.snapshot
    match = _version_query(snapshot, application, flow, query)
    reading.check_time(
        is_long=records.total(snapshot, FLOW_VERSION, application, flow.id.hex()) > SCAN_INLINE_MAX // 8
    )
    listing = Listing(FLOW_VERSION, application, "id", False, 0, 1, match, flow.id.hex())
    return sorted(id for id, _ in candidates(snapshot, listing))


def _version_query(snapshot: Snapshot, application: bytes, flow: Found, query: Doc) -> Match | None:
    compiled = compile_query(query, FLOW_VERSION_FIELDS, at="query")
    of_flow: Doc = {
        name: flow.doc[name] for name in ("name", "flowClass", "customNodeSupports") if name in flow.doc
    }
    with_parts = bool(compiled.fields & _IN_DEFINITION)

    def match(doc: Mapping[str, Any]) -> bool:
        version = bytes.fromhex(doc["id"])
        parts = read_definition(snapshot, application, flow.id, version) if with_parts else {}
        return compiled.matches({**doc, **of_flow, **parts})

    return match if query else None


# The versions of one name, of all workflows.


def list_flows_by_version(reading: Reading, message: ListFlowsByVersion) -> Doc:
    """A page of the versions of one name, sorted as their workflows or by their dates. A query replaces the filters."""
    query, application, snapshot = message.query, message.application, reading.snapshot
    reading.check_time(is_long=_is_long(snapshot, application, query.version))
    match = _by_version_match(query)
    ranked = [
        (_rank(flow, version, query.sort_field), flow.id, version.id)
        for flow, version in _of_name(snapshot, application, query.version)
        if match(flow, version)
    ]
    skip = query.page * query.per_page
    pick = heapq.nlargest if query.sort_direction == "desc" else heapq.nsmallest
    presenter = FlowPresenter(reading, application, with_custom_nodes=query.include_custom_nodes)
    items = []
    for _, flow_id, version_id in pick(skip + query.per_page, ranked)[skip:]:
        flow = find_flow(snapshot, application, flow_id)
        version = version_by_id(
            snapshot.get, application, flow_id, flow_id if version_id == ROOT else version_id
        )
        assert version is not None  # it is the same snapshot
        items.append(presenter.version(flow, version))
    shown = envelope("flowVersions", items, len(ranked), query)
    return shown | {"applicationId": application.hex(), "version": query.version}


def _is_long(snapshot: Snapshot, application: bytes, version: str) -> bool:
    if version in (DEVELOP, DEFAULT):
        return records.total(snapshot, FLOW, application) > SCAN_INLINE_MAX
    _, low, high = index_range(FLOW_VERSION, application, "version", keys.sortable(version))
    beyond = islice(snapshot.keys(keys.INDEXES, low, high), SCAN_INLINE_MAX // 2, None)
    return next(beyond, None) is not None


def _of_name(snapshot: Snapshot, application: bytes, version: str) -> Iterator[tuple[Found, VersionFound]]:
    """Every version of this name with its workflow."""
    if version in (DEVELOP, DEFAULT):
        for id, doc in records.scan(snapshot, FLOW, application):
            flow = Found(id, doc, b"")
            if version == DEFAULT:
                yield flow, default_version(snapshot.get, application, id, flow.doc)
            else:
                yield flow, VersionFound(ROOT, {}, b"")
        return
    _, low, high = index_range(FLOW_VERSION, application, "version", keys.sortable(version))
    for key in snapshot.keys(keys.INDEXES, low, high):
        found = records.find(snapshot, FLOW_VERSION, application, bytes(key[-12:]))
        if found is None or found.doc["version"] != version:  # the index truncates long names
            continue
        parent = records.find(snapshot, FLOW, application, bytes.fromhex(found.doc["flowId"]))
        if parent is not None:
            yield parent, VersionFound(*found)


def _by_version_match(page: FlowByVersionPage) -> Any:
    if page.query is not None:
        query: Query = compile_query(page.query, FLOW_BY_VERSION_FIELDS, at="query")

        def matches_query(flow: Found, version: VersionFound) -> bool:
            doc = version.doc or flow.doc
            id = (flow.id if version.id == ROOT else version.id).hex()
            joined = {"name": flow.doc["name"], "flowClass": flow.doc["flowClass"], "flowId": flow.id.hex()}
            return query.matches({**doc, **joined, "id": id})

        return matches_query
    match = all_of([*glob_match(page, page.filter_field), *_trigger_match(page.trigger_filter)])

    def matches(flow: Found, _version: VersionFound) -> bool:
        return flow.doc["flowClass"] == page.flow_class and (match is None or match(flow.doc))

    return matches


def _rank(flow: Found, version: VersionFound, field: str) -> bytes:
    if field == "id":
        return flow.id if version.id == ROOT else version.id
    doc = flow.doc if field == "name" or version.id == ROOT else version.doc
    return keys.sortable(doc.get(field))


# The palette.


def get_palette(node_types: Callable[[], list[Doc]], reading: Reading, message: GetPalette) -> Doc:
    """The types of triggers and nodes, and the enabled custom nodes by name, each in its default version."""
    snapshot, application = reading.snapshot, message.application
    count = records.total(snapshot, FLOW, application, "customNode")
    reading.check_time(is_long=count > SCAN_INLINE_MAX // 8)
    presenter = FlowPresenter(reading, application)
    nodes = []
    for id in ids_of_facet(snapshot, FLOW, application, "customNode"):
        flow = find_flow(snapshot, application, id)
        if flow.doc["enabled"]:
            nodes.append(
                presenter.palette_node(flow, default_version(snapshot.get, application, id, flow.doc))
            )
    return {
        "applicationId": application.hex(),
        "triggerTypes": [
            {"type": type, "flowClasses": sorted(known.classes or _FLOW_CLASSES)}
            for type, known in sorted(TYPES.items())
            if known.is_started
        ],
        "nodeTypes": node_types(),
        "customNodes": nodes,
        "instanceNodes": [],
    }
