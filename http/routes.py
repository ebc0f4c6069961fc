"""The complete route table: every operation of this server."""

from __future__ import annotations

from trunkline.http.calls.route_table import RouteTable
from trunkline.http.resources import (
    account,
    application_contents,
    application_templates,
    applications,
    audit_logs,
    auth,
    bulk_devices,
    credentials,
    dashboards,
    data_tables,
    devices,
    email,
    events,
    experience,
    exports,
    flows,
    jobs,
    me,
    measurements,
    organizations,
    plain,
    recipes,
    webhooks,
)

TABLE = RouteTable(
    (
        *auth.ROUTES,
        *me.ROUTES,
        *account.ROUTES,
        *email.ROUTES,
        *organizations.ROUTES,
        *audit_logs.ROUTES,
        *applications.ROUTES,
        *application_contents.ROUTES,
        *devices.ROUTES,
        *bulk_devices.ROUTES,
        *measurements.ROUTES,
        *exports.ROUTES,
        *jobs.ROUTES,
        *data_tables.ROUTES,
        *events.ROUTES,
        *flows.ROUTES,
        *plain.ROUTES,
        *recipes.ROUTES,
        *application_templates.ROUTES,
        *webhooks.ROUTES,
        *experience.ROUTES,
        *dashboards.ROUTES,
        *credentials.ROUTES,
    ),
)
