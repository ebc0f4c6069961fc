"""Routes: credentials, what uses them, and integrations."""

from __future__ import annotations

from trunkline.actors.connections.credential_links import GetLinkedResources, LinkedResources
from trunkline.actors.connections.credentials.resource import CREDENTIALS
from trunkline.actors.connections.integrations.resource import INTEGRATIONS, IntegrationRemoval
from trunkline.actors.workflows.flows.messages import FlowShape
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH, Route
from trunkline.http.resources.workflows.triggered_flows import remove_with_flows

ROUTES = (
    *resource_routes(APP_PATH + "/credentials", CREDENTIALS),
    Route(
        method="GET",
        path=APP_PATH + "/credentials/{credentialId}/linkedResources",
        operation="credential.linkedResources",
        summary="List what uses a credential",
        message=GetLinkedResources,
        query=FlowShape,
        reply=LinkedResources,
    ),
    *resource_routes(
        APP_PATH + "/integrations", INTEGRATIONS, remove=IntegrationRemoval, remover=remove_with_flows
    ),
)
