"""What uses a credential: a pure read of a snapshot."""

from __future__ import annotations

from typing import Any

from msgspec import field

from trunkline.actors.plain.credentials import CREDENTIAL
from trunkline.actors.plain.integrations import INTEGRATION, INTEGRATIONS, IntegrationPage, IntegrationView
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.listing import Listing, read_page
from trunkline.actors.records.page import envelope
from trunkline.actors.records.reading import Reading
from trunkline.actors.records.resource import missing
from trunkline.actors.values.structs import Message, Query, View
from trunkline.actors.values.terms import Id


class LinkedChoice(Query, frozen=True):
    """`includeCustomNodes`: also look into the custom nodes that a workflow uses."""

    include_custom_nodes: bool = False


class GetLinkedResources(Message, frozen=True):
    """What uses a credential."""

    application: bytes
    credential: bytes
    query: LinkedChoice


class LinkedIntegrations(View, frozen=True, kw_only=True):
    """The integrations that use a credential; `totalCount` also counts those beyond the page."""

    items: list[IntegrationView]
    count: int
    total_count: int
    page: int
    per_page: int
    sort_field: str
    sort_direction: str
    application_id: Id
    type: str | None = field(default=None, name="_type")


class LinkedResources(View, frozen=True, kw_only=True):
    """What uses a credential, by its name or its id."""

    integrations: LinkedIntegrations


def get_linked_resources(reading: Reading, message: GetLinkedResources) -> Doc:
    """The answer to `GetLinkedResources`. Raises `NotFound` for an unknown credential."""
    credential = records.find(reading.snapshot, CREDENTIAL, message.application, message.credential)
    if credential is None:
        raise missing(CREDENTIAL, message.credential)
    return {"integrations": _integrations(reading, message.application, credential.doc["name"])}


def _integrations(reading: Reading, application: bytes, name: str) -> dict[str, Any]:
    query = IntegrationPage(per_page=1000)
    listing = Listing.of(query, INTEGRATION, application, match=lambda doc: doc.get("credentialName") == name)
    found, total = read_page(reading, listing)
    items = [INTEGRATIONS.show({"application": application}, each, None) for each in found]
    shown = envelope("integrations", items, total, query)
    return shown | {"applicationId": application.hex()}
