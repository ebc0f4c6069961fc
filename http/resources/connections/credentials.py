"""Routes: credentials, what uses them, and integrations."""

from __future__ import annotations

from trunkline.actors.connections.credential_links import GetLinkedResources, LinkedResources
from trunkline.actors.connections.credentials.resource import CREDENTIALS
from trunkline.actors.connections.integrations.resource import INTEGRATIONS, IntegrationRemoval
from trunkline.actors.workflows.flows.messages import FlowShape
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import get
from trunkline.http.resources.workflows.triggered_flows import remove_with_flows

ROUTES = (
    *resource_routes(
        APP_PATH + "/credentials",
        CREDENTIALS,
        examples=(
            {
                "name": "mail service",
                "type": "sendgrid",
                "sendgridConfig": {"apiKey": "API-KEY"},
            },
            {"description": "For the mails of the farm."},
        ),
    ),
    get(
        APP_PATH + "/credentials/{credentialId}/linkedResources",
        "credential.linkedResources",
        "List what uses a credential",
        GetLinkedResources,
        LinkedResources,
        query=FlowShape,
    ),
    *resource_routes(
        APP_PATH + "/integrations",
        INTEGRATIONS,
        examples=(
            {
                "name": "broker of the barn",
                "integrationType": "mqtt",
                "topics": ["barn/#"],
                "mqttConfig": {"protocol": "mqtts", "host": "broker.example.com", "port": 8883},
            },
            {"topics": ["barn/#", "yard/#"]},
        ),
        remove=IntegrationRemoval,
        remover=remove_with_flows,
    ),
)
