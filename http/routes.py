"""The complete route table: every operation of this server."""

from __future__ import annotations

from trunkline.http.calls.route_table import RouteTable
from trunkline.http.resources.access import certificates
from trunkline.http.resources.connections import credentials, webhooks
from trunkline.http.resources.data import contents, data_tables, events, files, topics
from trunkline.http.resources.fleet import (
    bulk_devices,
    deployments,
    device_link,
    devices,
    exports,
    measurements,
    recipes,
    streams,
)
from trunkline.http.resources.people import (
    account,
    audit_logs,
    auth,
    email,
    me,
    organizations,
    single_sign_on,
)
from trunkline.http.resources.platform import (
    application_contents,
    applications,
    clones,
    jobs,
    platform,
    server,
)
from trunkline.http.resources.portability import application_templates, archives, bundles, imports
from trunkline.http.resources.presentation import dashboard_data, dashboards, experience, notebooks, overview
from trunkline.http.resources.workflows import flow_runs, flow_tests, flows

TABLE = RouteTable(
    (
        *auth.ROUTES,
        *platform.ROUTES,
        *server.ROUTES,
        *single_sign_on.ROUTES,
        *me.ROUTES,
        *account.ROUTES,
        *email.ROUTES,
        *organizations.ROUTES,
        *audit_logs.ROUTES,
        *applications.ROUTES,
        *application_contents.ROUTES,
        *overview.ROUTES,
        *streams.ROUTES,
        *devices.ROUTES,
        *device_link.ROUTES,
        *bulk_devices.ROUTES,
        *measurements.ROUTES,
        *exports.ROUTES,
        *bundles.ROUTES,
        *imports.ROUTES,
        *archives.ROUTES,
        *jobs.ROUTES,
        *contents.ROUTES,
        *data_tables.ROUTES,
        *events.ROUTES,
        *flows.ROUTES,
        *flow_runs.ROUTES,
        *flow_tests.ROUTES,
        *deployments.ROUTES,
        *certificates.ROUTES,
        *recipes.ROUTES,
        *application_templates.ROUTES,
        *webhooks.ROUTES,
        *experience.ROUTES,
        *dashboards.ROUTES,
        *dashboard_data.ROUTES,
        *credentials.ROUTES,
        *notebooks.ROUTES,
        *clones.ROUTES,
        # Files.
        *files.ROUTES,
        *topics.ROUTES,
    ),
)
