"""What uses a credential: integrations, and workflows whose triggers or nodes name it. A pure read of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import field

from trunkline.actors.connections.credentials.resource import CREDENTIAL
from trunkline.actors.connections.integrations.resource import (
    INTEGRATION,
    INTEGRATIONS,
    IntegrationPage,
    IntegrationView,
)
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.listing import Listing, read_page
from trunkline.actors.core.records.page import Match, Page, envelope
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message, View
from trunkline.actors.core.values.terms import Id
from trunkline.actors.workflows.flows.kind import FLOW, FLOW_VERSION
from trunkline.actors.workflows.flows.messages import FlowPage, FlowShape, FlowVersionPage
from trunkline.actors.workflows.flows.presenter import FlowPresenter, find_flow, read_definition
from trunkline.actors.workflows.flows.versions import VersionFound
from trunkline.actors.workflows.flows.views import FlowVersionView, FlowView
from trunkline.store.snapshot import Snapshot

_ITEMS_MAX: Final = 1000
"""The page of each list: the longest that a list may have."""


class GetLinkedResources(Message, frozen=True):
    """What uses a credential."""

    application: bytes
    credential: bytes
    query: FlowShape


class _Linked(View, frozen=True, kw_only=True):
    """The first thousand that use a credential; `totalCount` counts all."""

    count: int
    total_count: int
    page: int
    per_page: int
    sort_field: str
    sort_direction: str
    application_id: Id
    type: str | None = field(default=None, name="_type")


class LinkedIntegrations(_Linked, frozen=True, kw_only=True):
    """The integrations that use a credential."""

    items: list[IntegrationView]


class LinkedFlows(_Linked, frozen=True, kw_only=True):
    """The workflows whose editable state uses a credential."""

    items: list[FlowView]


class LinkedFlowVersions(_Linked, frozen=True, kw_only=True):
    """The versions of workflows that use a credential."""

    items: list[FlowVersionView]


class LinkedResources(View, frozen=True, kw_only=True):
    """What uses a credential, by its name or its id."""

    integrations: LinkedIntegrations
    flows: LinkedFlows
    flow_versions: LinkedFlowVersions


def get_linked_resources(reading: Reading, message: GetLinkedResources) -> Doc:
    """The answer to `GetLinkedResources`. Raises `NotFound` for an unknown credential."""
    snapshot, application = reading.snapshot, message.application
    credential = records.find(snapshot, CREDENTIAL, application, message.credential)
    if credential is None:
        raise missing(CREDENTIAL, message.credential)
    flows = sum(records.total(snapshot, kind, application) for kind in (FLOW, FLOW_VERSION))
    reading.check_time(is_long=flows > SCAN_INLINE_MAX // 8)
    names = frozenset({credential.doc["name"], credential.id.hex()})
    presenter = FlowPresenter(reading, application, with_custom_nodes=message.query.include_custom_nodes)

    def integrates(doc: Mapping[str, Any]) -> bool:
        return doc.get("credentialName") in names

    def flow_uses(doc: Mapping[str, Any]) -> bool:
        return _uses(snapshot, application, bytes.fromhex(doc["id"]), ROOT, names)

    def version_uses(doc: Mapping[str, Any]) -> bool:
        return _uses(snapshot, application, bytes.fromhex(doc["flowId"]), bytes.fromhex(doc["id"]), names)

    def page(kind: Kind, query: Page, match: Match, show: Any) -> Doc:
        found, total = read_page(reading, Listing.of(query, kind, application, match=match))
        shown = envelope(f"{kind.name}s", [show(each) for each in found], total, query)
        return shown | {"applicationId": application.hex()}

    return {
        "integrations": page(
            INTEGRATION,
            IntegrationPage(per_page=_ITEMS_MAX),
            integrates,
            lambda found: INTEGRATIONS.show({"application": application}, found, None),
        ),
        "flows": page(FLOW, FlowPage(per_page=_ITEMS_MAX), flow_uses, presenter.flow),
        "flowVersions": page(
            FLOW_VERSION,
            FlowVersionPage(per_page=_ITEMS_MAX),
            version_uses,
            lambda found: presenter.version(
                find_flow(snapshot, application, bytes.fromhex(found.doc["flowId"])), VersionFound(*found)
            ),
        ),
    }


def _uses(snapshot: Snapshot, application: bytes, flow: bytes, version: bytes, names: frozenset[str]) -> bool:
    """Whether a version of a workflow names the credential in the `config` of a trigger or a node."""
    definition = read_definition(snapshot, application, flow, version)
    parts = [*definition.get("triggers", ()), *definition.get("nodes", ())]
    return any(_names(part.get("config"), names) for part in parts)


def _names(value: Any, names: frozenset[str]) -> bool:
    """Whether a field for a credential (`credentialNameTemplate`) has one of the names, at any depth."""
    if isinstance(value, list):
        return any(_names(each, names) for each in value)
    if not isinstance(value, dict):
        return False
    return any(
        ("credential" in name.lower() and isinstance(each, str) and (each in names or each.lower() in names))
        or _names(each, names)
        for name, each in value.items()
    )
