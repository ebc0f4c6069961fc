"""The routes of the plain resources of an application, one line for each."""

from __future__ import annotations

from trunkline.actors.dashboards.resource import DASHBOARDS
from trunkline.actors.plain.certificates import AUTHORITIES, CERTIFICATES
from trunkline.actors.plain.device_recipes import RECIPES
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH

ROUTES = (
    *resource_routes(APP_PATH + "/dashboards", DASHBOARDS),
    *resource_routes(APP_PATH + "/device-recipes", RECIPES),
    *resource_routes(APP_PATH + "/certificates", CERTIFICATES),
    *resource_routes(
        APP_PATH + "/certificate-authorities", AUTHORITIES, many="applicationCertificateAuthorities"
    ),
)
