"""The complete route table: every operation of this server, by wing."""

from __future__ import annotations

from trunkline.http.calls.route_table import RouteTable
from trunkline.http.resources.access.routes import ROUTES as ACCESS
from trunkline.http.resources.connections.routes import ROUTES as CONNECTIONS
from trunkline.http.resources.data.routes import ROUTES as DATA
from trunkline.http.resources.fleet.routes import ROUTES as FLEET
from trunkline.http.resources.people.routes import ROUTES as PEOPLE
from trunkline.http.resources.platform.routes import ROUTES as PLATFORM
from trunkline.http.resources.portability.routes import ROUTES as PORTABILITY
from trunkline.http.resources.presentation.routes import ROUTES as PRESENTATION
from trunkline.http.resources.workflows.routes import ROUTES as WORKFLOWS

TABLE = RouteTable(
    (
        *PEOPLE,
        *PLATFORM,
        *FLEET,
        *DATA,
        *WORKFLOWS,
        *ACCESS,
        *CONNECTIONS,
        *PRESENTATION,
        *PORTABILITY,
    ),
)
