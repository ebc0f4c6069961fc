"""The plain resources of an application, a line for each."""

from __future__ import annotations

from trunkline.actors.plain.dashboards import DASHBOARDS
from trunkline.actors.plain.device_recipes import RECIPES
from trunkline.actors.plain.webhooks import WEBHOOKS, WebhookRemoval
from trunkline.http.calls.records import records
from trunkline.http.calls.route import APP

ROUTES = (
    *records(APP + "/dashboards", DASHBOARDS),
    *records(APP + "/device-recipes", RECIPES),
    *records(APP + "/webhooks", WEBHOOKS, remove=WebhookRemoval),
)
